# %% [markdown] tags=["portable"]
# # Step 11: arrays and broadcasting
#
# **Goal.** You can say what shape a result has, what shape each gradient has, and how the gradient
# of an input that was repeated is made.

# %%
import inspect

import tinynode as tn
from tinynode import functions as F


def array(numbers, name=None):
    """A Variable with numbers of 64 bits, on the current device."""
    x = tn.asarray(numbers, dtype="float64")
    x.name = name
    return x


def lists(x):
    """What an array holds, as lists of numbers: it prints the same on every device."""
    return tn.to_host(x).tolist()


# %% [markdown]
# `tn.asarray` makes a Variable on the **device** in use: NumPy, if you have not said otherwise.
# Nothing on this page is NumPy's own, so it prints the same on every device.
#
# ## Predict
# `a` has the shape (3, 1), `b` the shape (4,). What is the shape of `a + b`? If `loss` is the sum
# of all its elements: what are the gradients of `loss` with respect to `a` and to `b`, and what
# are their shapes? Write your answers down, then run the cell.

# %%
a = array([[1.0], [2.0], [3.0]], "a")
b = array([10.0, 20.0, 30.0, 40.0], "b")
y = a + b
loss = F.sum(y)
loss.backward()
print("a + b:", lists(y.array), "shape", y.shape)
print("gradient of a:", lists(a.grad), "shape", tuple(a.grad.shape))
print("gradient of b:", lists(b.grad), "shape", tuple(b.grad.shape))

# %% [markdown]
# ## Run
# The shapes differ, and still every element of `a` met every element of `b`: the arrays were
# **broadcast**. The rule: write the shapes one above the other so that they end in the same
# column. Lengths in one column must be equal, or one of them is 1 or missing; that array is
# repeated along this axis.


# %%
def lined_up(*shapes):
    """The shapes, their last axes in one column, and what comes out of them."""
    result = F.broadcast_shapes(*shapes)
    for shape in shapes:
        print("  ".join(["."] * (len(result) - len(shape)) + [str(n) for n in shape]))
    print("  ".join(str(n) for n in result), " <- the result")
    print()


lined_up((3, 1), (4,))
lined_up((2, 1, 4), (3, 1))
lined_up((), (2, 2))
try:
    lined_up((3,), (4, 2))
except Exception as error:
    print(error)

# %% [markdown]
# **Why is the gradient of `a` 4, and that of `b` 3?** Each element of `a` was used four times,
# once for each element of `b`. A value that is used several times gets several contributions, and
# they are added: that is your step 5, and it holds for copies too. So
#
# > what was repeated in forward is summed in backward.
#
# ## See
# The repetition as a function of its own makes it visible. `F.broadcast_to` repeats; `Add` then
# gets two inputs of one shape. Beside the arrows stands the shape of the gradient that comes back
# along them: it is always the shape of the array that went forth.

# %%
diagram = tn.show.Diagram("a + b, with the repetition drawn")
a_box = diagram.variable("a", "(3, 1)", marks="leaf")
b_box = diagram.variable("b", "(4,)", marks="leaf")
wide_a = diagram.variable("a repeated", "(3, 4)")
wide_b = diagram.variable("b repeated", "(3, 4)")
y_box = diagram.variable("y", "(3, 4)")
diagram.function("BroadcastTo", inputs=[a_box], outputs=[wide_a])
diagram.function("BroadcastTo", inputs=[b_box], outputs=[wide_b])
diagram.function("Add", inputs=[wide_a, wide_b], outputs=[y_box])
gradients = {"a": "g (3, 1)", "b": "g (4,)"}
for edge in diagram.edges:
    source = next(node for node in diagram.nodes if node.id == edge.source)
    edge.label = gradients.get(source.label, "g (3, 4)")
diagram

# %% [markdown]
# The real thing, written out in this way, gives the same gradients:

# %%
for x in a, b:
    x.cleargrad()
y = F.broadcast_to(a, (3, 4)) + F.broadcast_to(b, (3, 4))
F.sum(y).backward()
print("gradient of a:", lists(a.grad))
print("gradient of b:", lists(b.grad))

# %% [markdown]
# `broadcast_to` has a counterpart, `sum_to`: it sums over the axes that were repeated. Each is the
# backward of the other. This is the package's source:

# %%
print(inspect.getsource(F.BroadcastTo.backward))
print(inspect.getsource(F.SumTo))

# %% [markdown]
# ## Break it
# An addition that has not heard of all this. In backward it hands on the gradient as it came.


# %%
class NaiveAdd(tn.FunctionNode):
    def forward(self, inputs):
        a, b = inputs
        return (a + b,)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return g, g


try:
    F.sum(NaiveAdd().apply((a, b))[0]).backward()
except tn.TinynodeError as error:
    print(error)

# %% [markdown]
# The package checks the shape of each gradient that a `backward` returns. Your own engine would
# not have noticed: the first gradient is taken as it is, and to add a wrong one to a right one
# works as well, since that sum is broadcast too:

# %%
right = array([0.0, 0.0, 0.0])
wrong = array([[1.0, 1.0, 1.0]] * 4)
print("three numbers became an array of shape", (right + wrong).shape)

# %% [markdown]
# And a shape can be right by accident. Here a square array and a row of three: the sum over the
# wrong axis has three numbers too, and nobody objects.


# %%
class WrongAxis(NaiveAdd):
    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return g, F.sum(g, axis=1)


square = array([[0.0, 0.0, 0.0]] * 3)
weights = array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]])
for name, add in (("WrongAxis", WrongAxis()), ("the package", F.Add())):
    row = array([1.0, 2.0, 3.0])
    F.sum(weights * add.apply((square, row))[0]).backward()
    print(f"{name:11}", lists(row.grad))

# %% [markdown]
# So a check of shapes is worth a lot, but it is no check of numbers. How to check those is the
# topic of step 13.
#
# ## Fix it
# `sum_to` brings each gradient to the shape of its input. `self.inputs` holds the input nodes, and
# a node knows its shape. Where nothing was repeated, `sum_to` does nothing.


# %%
class Add(NaiveAdd):
    """z = a + b.   With g = dL/dz:   dL/da = sum_to(g, shape of a), and so for b."""

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return tuple(F.sum_to(g, node.shape) for node in self.inputs)


print("shapes              gradients           each element of y counted once")
for left, right in [((3, 1), (4,)), ((2, 3), (3,)), ((), (2, 2)), ((2, 1, 4), (3, 1))]:
    a, b = (tn.Variable(tn.random.normal(shape, dtype="float64")) for shape in (left, right))
    y = Add().apply((a, b))[0]
    F.sum(y).backward()
    shapes = [str(tuple(x.shape)) for x in (a, b, a.grad, b.grad)]
    whole = all(float(F.sum(x.grad)) == y.size for x in (a, b))
    print("{:9} {:9} {:9} {:9}".format(*shapes), whole)

# %% [markdown]
# ## Exercise
# Write `unbroadcast(g, shape)`, which does the work of `sum_to` with nothing but `F.sum` and
# `F.reshape`, and an `Add` that uses it. The check asks for the gradients of (3, 1) + (4,) first,
# and then tries a few hundred pairs of shapes.
#
#     python -m tinynode.learn start 11
#     python -m tinynode.learn check 11
