# %% [markdown]
# # Elective: a net becomes C
#
# **Goal.** You read the C of a layer and of its gradient. You count bytes to see why a loop is
# quicker than NumPy. You change the rule of an operator, and see the C change.

# %%
import contextlib
import time

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_fast.native import build
from tinynode_fast.native.formulas import FORMULAS

fast = tn.get_device("fast")


def on_fast(data, name=None):
    """Data as a Variable on the fast device; it requires a gradient."""
    x = tn.asarray(data, device=fast, dtype="float64", requires_grad=True)
    x.name = name
    return x


# %% [markdown]
# In the elective `compile`, a function became a net: a list of operators. You saw which operators
# `fast` puts into one loop. Here you read the loop. A list of operators is a program, and a
# program may be **printed in another language**.
#
# After the first calls, `fast` prints the net as C. The compiler of the system (`cc`) makes
# machine code from the text, and Python loads the code. Meanwhile the net runs on NumPy.
#
# The layer is $y = \tanh(x w + b)$, with `x` of shape (4, 3), `w` of shape (3, 5), `b` of shape
# (5).
#
# ## Predict
# A matrix product, a sum and a tanh: NumPy makes three passes over arrays. How many loops does the
# C have? Which of the three operators has no line in the C?
#
# ## Run


# %%
def layer(x, w, b):
    return F.tanh(x @ w + b)


def in_c(f, *arguments):
    """The compiled function, after its C is compiled; without a compiler, on NumPy."""
    compiled = tn.compile(f)
    for _ in range(2):
        compiled(*arguments)  # the second call asks for C
        build.wait()
    return compiled


rng = np.random.default_rng(0)
x, w, b = (on_fast(rng.normal(size=s), n) for s, n in (((4, 3), "x"), ((3, 5), "w"), (5, "b")))
compiled = in_c(layer, x, w, b)
y = compiled(x, w, b)
y.grad = np.ones(y.shape)
y.backward()
forward, gradient = tn.show.c(compiled, x, w, b).functions
print(forward)

# %% [markdown]
# One loop nest: `i0` counts rows, `j` counts columns. The comment has the lines of the net. The
# matrix product has no line: `t0` comes from BLAS, a library that no simple loop beats.
#
# - `p` has the addresses of the arrays. `t0_in` is read, `t2_out` is written.
# - `restrict` promises that no two arrays overlap. So the compiler may compute several elements
#   with one instruction; `#pragma omp simd` asks for that.
# - `t1` is a number in a **register** of the processor. There is no array `t1`.
#
# ## See
# Now the gradient. With $y = \tanh t$, the rule is $\bar t = \bar y\,(1 - y^2)$. The gradient of
# `b` is the sum over rows. Find the formula, and the sum, in the C:

# %%
print(gradient)

# %% [markdown]
# The sum has no pass of its own: `+=` adds while the number is in a register. The two matrix
# products of backward are calls of BLAS again.
#
# Some machines have no C library with fast vector functions: macOS, ARM, older Linux, a browser.
# There the C has no `tanh`. NumPy computes the tanh, the first loop only adds `b`, and `t1` is an
# array.
#
# **Cost.** A large array does not fit into the processor's cache, so each pass moves it through
# memory. Count the numbers that move. A NumPy pass reads its operands, and writes a result. The
# loop reads what comes from outside, and writes what is used outside. In between are twenty
# operators:


# %%
def poly(x, c):
    """Ten times y x + c."""
    y = x
    for _ in range(10):
        y = y * x + c
    return y


def moved_by_passes(f, *arguments):
    """The numbers through memory for each element, with a pass for each operator."""
    operators = tn.trace(f, *arguments).net.flattened()
    return sum(len({*one.input_names, *one.output_names}) for one in operators)


large = on_fast(np.linspace(-2.0, 2.0, 100_000), "x").detach()
other = on_fast(np.linspace(0.0, 1.0, 100_000), "c").detach()
(loop,) = tn.show.c(in_c(poly, large, other), large, other).functions
moved = {
    "a pass per operator": 8 * moved_by_passes(poly, large, other),
    "one loop": 8 * loop.count("= p["),
}
print(moved)
tn.show.bars(moved, title="Bytes through memory for each element", x_label="bytes")

# %% [markdown]
# `large` has 0.8 MB. The fewer bytes, the less the processor waits. Now the time, without
# a compiler and with one. `tn.config.compiler` is "none", "auto", or a path:


# %%
def shortest(f, *arguments):
    """The shortest time of 20, in microseconds."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        f(*arguments)
        times.append(time.perf_counter() - start)
    return round(1e6 * min(times))


# %% tags=["varies"]
def with_compiler(name, f, *arguments):
    with tn.using_config(compiler=name):
        return shortest(in_c(f, *arguments), *arguments)


microseconds = {
    "eager": shortest(poly, large, other),
    "compiled, on NumPy": with_compiler("none", poly, large, other),
    "compiled, in C": with_compiler("auto", poly, large, other),
}
try:
    print("The compiler is", build.compiler())
except build.NotBuiltError as error:
    print(f"No C was compiled, so the last two bars below are alike: {error}.")
tn.show.bars(microseconds, title="poly of 100,000 numbers", x_label="microseconds")

# %% [markdown]
# ### The rule of an operator
# Who decides what stands in the loop? A table has a line for each operator:

# %%
for kind in (F.Multiply, F.Tanh, F.ReLU):
    print(FORMULAS[kind])

# %% [markdown]
# The letters stand for operands. The emitter puts names in place of letters, and prints the line.
# So a changed line changes each net that is compiled afterwards. A tanh is costly. This fraction
# is close to tanh for small `x`:
#
# $$\tanh x \approx \frac{x\,(27 + x^2)}{27 + 9 x^2}$$


# %%
@contextlib.contextmanager
def rule(kind, text):
    """Another formula for an operator, until the end of the with statement."""
    kept = FORMULAS[kind]
    FORMULAS[kind] = kept._replace(text=text)
    try:
        yield
    finally:
        FORMULAS[kind] = kept


FRACTION = "x * (27.0 + x * x) / (27.0 + 9.0 * x * x)"
numbers = on_fast([0.5, 1.0, 2.0, 10.0], "x").detach()
with rule(F.Tanh, FRACTION):
    (changed,) = tn.show.c(in_c(F.tanh, numbers), numbers).functions
    changed_tanh = in_c(F.tanh, numbers)
print(changed)

# %% [markdown]
# `changed_tanh` keeps its machine code, and the table has the old rule again.

# %% [markdown]
# ## Break it
# The same four numbers, with tanh and with the changed rule. For which number is the changed
# rule clearly wrong? (Without a compiler both rows come from NumPy, and are equal.)

# %% tags=["varies"]
print("x      ", numbers.array)
print("tanh   ", in_c(F.tanh, numbers)(numbers).array.round(3))
print("changed", changed_tanh(numbers).array.round(3))

# %% [markdown]
# At 10, the fraction is 1.37, and tanh is never above 1. It gets worse: backward takes
# $1 - y^2$, which is negative here. A training step would go the wrong way, without an error. A
# rule has to be right for **every** number: large, small, infinite and NaN.
#
# ## Fix it
# At 3, the fraction is 3 · 36 / 108 = 1. So limit `x` to -3 and 3 first. A formula may name its
# parts: `h = ...; ...`. NaN stays NaN, since both comparisons are false:

# %%
LIMITED = "h = x < -3.0 ? -3.0 : x > 3.0 ? 3.0 : x; h * (27.0 + h * h) / (27.0 + 9.0 * h * h)"
numbers = on_fast([0.5, 1.0, 2.0, 10.0, np.inf, np.nan], "x").detach()
with rule(F.Tanh, LIMITED):
    limited_tanh = in_c(F.tanh, numbers)
    print(tn.show.c(limited_tanh, numbers).functions[0])

# %% tags=["varies"]
with rule(F.Tanh, LIMITED):
    microseconds = {"fraction": shortest(in_c(F.tanh, large), large)}
microseconds["tanh"] = shortest(in_c(F.tanh, large), large)
print("tanh   ", in_c(F.tanh, numbers)(numbers).array.round(3))
print("limited", limited_tanh(numbers).array.round(3))
tn.show.bars(microseconds, title="Two rules, 100,000 numbers", x_label="microseconds")

# %% [markdown]
# No number is wrong by more than 0.024. That is enough for some networks, and far too much for a
# library: its tests compare C and NumPy to the last digits. So tinynode keeps `tanh(x)`:

# %%
error = np.max(np.abs(np.tanh(h := np.linspace(0, 3, 1001)) - h * (27 + h * h) / (27 + 9 * h * h)))
print("largest error:", error.round(4))
print(FORMULAS[F.Tanh].text)

# %% [markdown]
# The table is in [formulas.py](../source/backends/tinynode_fast/native/formulas.md), the emitter
# in [emit.py](../source/backends/tinynode_fast/native/emit.md), and the compiler is called in
# [build.py](../source/backends/tinynode_fast/native/build.md).
#
# Source: Chen et al., TVM: An Automated End-to-End Optimizing Compiler for Deep Learning, 2018.
#
# ## Exercise
# Write a small emitter: lines of formulas become the text of a C function with a single loop.
# Leave out what nobody needs, count the bytes, and write the lines of a gradient. Where a C
# compiler is, the check compiles your text.
#
#     python -m tinynode.learn start net_in_c
#     python -m tinynode.learn check net_in_c
