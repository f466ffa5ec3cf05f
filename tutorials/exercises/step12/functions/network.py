"""What the layers of a network compute.

Step 12: Linear retains x and W; the bias is not needed.
"""
