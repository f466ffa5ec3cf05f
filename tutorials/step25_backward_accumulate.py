# %% [markdown] tags=["portable"]
# # Step 25: adding up gradients
#
# **Goal.** A function computes its gradient and adds it to an earlier gradient in a single step,
# with `backward_accumulate`.

# %%
import inspect
import weakref

import numpy as np

import tinynode as tn


def on_device(data, name=None):
    """Data as a Variable on the device in use; it requires a gradient."""
    x = tn.asarray(np.array(data), device=tn.get_device(), requires_grad=True)
    x.name = name
    return x


def first(*variables):
    """The first element of each, for printing."""
    return [None if v is None else float(v[0]) for v in variables]


x, g = on_device([1.0, 2.0, 3.0], "x"), on_device([1.0, 1.0, 1.0], "g")


# %% [markdown]
# A Variable that is used several times gets several contributions to its gradient, and their sum
# is the gradient (step 5). Until now each function computed its contribution, and backward added
# the contributions, two at a time.


# %%
class Scale(tn.FunctionNode):
    """y = c x, for a constant c.   dL/dx = c dL/dy"""

    def __init__(self, c):
        self.c = c

    def forward(self, inputs):
        return (inputs[0] * self.c,)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * self.c,)


def uses(function, number):
    """x scaled by 1, by 2, by 3, ...: so many uses of x."""
    return [function(c).apply((x,))[0] for c in range(1, number + 1)]


def functions_behind(root):
    """Every function that this Variable was computed by."""
    found, waiting = [], [root.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in found:
            found.append(function)
            waiting.extend(node.creator_node for node in function.inputs)
    return found


# %% [markdown]
# ## Predict
# There are four uses of `x`. Each function of backward and each addition makes an array of the
# size of `x`. How many arrays are made for the gradient of `x`? (The gradient is $1 + 2 + 3 + 4 =
# 10$ at each place.)


# %%
def print_gradient(function, number):
    ys = uses(function, number)
    (gx,) = tn.grad(ys, [x], [g] * number, enable_double_backprop=True)
    labels = [f.label for f in functions_behind(gx)]
    print(
        f"{function.__name__}: {first(gx)[0]}, functions: {len(labels)}, namely", *sorted(labels)
    )
    return gx


gx_plain = print_gradient(Scale, 4)

# %% [markdown]
# Four products and three sums. Each product is added to a sum and then not needed any more. For a
# gradient of some megabytes, much memory is written without need.
#
# ## Run
# A function may define `backward_accumulate`. This method gets one more argument,
# **`grad_inputs`**: the sums of the contributions so far. It has an entry for each of
# `target_input_indexes`, `None` for a sum that is still empty. The result **replaces** these sums.
# By default the method does this; the lines are from the package:

# %%
source = inspect.getsource(tn.FunctionNode.backward_accumulate)
print(source[source.index("        gradients =") :])

# %% [markdown]
# The default is a product, then a sum. As in step 23, one function can do both: it makes a new
# array for the product, and adds the old sum into this array.


# %%
class ScaleAndAdd(tn.FunctionNode):
    """z = c g + old.   With h = dL/dz:   dL/dg = c h   dL/dold = h"""

    def __init__(self, c):
        self.c = c

    def forward(self, inputs):
        g, old = inputs
        z = g * self.c
        z += old
        return (z,)

    def backward(self, target_input_indexes, grad_outputs):
        return grad_outputs[0] * self.c, grad_outputs[0]


class FusedScale(Scale):
    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        (g,) = grad_outputs
        (old,) = grad_inputs
        if old is None:
            return self.backward(target_input_indexes, grad_outputs)
        return ScaleAndAdd(self.c).apply((g, old))


gx_fused = print_gradient(FusedScale, 4)

# %% [markdown]
# Four functions in place of seven, and the same result. The next cell prints the sums, use by use:


# %%
class Talking(FusedScale):
    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        results = super().backward_accumulate(target_input_indexes, grad_outputs, grad_inputs)
        print(f"c = {self.c}: there was {first(*grad_inputs)}, now it is {first(*results)}")
        return results


result = tn.grad(uses(Talking, 4), [x], [g] * 4)

# %% [markdown]
# ## See
# The graph that backward records: first with products and sums, then with fused functions.

# %%
tn.show.graph(gradients=[gx_plain], title="backward, then add")

# %%
tn.show.graph(gradients=[gx_fused], title="backward_accumulate")

# %% [markdown]
# A third way needs no method: backward waits for all contributions, and adds them at once. The
# setting **`lazy_grad_sum`** does so, for functions that are applied while it is on:

# %%
with tn.using_config("lazy_grad_sum", True):
    gx_lazy = print_gradient(Scale, 4)

# %% [markdown]
# One sum in place of three. But all contributions are in memory until the sum is computed. Weak
# references count the living contributions:


# %%
contributions, numbers_alive = [], []


class Counted(Scale):
    def backward(self, target_input_indexes, grad_outputs):
        (gx,) = super().backward(target_input_indexes, grad_outputs)
        contributions.append(weakref.ref(gx))
        numbers_alive.append(sum(reference() is not None for reference in contributions))
        return (gx,)


most = {}
for lazy in False, True:
    numbers_alive.clear()
    with tn.using_config("lazy_grad_sum", lazy):
        result = tn.grad(uses(Counted, 20), [x], [g] * 20)
    most["lazy_grad_sum" if lazy else "two at a time"] = max(numbers_alive)
tn.show.bars(most, title="20 uses: contributions in memory at one time")

# %% [markdown]
# ## Break it
# Two mistakes. The first returns its contribution without the old sum:


# %%
class Forgetful(Scale):
    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        return self.backward(target_input_indexes, grad_outputs)


gx = print_gradient(Forgetful, 4)

# %% [markdown]
# 4 in place of 10: only the last contribution is left. The second mistake adds into the incoming
# array, to save one more array. Below, `a` is used in `a + b` and then scaled by 10. The gradients
# should be 11 for `a` and 1 for `b`.


# %%
class InPlace(Scale):
    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        (old,) = grad_inputs
        if old is None:
            return self.backward(target_input_indexes, grad_outputs)
        array = old.array
        array += grad_outputs[0].array * self.c
        return (old,)


def print_both(function):
    a, b, g = (on_device([1.0, 1.0, 1.0]) for _ in range(3))
    ys = [a + b, function(10.0).apply((a,))[0]]
    ga, gb = tn.grad(ys, [a, b], [g, g])
    print(f"{function.__name__}: gradients {first(ga, gb)}, and g is now {first(g)[0]}")


print_both(InPlace)

# %% [markdown]
# The gradient of `a` is right, the gradient of `b` is wrong, and `g`, an array of the caller, has
# changed. The backward of `a + b` gives the *same* array `g` to both inputs. **An incoming array
# may belong to others as well.** Write into new arrays only.
#
# ## Fix it
# `FusedScale` makes a new array for its result, and leaves the old array unchanged:

# %%
print_both(FusedScale)

# %% [markdown]
# **Cost.** For $n$ uses, `backward` and additions make $2n - 1$ arrays, and `backward_accumulate`
# makes $n$. `lazy_grad_sum` makes $n + 1$ arrays, and keeps all of them at the same time. An
# addition gains nothing, since its gradient is `g` itself. The method pays for large gradients of
# Variables with many uses, such as weights in a loop over time.
#
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019.
#
# ## Exercise
# In `mynode`:
#
# 1. `core/function_node.py`: the method `backward_accumulate`, as the default above.
# 2. `core/backprop.py`: `run_backward` takes the sums so far out of the table, with
#    `gradients.pop(node, None)`, and calls `backward_accumulate`. The results go into the table.
# 3. `functions/arithmetic.py`: `Subtract` makes an array for its second input, `-g`. But `old - g`
#    needs no `-g`. Write its own `backward_accumulate`. Think of the case `x - x`, with the same
#    Variable at both positions: the first `pop` gives the old sum, the second gives `None`, and
#    your two results are added.
#
#     python -m tinynode.learn start 25
#     python -m tinynode.learn check 25
