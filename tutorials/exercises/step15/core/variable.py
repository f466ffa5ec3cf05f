"""What a user holds: an array, its gradient, and where it came from.

Step 15: x @ y calls __matmul__.
"""
