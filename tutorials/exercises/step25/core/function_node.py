"""One use of an operation.

Step 25: FunctionNode gets the method backward_accumulate: backward, then sums.
"""
