"""What a user holds: an array, its gradient, and where it came from.

Step 22: Variable gets grad_var, the option of backward, reshape, sum, transpose, T and mT.
"""
