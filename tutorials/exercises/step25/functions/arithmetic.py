"""Negation, sums and products.

Step 25: Subtract gets a backward_accumulate of its own: old - g needs no -g.
"""
