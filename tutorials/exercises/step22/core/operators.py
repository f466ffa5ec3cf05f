"""The operators of a Variable.

Step 22: x > 0 calls __gt__, which gives an array.
"""
