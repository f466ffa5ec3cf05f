"""Powers and exponentials.

Step 12: Square and Exp retain what their backward needs.
"""
