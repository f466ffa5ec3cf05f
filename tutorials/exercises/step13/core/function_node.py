"""One use of an operation.

Step 13: change apply: no graph without a wish for a gradient, or in no_backprop_mode.
"""

from mynode.configuration import config
