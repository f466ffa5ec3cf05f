# %% [markdown]
# # Step 18: normalisation and residuals
#
# **Goal.** A network of 32 layers learns the digits. Without two small parts, the same network
# learns nothing.

# %%
from tinynode_course import use_mynode

use_mynode("18")

import numpy as np
from mynode import Variable, layer_norm, mean, nn, relu, seed, softmax_cross_entropy, sqrt, var

import tinynode as tn
from tinynode.nn.datasets import load_digits

digits = load_digits()
images = digits.train_images.astype(float)[:1000]
labels = digits.train_labels[:1000]
DEPTH, SIZE = 30, 32


def stack(middle):
    """A network with DEPTH middle layers, all with the first values of the same seed."""
    seed(0)
    layers = [layer for _ in range(DEPTH) for layer in middle()]
    return nn.Sequential(nn.Linear(64, SIZE), *layers, nn.Linear(SIZE, 10))


# %% [markdown]
# ## Predict
# Step 8 had one hidden layer, and a deeper network can compute more. So take 30 hidden layers. In
# step 10 you saw that `relu` halves the mean square of the numbers. Each layer is `Linear`, then
# `relu`. How long is the gradient of the first weights, compared with a gradient of length 1?
#
# Now each layer **adds** to its input: $y = x + f(x)$. Is the gradient shorter, or longer?
#
# ## Run


# %%
def plain():
    """A layer that replaces its input."""
    return [nn.Linear(SIZE, SIZE), relu]


def residual():
    """A layer that adds to its input."""
    return [nn.Residual(nn.Linear(SIZE, SIZE), relu)]


def lengths(model):
    """The length of the gradient of each weight, from the first layer to the last."""
    loss = softmax_cross_entropy(model(images[:100]), labels[:100])
    loss.backward()
    weights = [p for p in model.parameters() if p.name == "weight"]
    return [float(np.linalg.norm(p.grad)) for p in weights]


curves = {"plain": lengths(stack(plain)), "residual": lengths(stack(residual))}
for name, curve in curves.items():
    print(f"{name:10} first layer {curve[0]:.0e}, middle {curve[16]:.0e}, last {curve[-1]:.0e}")

# %% [markdown]
# The plain gradient **vanishes**. The gradient of a weight is a product: a number that came
# through all layers before, times a gradient that came back through all layers behind. Each layer
# halves the mean square of the number or of the gradient. So 30 layers make each product shorter
# by about $2^{-15}$, which is 0.00003. The other gradient **explodes**: each layer adds, and makes
# the numbers larger.
#
# A layer $y = x + f(x)$ is a **residual connection**. Its Jacobian is $I + J_f$: whatever $f$
# does, the gradient of $y$ also goes unchanged to $x$. So no layer can stop a gradient. The
# network still needs a part that keeps the numbers small.
#
# ## What is new
# **Layer normalisation** gives each row the mean 0 and the variance 1. With $m$ the mean of a row
# of $n$ numbers, and $v$ the variance:
#
# $$v = \frac{1}{n} \sum_i (x_i - m)^2 \qquad
# y = \frac{x - m}{\sqrt{v + \varepsilon}} \odot \gamma + \beta$$
#
# The small $\varepsilon$ keeps the root away from 0. The parameters $\gamma$ and $\beta$ begin as
# ones and zeros. With them, training can choose another mean and another variance.

# %%
row = Variable(np.array([[1.0, 2.0, 3.0, 6.0]]))
print("mean", mean(row, -1).array, "variance", var(row, -1).array)
print("normalised:         ", layer_norm(row, np.ones(4)).array.round(2))
print("100 * row, the same:", layer_norm(100.0 * row, np.ones(4)).array.round(2))

# %% [markdown]
# The layer has the parameters, and calls the function:
#
# <!-- mynode: nn/normalization_layers.py -->
#
# ([tinynode's file](../source/tinynode/nn/normalization_layers.md))
#
# The norm stands **inside** of the branch, before `Linear`: $y = x + f(\text{norm}(x))$. So the
# path of the sum is free, and each branch gets numbers of the same size. A last norm stands before
# the output layer.
#
# ## See
# The lengths of the gradients of all 32 weights, in four networks:


# %%
def normed():
    """A norm in front of each plain layer."""
    return [nn.LayerNorm(SIZE), nn.Linear(SIZE, SIZE), relu]


def both():
    """A residual connection, and a norm in its branch."""
    return [nn.Residual(nn.LayerNorm(SIZE), nn.Linear(SIZE, SIZE), relu)]


def stack_with_norm(middle):
    """As stack, with a norm before the output layer."""
    model = stack(middle)
    *layers, output = model.layers
    return nn.Sequential(*layers, nn.LayerNorm(SIZE), output)


curves |= {"norm": lengths(stack_with_norm(normed)), "both": lengths(stack_with_norm(both))}
for name, curve in curves.items():
    print(f"{name:10} the shortest {min(curve):.0e}, the longest {max(curve):.0e}")
tn.show.lines(
    range(1, 33),
    curves,
    log_y=True,
    title="The gradient of each layer's weights",
    x_label="layer",
    y_label="length",
)

# %% [markdown]
# A norm alone is no cure: the way back goes through 30 roots, and each divides by a small number.
# With both parts all gradients have about the length 1. Now each network is trained for three
# rounds. The share of right answers is measured with the 360 held-out digits:


# %%
def train(model, rounds=3):
    """The loss of each update."""
    optimizer, order, losses = nn.Adam(model, lr=0.003), np.random.default_rng(0), []
    for _ in range(rounds):
        for batch in np.array_split(order.permutation(len(images)), 20):
            loss = softmax_cross_entropy(model(images[batch]), labels[batch])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
    return losses


models = {
    "plain": stack(plain),
    "residual": stack(residual),
    "norm": stack_with_norm(normed),
    "both": stack_with_norm(both),
}
for name, model in models.items():
    loss = np.mean(train(model)[-10:])
    answers = model(digits.held_out_images.astype(float)).array.argmax(axis=1)
    right = (answers == digits.held_out_labels).mean()
    print(f"{name:10} loss {loss:5.2f}, {right:.0%} of the held-out digits right")

# %% [markdown]
# A guess among ten digits has a loss of 2.30, and is right for 10 %. `plain` and `norm` still
# guess. `residual` has learned a little. But its scores are large, so a wrong answer costs much.
#
# **What it costs.** Your `layer_norm` is made of small operations, and each keeps what its
# backward needs. The bytes that are kept for an input of 100 rows:


# %%
def kept(y):
    """The bytes of all arrays that the operations behind y keep."""
    found, seen, waiting = {}, set(), [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in seen:
            seen.add(function)
            arrays = [*function._input_arrays, *function._output_arrays]
            found |= {id(one): one.nbytes for one in arrays if one is not None}
            waiting += [node.creator_node for node in function.inputs]
    return sum(found.values()), len(seen)


x = Variable(np.random.default_rng(0).normal(size=(100, SIZE)))
total, operations = kept(layer_norm(x, np.ones(SIZE), np.zeros(SIZE)))
print(f"the input has {x.array.nbytes} bytes")
print(f"{operations} operations keep {total} bytes")

# %% [markdown]
# The package has [an operation of its own](../source/tinynode/functions/normalization.md), with a
# backward by hand. That operation keeps one array of the size of the input, yours keeps two. You
# get the right gradient without any new formula.
#
# ## Break it
# The mean of which axis? A common mistake is the axis of the batch. The loss falls with it, and
# nothing warns. Here is an image beside one other image, then beside 99 others:


# %%
def norm_over_the_batch(x):
    """The wrong axis: each column has the mean 0."""
    return (x - mean(x, 0, keepdims=True)) / sqrt(var(x, 0, keepdims=True) + 1e-5)


def scores_of_the_first(norm, count):
    """Three scores of the first image, in a batch of so many images."""
    seed(0)
    model = nn.Sequential(nn.Linear(64, SIZE), norm, nn.Linear(SIZE, 3))
    return model(images[:count]).array[0].round(2)


for count in (2, 100):
    print(f"in a batch of {count:3}:", scores_of_the_first(norm_over_the_batch, count))

# %% [markdown]
# The answer for an image depends on its neighbours in the batch. (Batch normalisation does this on
# purpose in training. It stores a mean for later use, since a user brings one image.)
#
# ## Fix it
# The mean is taken over the last axis, so each row is normalised by itself:

# %%
for count in (2, 100):
    print(f"in a batch of {count:3}:", scores_of_the_first(nn.LayerNorm(SIZE), count))

# %% [markdown]
# Source: He et al., Deep Residual Learning for Image Recognition, 2016; Ba, Kiros and Hinton,
# Layer Normalization, 2016.
#
# ## Exercise
# Your package gets what deep networks need. This page shows the layer `LayerNorm`. Yours to find:
#
# - `functions/exponential.py`: `Sqrt` and `sqrt`. Keep the output: $g_x = g_y / (2 y)$.
# - `functions/statistical.py`: `var`, made of `mean` and `square`. So `var` needs no backward.
# - `functions/normalization.py`: `layer_norm`, by the formula above, over the axes of `gamma`.
# - `nn/layers.py`: `Residual`, a `Sequential` that adds its input.
#
#     python -m tinynode.learn start 18
#     python -m tinynode.learn check 18
#
# `python -m tinynode.learn run 18 --mine` runs this page with your own package.
