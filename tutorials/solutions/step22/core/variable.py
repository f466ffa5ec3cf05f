"""What a user holds: an array, its gradient, and where it came from."""

import mynode
from mynode.core import backprop
from mynode.core.variable_node import VariableNode


class Variable:
    """A box around an array. Its node remembers the operation that computed it."""

    __array_ufunc__ = None  # NumPy must not take x apart: array * x asks x.__rmul__

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

    @property
    def T(self):
        """The matrix with its axes exchanged."""
        return mynode.matrix_transpose(self)

    def __gt__(self, other):
        return self.array > other  # an array: a comparison has no gradient

    def __add__(self, other):
        return mynode.add(self, other)

    def __radd__(self, other):
        return mynode.add(other, self)

    def __sub__(self, other):
        return mynode.subtract(self, other)

    def __rsub__(self, other):
        return mynode.subtract(other, self)

    def __mul__(self, other):
        return mynode.multiply(self, other)

    def __rmul__(self, other):
        return mynode.multiply(other, self)

    def __truediv__(self, other):
        return mynode.divide(self, other)

    def __rtruediv__(self, other):
        return mynode.divide(other, self)

    def __neg__(self):
        return mynode.negative(self)

    def __matmul__(self, other):
        return mynode.matmul(self, other)
