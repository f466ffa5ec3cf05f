"""Bends between layers.

Step 12: ReLU retains its output: y > 0 where x > 0.
"""
