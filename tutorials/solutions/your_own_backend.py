"""Exercise your_own_backend, solved: a backend for the library ``frozen``."""

import types

import numpy as np

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

# --- the backend ------------------------------------------------------------------------------


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

    def owns(self, array):
        return isinstance(array, Frozen)

    def index_of(self, array):
        return "0"

    def from_host(self, array, index):
        return frozen(array.copy())  # a copy: the program may write to its own array

    def to_host(self, array):
        return array.to_numpy()

    def forward(self, node, arrays):
        return node.forward(arrays)

    def put(self, array, key, value):
        return array.replaced(key, value)


BACKEND = FrozenBackend()

ENTRY_POINT = """
[project.entry-points."tinynode.backends"]
frozen = "your_own_backend:BACKEND"
"""
