"""What a user holds: an array, its gradient, and where it came from."""

from mynode.core import backprop
from mynode.core.operators import ArrayMethods
from mynode.core.variable_node import VariableNode, unchain_all


class Variable(ArrayMethods):
    """A box around an array. Its node remembers the operation that computed it."""

    def __init__(self, array, *, name=None, requires_grad=None):
        self.array = array
        self.name = name
        self.requires_grad = array.dtype.kind == "f" if requires_grad is None else requires_grad
        self.grad = None  # the derivative of the last result with respect to this box
        self.grad_var = None  # the same with its graph, if backward was asked for it
        self.node = VariableNode(self)

    @property
    def creator_node(self):
        """The FunctionNode that computed it; None for a leaf."""
        return self.node.creator_node

    @property
    def rank(self):
        """0 for a leaf, else one more than the creator's."""
        return self.node.rank

    def cleargrad(self):
        """Forget the gradient. Call it before each backward, since gradients add up."""
        self.grad = None
        self.grad_var = None

    def unchain(self):
        """Forget the creator: backward stops here."""
        self.node.unchain()

    def unchain_backward(self):
        """Forget the whole graph that computed this box."""
        unchain_all(self.node)

    def backward(self, *, enable_double_backprop=False):
        """Add the gradient of this box to every leaf that it was computed from."""
        backprop.backward(self, enable_double_backprop)
