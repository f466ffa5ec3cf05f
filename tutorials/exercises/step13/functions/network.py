"""What the layers of a network compute.

Step 13: Linear computes wanted gradients only, with None for the others.
"""
