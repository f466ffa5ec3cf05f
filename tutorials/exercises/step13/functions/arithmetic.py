"""Negation, sums and products.

Step 13: numbers in as_operands want no gradient; Multiply computes wanted gradients only, and
BroadcastingNode.unbroadcast leaves None as None.
"""
