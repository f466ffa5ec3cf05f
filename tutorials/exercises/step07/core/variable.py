"""What a user holds: an array, its gradient, and where it came from.

Step 7: class Variable(ArrayOperators), in place of Operators.
"""

from mynode.core.operators import ArrayOperators
