"""What a user holds: an array, its gradient, and where it came from.

Step 9: Variable gets requires_grad, unchain and unchain_backward.
"""
