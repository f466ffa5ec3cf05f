"""Exercise your_own_backend: a backend for the library ``frozen``.

The library comes first; leave it as it is. Its arrays, ``Frozen``, never change. ``frozen(array)``
makes a Frozen on the memory of a NumPy array, ``x.to_numpy()`` gives a NumPy array, and
``x.replaced(key, value)`` is a new array with a value at an index. Below it is your part:

1. Write what the class ``FrozenBackend`` lacks: owns, index_of, from_host, to_host, forward. If
   the program writes to its NumPy array afterwards, the array on the device must not change.
2. Write ``put``, the optional part ``FunctionalWrites``: ``put(array, key, value)`` is a new
   array with ``value`` at the index ``key``.
3. Write into ENTRY_POINT the lines of a pyproject.toml that offer BACKEND to other programs. The
   value has the form "module:object". The module is this file, your_own_backend.
"""

import types

import numpy as np

import tinynode as tn

# --- the library: leave it as it is -----------------------------------------------------------


class Frozen:
    """An array that never changes."""

    __array_ufunc__ = None  # NumPy's functions refuse it

    def __init__(self, data):
        self._data, self.shape, self.dtype = data, data.shape, data.dtype
        self.ndim, self.size, self.device = data.ndim, data.size, "cpu"

    def __getitem__(self, key):
        return frozen(self._data[thawed(key)])

    def __float__(self):
        return float(self._data)

    def __bool__(self):
        return bool(self._data)

    def __int__(self):
        return int(self._data)

    def replaced(self, key, value):
        """A new array, with a value at an index."""
        data = self._data.copy()
        data[thawed(key)] = thawed(value)
        return frozen(data)

    def to_numpy(self):
        """A NumPy array with the same values: a copy."""
        return self._data.copy()


def frozen(value):
    """An array of the library on NumPy's memory, which nobody may write to from then on."""
    if isinstance(value, tuple | list):
        return type(value)(frozen(one) for one in value)
    return Frozen(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def thawed(value):
    if isinstance(value, tuple | list):
        return type(value)(thawed(one) for one in value)
    return value._data if isinstance(value, Frozen) else value


def of_the_library(function):
    def call(*inputs, **options):
        return frozen(function(*thawed(inputs), **options))

    return call


library = types.SimpleNamespace()
for word, thing in vars(np).items():
    is_function = callable(thing) and not isinstance(thing, type)
    setattr(library, word, of_the_library(thing) if is_function else thing)

SIGNS = ("add", "sub", "mul", "truediv", "pow", "matmul", "radd", "rsub", "rmul", "rtruediv")
SIGNS += ("neg", "abs", "invert", "and", "or", "lt", "le", "gt", "ge", "eq", "ne")
for sign in SIGNS:
    setattr(Frozen, f"__{sign}__", of_the_library(getattr(np.ndarray, f"__{sign}__")))

# --- the backend: this is yours ---------------------------------------------------------------


class FrozenBackend:
    """The library as a device of tinynode."""

    name = "frozen"
    capabilities = frozenset({"cpu", "float64"})

    def __repr__(self):
        return "FrozenBackend()"

    def devices(self):
        return ("0",)

    def namespace(self):
        return library

    def synchronize(self, index):
        pass

    def lift(self, value):
        return None  # the library has no scalars

    # owns, index_of, from_host, to_host, forward; and put


BACKEND = FrozenBackend()

ENTRY_POINT = """
"""


if __name__ == "__main__":  # python your_own_backend.py
    tn.register_backend(BACKEND)
    x = tn.asarray([1.0, 2.0, 3.0], device="frozen", requires_grad=True)
    y = tn.functions.sum(x[1:] * x[1:])
    y.backward()
    print(float(y), tn.to_host(x.grad))
