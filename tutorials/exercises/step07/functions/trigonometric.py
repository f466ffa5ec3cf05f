"""Sines and their relatives.

Step 7: Sin.backward reads self.input_arrays.
"""
