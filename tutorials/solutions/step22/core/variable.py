"""What a user holds: an array, its gradient, and where it came from."""

import mynode
from mynode.core import backprop
from mynode.core.operators import Operators
from mynode.core.variable_node import VariableNode


class Variable(Operators):
    """A box around an array. Its node remembers the operation that computed it."""

    def __init__(self, array, *, name=None, requires_grad=None):
        self.array = array
        self.name = name
        self.requires_grad = array.dtype.kind == "f" if requires_grad is None else requires_grad
        self.grad = None  # the derivative of the last result with respect to this box
        self.grad_var = None  # the same with its graph, if backward was asked for it
        self.node = VariableNode(self)

    @property
    def shape(self):
        """The lengths of the axes."""
        return self.array.shape

    @property
    def ndim(self):
        """The number of axes."""
        return self.array.ndim

    @property
    def size(self):
        """The number of elements."""
        return self.array.size

    @property
    def dtype(self):
        """The type of the elements."""
        return self.array.dtype

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
        waiting = [self.node]
        while waiting:
            node = waiting.pop()
            if node.creator_node is not None:
                waiting += node.creator_node.inputs
                node.unchain()

    def backward(self, *, enable_double_backprop=False):
        """Add the gradient of this box to every leaf that it was computed from."""
        backprop.backward(self, enable_double_backprop)

    def reshape(self, *shape):
        """The same numbers in another shape: reshape(2, 3) or reshape((2, 3))."""
        return mynode.reshape(self, shape[0] if isinstance(shape[0], tuple) else shape)

    def sum(self, axis=None, keepdims=False):
        """The sum over an axis, several, or all."""
        return mynode.sum(self, axis, keepdims)

    def transpose(self, *axes):
        """The axes in another order: transpose(0, 2, 1) or transpose((0, 2, 1))."""
        return mynode.permute_dims(self, axes[0] if isinstance(axes[0], tuple) else axes)

    @property
    def T(self):
        """The axes in the reverse order."""
        return mynode.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self):
        """Each matrix of a stack with its axes exchanged."""
        return mynode.matrix_transpose(self)
