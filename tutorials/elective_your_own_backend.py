# %% [markdown]
# # Elective: write your own backend
#
# **Goal.** You connect tinynode to an unknown array library, by one small class.

# %%
import collections
import importlib
import inspect
import sys
import tempfile
import types
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode.devices import (
    OPTIONAL_PARTS,
    Backend,
    FunctionalWrites,
    Scatter,
    members_of,
    supports,
)

# %% [markdown]
# First we need a library. PyTorch or JAX may not be installed. So the next cell makes a library,
# `counting`. It has the names of the Array API standard, and **counts** its calls. It computes
# with NumPy. Its arrays **never change**, as those of JAX: in place of `x[0] = 5`, `x.replaced(0,
# 5)` gives a new array.
#
# It has three parts: the arrays, the functions, and the operators `+ - * ...` of the arrays.

# %%
work = collections.Counter()


class Counted:
    """An array that never changes."""

    __array_ufunc__ = None  # NumPy's functions refuse it

    def __init__(self, data):
        self._data, self.shape, self.dtype = data, data.shape, data.dtype
        self.ndim, self.size, self.device = data.ndim, data.size, "cpu"

    def __getitem__(self, key):
        return counted(self._data[inside(key)])

    @property
    def mT(self):  # the transpose of a matrix
        return counted(self._data.mT)

    def __float__(self):
        return float(self._data)

    def __bool__(self):
        return bool(self._data)

    def __int__(self):
        return int(self._data)

    def replaced(self, key, value):
        """A new array, with a value at an index."""
        data = self._data.copy()
        data[inside(key)] = inside(value)
        return counted(data)


def inside(value):
    """NumPy's array in one of the library; also within tuples and lists."""
    if isinstance(value, tuple | list):
        return type(value)(inside(one) for one in value)
    return value._data if isinstance(value, Counted) else value


def counted(value):
    """An array of the library for one of NumPy's; also within tuples and lists."""
    if isinstance(value, tuple | list):
        return type(value)(counted(one) for one in value)
    if not isinstance(value, np.ndarray | np.generic):
        return value
    return Counted(np.asarray(value))


def function_of_the_library(function):
    """A function of NumPy's as one of the library."""

    def call(*inputs, **options):
        work[function.__name__.strip("_")] += 1
        return counted(function(*inside(inputs), **options))

    return call


library = types.SimpleNamespace()
for word, thing in vars(np).items():
    is_function = callable(thing) and not isinstance(thing, type)
    setattr(library, word, function_of_the_library(thing) if is_function else thing)

SIGNS = ("add", "sub", "mul", "truediv", "pow", "matmul", "radd", "rsub", "rmul", "rtruediv")
SIGNS += ("neg", "abs", "invert", "and", "or", "lt", "le", "gt", "ge", "eq", "ne")
for sign in SIGNS:
    operator = getattr(np.ndarray, f"__{sign}__")
    setattr(Counted, f"__{sign}__", function_of_the_library(operator))

# %% [markdown]
# A **backend** is the object between tinynode and a library. The **protocol** `Backend` lists its
# functions:

# %%
parts = [name for name in vars(Backend) if not name.startswith("_")]
for part in parts:
    print(f"{part + '()':14} {inspect.getdoc(getattr(Backend, part)).splitlines()[0]}")

# %% [markdown]
# `name` and `capabilities` complete the list. Most functions have a single line.


# %%
class CountingBackend:
    """The library ``counting`` as a device of tinynode."""

    name = "counting"
    capabilities = frozenset({"cpu", "float64"})

    def devices(self):
        return ("0",)  # one device. With more, they are counting:0, counting:1 ...

    def namespace(self):
        return library

    def owns(self, array):
        return isinstance(array, Counted)

    def index_of(self, array):
        return "0"

    def from_host(self, array, index):
        work["bytes from the host"] += array.nbytes
        return Counted(np.array(array))  # a copy: these arrays never change, NumPy's do

    def to_host(self, array):
        work["bytes to the host"] += array._data.nbytes
        return array._data.copy()

    def synchronize(self, index):
        pass  # nothing runs in the background

    def lift(self, value):
        return None  # it has no scalars: all its results are arrays

    def forward(self, node, arrays):
        return node.forward(arrays)  # kernels of its own would be called here


counting = CountingBackend()
tn.register_backend(counting)
print(tn.asarray([1.0, 2.0], device="counting").device)

# %% [markdown]
# ## Predict
# The backend is complete. No function, gradient, layer or optimizer of tinynode was written for
# this library. The next cell trains a small network on it. Does the training run? And which of
# these functions fail, on arrays that never change?
#
#     x * x    softmax    x[:, 1]    pad    take    conv2d
#
# ## Run


# %%
def train(device, steps=30):
    """The losses of a small network."""
    tn.seed(0)
    with tn.using_device(device):
        x = tn.asarray(np.linspace(-1.0, 1.0, 20)[:, None], device=device)
        t = tn.asarray(np.linspace(-1.0, 1.0, 20)[:, None] ** 2, device=device)
        model = nn.Sequential(
            nn.Linear(1, 6, dtype="float64"), F.tanh, nn.Linear(6, 1, dtype="float64")
        )
        optimizer = nn.SGD(model, lr=0.2)
        losses = []
        work.clear()
        for _ in range(steps):
            loss = F.mean_squared_error(model(x), t)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(loss)
        during = dict(work)
    return [float(loss) for loss in losses], during


on_numpy, _ = train("numpy")
on_counting, during = train("counting")
print("first and last loss:", *(f"{on_counting[i]:.4f}" for i in (0, -1)))
print("the same as on numpy:", np.allclose(on_numpy, on_counting))
moved = [name for name in during if name.startswith("bytes")]
print("bytes from or to the host while training:", sum(during[name] for name in moved))

# %% [markdown]
# The training runs, and stays on its device: no byte goes to NumPy and back. You wrote no
# gradient.
#
# ## See
# The calls of the library in one training step, by function and operator. A few names have most of
# the calls.

# %%
_, once = train("counting", steps=1)
often = sorted(once, key=lambda name: (-once[name], name))
tn.show.bars({name: once[name] for name in often}, title="One training step", x_label="calls")

# %% [markdown]
# Now the six functions. The table compares values and gradients with those on `numpy`, and counts
# the bytes over the host.


# %%
def second_column(x):
    return x[:, 1]


def square(x):
    return x * x


def pad(x):
    return F.pad(x, ((1, 1), (0, 0)))


def take(x):
    return F.take(x, tn.asarray(np.array([1, 1, 0]), device=x.device), axis=0)


def conv2d(x):
    w = tn.asarray(np.ones((1, 1, 2, 2)), device=x.device)
    return F.conv2d(F.reshape(x, (1, 1, 3, 4)), w)


def run(function, device):
    """Its values and its gradient, as NumPy's arrays, and the bytes over the host in between."""
    x = tn.asarray(np.linspace(0.1, 1.2, 12).reshape(3, 4), device=device, requires_grad=True)
    before = work["bytes from the host"] + work["bytes to the host"]
    y = function(x)
    F.sum(y * y).backward()
    moved = work["bytes from the host"] + work["bytes to the host"] - before
    return tn.to_host(y.array), tn.to_host(x.grad), moved


def table():
    for function in (square, F.softmax, second_column, pad, take, conv2d):
        expected = run(function, "numpy")
        try:
            y, gx, moved = run(function, "counting")
            right = np.allclose(y, expected[0]) and np.allclose(gx, expected[1])
            text = f"{'right' if right else 'WRONG'}, {moved} bytes over the host"
        except Exception as error:
            text = f"FAILS: {type(error).__name__}: {error}"
        print(f"{function.__name__:14} {text}")


table()

# %% [markdown]
# Three fail, for one reason: their forward or their gradient fills an array piece by piece. And
# `take` moves more bytes over the host than its indices. Its gradient adds up rows by index. The
# standard has no such function, so NumPy computes it.
#
# A backend may have **optional parts** for such functions. Each part is a small `Protocol`. These
# are all parts, with their members:

# %%
for part in OPTIONAL_PARTS:
    print(f"{part.__name__:16} {', '.join(members_of(part))}")

# %% [markdown]
# `counting` lacks two parts: `FunctionalWrites`, for functions that fill arrays, and `Scatter`,
# for the gradients of indexing. tinynode asks `supports(backend, part)`: True if the backend has
# all members of the part.
#
# ## Break it
# Three mistakes: a member with a wrong name, a missing function, and a taken name of the backend.


# %%
def puts(self, array, key, value):  # the name is wrong
    return array.replaced(key, value)


CountingBackend.puts = puts
print("supports FunctionalWrites:", supports(counting, FunctionalWrites))
del CountingBackend.puts


class HalfABackend:
    name = "half"
    capabilities = frozenset()

    def devices(self):
        return ("0",)

    def __repr__(self):
        return "HalfABackend()"


for wrong in HalfABackend(), CountingBackend():
    try:
        tn.register_backend(wrong)
    except tn.TinynodeError as error:
        print(f"{type(error).__name__}: {str(error).split(' <')[0]}")

# %% [markdown]
# ## Fix it
# Both functions are short. They become methods of the class:


# %%
def put(self, array, key, value):
    return array.replaced(key, value)


def add_at(self, indices, values, length):
    result = np.zeros((length, *values.shape[1:]), dtype=values.dtype)
    np.add.at(result, inside(indices), inside(values))
    return counted(result)


CountingBackend.put, CountingBackend.add_at = put, add_at
print("supports both:", supports(counting, FunctionalWrites) and supports(counting, Scatter))
table()

# %% [markdown]
# All are right. The remaining bytes over the host are the indices of `take` and the weights of
# `conv2d`, which start on the host.
#
# **PyTorch and JAX.** tinynode brings a backend for each, in under 90 lines: the devices `torch`
# and `jax`. tinynode's tests run the table of functions on both. Compare them with yours. The next
# cell prints the backend for PyTorch, from `owns` on, without docstrings:

# %%
path = Path(find_spec("tinynode_torch").origin)  # PyTorch itself is not imported
text = path.read_text(encoding="utf-8")
print("lines in all, fewer than 90:", len(text.splitlines()) < 90)
for block in text.split("\n\n\n")[3:]:
    head, _, rest = block.partition("\n")
    print(head, *rest.rpartition('"""\n')[2].splitlines(), sep="\n")

# %% [markdown]
# ## So that others find it
# `register_backend` makes a backend known to one program. An installed package does this by an
# **entry point**, a line in its `pyproject.toml`. pip records the line at the installation.
# tinynode reads the entry points when a program names an unknown device.
#
# ```toml
# [project.entry-points."tinynode.backends"]
# mine = "my_package.mine_backend"
# ```
#
# The next cell does what pip would do, in a temporary folder on Python's search path: a module,
# and beside it the note of an installed package. The backend `mine` is small: its memory and all
# its functions are NumPy's.

# %%
module = """
from tinynode_numpy import (
    capabilities, devices, forward, from_host, index_of, lift, namespace, owns, synchronize,
    to_host,
)
name = "mine"
base = "numpy"
"""
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "mine_backend.py").write_text(module)
    note = Path(folder, "mine-1.0.dist-info")
    note.mkdir()
    (note / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (note / "entry_points.txt").write_text("[tinynode.backends]\nmine = mine_backend\n")
    sys.path.insert(0, folder)
    importlib.invalidate_caches()  # new files: Python looks again
    with tn.using_device("mine"):
        print("a Variable on the device", tn.asarray([1.0]).device)
    sys.path.remove(folder)

# %% [markdown]
# The program imported and registered no backend. The name of the device was enough, and
# `TINYNODE_DEVICE=mine` would do as well.
#
# **Cost.** A backend adds a call of its `forward` for each function. Bytes that go over the host
# cost more: count them, as the page did.
#
# Source: Okuta et al., CuPy: A NumPy-Compatible Library for NVIDIA GPU Calculations, 2017.
#
# ## Exercise
# Your file has a small library, `frozen`, whose arrays never change. Write its backend with `put`,
# and the entry point that names your file.
#
#     python -m tinynode.learn start your_own_backend
#     python -m tinynode.learn check your_own_backend
