"""The backward pass: from a result to the leaves.

Step 9: run_backward goes on to the next input where a gradient is None, as for labels.
"""
