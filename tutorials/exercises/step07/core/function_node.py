"""One use of an operation.

Step 7: change apply, so that it stores nodes, weak references to outputs, and input_arrays.
"""
