# %% [markdown]
# # Step 6: rank and order
#
# **Goal.** Visit the operations in an order in which each one has its complete gradient before it
# is asked, in any graph.

# %% [markdown]
# In step 5 the boxes that were used twice were leaves. Nothing comes before a leaf, so it did not
# matter when its contributions arrived. An *inner* box is different: its gradient is passed on.
# Pass it on before the last contribution is there, and the rest is lost, or counted twice.

# %% tags=["engine"]
import heapq

import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## What is new
# An operation must wait until everything that used its output has run. So each operation gets a
# number that says how far it is from the leaves, its **rank**:
#
# - the rank of a leaf is 0;
# - the rank of an operation is the largest rank of its inputs;
# - the rank of an output is one more than that of its operation.
#
# Whatever uses a box `a` has a higher rank than the creator of `a`. Go by falling rank, and every
# user of a box has run before the creator of the box runs.
#
# A **heap** is a list that hands out its smallest entry quickly; `heapq` is the one of Python. The
# entries are `(-rank, number, function)`: smallest first means highest rank first. Entries are
# compared from left to right, and the number is different for each, so that two operations are
# never compared with each other: Python could not say which one is smaller.


# %% tags=["engine"]
class Variable:
    """A box around an array. It remembers what computed it."""

    __array_ufunc__ = None  # NumPy must not take x apart: array * x asks x.__rmul__

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None
        self.grad = None
        self.rank = 0

    def backward(self):
        """Find the gradient of every box that this one was computed from."""
        if self.grad is None:
            self.grad = np.ones_like(self.array)
        heap, seen = [], set()

        def push(function):
            if function is not None and function not in seen:
                seen.add(function)
                heapq.heappush(heap, (-function.rank, len(seen), function))

        push(self.creator_node)
        while heap:
            function = heapq.heappop(heap)[2]
            run_backward(function)
            for x in function.inputs:
                push(x.creator_node)

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)


def run_backward(function):
    """Run the backward of one operation, and add its results to the gradients of its inputs."""
    targets = tuple(range(len(function.inputs)))
    grad_outputs = tuple(y.grad for y in function.outputs)
    for x, gx in zip(function.inputs, function.backward(targets, grad_outputs), strict=True):
        x.grad = gx if x.grad is None else x.grad + gx


class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    def apply(self, inputs):
        results = self.forward(tuple(x.array for x in inputs))
        if not isinstance(results, tuple):
            raise TypeError(f"forward output must be a tuple ({type(self).__name__})")
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        self.rank = max(x.rank for x in inputs)
        for y in outputs:
            y.creator_node = self
            y.rank = self.rank + 1
        self.inputs = tuple(inputs)
        self.outputs = outputs
        return outputs


class Square(FunctionNode):
    """y = x * x.   gx = gy * 2 x"""

    def forward(self, inputs):
        return (inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * 2.0 * self.inputs[0].array,)


def square(x):
    return Square().apply((x,))[0]


def _as_operands(x, y):
    """Both as Variables: a number takes the shape of the other."""
    if not isinstance(y, Variable):
        y = Variable(np.full(x.array.shape, y, np.result_type(x.array, y)))
    if not isinstance(x, Variable):
        x = Variable(np.full(y.array.shape, x, np.result_type(y.array, x)))
    return x, y


class Add(FunctionNode):
    """z = x + y.   gx = gz, gy = gz"""

    def forward(self, inputs):
        return (inputs[0] + inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        return grad_outputs[0], grad_outputs[0]


def add(x, y):
    return Add().apply(_as_operands(x, y))[0]


class Multiply(FunctionNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = (v.array for v in self.inputs)
        return gz * y, gz * x


def multiply(x, y):
    return Multiply().apply(_as_operands(x, y))[0]


# %% [markdown]
# For comparison, here is the order of step 5: take what was put into the list last. Each operation
# is put there once only.


# %% tags=["engine"]
def naive_backward(y):
    """Backward in the order in which operations come out of a list; returns that order."""
    y.grad = np.ones_like(y.array)
    waiting, seen, order = [y.creator_node], {None, y.creator_node}, []
    while waiting:
        function = waiting.pop()
        order.append(function)
        run_backward(function)
        for x in function.inputs:
            if x.creator_node not in seen:
                seen.add(x.creator_node)
                waiting.append(x.creator_node)
    return order


# %% [markdown]
# ## Predict
# Let `a = x * x`, and take the sum of `a` and `a * a`. The order of a sum does not matter in
# algebra: `a + square(a)` and `square(a) + a` are the same number, with the same gradient
# `(1 + 2 * a) * 2 * x`, which is 114 at `x = 3`. Will `backward` find 114 for both? Will
# `naive_backward`?

# %% [markdown]
# ## Run


# %%
def first(x):
    a = square(x)
    return a + square(a)


def second(x):
    a = square(x)
    return square(a) + a


for graph in (first, second):
    x = Variable(np.array(3.0))
    graph(x).backward()
    print(f"{graph.__name__:<7} by rank: {x.grad}")

# %% [markdown]
# ## See
# The graph of the second one, with its ranks, and the two orders side by side.

# %%
x = Variable(np.array(3.0), name="x")
a = square(x)
b = square(a)
y = b + a
naive = {function: i for i, function in enumerate(naive_backward(y), 1)}
for v in (x, a, b, y):
    v.grad = None  # the naive one goes; now by rank
y.backward()
by_rank = sorted(naive, key=lambda function: -function.rank)

print("operation         rank   visit by rank   naive visit")
for i, function in enumerate(by_rank, 1):
    text = {a: "a = square(x)", b: "b = square(a)", y: "y = b + a"}[function.outputs[0]]
    print(f"{text:<18}{function.rank:>4}{i:>16}{naive[function]:>14}")


# %%
def picture():
    diagram = tn.show.Diagram("y = square(a) + a, with a = square(x)")
    box = {
        v: diagram.variable(name, f"gradient {v.grad:g}", marks="leaf" if v is x else ())
        for name, v in (("x", x), ("a", a), ("b", b), ("y", y))
    }
    for i, f in reversed(list(enumerate(by_rank, 1))):
        facts = f"rank {f.rank}", f"visit {i} (naive: {naive[f]})"
        inputs = [box[v] for v in f.inputs]
        diagram.function(type(f).__name__, *facts, inputs=inputs, outputs=[box[f.outputs[0]]])
    return diagram


picture()

# %% [markdown]
# ## Break it
# Now both graphs in the naive order.

# %%
for graph in (first, second):
    x = Variable(np.array(3.0))
    naive_backward(graph(x))
    print(f"{graph.__name__:<7} naive: {x.grad}")

# %% [markdown]
# One is right and one is wrong, for the same formula. In the second one the creator of `a` came
# out of the list *before* `square(a)` had sent its contribution to `a`. It passed on the 1 that
# was there. The 18 that came later made the gradient of `a` right, and never reached `x`.
#
# Could an operation not simply run again when more arrives? That is the loop of step 5 as it was,
# which puts an operation into the list once for each use:


# %%
def backward_of_step_5(y):
    y.grad = np.ones_like(y.array)
    waiting = [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None:
            run_backward(function)
            waiting += [x.creator_node for x in function.inputs]


x = Variable(np.array(3.0))
a = square(x)
backward_of_step_5(a + a)
print("a + a, step 5:", x.grad, "(12.0 is right)")

# %% [markdown]
# The creator of `a` ran twice, and passed on the complete gradient both times.

# %% [markdown]
# ## Fix it
# Each operation once, by falling rank: that is `Variable.backward` above.

# %%
x = Variable(np.array(3.0))
a = square(x)
(a + a).backward()
print("a + a, by rank:", x.grad)

# %% [markdown]
# ## Exercise
# Find graphs of your own: one on which `naive_backward` is wrong, and one with a branch on which
# it happens to be right. The check runs both orders, and compares with a measured gradient.
#
# `python -m tinynode.learn start 06`, then `python -m tinynode.learn check 06`.
