"""Exercise vmap: arrays with a hidden axis.

A Batched has the arrays of all examples in ``raw``. The first axis of ``raw`` is hidden: code for
an example does not see the axis. A raw array of length 1 is shared by all examples.

1. Write ``with_axes``: axes of length 1, behind the hidden axis and in front of the others. Then
   ``add`` of a (3,) and a (2, 3) works in each example.
2. Write ``add``, ``multiply``, ``tanh`` and ``sum``. Mind the axis of ``sum``: the example counts
   its axes without the hidden one.
3. Write ``where``, which chooses in each example.
4. Write ``vmap``: hide the axis, call f, and give the raw result with a row for each example.
"""

import numpy as np


class Batched:
    """The arrays of all examples: ``raw`` has the hidden axis in front.

    raw: (n, s), or (1, s) for an array that all examples share. In an example the shape is (s).
    """

    def __init__(self, raw):
        self.raw = np.asarray(raw)

    @property
    def shape(self):
        return self.raw.shape[1:]

    @property
    def ndim(self):
        return len(self.shape)

    def __add__(self, other):
        return add(self, other)

    def __mul__(self, other):
        return multiply(self, other)


def batched(x):
    """A Batched as it is; a number or an array is shared by all examples."""
    return x if isinstance(x, Batched) else Batched(np.asarray(x)[None])


def aligned(x, y):
    """The raw arrays of x and y, with equal numbers of axes: new axes stand behind the hidden."""
    x, y = batched(x), batched(y)
    axes = max(x.ndim, y.ndim)
    return with_axes(x, axes), with_axes(y, axes)


def with_axes(x, axes):
    """The raw array of x with axes of length 1 in front of the example's axes."""
    raise NotImplementedError("write with_axes")


def add(x, y):
    raise NotImplementedError("write add")


def multiply(x, y):
    raise NotImplementedError("write multiply")


def tanh(x):
    raise NotImplementedError("write tanh")


def sum(x, axis):
    """The sum over an axis of the example; axis may be negative."""
    raise NotImplementedError("write sum")


def where(condition, x, y):
    """x where the condition holds in the example, else y."""
    raise NotImplementedError("write where")


def vmap(f):
    """f of an example, on all examples: each argument has the examples in axis 0."""
    raise NotImplementedError("write vmap")


def model(x, t):
    """Code for an example: x: (3,), t: ()."""
    weights = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]])
    hidden = tanh(sum(multiply(weights, x), axis=-1))
    error = add(sum(hidden, axis=0), multiply(t, -1.0))
    return multiply(error, error)


if __name__ == "__main__":  # python vmap.py
    xs, ts = np.linspace(-1, 1, 12).reshape(4, 3), np.arange(4.0)
    print(vmap(model)(xs, ts))
