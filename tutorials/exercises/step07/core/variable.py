"""What a user holds: an array, its gradient, and where it came from.

Step 7: properties shape, ndim, size and dtype.
"""
