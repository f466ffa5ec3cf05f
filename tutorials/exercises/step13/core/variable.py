"""What a user holds: an array, its gradient, and where it came from.

Step 13: Variable gets requires_grad, unchain and unchain_backward, which calls unchain_all.
"""

from mynode.core.variable_node import unchain_all
