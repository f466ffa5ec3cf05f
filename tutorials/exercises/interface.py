"""Exercise interface: a namespace for dual numbers.

A dual number is a pair: the value v and the rate r = dv/dt, the derivative with respect to some t.
The operators below know the rules: the rate of a product is a.rate * b.value + a.value * b.rate.

1. Write ``Namespace``: ``exp``, ``sin``, ``sqrt`` and ``sum`` of a Dual. Each gives a Dual. The
   rate of f(v) is f'(v) * rate. The rate of a sum is the sum of the rates.
2. ``asarray`` makes a Dual of a number or of an array: its rate is 0. A Dual stays as it is.
3. Write ``Dual.__array_namespace__``: it gives the namespace, the same object at each call.
"""

import numpy as np


class Namespace:
    """Functions of the Array API standard, for dual numbers."""

    def asarray(self, x):
        raise NotImplementedError("write asarray")

    def exp(self, x):
        raise NotImplementedError("write exp")

    def sin(self, x):
        raise NotImplementedError("write sin")

    def sqrt(self, x):
        raise NotImplementedError("write sqrt")

    def sum(self, x):
        raise NotImplementedError("write sum")


XP = Namespace()


class Dual:
    """An array of values, and for each value its rate."""

    __array_ufunc__ = None  # a NumPy array on the left leaves the operator to the Dual

    def __init__(self, value, rate):
        self.value = np.asarray(value, dtype=float)
        self.rate = np.broadcast_to(np.asarray(rate, dtype=float), self.value.shape)

    def __array_namespace__(self, *, api_version=None):
        raise NotImplementedError("give the namespace")

    def __add__(self, other):
        other = XP.asarray(other)
        return Dual(self.value + other.value, self.rate + other.rate)

    def __mul__(self, other):
        other = XP.asarray(other)
        rate = self.rate * other.value + self.value * other.rate
        return Dual(self.value * other.value, rate)

    def __truediv__(self, other):
        other = XP.asarray(other)
        quotient = self.value / other.value
        return Dual(quotient, (self.rate - quotient * other.rate) / other.value)

    def __neg__(self):
        return Dual(-self.value, -self.rate)

    def __sub__(self, other):
        return self + -XP.asarray(other)

    def __radd__(self, other):
        return XP.asarray(other) + self

    def __rsub__(self, other):
        return XP.asarray(other) - self

    def __rmul__(self, other):
        return XP.asarray(other) * self

    def __rtruediv__(self, other):
        return XP.asarray(other) / self


def wave(x):
    """Other people's code: it knows nothing of dual numbers."""
    xp = x.__array_namespace__()
    return xp.sum(xp.exp(-x * x) * xp.sin(3 * x))


if __name__ == "__main__":  # python interface.py
    print("value", wave(np.array([0.5, 1.0])))
    slope = wave(Dual([0.5, 1.0], [1.0, 0.0]))
    print("with respect to x[0]", slope.value, slope.rate)
