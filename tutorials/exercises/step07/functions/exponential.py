"""Powers and exponentials.

Step 7: backward of Square and of Exp reads self.input_arrays.
"""
