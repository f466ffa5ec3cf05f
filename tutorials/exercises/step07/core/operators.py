"""The operators of a Variable.

Step 7: ArrayOperators is given, the new base of Variable.
"""

import mynode


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
