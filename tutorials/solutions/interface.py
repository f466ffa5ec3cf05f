"""Exercise interface, solved: a namespace for dual numbers."""

import numpy as np


class Namespace:
    """Functions of the Array API standard, for dual numbers."""

    def asarray(self, x):
        return x if isinstance(x, Dual) else Dual(x, 0.0)

    def exp(self, x):
        y = np.exp(x.value)
        return Dual(y, y * x.rate)

    def sin(self, x):
        return Dual(np.sin(x.value), np.cos(x.value) * x.rate)

    def sqrt(self, x):
        y = np.sqrt(x.value)
        return Dual(y, x.rate / (2 * y))

    def sum(self, x):
        return Dual(np.sum(x.value), np.sum(x.rate))


XP = Namespace()


class Dual:
    """An array of values, and for each value its rate."""

    __array_ufunc__ = None  # a NumPy array on the left leaves the operator to the Dual

    def __init__(self, value, rate):
        self.value = np.asarray(value, dtype=float)
        self.rate = np.broadcast_to(np.asarray(rate, dtype=float), self.value.shape)

    def __array_namespace__(self, *, api_version=None):
        return XP

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
