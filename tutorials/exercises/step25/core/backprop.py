"""The backward pass: from a result to the leaves.

Step 25: run_backward takes the sums so far out of the table, and calls backward_accumulate.
"""
