"""What a user holds: an array, its gradient, and where it came from.

Step 6: give a new Variable the rank 0.
"""
