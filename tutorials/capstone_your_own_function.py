# %% [markdown]
# # Capstone: a function of your own
#
# **Goal.** You write a function as the package has them, and the rows that check it. Planted bugs
# then show whether the rows are good.

# %%
import inspect

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course import rows as row_module
from tinynode_course.rows import failures, normal, positive, row

# %% [markdown]
# The function of this page is the bell curve $y = e^{-(x/w)^2 / 2}$ of two inputs, a position $x$
# and a width $w$. A function of the package consists of four parts:
#
# 1. a class with `forward` on arrays and `backward` on Variables;
# 2. a lower-case function beside it, which users call;
# 3. a docstring with the formula, the shapes, and the gradient;
# 4. **rows**: claims, each checked against plain NumPy and by differences.
#
# The first three need about twenty lines:


# %%
class Gaussian(tn.FunctionNode):
    """y = exp(-(x/w)^2 / 2).

    x: (s), w: (s), positive -> y: (s).   With q = x/w:   dL/dx = -dL/dy y q / w
    dL/dw = dL/dy y q^2 / w
    """

    def forward(self, inputs):
        x, w = inputs
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        return (tn.namespace_of(x).exp(-0.5 * (x / w) ** 2),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        q = x / w
        gx = -gy * y * q / w
        return gx, -gx * q


def gaussian(x, w):
    """exp(-(x/w)^2 / 2), elementwise, with broadcasting."""
    x, w = F.broadcast_arrays(x, w)
    return Gaussian().apply((x, w))[0]


# %% [markdown]
# `F.broadcast_arrays` repeats the inputs to their common shape. Its own backward adds up the
# gradients of repeated elements (step 7), so the class has inputs of equal shapes only.
#
# ## Predict
# A row says: on these inputs the function equals this NumPy function, and its gradients are right.
# Here is a single row. It checks three values and the gradient of first order. Seven wrong
# versions of `gaussian` follow below: a wrong sign, a wrong power, a lost second order, a wrong
# dtype, an error for negative $x$, a crash on empty arrays, and no broadcasting. How many of the
# seven does the row catch?


# %%
def reference(x, w):
    return np.exp(-0.5 * (x / w) ** 2)


one_row = [row("three numbers", reference, positive(3), positive(3), order=1)]

# %% [markdown]
# ## Run
# `failures` runs rows, and gives the claims that do not hold. Of the right function, none:

# %%
print("claims that fail:", failures(gaussian, one_row))

# %% [markdown]
# This is what `failures` does for a row. The value is compared for each dtype, in shape and dtype
# too. Then come `check_backward` and `check_double_backward` of step 24.

# %%
print(inspect.getsource(row_module.check_row))

# %% [markdown]
# ## See
# The function, and its gradients for $w = 1$. A picture shows a wrong sign before any row does.

# %%
position = np.linspace(-3.0, 3.0, 61)
x = tn.asarray(position, requires_grad=True)
w = tn.asarray(np.ones(61), requires_grad=True)
y = gaussian(x, w)
by_x, by_w = tn.grad([F.sum(y)], [x, w])
tn.show.lines(
    position, {"y": y, "dy/dx": by_x, "dy/dw": by_w}, title="gaussian(x, 1)", x_label="x"
)

# %%
x, w = tn.asarray([0.5, 1.0], requires_grad=True), tn.asarray(2.0, requires_grad=True)
tn.show.graph(gaussian(x, w))

# %% [markdown]
# ## Break it
# Seven bugs, planted one at a time. Each is a mistake that authors make.


# %%
class WrongSign(Gaussian):
    def backward(self, target_input_indexes, grad_outputs):
        gx, gw = super().backward(target_input_indexes, grad_outputs)
        return -gx, gw


class WrongPower(Gaussian):
    def backward(self, target_input_indexes, grad_outputs):
        gx, gw = super().backward(target_input_indexes, grad_outputs)
        return gx, gw * self.get_retained_inputs()[1]  # a factor of w too much


class NoSecondOrder(Gaussian):
    def backward(self, target_input_indexes, grad_outputs):
        gx, gw = super().backward(target_input_indexes, grad_outputs)
        return tn.asarray(gx.array), tn.asarray(gw.array)  # constants


class WrongDtype(Gaussian):
    def forward(self, inputs):
        return (super().forward(inputs)[0].astype("float64"),)


class NoNegative(Gaussian):
    def forward(self, inputs):
        x, w = inputs
        super().forward(inputs)
        return (tn.namespace_of(x).exp(-0.5 * x * abs(x) / w**2),)


class NoEmpty(Gaussian):
    def forward(self, inputs):
        x, w = inputs
        scale = tn.namespace_of(x).max(abs(x))  # "against overflow"
        super().forward(inputs)
        return (tn.namespace_of(x).exp(-0.5 * (x / scale) ** 2 * (scale / w) ** 2),)


def no_broadcasting(x, w):
    return Gaussian().apply((x, w))[0]


def with_class(kind):
    """The lower-case function of a class."""

    def function(x, w):
        return kind().apply(tuple(F.broadcast_arrays(x, w)))[0]

    return function


wrong = [WrongSign, WrongPower, NoSecondOrder, WrongDtype, NoNegative, NoEmpty]
bugs = {kind.__name__: with_class(kind) for kind in wrong}
bugs["NoBroadcasting"] = no_broadcasting
for name, bug in bugs.items():
    print(f"{name:15}", "caught" if failures(bug, one_row) else "lives")

# %% [markdown]
# Two of seven. The row has positive numbers of one dtype and one shape, and no second order. What
# no row claims, no row checks.
#
# ## Fix it
# Five rows. Each has its reason, and each is one line.

# %%
both = ("float32", "float64")
rows = [
    row("both signs", reference, normal(2, 3), positive(2, 3), dtypes=both),
    row("x broadcasts", reference, normal(3), positive(2, 3)),
    row("w broadcasts", reference, normal(2, 3), positive()),
    row("numbers, 0-d", reference, normal(), positive(), dtypes=both),
    row("empty", reference, normal(0, 3), positive(3)),
]
print("claims of the right function that fail:", failures(gaussian, rows))
caught = {name: failures(bug, rows) for name, bug in bugs.items()}
for name, found in caught.items():
    print(f"{name:15} caught by {len(found)} of {len(rows)} rows")

# %%
names = [one.claim for one in rows]
table = [[claim in found for claim in names] for found in caught.values()]
tn.show.matrix(
    np.array(table) * 1.0, rows=list(caught), columns=names, title="Which row catches which bug"
)

# %% [markdown]
# A bug with a 1 in one column only is caught by that row alone. So this row must stay.
#
# **In the package.** The class and its function belong into a file of `tinynode/functions`. Their
# names go into `__all__` of that file, and the rows into `tests/op_cases/`, which has the same
# form:
#
#     row("gaussian", "x-broadcasts", fn.gaussian, np_gaussian, x(3), pos(2, 3))
#
# The drivers there run each row on all backends, in float32 and float64, to second order, and as a
# compiled net. A function without a row cannot be exported: a test refuses it.
# [Write a function](../write-a-function.md) has the details.
#
# **Cost.** A class keeps what backward needs, and no more. The same formula made of functions of
# the package keeps more:

# %%
x = tn.asarray(np.ones(1000), requires_grad=True)
w = tn.asarray(np.ones(1000), requires_grad=True)
with tn.hooks.MemoryHook() as memory:
    y = gaussian(x, w)
    print(f"the class:        {memory.current_bytes() / 1000:.0f} kB kept")
with tn.hooks.MemoryHook() as memory:
    y = F.exp(-0.5 * (x / w) ** 2)
    print(f"several functions: {memory.current_bytes() / 1000:.0f} kB kept")

# %% [markdown]
# Source: DeMillo, Lipton and Sayward, Hints on Test Data Selection: Help for the Practicing
# Programmer, 1978, on planted bugs.
#
# ## Exercise
# Write `xlogy`, and its rows: $x \log y$, which is 0 where $x = 0$, for any $y$. Entropies and
# cross entropies need it. The check runs your rows on your function, and on nine functions with
# planted bugs. All nine must be caught.
#
#     python -m tinynode.learn start your_own_function
#     python -m tinynode.learn check your_own_function
