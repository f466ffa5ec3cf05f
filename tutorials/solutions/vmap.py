"""Exercise vmap, solved: arrays with a hidden axis."""

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
    return x.raw.reshape(x.raw.shape[0], *(1,) * (axes - x.ndim), *x.shape)


def add(x, y):
    a, b = aligned(x, y)
    return Batched(a + b)


def multiply(x, y):
    a, b = aligned(x, y)
    return Batched(a * b)


def tanh(x):
    return Batched(np.tanh(batched(x).raw))


def sum(x, axis):
    """The sum over an axis of the example; axis may be negative."""
    x = batched(x)
    return Batched(x.raw.sum(axis=axis + 1 if axis >= 0 else axis))


def where(condition, x, y):
    """x where the condition holds in the example, else y."""
    a, b = aligned(x, y)
    axes = max(a.ndim, b.ndim) - 1
    return Batched(np.where(with_axes(batched(condition), axes), a, b))


def vmap(f):
    """f of an example, on all examples: each argument has the examples in axis 0."""

    def on_all(*arrays):
        result = f(*(Batched(x) for x in arrays))
        return np.broadcast_to(result.raw, (len(arrays[0]), *result.shape))

    return on_all


def model(x, t):
    """Code for an example: x: (3,), t: ()."""
    weights = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]])
    hidden = tanh(sum(multiply(weights, x), axis=-1))
    error = add(sum(hidden, axis=0), multiply(t, -1.0))
    return multiply(error, error)


if __name__ == "__main__":  # python vmap.py
    xs, ts = np.linspace(-1, 1, 12).reshape(4, 3), np.arange(4.0)
    print(vmap(model)(xs, ts))
