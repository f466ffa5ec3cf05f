# %% [markdown]
# # Elective: one program, many array libraries
#
# **Goal.** You write a function once, and a setting chooses the array library that runs it.

# %%
import inspect
import tempfile
import types
from pathlib import Path

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode.config_sources import read_sources

# %% [markdown]
# There are many array libraries: NumPy, PyTorch, JAX, CuPy for GPUs. The **Array API standard**
# lists common names, such as `exp`, `sum`, `where` and `reshape`, with common arguments. tinynode
# calls only these names. A **device** is such a library, with a memory for its arrays. Every
# Variable has a device: `x.device`.
#
# Two devices are always there: `numpy`, and `fast`, which has quicker code for NumPy's arrays (the
# elective `fast_path`). You may have no other library installed. So the next cell makes a
# stand-in: a library whose arrays are **boxes**. A box contains a NumPy array, but NumPy's
# functions refuse a box, as they refuse an array on a GPU. You need not read the cell: the
# elective `your_own_backend` explains it.


# %%
class Box:
    """An array that only the functions of its own library understand."""

    __array_ufunc__ = None  # NumPy's functions raise a TypeError

    def __init__(self, data):
        self.data, self.shape, self.dtype = data, data.shape, data.dtype
        self.ndim, self.size, self.device = data.ndim, data.size, "cpu"

    def __array__(self, *arguments, **options):
        raise TypeError("NumPy cannot look into a box")

    @property
    def mT(self):  # the transpose of a matrix
        return boxed(self.data.mT)

    def __float__(self):
        return float(self.data)

    def __getitem__(self, key):
        return boxed(self.data[unboxed(key)])

    def __setitem__(self, key, value):
        self.data[unboxed(key)] = unboxed(value)


def unboxed(value):
    if isinstance(value, tuple | list):
        return type(value)(unboxed(one) for one in value)
    if isinstance(value, np.ndarray):
        raise TypeError("this library takes boxes, and no arrays of NumPy")
    return value.data if isinstance(value, Box) else value


def boxed(value):
    if isinstance(value, tuple | list):
        return type(value)(boxed(one) for one in value)
    return Box(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def for_boxes(function):
    """A function of NumPy's, for boxes."""

    def call(*inputs, **options):
        return boxed(function(*unboxed(inputs), **options))

    return call


SIGNS = ("add", "sub", "mul", "truediv", "pow", "matmul", "radd", "rsub", "rmul", "rtruediv")
SIGNS += ("neg", "abs", "lt", "le", "gt", "ge", "eq")
for sign in SIGNS:
    setattr(Box, f"__{sign}__", for_boxes(getattr(np.ndarray, f"__{sign}__")))

library = types.SimpleNamespace()
for word, thing in vars(np).items():
    is_function = callable(thing) and not isinstance(thing, type)
    setattr(library, word, for_boxes(thing) if is_function else thing)

box = types.ModuleType("box")
box.name = "box"
box.capabilities = frozenset({"cpu", "float64"})
box.devices = lambda: ("cpu",)
box.namespace = lambda: library
box.owns = lambda array: isinstance(array, Box)
box.index_of = lambda array: "cpu"
box.from_host = lambda array, index: Box(np.array(array))
box.to_host = lambda array: array.data
box.synchronize = lambda index: None
box.lift = lambda value: None
box.forward = lambda node, arrays: node.forward(arrays)
tn.register_backend(box)

DEVICES = "numpy", "fast", "box"

# %% [markdown]
# ## Predict
# **Softplus** is $\log(1 + e^x)$, a smooth relu. Here are two versions. The first calls functions
# of `np`. The second asks the array for its library: `xp = tn.namespace_of(x)`. Which of the two
# runs on which of the three devices? Write down six answers.


# %%
class WithNumPy(tn.FunctionNode):
    """y = log(1 + exp(x))."""

    def forward(self, inputs):
        (x,) = inputs
        return (np.log1p(np.exp(x)),)


class WithNamespace(tn.FunctionNode):
    """y = log(1 + exp(x)), dL/dx = dL/dy * sigmoid(x)."""

    def forward(self, inputs):
        (x,) = inputs
        xp = tn.namespace_of(x)
        self.retain_inputs((0,))
        return (xp.log1p(xp.exp(x)),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g * F.sigmoid(x),)


# %% [markdown]
# ## Run


# %%
def outcome(make, device):
    """What a function gives for -1, 0 and 1 on a device; or how it fails."""
    x = tn.asarray([-1.0, 0.0, 1.0], device=device)
    try:
        (y,) = make().apply((x,))
    except Exception as error:
        return type(error).__name__
    return " ".join(f"{value:.4f}" for value in tn.to_host(y.array).flat)


for device in DEVICES:
    for make in WithNumPy, WithNamespace:
        print(f"{device:5} {make.__name__:13} {outcome(make, device)}")

# %% [markdown]
# Five of six run. On `fast` the function with `np` runs, only because arrays of `fast` are
# NumPy's. **A function that runs on NumPy is not yet portable.** A test needs another library.
#
# All functions of the package are written like `WithNamespace`. This is `tanh` of the package:

# %%
print(inspect.getsource(F.Tanh.forward))

# %% [markdown]
# `backward` needs no `xp`: it consists of functions of Variables, which run on all devices.
#
# Now a whole program. `train` names no device: it uses the current device, `tn.get_device()`.
# Parameters are made on the current device as well. Only the line `with tn.using_device(...)`
# names a device.


# %%
def train():
    """Fit a small network to a sine: the losses, and the first weights."""
    tn.seed(0)
    grid = np.linspace(-1.0, 1.0, 32)[:, None]
    x = tn.asarray(grid, device=tn.get_device())
    t = tn.asarray(np.sin(3.0 * grid), device=tn.get_device())
    model = nn.Sequential(
        nn.Linear(1, 8, dtype="float64"), F.tanh, nn.Linear(8, 1, dtype="float64")
    )
    optimizer = nn.Adam(model, lr=0.05)
    losses = []
    for _ in range(60):
        loss = F.mean_squared_error(model(x), t)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss))
    return losses, tn.to_host(model[0].weight.array), loss


results = {}
for device in DEVICES:
    with tn.using_device(device):
        results[device] = train()

print("device   first loss   last loss   losses as on numpy   weights as on numpy")
reference_losses, reference_weights, _ = results["numpy"]
for device, (losses, weights, _) in results.items():
    same = [np.allclose(losses, reference_losses, atol=1e-9)]
    same.append(np.allclose(weights, reference_weights, atol=1e-9))
    print(
        f"{device:5}    {losses[0]:10.4f}   {losses[-1]:9.4f}   {same[0]!s:>18}   {same[1]!s:>19}"
    )

# %% [markdown]
# The results are equal, up to the last digits. The first weights are equal too: NumPy draws all
# random numbers, and tinynode moves them to the device.
#
# ## See
# The graph of the last loss, from the run on `box`. Look for the boxes in it.

# %%
picture = tn.show.graph(results["box"][2])
lines, lines_on_numpy = (
    str(tn.show.graph(results[device][2])).splitlines() for device in ("box", "numpy")
)
print("the same lines as on numpy, up to the last:", lines[:-1] == lines_on_numpy[:-1])
print("the last:", lines[-1], "/", lines_on_numpy[-1])
picture

# %% [markdown]
# Only the note below the graph names the device. A graph is made of Variables and functions. Only
# `forward` sees the arrays of a library.
#
# **Which setting decides?** The first of these that names a device:
#
# 1. an argument: `tn.asarray([1.0], device="fast")`
# 2. a block: `with tn.using_device("fast"):`
# 3. `tn.config.device = "fast"`, for this thread
# 4. `tn.global_config.device = "fast"`, for all threads
# 5. the environment: `TINYNODE_DEVICE=fast python train.py`
# 6. a file `tinynode.toml`, or the table `[tool.tinynode]` in `pyproject.toml`, in the folder
#    where the program is started or one above
# 7. the default: `numpy`
#
# So a program that names no device can be moved without a change. `tn.config.origin` names the
# source of a setting:

# %%
print("nothing said:    ", tn.get_device())
with tn.using_device("fast"):
    print("a block:         ", tn.get_device(), "<-", tn.config.origin("device"))
before = tn.global_config.device
tn.global_config.device = "fast"
print("for all threads: ", tn.get_device(), "<-", tn.config.origin("device"))
tn.global_config.device = before

# %% [markdown]
# The environment and the file are read when tinynode is imported. The function that reads them is
# `read_sources`, so it can be asked about other environments and folders:


# %%
def decides(environment, folder):
    source = read_sources(environment, Path(folder)).get("device")
    if source is None:
        return "numpy <- the default"
    origin = source.origin.replace(str(Path(folder)), ".").replace(chr(92), "/")
    return f"{source.value} <- {origin}"


with tempfile.TemporaryDirectory() as folder:
    print(decides({}, folder))
    print(decides({"TINYNODE_DEVICE": "fast"}, folder))
    Path(folder, "tinynode.toml").write_text('device = "fast"\n')
    Path(folder, "tinynode.toml").chmod(0o644)  # a file that others can write does not count
    print(decides({}, folder))
    print(decides({"TINYNODE_DEVICE": "numpy"}, folder))

# %% [markdown]
# ## Break it
# Three functions that work on `numpy`, each with one mistake. Their inputs are 32-bit numbers, the
# default.


# %%
class Method(tn.FunctionNode):
    def forward(self, inputs):
        return (inputs[0].sum(axis=-1),)  # arrays of NumPy have this method; the standard has not


class Mixed(tn.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] * np.array([1.0, 2.0, 3.0]),)  # an array of another library


class Wide(tn.FunctionNode):
    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        return (inputs[0] + xp.ones(3),)  # with nothing said, these are 64-bit numbers


def report(make):
    for device in "numpy", "box":
        x = tn.asarray([1.0, 2.0, 3.0], device=device)
        try:
            (y,) = make().apply((x,))
            print(f"{make.__name__:7} {device:5} {x.dtype} -> {y.dtype}")
        except Exception as error:
            print(f"{make.__name__:7} {device:5} {type(error).__name__}")


for make in Method, Mixed, Wide:
    report(make)

# %% [markdown]
# `Wide` is the worst: there is no error. All later arrays take twice the memory, and some devices
# have no 64-bit numbers. `Mixed` does the same on `numpy`. `Method` keeps the dtype, but runs on
# `numpy` only.
#
# ## Fix it
# | in place of | write |
# |---|---|
# | `np.exp(x)`, `x.sum()` | `xp.exp(x)`, `xp.sum(x)` |
# | `np.array([1.0, 2.0])` | `xp.asarray([1.0, 2.0], dtype=x.dtype, device=x.device)` |
# | `xp.ones(3)` | `xp.ones(3, dtype=x.dtype, device=x.device)`, or `xp.ones_like(x)` |
# | `np.log(2.0)` | `math.log(2.0)`: a number of Python takes the dtype of the array beside it |


# %%
class Fixed(tn.FunctionNode):
    def forward(self, inputs):
        (x,) = inputs
        xp = tn.namespace_of(x)
        factors = xp.asarray([1.0, 2.0, 3.0], dtype=x.dtype)
        return (xp.sum(x * factors + xp.ones_like(x), axis=-1),)


report(Fixed)

# %% [markdown]
# The hardest test is a library with the names of the standard and no others: `array_api_strict`.
# It refuses every name and argument that only NumPy has. The device `strict` has arrays of this
# library, and tinynode's own tests run on the device. If the library is installed
# (`pip install array-api-strict`), the next cell runs the last four classes on it.
#
# **Cost.** `tn.namespace_of(x)` looks up a type, once for each call of `forward`. The same code
# runs everywhere, without a copy between devices.

# %% tags=["varies"]
try:
    tn.get_device("strict")
except tn.errors.DeviceError:
    print("array_api_strict is not installed: nothing was run on it")
else:
    for make in Method, Mixed, Wide, Fixed:
        print(f"{make.__name__:7} {outcome(make, 'strict')}")

# %% [markdown]
# Source: Meurer et al., Python Array API Standard: Toward Array Interoperability in the Scientific
# Python Ecosystem, 2023.
#
# ## Exercise
# Your file has a function with many calls of `np`. Rewrite it for any library: without `np`, on
# any device, and with outputs of the dtype of the inputs.
#
#     python -m tinynode.learn start portability
#     python -m tinynode.learn check portability
