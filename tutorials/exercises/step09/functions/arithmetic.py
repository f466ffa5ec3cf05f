"""Negation, sums and products.

Step 9: numbers in as_operands want no gradient; Multiply computes wanted gradients only.
"""
