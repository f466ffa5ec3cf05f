"""One use of an operation.

Step 26: apply calls hook.applied(self, inputs, outputs) for each hook in hooks.active.
"""

from mynode import hooks
