"""What a user holds: an array, its gradient, and where it came from.

Step 5: add the method cleargrad to Variable.
"""
