# %% [markdown]
# # Step 3: the numerical gradient
#
# **Goal.** Measure a derivative without knowing any rule, so that you can test every `backward`
# that you will ever write; and learn how far such a measurement can be trusted.

# %% [markdown]
# A derivative is a slope. To measure the slope of a hillside, take a small step to the left and
# one to the right, and divide the difference in height by the distance:
#
# `slope = (f(x + eps) - f(x - eps)) / (2 * eps)`
#
# This is the **central difference**, and `eps` is half of the distance. No rule of calculus is
# needed, only values of `f`. So it is a second opinion on each `backward`: if the two disagree,
# one of them is wrong, and with a good `eps` it is hardly ever the measurement.

# %% tags=["engine"]
import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## The engine so far
# These are the classes of step 2, written more briefly, with `Sin` from its exercise. `Negative`
# is left out.


# %% tags=["engine"]
class Variable:
    """A box around an array. It remembers what computed it."""

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None
        self.grad = None


class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    def apply(self, inputs):
        results = self.forward(tuple(x.array for x in inputs))
        if not isinstance(results, tuple):
            raise TypeError(f"forward output must be a tuple ({type(self).__name__})")
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        for y in outputs:
            y.creator_node = self
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


class Exp(FunctionNode):
    """y = e^x.   gx = gy * e^x"""

    def forward(self, inputs):
        return (np.exp(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * np.exp(self.inputs[0].array),)


def exp(x):
    return Exp().apply((x,))[0]


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * np.cos(self.inputs[0].array),)


def sin(x):
    return Sin().apply((x,))[0]


# %% [markdown]
# ## What is new
# As with a `backward`, gradients of outputs go in, and a tuple with gradients of inputs comes out.
# In place of a rule, it is given `f`, which takes no argument and returns a tuple of results. `f`
# reads the input arrays; `numerical_grad` moves their elements, one after the other, and puts each
# back.


# %% tags=["engine"]
def numerical_grad(f, inputs, grad_outputs, eps=1e-3):
    """The gradients of sum(grad_outputs * f()) with respect to the arrays in inputs."""
    grads = tuple(np.zeros_like(x) for x in inputs)
    for x, gx in zip(inputs, grads, strict=True):
        for index in np.ndindex(x.shape):
            before = x[index].copy()
            heights = []
            for moved in (before + eps, before - eps):
                x[index] = moved
                heights.append(
                    sum(np.sum(gy * y) for gy, y in zip(grad_outputs, f(), strict=True))
                )
            x[index] = before
            gx[index] = (heights[0] - heights[1]) / (2 * eps)
    return grads


# %% [markdown]
# ## Predict
# `y = x^4`, computed as `square(square(x))`. At `x = 0.7` the derivative is `4 * 0.7^3 = 1.372`.
# A smaller `eps` looks at a smaller piece of the hill, so the error should shrink. Which `eps` is
# the best one: `1e-1`, `1e-5`, or `1e-13`?

# %% [markdown]
# ## Run
# First the two opinions, side by side. The operation is `Square`, its input has three elements,
# and `gy` is not 1.

# %%
x = Variable(np.array([3.0, -1.0, 0.5]))
gy = np.array([1.0, 10.0, -2.0])
y = square(x)


def read_x():
    return (square(x).array,)


(by_backward,) = y.creator_node.backward((0,), (gy,))
(by_measuring,) = numerical_grad(read_x, (x.array,), (gy,))
print("backward: ", by_backward)
print("measured: ", np.round(by_measuring, 6))
print("x is back:", x.array)

# %% [markdown]
# Now the prediction. The function below measures the slope of `x^4` at eleven points from 0.5 to
# 1.5, and returns the largest error.


# %%
def error_of(eps, dtype):
    worst = 0.0
    for point in np.linspace(0.5, 1.5, 11):
        x = np.array(point, dtype)

        def fourth_power(x=x):
            return (square(square(Variable(x))).array,)

        (slope,) = numerical_grad(fourth_power, (x,), (np.array(1, dtype),), eps)
        worst = max(worst, abs(float(slope) - 4.0 * float(x) ** 3))
    return worst


for eps in (1e-1, 1e-5, 1e-13):
    print(f"eps = {eps:.0e}: error {error_of(eps, np.float64):.0e}")

# %% [markdown]
# The middle one wins by far, and the smallest is bad. Two errors work against each other:
#
# - The **cut**: a hillside is curved, and two points know nothing of what is between them. This
#   error falls with the square of `eps`.
# - The **rounding**: a float64 has about 16 digits. `f(x + eps)` and `f(x - eps)` agree in most
#   of them when `eps` is tiny; the difference has only the few last digits, and these are noise.
#   Then the noise is divided by `eps`. This error grows as `eps` shrinks.

# %% [markdown]
# ## See
# Both errors in one picture, on axes where each unit is a factor of ten. It has the shape of a V.
# The left arm is rounding, the right arm is the cut.

# %%
steps = [float(f"1e-{digits}") for digits in range(13, 0, -1)]
errors = {
    "float64": [error_of(eps, np.float64) for eps in steps],
    "float32": [error_of(eps, np.float32) for eps in steps],
}
for name, values in errors.items():
    print(f"{name} is best at eps = {steps[int(np.argmin(values))]:.0e}: error {min(values):.0e}")


# %%
def picture():
    return tn.show.lines(
        steps,
        errors,
        title="The error of a measured slope",
        x_label="eps",
        y_label="error",
        log_x=True,
        log_y=True,
    )


picture()

# %% [markdown]
# A float32 has 7 digits, so its noise is higher: its V stands further to the right, and does not
# go down as deep. On the far left its line is flat: there `x + eps` is `x` again, the measured
# slope is 0, and all of the slope is error.

# %% [markdown]
# ## Break it
# A measurement in float32, with an `eps` that is a good one for float64.

# %%
print(f"float64, eps = 1e-5: error {error_of(1e-5, np.float64):.0e}")
print(f"float32, eps = 1e-5: error {error_of(1e-5, np.float32):.0e}")
print("0.7 + 1e-9 is 0.7, in float32:", np.float32(0.7) + np.float32(1e-9) == np.float32(0.7))

# %% [markdown]
# ## Fix it
# Measure in float64 where you can, with `eps` near `1e-5`. If it has to be float32, use `1e-2`
# and expect three digits. In any case, compare with a tolerance and never with `==`.

# %%
print(f"float32, eps = 1e-2: error {error_of(1e-2, np.float32):.0e}")


# %%
def compare(function, values, gy):
    """The largest difference between a function's backward and the measurement."""
    x = Variable(np.array(values))
    y = function(x)
    (gx,) = y.creator_node.backward((0,), (gy,))
    (measured,) = numerical_grad(lambda: (function(x).array,), (x.array,), (gy,), eps=1e-5)
    return np.max(np.abs(gx - measured))


for function in (square, exp, sin):
    error = compare(function, [0.3, -1.2, 2.0], np.array([2.0, -1.0, 0.5]))
    print(f"{function.__name__}: backward and measurement agree: {error < 1e-8}")

# %% [markdown]
# Why not use the measurement for everything, and forget about `backward`? Count: for each element
# of the inputs, `f` runs twice. For a network with a million numbers that is two million runs, for
# one gradient. `backward` finds all of them in a single run.

# %% [markdown]
# ## Exercise
# Choose an `eps` for float64 and one for float32. Then write `agrees(function, x, gy)`, which says
# whether the `backward` of an operation can be trusted. The check gives it right operations and
# wrong ones.
#
# `python -m tinynode.learn start 03`, then `python -m tinynode.learn check 03`.
