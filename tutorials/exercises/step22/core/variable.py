"""What a user holds: an array, its gradient, and where it came from.

Step 22: class Variable(ArrayMethods), in place of ArrayOperators. Variable gets grad_var, and the
option of backward.
"""

from mynode.core.operators import ArrayMethods
