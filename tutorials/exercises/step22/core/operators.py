"""The operators of a Variable.

Step 22: ArrayMethods is given, the new base of Variable.
"""

import mynode


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
