"""Negation, sums and products.

Step 12: Multiply and Divide retain what their backward needs. Add and Subtract need nothing.
"""
