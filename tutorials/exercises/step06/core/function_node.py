"""One use of an operation.

Step 6: change apply, so that the operation and its outputs get their ranks.
"""
