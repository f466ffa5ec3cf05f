# %% [markdown] tags=["portable"]
# # Elective: a registry and operators by name
#
# **Goal.** You write a computation down before it runs: as a list of operators that you can print,
# run as often as you like, and take apart.

# %% [markdown]
# Everything so far was **define-by-run**: `y = a * b` computes at once, and the graph grows as a
# record of what has been done. There is a second way. A **program** says what *shall* be done, and
# holds no numbers. This step builds such programs; the next one derives the program of the
# gradients from them.
#
# An **operator** is one line of a program. It names a function, the variables that it reads, and
# those that it writes. Three words, all of them text: `y = mul(x, w)`. Somebody must know what
# `mul` means: the **registry**. And somebody must know what `x` is at the moment: the **scope**.
# Here are all three, from nothing.

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
# numbers does the program hold after that? And what would happen if the two operators stood in the
# other order?

# %%
program = [Op("mul", ["x", "w"], "h"), Op("exp", ["h"], "y")]
for op in program:
    print(op)

for scope in ({"x": 2.0, "w": 0.5}, {"x": 0.0, "w": 7.0}):
    for op in program:
        op.run(scope)
    print({name: round(value, 4) for name, value in scope.items()})

# %% [markdown]
# The program holds no number, before and after. All numbers are in the scopes, under their names;
# that is why one program serves for both. The order of the list is the order in which it runs. In
# the other order, `exp` finds no `h`:

# %%
try:
    for op in reversed(program):
        op.run({"x": 2.0, "w": 0.5})
except KeyError as error:
    print("KeyError:", error)

# %% [markdown]
# **What is the detour for?** A program is data, so another program can read it. You can count its
# operators, leave out those whose results nobody needs, or give variables other names. You can
# save it as text. And you can write another program from it, line by line: that of its gradients.
#
# For that the registry has to know a little more. Which operator computes the gradients
# of `mul`? It gets a name too, `mul_grad`, and a function. The gradient of the variable `x` is
# called `x@GRAD`: a name like any other, chosen so that nobody else has it.


# %%
@register("mul_grad")
def multiply_grad(a, b, g):
    return g * b, g * a


gradient = "x@GRAD, w@GRAD = mul_grad(x, w, h@GRAD)"
print(gradient)
print("at x = 2, w = 0.5, h@GRAD = 10:", REGISTRY["mul_grad"](2.0, 0.5, 10.0))

# %% [markdown]
# ## Run
# `tinynode.net` has the same three things, with checks. Here the functions are those that you
# know: the type `multiply` names the FunctionNode class `F.Multiply`.

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
# A `NetOp` is a list of operators. Its first line says what it reads from outside, and it worked
# that out by itself: `h` is read as well, but it was written before. What stands behind the names,
# such as `axes=(0,)`, are constants: the arguments of the function's constructor.
#
# This is how the package runs an operator. Compare it with your `run`: find the inputs by name,
# apply the function, write the outputs by name.

# %%
print(inspect.getsource(net.Operator.run))

# %% [markdown]
# ## See
# The program as a picture. It looks like a graph of step 1, yet nothing has to run for it. (With
# the `scope`, the picture can show shapes too.)

# %%
tn.show.graph(layer, scope=scope)

# %% [markdown]
# A `NetOp` reads names and writes names. So it *is* an operator, and may stand in another:

# %%
outer = net.NetOp([layer, net.Operator("log", ["total"], ["loss"])], "outer")
print(outer)
print([operator.type for operator in outer.flattened()])

# %% [markdown]
# All functions of the package are in its registry, `net.OpInfoMap`. A decorator puts one of your
# own there. `left`, `right` and `shift` are the **slots** of this operator: the places where the
# names of variables are filled in. Slots may go without names, as those of `multiply` above.


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
# Nobody has registered a `multiply_add_grad`. It is not needed: `backward` of the class says all
# there is to say, and **the package finds the gradient operator by writing down what `backward`
# does**. That takes a scope, since `backward` must run once; of the values only shapes, dtypes and
# devices matter.

# %%
scope.set("b", array([1.0, 1.0]))
print(net.build_grad_op(operator, scope))

# %% [markdown]
# ## Break it
# The little registry of the first cell is too trusting. Two people choose the same name, and the
# second one wins, without a word:


# %%
@register("mul")
def multilayer(a, b):
    return a + 100.0 * b


scope_of_floats = {"x": 2.0, "w": 0.5}
program[0].run(scope_of_floats)
print("mul of 2 and 0.5:", scope_of_floats["h"])

# %% [markdown]
# And a program may write a variable that it has used before. This one computes `exp(x) * w`, but
# keeps both results under the name `x`. It runs, and its result is right. But `mul_grad(x, w, g)`
# of its second line wants the `x` that `mul` has read, and that one is gone:

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
# The package refuses both, and a name that nobody knows, at the line where the mistake is made:


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
# (This is why a notebook refuses to run the cell of `MultiplyAdd` twice: it would make a second
# class of that name.)
#
# **Each name is written once.** It is a simple rule, and it is all that a backward program needs:
# whatever it wants to read of the forward program is still there.
#
# ## Exercise
# Write a registry that refuses a name that is taken, and a `run` that refuses a program with a
# name written twice. Then register `mul` with `mul_grad`, and `tanh` with `tanh_grad`, and write
# `grad_op(op)`, which makes the gradient operator of an operator: nothing but names. So that one
# rule fits all types, a gradient operator gets the *outputs* as well: `tanh_grad` wants them.
#
#     python -m tinynode.learn start registry
#     python -m tinynode.learn check registry
