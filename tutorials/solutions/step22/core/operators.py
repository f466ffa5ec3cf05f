"""The operators of a Variable."""

import mynode


class Operators:
    """Base of Variable: x + y calls mynode.add(x, y), and so on."""

    __array_ufunc__ = None  # NumPy must not take x apart: array * x asks x.__rmul__

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

    def __neg__(self):
        return mynode.negative(self)


class ArrayOperators(Operators):
    """Base of Variable: what arrays have too, and x / y."""

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

    def __truediv__(self, other):
        return mynode.divide(self, other)

    def __rtruediv__(self, other):
        return mynode.divide(other, self)

    def __matmul__(self, other):
        return mynode.matmul(self, other)


class ArrayMethods(ArrayOperators):
    """Base of Variable: the methods of NumPy's arrays that the backward methods call."""

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

    def __gt__(self, other):
        return self.array > other  # an array: a comparison has no gradient
