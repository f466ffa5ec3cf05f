"""Negation, sums and products.

Step 7: Multiply.backward reads self.input_arrays.
"""
