"""Negation, sums and products.

Step 13: numbers in as_operands want no gradient. The page shows BroadcastingNode and Multiply:
None for a gradient that is not wanted.
"""
