# %% [markdown] tags=["portable"]
# # Elective: build the backward network
#
# **Goal.** From the program of a computation you make the program of its gradients, by a rule that
# looks at names only.

# %%
from collections import Counter, defaultdict

import tinynode as tn
from tinynode import functions as F
from tinynode import net


def array(numbers):
    """An array of 64 bits on the device in use."""
    return tn.asarray(numbers, dtype="float64")


def numbers(x):
    """What a Variable holds, rounded, as lists of numbers: it prints the same on every device."""
    return tn.to_host(x.array).round(4).tolist()


# %% [markdown]
# In step 4, backward walked from box to box, after the run. A **backward network** is written
# *before* the run: a program whose operators compute gradients. The rule is from the design of
# Paddle, of 2017, and its heart is what you did in the exercise of the elective `registry`:
#
# - The gradient operators come **in inverted order**.
# - Each reads inputs, outputs, and gradients of the outputs, `y@GRAD`.
# - Each writes the gradients of its inputs, `x@GRAD`.
#
# For this page we register `mul` and `mul_grad` by hand, so that nothing is hidden.


# %%
@net.register_op("mul")
class Mul(tn.FunctionNode):
    """y = a b, for a and b of one shape."""

    def forward(self, inputs):
        a, b = inputs
        return (a * b,)


@net.register_op("mul_grad")
class MulGrad(tn.FunctionNode):
    """From a, b, y and dL/dy:   dL/da = dL/dy b   dL/db = dL/dy a"""

    def forward(self, inputs):
        a, b, _, g = inputs
        return g * b, g * a


def grad_op(operator, outputs):
    """The gradient operator; it writes the gradients of the inputs under these names."""
    given = [f"{name}@GRAD" for name in operator.output_names]
    inputs = [*operator.input_names, *operator.output_names, *given]
    return net.Operator(f"{operator.type}_grad", inputs, outputs)


def naive_rule(forward):
    """The gradient operators of a net, in inverted order."""
    return [
        grad_op(operator, [f"{name}@GRAD" for name in operator.input_names])
        for operator in reversed(forward.operators)
    ]


# %% [markdown]
# ## Predict
# A chain of two products, `y = (x w) v`. Write its backward program on paper: two lines, in which
# order? And which name must be in the scope before the first of them can run?

# %%
chain = net.NetOp(type="chain")
chain.append(net.Operator("mul", ["x", "w"], ["h"]))
chain.append(net.Operator("mul", ["h", "v"], ["y"]))
print(chain)
for operator in naive_rule(chain):
    print(operator)

# %% [markdown]
# The first line reads `y@GRAD`, which nobody writes: backward has to start from something.
#
# ## Run


# %%
def run_both(forward, backward, **values):
    """Run forward and backward in one scope, from y@GRAD = 1; the gradients of the inputs."""
    scope = net.Scope({name: array(value) for name, value in values.items()})
    forward.run(scope)
    scope.set("y@GRAD", array([1.0]))
    for operator in backward:
        operator.run(scope)
    return {name: numbers(scope.find(f"{name}@GRAD")) for name in values}


print(run_both(chain, naive_rule(chain), x=[2.0], w=[3.0], v=[5.0]))

# %% [markdown]
# `w v`, `x v`, `x w`: 15, 10 and 6. Right. No graph was recorded for it, and nobody had to decide
# what comes next: the order is written down, once and for all runs.
#
# ## See
# Both programs in one picture; what computes gradients is dashed. The long arrows that start at
# `x`, `w`, `h` and `v` are forward variables that a gradient operator reads. (It gets `y` as well,
# though `mul_grad` has no use for it: the rule passes on all there is.)

# %%
backward = net.NetOp(naive_rule(chain), "chain_grad")
tn.show.graph(chain, backward)

# %% [markdown]
# ## Break it
# Now one weight is used twice: `y = (x w) w = x w^2`. The gradient of `w` is `2 x w`, which is 12
# where `x = 2` and `w = 3`. The naive rule says:

# %%
shared = net.NetOp(type="shared")
shared.append(net.Operator("mul", ["x", "w"], ["h"]))
shared.append(net.Operator("mul", ["h", "w"], ["y"]))
for operator in naive_rule(shared):
    print(operator)
print(run_both(shared, naive_rule(shared), x=[2.0], w=[3.0]))

# %% [markdown]
# Half of it. Both lines write `w@GRAD`, and the second overwrites what the first has found. It is
# the mistake of step 5, in other clothes. (A `NetOp` would have refused the program: each name is
# written once.)
#
# The cure of 2017: **rename**, then add up. If a gradient is written by several operators, each
# writes a part with a name of its own, `w@GRAD@RENAME@0`, `w@GRAD@RENAME@1`, and after the last of
# them one more operator adds the parts.


# %%
def rule_of_2017(forward):
    """As the naive rule, but the i-th operator that writes x@GRAD writes x@GRAD@RENAME@i."""
    readers = Counter(n for operator in forward.operators for n in set(operator.input_names))
    parts = defaultdict(list)
    backward = []
    for operator in reversed(forward.operators):
        names = dict.fromkeys(operator.input_names)  # each once
        for name in names:
            part = f"@RENAME@{len(parts[name])}" if readers[name] > 1 else ""
            parts[name].append(f"{name}@GRAD{part}")
        backward.append(grad_op(operator, [parts[name][-1] for name in operator.input_names]))
        for name in names:
            if len(parts[name]) == readers[name] > 1:
                backward.append(net.Operator("add_all", parts[name], [f"{name}@GRAD"]))
    return backward


for operator in rule_of_2017(shared):
    print(operator)
print(run_both(shared, rule_of_2017(shared), x=[2.0], w=[3.0]))

# %% [markdown]
# 12. But one net is left, the smallest of all: `y = mul(x, x)`. Its gradient at 3 is 6. There is
# *one* operator that writes `x@GRAD`, so nothing is renamed:

# %%
square = net.NetOp([net.Operator("mul", ["x", "x"], ["y"])], "square")
for operator in rule_of_2017(square):
    print(operator)
print(run_both(square, rule_of_2017(square), x=[3.0]))

# %% [markdown]
# Half again. One operator reads `x` in two **slots**, so its gradient operator finds two parts of
# the gradient, and both have one name.
#
# ## Fix it
# Count slots in place of operators: **each slot gets a name of its own**. That is less code, too.


# %%
def backward_by_hand(forward):
    """The backward network of a net of operators: reads y@GRAD, writes x@GRAD of each input."""
    readers = Counter(n for operator in forward.operators for n in operator.input_names)
    parts = defaultdict(list)
    backward = net.NetOp(type=f"{forward.type}_grad")

    def new_part(name):
        part = f"@RENAME@{len(parts[name])}" if readers[name] > 1 else ""
        parts[name].append(f"{name}@GRAD{part}")
        return parts[name][-1]

    for operator in reversed(forward.operators):
        backward.append(grad_op(operator, [new_part(name) for name in operator.input_names]))
        for name in dict.fromkeys(operator.input_names):  # each once
            if len(parts[name]) == readers[name] > 1:
                backward.append(net.Operator("add_all", parts[name], [f"{name}@GRAD"]))
    return backward


fourth_power = net.NetOp(type="fourth_power")
fourth_power.append(net.Operator("mul", ["x", "x"], ["h"]))
fourth_power.append(net.Operator("mul", ["h", "h"], ["y"]))
print(backward_by_hand(fourth_power))
for forward, values in (
    (shared, {"x": [2.0], "w": [3.0]}),
    (square, {"x": [3.0]}),
    (fourth_power, {"x": [2.0]}),
):
    print(forward.type, run_both(forward, backward_by_hand(forward).operators, **values))

# %% [markdown]
# 9 and 12; 6; and 4 x^3 is 32. Look where `h@GRAD` is added up: after its last part, and before
# the operator that reads it. It must be so: all that read `h` stand behind the one that wrote `h`,
# and in inverted order they come first. (The **rank** of step 6 took care of the same.)
#
# `net.backward` follows the same rule. What is different: no `multiply_grad` is registered
# anywhere. The package writes down what the function's own `backward` does, as you saw in the
# elective `registry`.
# Here is a small network that uses its weights `w` twice:

# %%
layers = net.NetOp(type="layers")
layers.append(net.Operator("matmul", ["x", "w"], ["a"]))
layers.append(net.Operator("exp", ["a"], ["b"]))
layers.append(net.Operator("matmul", ["b", "w"], ["c"]))
layers.append(net.Operator("multiply", ["c", "c"], ["y"]))

x, w = array([[1.0, -2.0]]), array([[0.1, 0.7], [-0.4, 0.3]])
scope = net.Scope({"x": x, "w": w})
layers.run(scope)  # for the shapes
gradient = net.backward(layers, scope)
print(gradient)

# %% [markdown]
# It reads of the forward net only what some `backward` uses: `a` is not among its inputs. Does it
# agree with define-by-run?

# %%
scope.set("y@GRAD", array([[1.0, 1.0]]))
gradient.run(scope)

c = F.exp(x @ w) @ w
F.sum(c * c).backward()
for name, by_run in (("x", x.grad_var), ("w", w.grad_var)):
    by_net = scope.find(f"{name}@GRAD")
    error = float(F.max(abs(by_net - by_run)) / F.max(abs(by_run)))
    print(f"{name}@GRAD {numbers(by_net)}   equal to 1e-12: {error <= 1e-12}")

# %% [markdown]
# Two things more that a backward network must handle. Variables that need no gradient, such as
# frozen weights: name them in the **no-grad set**, and what only they need is left out. And
# outputs that nobody used: their gradient does not come, and the rule of 2017 fills it with zeros.
# Below, `y` depends on `low` alone, one of the two outputs of `split`.

# %%
print(net.backward(layers, scope, no_grad_set={"w"}))
print()

halves = net.NetOp(type="halves")
halves.append(net.Operator("split", ["x"], ["low", "high"], {"indices": (1,), "axis": 0}))
halves.append(net.Operator("exp", ["low"], ["y"]))
scope = net.Scope({"x": array([1.0, 2.0])})
halves.run(scope)
print(net.backward(halves, scope, targets=["y"], zero_fill=True))

# %% [markdown]
# ## Exercise
# Write `backward_net(forward, target, no_grad)`: the rule with everything. Shared variables, one
# variable in several slots, outputs that nobody used, frozen variables, operators that the target
# does not depend on. The check compares it with define-by-run, to 1e-12, for nets that it draws at
# random.
#
#     python -m tinynode.learn start backward_network
#     python -m tinynode.learn check backward_network
