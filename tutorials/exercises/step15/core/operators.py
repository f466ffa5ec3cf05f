"""The operators of a Variable.

Step 15: x @ y calls __matmul__ of ArrayOperators.
"""
