# %% [markdown]
# # Elective: compile
#
# **Goal.** You turn a define-by-run function into a net that is recorded once and run many times.
# You know its gains and its limits, and how to read it.

# %%
import time
import tracemalloc

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import net, nn

fast = tn.get_device("fast")


def on_fast(data, name=None):
    """Data as a Variable on the fast device; it requires a gradient."""
    x = tn.asarray(data, device=fast, dtype="float64", requires_grad=True)
    x.name = name
    return x


# %% [markdown]
# In a net, the order of the operators and all uses of a variable are known before the run. The
# electives `registry` and `backward_network` write operators by hand. But **a single run of a
# define-by-run function gives the net**: a **trace** records each applied function. The backward
# network follows by the rule of the elective `backward_network`. A **plan** then fixes the calls,
# their arrays, and their order.
#
# `tn.compile(f)` makes trace, backward network and plan at the first call. The result is used as
# `f` is.
#
# ## Predict
# This is the chain $\sin e^{-x^2}$ of step 4, with a line that records its runs. The compiled
# function is called three times with four numbers, and twice with five. How often does the line
# run?

# %%
calls = []


def chain(x):
    calls.append(x.shape)
    return F.sin(F.exp(-(x * x)))


compiled = tn.compile(chain)
for numbers in ([0.1, 0.2, 0.3, 0.4], [1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]):
    compiled(on_fast(numbers))
for numbers in ([0.0, 0.1, 0.2, 0.3, 0.4], [1.0, 2.0, 3.0, 4.0, 5.0]):
    compiled(on_fast(numbers))
print(calls)

# %% [markdown]
# Twice: once for each shape. A net depends on the **signature** of the call: shapes, dtypes,
# devices, which inputs require a gradient, and the values of arguments that are no arrays. For a
# new signature `f` runs, and is recorded. All other calls run the net, and no line of your
# function.
#
# ## Run
# The recorded net, and its backward network: operators by name, gradients with `@GRAD`, and `x`,
# which is read in two slots.

# %%
x = on_fast([0.1, 0.5, 0.9], "x")
found = tn.trace(chain, x)
print(found.net)
scope = net.Scope({"x": x})
found.net.run(scope)
print(net.backward(found.net, scope))

# %% [markdown]
# The compiled function is **one function in the graph**, with the name of your function. Its
# `backward` is a net, which can be differentiated again: the backward of this net is a net too.


# %%
def two_orders(f, x):
    """y, its gradient, and the gradient of that."""
    y = f(x)
    (g,) = tn.grad([y], [x], enable_double_backprop=True)
    (h,) = tn.grad([g], [x])
    return y, g, h


print("creator:", compiled(x).creator_node.label)
for title, eager, by_net in zip(
    ("y", "dy/dx", "d2y/dx2"), two_orders(chain, x), two_orders(compiled, x), strict=True
):
    equal = float(F.max(abs(eager - by_net))) <= 1e-12
    print(f"{title:8} {by_net.array.round(4).tolist()}   equal to 1e-12: {equal}")

# %% [markdown]
# ## See
# `explain` describes a plan. The device `fast` puts consecutive elementwise operators into one
# **loop** in C. The loop takes an element, runs all operators on the element, and takes the next
# element. This is called **fusing**. An operator without a formula in C **falls back**: the plan
# calls its `forward`. The elective `net_in_c` shows the C.


# %%
def explain(function, *arguments):
    """Of the text of explain: what is fused, and what falls back."""
    for line in function.explain(*arguments).splitlines():
        if line.strip().startswith("// "):
            print("  in a loop:", line.strip()[3:])
        elif "as a function" in line:
            print("  falls back:", line.split(" = ")[1].split("(")[0])
        elif line.endswith("):"):
            print(line)


@tn.compile
def with_a_sort(x):
    return F.exp(F.sort(chain(x)) * 2.0) + 1.0


large = on_fast(np.linspace(-2.0, 2.0, 100_000))
explain(compiled, large)
print()
explain(with_a_sort, large)

# %% [markdown]
# The chain is a single loop, forward and backward. A sort needs the whole array, so it cuts the
# loop in two.
#
# **Cost.** First the time, for the chain and for a function of more operators: `poly` is ten times
# $y\, x + c$. A step is a forward and a backward. The figures were measured on one machine; on
# yours they differ.


# %%
def poly(x):
    y = x
    for n in range(10):
        y = y * x + 0.1 * n
    return y


def one_step(f, x):
    x.cleargrad()
    y = f(x)
    y.grad = np.ones(x.shape)
    y.backward()


FUNCTIONS = {
    "chain, eager": chain,
    "chain, compiled": tn.compile(chain),
    "poly, eager": poly,
    "poly, compiled": tn.compile(poly),
}


def shortest(x, rounds):
    """The shortest time of each, in microseconds: what else the machine does only adds."""
    times = dict.fromkeys(FUNCTIONS, float("inf"))
    for _ in range(rounds):
        for name, f in FUNCTIONS.items():
            start = time.perf_counter()
            one_step(f, x)
            times[name] = min(times[name], 1e6 * (time.perf_counter() - start))
    return {name: round(shortest) for name, shortest in times.items()}


# %% tags=["varies"]
small = on_fast(np.linspace(-1.0, 1.0, 100))
tn.show.bars(shortest(small, 50), title="A step with 100 numbers", x_label="time, microseconds")

# %% tags=["varies"]
tn.show.bars(
    shortest(large, 12), title="A step with 100,000 numbers", x_label="time, microseconds"
)

# %% [markdown]
# With few numbers, an eager step spends its time in Python: nodes, checks, the order of backward.
# A net does not need these, so its gain grows with the number of operators. With many numbers,
# the time goes to arithmetic, and to moving arrays through memory. A loop in C moves fewer
# numbers, so it is quicker here too. Without a C compiler, expect little gain.
#
# The other cost is memory. In an eager step each operator makes a new array, a **buffer** of the
# size of `x`. A fused loop keeps intermediate values in registers. Buffers are needed for its
# result, and for the arrays of the backward network. The next cell counts the largest number of
# bytes in use.


# %%
def most_bytes(f, x):
    """The largest number of bytes in use during a step, without x itself."""
    x.cleargrad()
    f = tn.compile(f.function) if isinstance(f, net.CompiledFunction) else f  # nothing kept
    tracemalloc.start()
    for _ in range(3):
        one_step(f, x)
    tracemalloc.reset_peak()
    one_step(f, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


peaks = {name: most_bytes(f, large) for name, f in FUNCTIONS.items()}
for name in "chain", "poly":
    operators = len(tn.trace(FUNCTIONS[f"{name}, eager"], large).net.flattened())
    fewer = peaks[f"{name}, compiled"] < peaks[f"{name}, eager"]
    print(f"{name}: {operators} lines in the net; compiled, fewer bytes: {fewer}")

# %% tags=["varies"]
tn.show.bars(
    {name: round(peak / 1e6, 1) for name, peak in peaks.items()},
    title="Bytes in use; a buffer has 0.8 MB",
    x_label="MB",
)

# %% [markdown]
# ## Break it
# A trace records the applied functions, not the decisions of your code. A decision by a value is
# right for the first numbers only, and wrong for others. The package refuses it:


# %%
@tn.compile
def leaky(x):
    if x[0] > 0:
        return x
    return 0.1 * x


try:
    leaky(on_fast([1.0, 2.0]))
except tn.TinynodeError as error:
    print(error)

# %% [markdown]
# The package cannot refuse a number that changes at every call. The number belongs to the
# signature, so each call is recorded anew. The results are right, and the program is slow.

# %%
calls = []


@tn.compile
def scaled(x, factor):
    calls.append(factor)
    return F.sum(x * factor)


for step in range(4):
    scaled(x, 1.0 / (1 + step))
print("recorded", len(calls), "times")

# %% [markdown]
# And a side effect, such as `calls.append` above, happens in the recorded call only.
#
# ## Fix it
# A choice becomes a function of Variables: `F.where` computes both cases and picks, number by
# number. A changing number becomes an array: then it is an input of the net.


# %%
@tn.compile
def leaky_where(x):
    return F.where(x > 0, x, 0.1 * x)


print(leaky_where(on_fast([1.0, -2.0])).array.tolist())

calls = []
for step in range(4):
    scaled(x, on_fast(1.0 / (1 + step)))
print("recorded", len(calls), "time")

# %% [markdown]
# A training step may be compiled as a whole, with `cleargrads`, `backward` and `update`. The net
# reads the parameters anew at each run. Data must not require a gradient in such a step, so pass
# data through `detach`.

# %%
rng = np.random.default_rng(0)
points = on_fast(rng.normal(size=(40, 2))).detach()
targets = on_fast(rng.normal(size=(40, 1))).detach()


def make_step():
    """A model with its optimizer, and the function that trains it by one step."""
    tn.seed(0)
    with tn.using_device(fast):
        model = nn.Sequential(
            nn.Linear(2, 8, dtype="float64"), F.tanh, nn.Linear(8, 1, dtype="float64")
        )
    optimizer = nn.SGD(model, lr=0.1)

    def step(x, t):
        optimizer.cleargrads()
        loss = F.mean_squared_error(model(x), t)
        loss.backward()
        optimizer.update()
        return loss

    return step


eager_step, compiled_step = make_step(), tn.compile(make_step())
for number in range(31):
    one, other = (float(step(points, targets)) for step in (eager_step, compiled_step))
    if number % 10 == 0:
        print(f"step {number:2}   eager {one:.6f}   compiled {other:.6f}")

# %% [markdown]
# **When to compile?** Compile a function of many operators that runs many times with the same
# shapes: a whole model, a whole training step. A single operator gains nothing: the look-up of the
# net takes longer than a node. And keep the eager function: a debugger steps through it, and the
# compiled function must agree with it.
#
# Source: Frostig, Johnson and Leary, Compiling Machine Learning Programs via High-Level Tracing,
# 2018.
#
# ## Exercise
# A training step that cannot be recorded: it decides by values, and gets a new number in each
# step. Change it, so that it is recorded once. The check compares losses with the eager step, and
# gradients to second order.
#
#     python -m tinynode.learn start compile
#     python -m tinynode.learn check compile
#
# ## Bug hunt
# A compiler may be wrong in many ways: it forgets a part of the signature, merges two different
# lines, or uses a buffer again too early. `hunt_compile.py` gets a compiler of 200 lines, with 20
# bugs planted, one at a time. Write tests that catch the bugs.
#
#     python -m tinynode.learn hunt compile
