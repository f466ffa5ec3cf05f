"""Exercise vmap: arrays with a hidden axis.

A ``Batched`` has a NumPy array ``raw``. The first axis of ``raw`` is hidden: it counts the
examples. Code that gets a Batched sees the other axes only. A length of 1 means: all examples
share the array.

1. ``Batched.shape`` and ``Batched.ndim``: those of one example.
2. ``aligned(x, y)``: both raw arrays, with the same number of axes. NumPy aligns shapes at the
   right, so an x of shape () beside a y of shape (3) needs an axis of length 1 *behind* the hidden
   axis: (n) becomes (n, 1). Write ``add`` and ``multiply`` with it.
3. ``sum(x, axis)``: axis counts the axes of one example; -1 is the last, None means all of them.
4. ``matmul(x, y)``, as np.matmul does it in one example: of vectors (k), matrices (m, k), and
   stacks of matrices (..., m, k). For NumPy, the hidden axis of a vector would be the rows of a
   matrix: a vector needs an axis more. For a matrix beside a stack, use ``aligned``.
5. ``vmap(f, in_axes)``: a function of NumPy arrays. in_axes has an entry for each argument: the
   axis of the examples, also negative; or None for an argument that all examples share. The result
   has the examples in the axis 0, also if f gives the same for all.
"""

import numpy as np


class Namespace:
    """Functions of the Array API standard, for Batched arrays."""

    def asarray(self, x):
        """A Batched stays; all examples share a number or an array."""
        return x if isinstance(x, Batched) else Batched(np.asarray(x, dtype=float)[None])

    def exp(self, x):
        return Batched(np.exp(x.raw))

    def add(self, x, y):
        raise NotImplementedError("write add")

    def multiply(self, x, y):
        raise NotImplementedError("write multiply")

    def sum(self, x, axis=None):
        raise NotImplementedError("write sum")

    def matmul(self, x, y):
        raise NotImplementedError("write matmul")


XP = Namespace()


class Batched:
    """The arrays of all examples: raw (n, s) looks like an array of shape s."""

    __array_ufunc__ = None  # a NumPy array on the left leaves the operator to the Batched

    def __init__(self, raw):
        self.raw = raw

    @property
    def shape(self):
        raise NotImplementedError("write shape")

    @property
    def ndim(self):
        raise NotImplementedError("write ndim")

    def __array_namespace__(self, *, api_version=None):
        return XP

    def __add__(self, other):
        return XP.add(self, XP.asarray(other))

    def __mul__(self, other):
        return XP.multiply(self, XP.asarray(other))

    def __matmul__(self, other):
        return XP.matmul(self, XP.asarray(other))

    def __radd__(self, other):
        return XP.add(XP.asarray(other), self)

    def __rmul__(self, other):
        return XP.multiply(XP.asarray(other), self)

    def __rmatmul__(self, other):
        return XP.matmul(XP.asarray(other), self)


def aligned(x, y):
    """The raw arrays of two Batched, with the same number of axes."""
    raise NotImplementedError("write aligned")


def vmap(f, in_axes):
    """A function that calls f once, for all examples."""
    raise NotImplementedError("write vmap")


def softmax_layer(x, w, b):
    """Other people's code, for one example: x: (k), w: (k, m), b: () -> (m)."""
    xp = x.__array_namespace__()
    powers = xp.exp(x @ w + b)
    return powers * (1.0 + xp.sum(powers, axis=-1))


if __name__ == "__main__":  # python vmap.py
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 2)), rng.normal(size=5)
    print(vmap(softmax_layer, (0, None, 0))(x, w, b))
    powers = [np.exp(x[i] @ w + b[i]) for i in range(5)]
    print("expected", np.stack([p * (1.0 + p.sum()) for p in powers]), sep="\n")
