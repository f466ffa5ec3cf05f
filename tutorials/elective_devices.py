# %% [markdown]
# # Elective: devices, and which forward runs
#
# **Goal.** You write a forward for the CPU and a forward for GPUs. You see where arrays are, when
# they move, and which forward runs.

# %%
import inspect
import types

import numpy as np

import tinynode as tn
from tinynode import functions as F

# %% [markdown]
# A GPU computes on arrays in its own memory only. A copy to this memory or back often takes longer
# than the computation. So a program must know where its arrays are.
#
# You may have no GPU. So the next cell makes a **stand-in**, a device called `board`. It computes
# with NumPy. Its arrays have a type of their own, as arrays on a GPU, and it counts the copies to
# and from its memory. It has the **capability** `"gpu"`. The stand-in shows the path through
# tinynode, and nothing about CUDA.


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
# `Bell` is $e^{-x^2}$. Up to now a class had one `forward` with `xp`. A class may have two methods
# in place of it: `forward_cpu` and `forward_gpu`. Which of the two runs on `numpy`, on `board`,
# and on `fast`?

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
# `fast` is a CPU: its arrays are in NumPy's memory. The gradients are the same everywhere. One
# `backward` serves all devices, since it consists of functions for all devices.
#
# `forward` of the base class chooses. The next cell prints it:

# %%
source = inspect.getsource(tn.FunctionNode.forward)
print(source[source.index("        if not inputs") :])

# %% [markdown]
# It asks the arrays for their backend, and the backend for the capability `"gpu"`. **If a class
# has its own `forward`, the two others are never called.** The usual case is one `forward` with
# `xp`. Two methods are for functions with other code on a GPU.
#
# ## See
# Two Variables on two devices. `to_device` copies a Variable to a device. It is a function in the
# graph, so the gradient goes back to the device of the Variable.

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
# Does tinynode copy `a` without `to_device`?

# %%
try:
    a * b
except tn.TinynodeError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# No. An error is better than a hidden copy: hidden copies make programs slow, and the reason is
# hard to find. But a program itself may ask for too many copies. The next loop trains `w`, with
# `w` on the CPU and the data on the board:


# %%
def count(loop):
    """The copies that a loop makes."""
    copies.update({"to the board": 0, "back": 0})
    with tn.using_device("numpy"):  # whatever the environment says
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
# A hundred copies for twenty steps. In each step the data and `w` go to the board, and the
# gradient and the loss come back. On a real GPU, each copy back also **waits** until all started
# work is done.
#
# ## Fix it
# Move data and parameters once, before the loop. A model moves by `model.to_device("board")`, or
# is made on the device inside of `with tn.using_device("board"):`. Read the loss now and then, not
# in every step.


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
# CuPy is NumPy for GPUs. `cupy.exp(-x * x)` starts three **kernels**, one for each operation. A
# kernel is a program that a GPU runs for many elements at once. Each of the three reads an array
# and writes an array. A kernel of your own does all in one pass. `ElementwiseKernel` takes the
# inputs, the outputs, the code for *one* element (in C++), and a name.
#
# ```python
# bell = cupy.ElementwiseKernel("T x", "T y", "y = exp(-x * x)", "bell")
# y = bell(x)
# ```
#
# `T` stands for a dtype, the same at each place: the kernel serves 32-bit and 64-bit numbers. The
# next cell has a `forward_gpu` with this kernel. Without a GPU, the cell only prints a note.


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
# Source: Nickolls, Buck, Garland and Skadron, Scalable Parallel Programming with CUDA, 2008.
#
# ## Exercise
# Write `forward_gpu` of `Swish`, $y = x / (1 + e^{-x})$, with one ElementwiseKernel. Without a
# GPU, the check runs the kernel on a stand-in for CuPy, and says which part did not run.
#
#     python -m tinynode.learn start devices
#     python -m tinynode.learn check devices
