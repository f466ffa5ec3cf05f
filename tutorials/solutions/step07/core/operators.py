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
