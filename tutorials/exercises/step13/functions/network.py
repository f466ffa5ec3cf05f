"""What the layers of a network compute.

Step 13: Linear computes a product of matrices for wanted gradients only, else None.
"""
