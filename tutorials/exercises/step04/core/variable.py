"""What a user holds: an array, its gradient, and where it came from.

Step 4: write class Variable(Operators), and give Variable the method backward.
"""

from mynode.core import backprop
from mynode.core.operators import Operators
