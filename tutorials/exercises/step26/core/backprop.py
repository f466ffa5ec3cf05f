"""The backward pass: from a result to the leaves.

Step 26: run_backward calls backward_preprocess and after_backward of each hook in hooks.active.
"""

from mynode import hooks
