# %% [markdown]
# # Elective: the fast path, and Fallback
#
# **Goal.** You write quicker code for some cases, leave all other cases to `forward`, and see
# which of the two ran, and why.

# %%
import inspect
import time
import tracemalloc

import numpy as np

import tinynode as tn
from tinynode import functions as F

tn.show.fallbacks(reset=True)  # the counts of this step begin here

# %% [markdown]
# The Array API standard has no functions that write into a given array. So `xp.exp(-x)` makes two
# arrays, although one array is enough. For large arrays, new memory is most of the work.
#
# The device `fast` has NumPy's arrays, so its code may use all of NumPy. A function may have one
# more method, **`forward_fast`**. It returns the outputs, as `forward` does. Or it returns
# **`tn.Fallback("why")`**, which means: this case is not served, so run `forward`.
#
# ## Predict
# `SumOfSquares` has both methods. `np.dot(v, v)` multiplies and adds in one pass, without an
# intermediate array. It serves 32-bit and 64-bit numbers. There are three calls: on `numpy` with
# 64 bits, on `fast` with 64 bits, on `fast` with 16 bits. What does each call append to `path`?

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
# The same numbers three times. In the last line both methods ran: `forward_fast` checked the
# dtype, and gave a Fallback.
#
# `forward_fast` replaces `forward` only. Type checks, graph, backward and hooks are the same. So a
# hook sees the function on both devices:


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
# Convolution has kernels on `fast` as well, and so have the gradients of convolution and of max
# pooling. The other functions of the package run as on `numpy`, and are not counted.
# `tn.show.fallbacks()` is a table of the calls with a kernel, and of the calls that fell back,
# with the reason. The last column, the time, is cut off here, since it differs from run to run.


# %%
class Halved(tn.FunctionNode):
    """y = x / 2, without ``forward_fast``."""

    def forward(self, inputs):
        return (inputs[0] / 2.0,)


def coverage():
    """The table of fallbacks, without its times."""
    rows = [line.rsplit("  ", 1)[0].rstrip() for line in tn.show.fallbacks().splitlines()]
    print("\n".join(rows[:2] + sorted(rows[2:])))


rng = np.random.default_rng(0)
data = rng.normal(size=(64, 16, 28, 28)).astype("float32")
x = tn.asarray(data, device="fast", requires_grad=True)
F.sum(F.max_pool2d(x, 2)).backward()
filters = rng.normal(size=(16, 16, 3, 3)).astype("float32")
for dtype in "float32", "float16":
    images, w = (tn.asarray(a.astype(dtype), device="fast") for a in (data[:2], filters))
    F.conv2d(images, w)
Halved().apply((x,))
coverage()

# %% [markdown]
# Read the lines with `no:`. `Halved` has no kernel. `Conv2d` has a kernel, but not for 16 bits.
# If a program on `fast` is slower than expected, this table shows the reasons.
#
# **Cost.** First the memory: the most memory in use during the function, counted in arrays of the
# size of `x`.


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


def conv2d(x):
    return F.conv2d(x, tn.asarray(filters, device=x.device))


for device in "numpy", "fast":
    print(f"{device:5} {arrays_taken(call_on(device, sum_of_squares))}")

# %% [markdown]
# `np.dot` needs no array of the squares. Then the time, on the
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
    for function in (sum_of_squares, conv2d, F.tanh)
}
tn.show.bars(quicker, title="fast beside numpy", x_label="times as quick")

# %% [markdown]
# A bar near 1 is no failure: `tanh` is a single call of NumPy. **No function must have a
# kernel.** Write a kernel where a measurement shows the need.
#
# ## Break it
# Two kernels that are quick and wrong. `InPlace` saves the array of the squares: it writes the
# squares into `x`. `Forgetful` is the kernel from above without `retain_inputs`.


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
# `InPlace` gives the right `y`, and has overwritten `x`, an array of the caller. So the gradient
# is wrong, and each later use of `x`. `Forgetful` fails with an error.
#
# ## Fix it
# A kernel writes only into its own arrays, and retains the same arrays as `forward`. `forward` and
# `forward_fast` have the same result, so each is a test of the other. `differences` compares them
# for several inputs, with inputs that fall back among them.


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
# A kernel of the package is in a table of the backend, by the class of the function. So the
# functions do not depend on kernels. This is the look-up of `fast`:

# %%
import tinynode_fast

source = inspect.getsource(tinynode_fast.forward)
print(source[source.index("    kind =") : source.index("    start =")])

# %% [markdown]
# Source: Knuth, Structured Programming with go to Statements, 1974, on the few lines that are
# worth quicker code.
#
# ## Exercise
# Write `forward_fast` for `Softsign`, $y = x / (1 + |x|)$, for 32 and 64 bits. Its only new array
# is the result. All other dtypes get a Fallback with a reason.
#
#     python -m tinynode.learn start fast_path
#     python -m tinynode.learn check fast_path
