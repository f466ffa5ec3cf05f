"""What a user holds: an array, its gradient, and where it came from."""

from mynode.core import backprop
from mynode.core.operators import ArrayOperators


class Variable(ArrayOperators):
    """A box around an array. It remembers the operation that computed it."""

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None  # the FunctionNode that computed it
        self.grad = None  # the derivative of the last result with respect to this box
        self.rank = 0  # a leaf; else one more than the creator's

    def cleargrad(self):
        """Forget the gradient. Call it before each backward, since gradients add up."""
        self.grad = None

    def backward(self):
        """Add the gradient of this box to every box that it was computed from."""
        backprop.backward(self)
