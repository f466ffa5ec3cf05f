"""One use of an operation.

Step 11: change apply, so that it stores nodes, and weak references to the nodes of outputs.
"""
