# %% [markdown]
# # Elective: the fast path, and Fallback
#
# **Goal.** You write quicker code for the cases that matter, leave all others to the forward that
# you have, and see which of the two ran, and why.

# %%
import inspect
import time
import tracemalloc

import numpy as np

import tinynode as tn
from tinynode import functions as F

tn.show.fallbacks(reset=True)  # the counts of this step begin here

# %% [markdown]
# The Array API standard has no way to say *write the result there*. So `xp.exp(-x)` makes two
# arrays where one would do. For large arrays, fetching fresh memory and going through it is most
# of the work.
#
# The device `fast` has NumPy's arrays, so its code may use all that NumPy has. A function that
# wants to be quick there gets one more method, **`forward_fast`**. It returns the outputs, as
# `forward` does. Or it returns **`tn.Fallback("why")`**: I do not serve this case, run `forward`.
#
# ## Predict
# `SumOfSquares` has both. `np.dot(v, v)` multiplies and adds in one pass, without an array in
# between. It is written for 32-bit and 64-bit numbers. Three calls: on `numpy` with 64 bits, on
# `fast` with 64 bits, on `fast` with 16 bits. What will each append to `path`?

# %%
path = []


class SumOfSquares(tn.FunctionNode):
    """y = sum(x^2)   dL/dx = 2 x dL/dy."""

    def forward(self, inputs):
        path.append("forward")
        (x,) = inputs
        xp = tn.namespace_of(x)
        self.retain_inputs((0,))
        return (xp.sum(x * x),)

    def forward_fast(self, inputs):
        path.append("forward_fast")
        (x,) = inputs
        if x.dtype not in (np.float32, np.float64):
            return tn.Fallback(f"{x.dtype} has no kernel")
        self.retain_inputs((0,))
        v = x.reshape(-1)
        return (np.asarray(np.dot(v, v)),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (2.0 * x * g,)


# %% [markdown]
# ## Run

# %%
for device, dtype in ("numpy", "float64"), ("fast", "float64"), ("fast", "float16"):
    path.clear()
    x = tn.asarray([1.0, 2.0, 3.0], device=device, dtype=dtype, requires_grad=True)
    (y,) = SumOfSquares().apply((x,))
    y.backward()
    print(f"{device:5} {dtype}: {' -> '.join(path):23} y {float(y):g}  x.grad {x.grad.tolist()}")

# %% [markdown]
# The same numbers three times, by three ways. In the last line both ran: the quick code looked at
# the dtype, and declined.
#
# `forward_fast` replaces `forward`, and nothing else. Type checks, the graph, backward, and hooks
# are around it as before. Here is a hook; does it see the quick way?


# %%
class Names(tn.FunctionHook):
    name = "names"

    def forward_postprocess(self, function, in_data):
        print("the hook saw", function.label, "after", path[-1])


for device in "numpy", "fast":
    with Names():
        SumOfSquares().apply((tn.asarray([1.0, 2.0], device=device),))

# %% [markdown]
# ## See
# Functions of the package have kernels on `fast` as well. `tn.show.fallbacks()` is a table of what
# ran on a kernel, and of what fell back and why. Its last column is the time, which differs from
# run to run: it is cut off here. (The arrays are large, since for small ones many kernels are not
# worth it; such calls run as on `numpy`, and are not counted.)


# %%
def coverage():
    """The table of fallbacks, without its times."""
    rows = [line.rsplit("  ", 1)[0].rstrip() for line in tn.show.fallbacks().splitlines()]
    print("\n".join(rows[:2] + sorted(rows[2:])))


rng = np.random.default_rng(0)
data = rng.normal(size=(200, 1000)).astype("float32")
x = tn.asarray(data, device="fast", requires_grad=True)
F.sum(F.gelu(x)).backward()
F.softmax(x)
F.erf(x)
F.gelu(tn.asarray(data[:20].astype("float16"), device="fast"))
coverage()

# %% [markdown]
# Read the lines with `no:`. `Erf` has no kernel at all. `GELU` has one, but not for 16 bits. If a
# program on `fast` is slower than you hoped, this table says where to look.
#
# What is won? First the memory: how much is taken while the function runs, counted in arrays of
# the size of `x`.


# %%
def arrays_taken(call):
    """The most memory that a call takes at one time, in arrays like ``data``."""
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / data.nbytes)


def call_on(device, function):
    """Something to call: the function on that device."""
    x = tn.asarray(data, device=device)
    return lambda: function(x)


def sum_of_squares(x):
    return SumOfSquares().apply((x,))[0]


for device in "numpy", "fast":
    taken = {f.__name__: arrays_taken(call_on(device, f)) for f in (sum_of_squares, F.gelu)}
    print(f"{device:5} {taken}")

# %% [markdown]
# The result of `gelu` is one of these arrays, so nothing is wasted there. And the time, on the
# machine that made this page. A bar of 2 means: twice as quick on `fast` as on `numpy`.


# %% tags=["varies"]
def seconds(call):
    """The shortest of five calls."""
    best = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        best.append(time.perf_counter() - start)
    return min(best)


quicker = {
    function.__name__: seconds(call_on("numpy", function)) / seconds(call_on("fast", function))
    for function in (sum_of_squares, F.gelu, F.sigmoid, F.softmax, F.tanh, F.erf)
}
tn.show.bars(quicker, title="fast beside numpy", x_label="times as quick")

# %% [markdown]
# A bar near 1 is no failure: `tanh` is one call of NumPy, where nothing can be won, and `erf` fell
# back. **No function has to have a kernel.** Write one where a measurement says that it matters.
#
# ## Break it
# Two kernels that are quick and wrong. `InPlace` saves the array for the squares, too: it writes
# them into `x`. `Forgetful` is the kernel from above with a line missing.


# %%
class InPlace(SumOfSquares):
    def forward_fast(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        np.multiply(x, x, out=x)
        return (np.asarray(np.sum(x)),)


class Forgetful(SumOfSquares):
    def forward_fast(self, inputs):
        v = inputs[0].reshape(-1)
        return (np.asarray(np.dot(v, v)),)


for make in InPlace, Forgetful:
    x = tn.asarray([1.0, 2.0, 3.0], device="fast", requires_grad=True)
    try:
        (y,) = make().apply((x,))
        y.backward()
        print(f"{make.__name__}: y {float(y):g}, x.grad {x.grad.tolist()}, x {x.array.tolist()}")
    except Exception as error:
        print(f"{make.__name__}: {type(error).__name__}: {str(error).splitlines()[0]}")

# %% [markdown]
# `InPlace` gives the right `y`, and has destroyed `x`, which belongs to the caller. So the
# gradient is wrong, and all that is computed of `x` later. `Forgetful` at least fails.
#
# ## Fix it
# A kernel writes into arrays that it made itself, and into no others. It retains what `forward`
# retains. And you need not trust yourself: two ways to one result test each other. `differences`
# compares them for several inputs, also those that should fall back.


# %%
def differences(make, inputs):
    """How forward_fast differs from forward; [] if it does not."""
    found = []
    for x_data in inputs:
        results = []
        for device in "numpy", "fast":
            x = tn.asarray(np.copy(x_data), device=device, requires_grad=True)
            (y,) = make().apply((x,))
            F.sum(y).backward()
            results.append((y.array, x.grad, x.array))
        for name, one, other in zip(("y", "x.grad", "x afterwards"), *results, strict=True):
            close = np.allclose(one, other, rtol=1e-3 if x_data.dtype == np.float16 else 1e-5)
            if not close or one.dtype != other.dtype:
                found.append(f"{name} for {x_data.dtype}{list(x_data.shape)}")
    return found


inputs = [rng.normal(size=shape) for shape in ((5,), (2, 3), (), (0, 4))]
inputs += [rng.normal(size=6).astype(dtype) for dtype in ("float32", "float16")]
inputs.append(rng.normal(size=(4, 3)).T)  # not in the order of memory
print("SumOfSquares:", differences(SumOfSquares, inputs))
print("InPlace, the first two:", differences(InPlace, inputs)[:2])

# %% [markdown]
# A kernel of the package is written in the same way, but stands in a table of the backend, by the
# class of the function; so the functions know nothing of it. This is how `fast` looks it up:

# %%
import tinynode_fast

source = inspect.getsource(tinynode_fast.forward)
print(source[source.index("    kind =") : source.index("    start =")])

# %% [markdown]
# ## Exercise
# Write `forward_fast` for `Softsign`, `y = x / (1 + |x|)`: with a single new array, which is the
# result; for 32 and 64 bits; and with a reason for all others.
#
#     python -m tinynode.learn start fast_path
#     python -m tinynode.learn check fast_path
