# %% [markdown]
# # Step 3: the numerical gradient
#
# **Goal.** Measure a derivative without any rule, to test each `backward`; and learn how exact
# such a measurement is.

# %% [markdown]
# A derivative is a slope. To measure the slope of a hillside, take a small step to the right, and
# a small step to the left. Divide the difference in height by the distance:
#
# $$\frac{f(x + \varepsilon) - f(x - \varepsilon)}{2 \varepsilon}$$
#
# The formula is the **central difference**; $\varepsilon$, in code `eps`, is half of the distance.
# The measurement needs no rule of calculus, only values of $f$. So it is a second opinion on each
# `backward`. If the two opinions differ, look for an error. With a good `eps`, the measurement is
# nearly always right.
#
# ## What is new
# `numerical_grad` takes the gradients of outputs, and returns a tuple with the gradients of
# inputs, as `backward` does. In place of a rule, `numerical_grad` gets a function `f` without
# arguments. `f` reads the input arrays and returns a tuple of arrays. `numerical_grad` moves the
# elements of the inputs one after the other, and puts each element back. `np.ndindex(x.shape)`
# gives the index of each element, for any number of axes.
#
# <!-- mynode: gradient_check.py numerical_grad -->

# %% [markdown]
# ## Predict
# $y = x^4$ is computed as `square(square(x))`. At $x = 0.7$ the derivative is
# $4 \cdot 0.7^3 = 1.372$. A smaller `eps` looks at a smaller piece of the hill, so the error
# should shrink. Which `eps` is the best: `1e-1`, `1e-5`, or `1e-13`?

# %% [markdown]
# ## Run
# First the two opinions, side by side. The operation is `Square`, the input has three elements,
# and `gy` is not 1.

# %%
import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("03")

from mynode import Variable, exp, sin, square
from mynode.gradient_check import check_backward, numerical_grad

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
# Now the prediction. The function below measures the slope of $x^4$ at eleven points from 0.5 to
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
# `1e-5` is the best by far, and the smallest `eps` is bad. Two errors work against each other:
#
# - The **truncation error**: a hillside is curved, and two points do not show the curve between
#   them. This error grows like $\varepsilon^2$.
# - The **rounding error**: a float64 has about 16 digits. For a tiny `eps`, $f(x + \varepsilon)$
#   and $f(x - \varepsilon)$ agree in most digits. The difference has the last digits only. These
#   digits are noise, and the noise is divided by `eps`. This error grows like $1 / \varepsilon$.

# %% [markdown]
# ## See
# Both errors in one picture, on axes where each unit is a factor of ten. Each curve has the shape
# of a V. The left arm is rounding, the right arm is truncation.

# %%
steps = [float(f"1e-{digits}") for digits in range(13, 0, -1)]
errors = {
    "float64": [error_of(eps, np.float64) for eps in steps],
    "float32": [error_of(eps, np.float32) for eps in steps],
}
for name, values in errors.items():
    print(f"{name} is best at eps = {steps[int(np.argmin(values))]:.0e}: error {min(values):.0e}")

tn.show.lines(
    steps,
    errors,
    title="The error of a measured slope",
    x_label="eps",
    y_label="error",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# A float32 has 7 digits, so its noise is higher. Its V stands further to the right, and the lowest
# point is higher. On the far left its line is flat: there `x + eps` equals `x`, the measured slope
# is 0, and the error is the whole slope.

# %% [markdown]
# ## Break it
# A measurement in float32, with an `eps` that is good for float64.

# %%
print(f"float64, eps = 1e-5: error {error_of(1e-5, np.float64):.0e}")
print(f"float32, eps = 1e-5: error {error_of(1e-5, np.float32):.0e}")
print("0.7 + 1e-9 is 0.7, in float32:", np.float32(0.7) + np.float32(1e-9) == np.float32(0.7))

# %% [markdown]
# ## Fix it
# Measure in float64 if you can, with `eps` near `1e-5`. In float32 take `1e-2`, and expect three
# digits. Compare with a tolerance, never with `==`.

# %%
print(f"float32, eps = 1e-2: error {error_of(1e-2, np.float32):.0e}")

# %% [markdown]
# `check_backward`, the second function of this step, measures in float64 with this `eps`. It
# compares the measurement with the `backward` of an operation, and raises an `AssertionError` if
# the two differ. Here is the answer to three right operations, and to `Forgetful` of step 2.

# %%
from mynode.functions.exponential import Square


class Forgetful(Square):
    """As Square, but its backward ignores gy."""

    def backward(self, target_input_indexes, grad_outputs):
        return (2.0 * self.input_arrays[0],)


def forgetful(x):
    return Forgetful().apply((x,))[0]


for function in (square, exp, sin, forgetful):
    try:
        check_backward(function, np.array([0.3, -1.2]), np.array([2.0, -1.0]))
    except AssertionError as error:
        print(f"{function.__name__}: {error}")
    else:
        print(f"{function.__name__}: right")

# %% [markdown]
# **Cost.** Why not measure all gradients, and leave `backward` out? Count the calls of `f`: two
# for each element of the inputs. `backward` needs a single walk for all elements.

# %%
calls = 0


def counted():
    global calls
    calls += 1
    return (square(many).array,)


many = Variable(np.ones(1000))
numerical_grad(counted, (many.array,), (np.ones(1000),))
print("calls of f for 1,000 elements:", calls)

# %% [markdown]
# Source: Nocedal and Wright, Numerical Optimization, 2006, chapter 8.
#
# ## Exercise
# `python -m tinynode.learn start 03` adds the file `gradient_check.py`, with two functions:
#
# | function | what to write |
# |---|---|
# | `numerical_grad` | the last two lines of the loop: put the element back, and write the slope |
# | `check_backward` | by yourself: the text below says how |
#
# `check_backward(function, x_data, y_grad, eps, rtol, atol)` has four parts:
#
# 1. make a Variable of a copy of the array `x_data`, and call `function`;
# 2. call `backward` of the creator, with `(0,)` and `(y_grad,)`, for the gradient `gx`;
# 3. measure the same gradient by `numerical_grad`; `f` calls `function` again, on the Variable
#    of part 1, as `read_x` does above;
# 4. call `compare`, which is given: it raises an `AssertionError` if the two differ.
#
# - `python -m tinynode.learn check 03` checks with right and wrong operations;
# - `python -m tinynode.learn run 03 --mine` runs this page with your package.
#
# The same functions in tinynode: [gradient_check.py](../source/tinynode/gradient_check.md).
