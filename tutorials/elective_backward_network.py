# %% [markdown] tags=["portable"]
# # Elective: build the backward network
#
# **Goal.** You make the program of the gradients from the program of a computation, by a rule
# about names.

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
# Paddle, of 2017. Its main part is the exercise of the elective `registry`:
#
# - The gradient operators come **in inverted order**.
# - Each reads inputs, outputs, and gradients of the outputs, `y@GRAD`.
# - Each writes the gradients of its inputs, `x@GRAD`.
#
# This page registers `mul` and `mul_grad` by hand, so that you see every part.


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
# A chain of two products: $y = (x\, w)\, v$. Write its backward program on paper. It has two
# lines: in which order? And which name must be in the scope before the first line can run?

# %%
chain = net.NetOp(type="chain")
chain.append(net.Operator("mul", ["x", "w"], ["h"]))
chain.append(net.Operator("mul", ["h", "v"], ["y"]))
print(chain)
for operator in naive_rule(chain):
    print(operator)

# %% [markdown]
# The first line reads `y@GRAD`, which no line writes: the gradient of the output is given.
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
# The gradients are $w v$, $x v$ and $x w$: 15, 10 and 6. No graph was recorded, and no order was
# computed during the run: the order is a part of the program, for all runs.
#
# ## See
# Both programs in one picture; gradient operators are dashed. Long arrows start at `x`, `w`, `h`
# and `v`, since gradient operators read these forward variables. By the rule, `mul_grad` gets `y`
# as well, although it does not use `y`.

# %%
backward = net.NetOp(naive_rule(chain), "chain_grad")
tn.show.graph(chain, backward)

# %% [markdown]
# ## Break it
# Now one weight is used twice: $y = (x\, w)\, w = x w^2$. The gradient of `w` is $2 x w$, which is
# 12 for $x = 2$ and $w = 3$. The naive rule gives:

# %%
shared = net.NetOp(type="shared")
shared.append(net.Operator("mul", ["x", "w"], ["h"]))
shared.append(net.Operator("mul", ["h", "w"], ["y"]))
for operator in naive_rule(shared):
    print(operator)
print(run_both(shared, naive_rule(shared), x=[2.0], w=[3.0]))

# %% [markdown]
# The result is 6, the half. Both lines write `w@GRAD`, and the second overwrites the first. It is
# the mistake of step 5 in another form. (A `NetOp` refuses such a program: each name is written
# once.)
#
# The cure of 2017: **rename**, then add up. If several operators write a gradient, each writes a
# part with a name of its own: `w@GRAD@RENAME@0`, `w@GRAD@RENAME@1`. After the last part, one more
# operator adds all parts.


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
# 12 is right. But the rule fails for a smaller net, `y = mul(x, x)`. Its gradient at 3 is 6. Only
# *one* operator writes `x@GRAD`, so no name is changed:

# %%
square = net.NetOp([net.Operator("mul", ["x", "x"], ["y"])], "square")
for operator in rule_of_2017(square):
    print(operator)
print(run_both(square, rule_of_2017(square), x=[3.0]))

# %% [markdown]
# The half again. The operator reads `x` in two **slots**. So its gradient operator computes two
# parts of the gradient, and both have the same name.
#
# ## Fix it
# Count slots in place of operators: **each slot gets a name of its own**. The code becomes shorter
# too.


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
# All are right: 9 and 12; 6; and $4x^3 = 32$. Look at the line that adds up `h@GRAD`: it comes
# after the last part, and before the operator that reads the sum. The reason: all readers of `h`
# come after the writer of `h`, so in inverted order they come before. (In step 6 the **rank**
# gives this order.)
#
# `net.backward` follows the same rule, but needs no registered `multiply_grad`. The package
# records the functions of `backward`, as in the elective `registry`. Here is a small network that
# uses its weights `w` twice:

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
# The backward network reads only variables that some `backward` uses: `a` is not among its inputs.
# Now compare it with define-by-run:

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
# A backward network must handle two more cases. Variables without a gradient, such as frozen
# weights, are named in the **no-grad set**: operators for them alone are left out. Outputs without
# a use have no gradient, and the rule of 2017 fills in zeros. Below, `y` depends on `low` alone,
# one of the two outputs of `split`.

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
# Source: Speelpenning, Compiling Fast Partial Derivatives of Functions Given by Algorithms, 1980.
#
# ## Exercise
# Write `backward_net(forward, target, no_grad)`: the rule with all cases. These are shared
# variables, one variable in several slots, outputs without a use, frozen variables, and operators
# without influence on the target. The check compares random nets with define-by-run, to
# $10^{-12}$.
#
#     python -m tinynode.learn start backward_network
#     python -m tinynode.learn check backward_network
