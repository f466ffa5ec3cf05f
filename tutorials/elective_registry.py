# %% [markdown] tags=["portable"]
# # Elective: a registry and operators by name
#
# **Goal.** You write a computation as a list of operators before it runs. The list can be printed,
# run many times, and changed.

# %% [markdown]
# The steps of the course are **define-by-run**: `y = a * b` computes at once, and the graph
# records what was computed. The other way is **define-and-run**: a **program** lists the
# operations to be done, and holds no numbers. This elective builds such programs. The elective
# `backward_network` derives the program of the gradients.
#
# An **operator** is a line of a program: `y = mul(x, w)`. It names a function, the variables that
# it reads, and the variables that it writes. All three are text. The **registry** maps the text
# `mul` to a function. The **scope** maps the text `x` to a value. Here are operator, registry and
# scope in a few lines.

# %%
import math

REGISTRY = {}


def register(name):
    """A decorator: from now on, this name means the function below it."""

    def put(function):
        REGISTRY[name] = function
        return function

    return put


class Op:
    """One line of a program: output = type(inputs). All of it is text."""

    def __init__(self, type, inputs, output):
        self.type, self.inputs, self.output = type, inputs, output

    def run(self, scope):
        function = REGISTRY[self.type]
        scope[self.output] = function(*[scope[name] for name in self.inputs])

    def __str__(self):
        return f"{self.output} = {self.type}({', '.join(self.inputs)})"


@register("mul")
def multiply(a, b):
    return a * b


@register("exp")
def exponential(a):
    return math.exp(a)


# %% [markdown]
# ## Predict
# The next cell makes a program of two operators, prints it, and runs it in two scopes. Which
# numbers does the program hold afterwards? And what happens if the two operators change places?

# %%
program = [Op("mul", ["x", "w"], "h"), Op("exp", ["h"], "y")]
for op in program:
    print(op)

for scope in ({"x": 2.0, "w": 0.5}, {"x": 0.0, "w": 7.0}):
    for op in program:
        op.run(scope)
    print({name: round(value, 4) for name, value in scope.items()})

# %% [markdown]
# The program holds no numbers, before and after. All numbers are in the scopes, under their names,
# so one program serves both scopes. The list is run in its order. In the other order, `exp` finds
# no `h`:

# %%
try:
    for op in reversed(program):
        op.run({"x": 2.0, "w": 0.5})
except KeyError as error:
    print("KeyError:", error)

# %% [markdown]
# **Why write a program first?** A program is data, so other code can read it. Such code counts
# operators, removes operators without a use, renames variables, or saves the program as text. And
# it writes the program of the gradients, line by line.
#
# For gradients the registry needs one more entry: the operator `mul_grad` with its function. The
# gradient of the variable `x` has the name `x@GRAD`, which no other variable uses.


# %%
@register("mul_grad")
def multiply_grad(a, b, g):
    return g * b, g * a


gradient = "x@GRAD, w@GRAD = mul_grad(x, w, h@GRAD)"
print(gradient)
print("at x = 2, w = 0.5, h@GRAD = 10:", REGISTRY["mul_grad"](2.0, 0.5, 10.0))

# %% [markdown]
# ## Run
# `tinynode.net` has operator, registry and scope, with checks. Its functions are those of the
# package: the type `multiply` names the FunctionNode class `F.Multiply`.

# %%
import inspect

import tinynode as tn
from tinynode import net


def array(numbers):
    """An array of 64 bits on the device in use."""
    return tn.asarray(numbers, dtype="float64")


layer = net.NetOp(type="layer")
layer.append(net.Operator("multiply", ["x", "w"], ["h"]))
layer.append(net.Operator("exp", ["h"], ["y"]))
layer.append(net.Operator("sum", ["y"], ["total"], {"axes": (0,), "keepdims": False}))
print(layer)

scope = net.Scope({"x": array([2.0, 0.0]), "w": array([0.5, 7.0])})
layer.run(scope)
print("total:", round(float(scope.find("total")), 4))

# %% [markdown]
# A `NetOp` is a list of operators. Its first line names the variables that it reads from outside.
# `h` is not among them, since an operator writes `h` before another reads it. Constants such as
# `axes=(0,)` follow the names: they are the arguments of the function's constructor.
#
# The next cell shows how the package runs an operator. Compare it with `run` above: find the
# inputs by name, apply the function, write the outputs by name.

# %%
print(inspect.getsource(net.Operator.run))

# %% [markdown]
# ## See
# The program as a picture. It looks like a graph, but no operator ran for the picture. With the
# `scope`, the picture has shapes too.

# %%
tn.show.graph(layer, scope=scope)

# %% [markdown]
# A `NetOp` reads names and writes names. So it *is* an operator, and may be a part of another
# `NetOp`:

# %%
outer = net.NetOp([layer, net.Operator("log", ["total"], ["loss"])], "outer")
print(outer)
print([operator.type for operator in outer.flattened()])

# %% [markdown]
# All functions of the package are in its registry, `net.OpInfoMap`. A decorator adds a function of
# your own. `left`, `right` and `shift` are the **slots** of this operator: places for the names of
# variables. Slots need no names: those of `multiply` above have none.


# %%
@net.register_op("multiply_add", inputs=("left", "right", "shift"), outputs=("result",))
class MultiplyAdd(tn.FunctionNode):
    """y = a b + c.   With g = dL/dy:   dL/da = g b   dL/db = g a   dL/dc = g"""

    def forward(self, inputs):
        a, b, c = inputs
        self.retain_inputs((0, 1))
        return (a * b + c,)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        return g * b, g * a, g


operator = net.Operator(
    "multiply_add", {"left": ["x"], "right": ["w"], "shift": ["b"]}, {"result": ["y"]}
)
print(operator)
print("more than 100 types:", len(net.OpInfoMap) > 100)

# %% [markdown]
# The registry has no `multiply_add_grad`, and needs none: **the package records the functions that
# `backward` of the class applies**. This needs a scope, since `backward` runs once. Only shapes,
# dtypes and devices of the values matter.

# %%
scope.set("b", array([1.0, 1.0]))
print(net.build_grad_op(operator, scope))

# %% [markdown]
# ## Break it
# The small registry of the first cell has no checks. Two authors choose the same name, and the
# second function replaces the first, without an error:


# %%
@register("mul")
def multilayer(a, b):
    return a + 100.0 * b


scope_of_floats = {"x": 2.0, "w": 0.5}
program[0].run(scope_of_floats)
print("mul of 2 and 0.5:", scope_of_floats["h"])

# %% [markdown]
# A program may also write a variable twice. The program below computes $e^x w$, but writes both
# results to the name `x`. Its result is right. But `mul_grad(x, w, g)` needs the `x` that `mul`
# has read, and this value is overwritten:

# %%
REGISTRY["mul"] = multiply
overwriting = [Op("exp", ["x"], "x"), Op("mul", ["x", "w"], "x")]
scope_of_floats = {"x": 1.0, "w": 3.0}
for op in overwriting:
    op.run(scope_of_floats)
_, gw = REGISTRY["mul_grad"](scope_of_floats["x"], scope_of_floats["w"], 1.0)
print(f"x: {scope_of_floats['x']:.4f}")
print(f"dx/dw by mul_grad: {gw:.4f}, and it should be e = {math.e:.4f}")

# %% [markdown]
# ## Fix it
# The package refuses both mistakes, and an unknown name, at the line of the mistake:


# %%
def attempt(action):
    try:
        action()
    except tn.TinynodeError as error:
        print(f"{type(error).__name__}: {error}\n")


def take_a_name():
    @net.register_op("multiply")
    class Multilayer(tn.FunctionNode):
        """y = a + 100 b."""


def overwrite():
    first = net.Operator("exp", ["x"], ["x2"])
    net.NetOp([first, net.Operator("multiply", ["x2", "w"], ["x2"])], "overwriting")


def misspell():
    net.Operator("mutliply", ["x", "w"], ["h"])


def read_too_early():
    net.NetOp([net.Operator("exp", ["hh"], ["z"])]).run(scope)


for action in take_a_name, overwrite, misspell, read_too_early:
    attempt(action)

# %% [markdown]
# So a notebook refuses to run the cell of `MultiplyAdd` twice: the second run would make another
# class of the same name.
#
# **Each name is written once.** By this rule, every variable that a backward program reads from
# the forward program is still there.
#
# **Cost.** A scope keeps every variable of the program, needed or not. A graph frees an array with
# its last use.
#
# Source: Abadi et al., TensorFlow: A System for Large-Scale Machine Learning, 2016.
#
# ## Exercise
# Write a registry that refuses a taken name, and a `run` that refuses a program with a name
# written twice. Register `mul` with `mul_grad`, and `tanh` with `tanh_grad`. Then write
# `grad_op(op)`, which makes the gradient operator of an operator, from names alone. A gradient
# operator gets the *outputs* as well, since `tanh_grad` needs them. So one rule fits all types.
#
#     python -m tinynode.learn start registry
#     python -m tinynode.learn check registry
