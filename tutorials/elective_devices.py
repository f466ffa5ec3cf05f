# %% [markdown]
# # Elective: devices, and which forward runs
#
# **Goal.** You give a function one forward for the CPU and one for GPUs, and you see where arrays
# are, when they move, and which of the two ran.

# %%
import inspect
import types

import numpy as np

import tinynode as tn
from tinynode import functions as F

# %% [markdown]
# A GPU has memory of its own. It computes on arrays in that memory only, and copying them there
# and back takes long: often longer than the computation. So it is good to know where arrays are.
#
# You may have no GPU. Here is a **stand-in**, a device called `board`. It computes with NumPy, so
# it is not fast; but its arrays have a type of their own, as those of a GPU have, and it counts
# the copies to it and back. And it has the **capability** `"gpu"`. What it says is true of the way
# through tinynode, and tells nothing about CUDA.


# %%
class OnBoard(np.ndarray):
    """An array in the board's memory."""


copies = {"to the board": 0, "back": 0}


def from_host(array, index):
    copies["to the board"] += 1
    return np.array(array).view(OnBoard)


def to_host(array):
    copies["back"] += 1
    return np.array(array)


board = types.ModuleType("board")
board.name = "board"
board.capabilities = frozenset({"gpu", "float64"})
board.devices = lambda: ("0",)
board.namespace = lambda: np
board.owns = lambda array: isinstance(array, OnBoard)
board.index_of = lambda array: "0"
board.from_host = from_host
board.to_host = to_host
board.synchronize = lambda index: None
board.lift = lambda value: np.asarray(value).view(OnBoard)  # some of NumPy's results lose the type
board.forward = lambda node, arrays: node.forward(arrays)
tn.register_backend(board)

# %% [markdown]
# ## Predict
# `Bell` is `exp(-x^2)`. Up to now you wrote one `forward` with `xp`. You may write two in place of
# it: `forward_cpu` and `forward_gpu`. Which one runs on `numpy`, which on `board`? And on `fast`,
# which is "a faster device" too?

# %%
path = []  # what ran


class Bell(tn.FunctionNode):
    """y = exp(-x^2)   dL/dx = -2 x y dL/dy."""

    def forward_cpu(self, inputs):
        path.append("forward_cpu")
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (np.exp(-x * x),)  # NumPy is right here: on the CPU these are NumPy's arrays

    def forward_gpu(self, inputs):
        path.append("forward_gpu")
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        y = x * x  # a second way to the same numbers, with one array less:
        np.negative(y, out=y)
        return (np.exp(y, out=y),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,), (y,) = self.get_retained_inputs(), self.get_retained_outputs()
        return (-2.0 * x * y * g,)


# %% [markdown]
# ## Run

# %%
for device in "numpy", "fast", "board":
    path.clear()
    x = tn.asarray([-0.5, 0.5, 1.0], device=device, requires_grad=True)
    (y,) = Bell().apply((x,))
    F.sum(y).backward()
    values = [f"{value:.4f}" for value in tn.to_host(y.array).tolist()]
    slopes = [f"{value:.4f}" for value in tn.to_host(x.grad).tolist()]
    print(f"{device:5} {path[0]}  y {' '.join(values)}  x.grad {' '.join(slopes)}")

# %% [markdown]
# `fast` is a CPU: its arrays lie where NumPy's lie. The gradients are the same everywhere, and
# there is one `backward` for all devices, since it is made of functions that run on all.
#
# Who chose? No table, and no `if` of yours. `forward` of the base class did, which you have always
# overridden. This is all of it:

# %%
source = inspect.getsource(tn.FunctionNode.forward)
print(source[source.index("        if not inputs") :])

# %% [markdown]
# It asks the arrays for their backend, and the backend for the capability `"gpu"`. **If you write
# `forward`, the two others are never called.** That is the usual case: one `forward` with `xp`.
# Two are for functions where the GPU needs other code than the CPU.
#
# ## See
# A Variable on each of two devices. `to_device` moves, and it is a function like others: a node of
# the graph. So the gradient finds its way back to the device where the Variable stands.

# %%
a = tn.asarray([1.0, 2.0], device="numpy", requires_grad=True)
b = tn.asarray([3.0, 4.0], device="board", requires_grad=True)
moved = a.to_device("board")
loss = F.sum(moved * b)
a.name, b.name, moved.name, loss.name = "a", "b", "a on the board", "loss"
loss.backward()
for v in a, b:
    print(f"{v.name} is on {v.device}, its gradient {v.grad.tolist()} on {v.grad_var.device}")
tn.show.graph(loss)

# %% [markdown]
# ## Break it
# Without `to_device`, does tinynode move `a` by itself?

# %%
try:
    a * b
except tn.TinynodeError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# No. An error is better than a copy that nobody asked for: copies in silence make programs slow,
# and you would never see why. But you can ask for too many yourself. This loop trains `w`, with
# `w` on the CPU and the data on the board:


# %%
def count(loop):
    """The copies that a loop makes."""
    copies.update({"to the board": 0, "back": 0})
    result = loop()
    print(f"{loop.__name__:9}", copies, f"w = {float(result[0]):.4f}")


x_data, t_data = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])


def careless():
    w = tn.asarray([0.0], dtype="float64", device="numpy", requires_grad=True)
    for _ in range(20):
        x, t = (tn.asarray(data, device="board") for data in (x_data, t_data))
        loss = F.mean_squared_error(w.to_device("board") * x, t)
        w.cleargrad()
        loss.backward()
        w.array = w.array - 0.1 * w.grad
        float(loss)  # looked at in every step
    return w


count(careless)

# %% [markdown]
# A hundred copies for twenty steps. In each step the data go to the board, `w` goes there, its
# gradient comes back, and the loss comes back to be looked at. On a real GPU each copy back also
# **waits**, until all that was asked of the GPU is done.
#
# ## Fix it
# Move everything once, before the loop: data and parameters. Layers do it with
# `model.to_device("board")`, or are made there within `with tn.using_device("board"):`. Look at
# the loss now and then, not in every step.


# %%
def careful():
    x, t = (tn.asarray(data, device="board") for data in (x_data, t_data))
    w = tn.asarray([0.0], dtype="float64", device="board", requires_grad=True)
    for _ in range(20):
        loss = F.mean_squared_error(w * x, t)
        w.cleargrad()
        loss.backward()
        w.array = w.array - 0.1 * w.grad
    return w.to_device("numpy")


count(careless)
count(careful)

# %% [markdown]
# ## Code for a GPU
# CuPy is NumPy for GPUs: `cupy.exp(-x * x)` starts three **kernels**, one for each operation. A
# kernel is a program that a GPU runs for many elements at once. Each of the three reads an array
# from memory and writes one. A kernel of your own can do it in one go: `ElementwiseKernel` takes
# the inputs, the outputs, what to do with *one* element (in C++), and a name.
#
# ```python
# bell = cupy.ElementwiseKernel("T x", "T y", "y = exp(-x * x)", "bell")
# y = bell(x)
# ```
#
# `T` stands for any dtype, the same one wherever it is written: the kernel serves 32-bit and
# 64-bit numbers. So `forward_gpu` would be: retain, and `return (bell(x),)`. The next cell does
# that, if there is a GPU here. If there is none, it says so, and nothing was run.


# %% tags=["varies"]
class BellKernel(Bell):
    """The same, by a kernel of CUDA."""

    def forward_gpu(self, inputs):
        import cupy

        self.retain_inputs((0,))
        self.retain_outputs((0,))
        bell = cupy.ElementwiseKernel("T x", "T y", "y = exp(-x * x)", "bell")
        return (bell(*inputs),)


try:
    x = tn.asarray([0.0, 0.5, 1.0], device="cupy")
except tn.TinynodeError:
    print("No GPU that CuPy can use: the kernel was not run.")
    print("To see why: python -m tinynode backends")
else:
    print("on the GPU:", tn.to_host(BellKernel().apply((x,))[0].array))

# %% [markdown]
# ## Exercise
# Write `forward_gpu` of `Swish`, `y = x / (1 + exp(-x))`, with one ElementwiseKernel. Where there
# is no GPU, the check runs it on a stand-in for CuPy that understands such short kernels; and it
# says what it could not run.
#
#     python -m tinynode.learn start devices
#     python -m tinynode.learn check devices
