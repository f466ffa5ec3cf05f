"""What a user holds: an array, its gradient, and where it came from.

Step 10: x @ y calls __matmul__.
"""
