"""Negation, sums and products.

Step 8: Multiply retains what its backward needs.
"""
