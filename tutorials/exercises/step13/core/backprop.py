"""The backward pass: from a result to the leaves.

Step 13: two errors in backward, y.grad is used up, and run_backward asks for wanted gradients.
"""
