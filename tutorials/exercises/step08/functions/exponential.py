"""Powers and exponentials.

Step 8: Square and Exp retain what their backward needs.
"""
