# %% [markdown]
# # Step 9: losses, SGD and Adam: the digits
#
# **Goal.** Your package gets losses and optimizers, and learns to read handwritten digits.

# %%
from tinynode_course import use_mynode

use_mynode("09")

import time

import numpy as np
from mynode import nn, relu, seed, softmax_cross_entropy

import tinynode as tn
from tinynode.nn.datasets import load_digits
from tinynode_course.image_pictures import images

digits = load_digits()
print(f"{len(digits.train_images)} digits to learn from, {len(digits.held_out_images)} for tests")
images(
    digits.train_images[:20].reshape(20, 8, 8),
    [f"{label}" for label in digits.train_labels[:20]],
    title="The first twenty digits, each with its label",
)

# %% [markdown]
# Each image has 8 by 8 pixels, so each row of the data has 64 numbers. A **classifier** gives ten
# **scores** for an image, one for each class. The class with the highest score is the answer.
#
# ## Predict
# **Softmax** makes probabilities of the scores $x_k$, and the **cross entropy** is the loss:
#
# $$p_k = \frac{e^{x_k}}{\sum_j e^{x_j}} \qquad L = -\log p_{\text{label}}$$
#
# The loss of several images is the mean of their losses. A network that knows nothing gives each
# of the ten classes the same probability. How large is the loss of such a network?

# %%
print(f"the loss of a guess among ten: {-np.log(1 / 10):.3f}")

# %% [markdown]
# Remember this number. A loss that stays near 2.3 says: the network has learned nothing.
#
# ## What is new
# **A loss of classes.** The gradient of the cross entropy is short. With $n$ images, and
# $[k = \text{label}]$ for 1 if $k$ is the label, else 0:
#
# $$\frac{\partial L}{\partial x_k} = \frac{p_k - [k = \text{label}]}{n}$$
#
# The right score goes up by what its probability lacks, all others go down by what they have.
#
# **An optimizer** holds the parameters, and moves them. `update_one` gives the next array of a
# single parameter. It gives a new array, and leaves the old one as it is: a graph may still keep
# the old array for its backward pass.
#
# **SGD**, stochastic gradient descent, goes a little against the gradient. With the learning rate
# $\eta$, in code `lr`, it is $p \leftarrow p - \eta g$. In step 8 you wrote this in the loop.
#
# **Adam** makes steps of about `lr`, whether gradients are large or small. It keeps two fading
# means: $m$ of the gradient, and $v$ of its square. The step is $m / \sqrt{v}$, so a factor in all
# gradients cancels. At the start both means are 0, so both are divided by $1 - b^t$ in step $t$.
#
# In the package: [cross_entropies](../source/tinynode/functions/cross_entropies.md),
# [optimizers](../source/tinynode/nn/optimizers.md).
#
# ## Run
# All of training is a loop of four lines: loss, `cleargrads`, `backward`, `update`. The images
# come in **batches** of about 32, in a new order in each round.


# %%
def train(model, optimizer, rounds=10):
    """The loss of each batch."""
    order, losses = np.random.default_rng(0), []
    n = len(digits.train_images)
    for _ in range(rounds):
        for batch in np.array_split(order.permutation(n), n // 32):
            scores = model(digits.train_images[batch])
            loss = softmax_cross_entropy(scores, digits.train_labels[batch])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
    return losses


def answers(model, pixels=digits.held_out_images):
    """The class with the highest score, for each image."""
    return model(pixels).array.argmax(axis=1)


def right(model):
    """The share of right answers, for digits that the model has never seen."""
    return float((answers(model) == digits.held_out_labels).mean())


seed(0)
model = nn.Sequential(nn.Linear(64, 64), relu, nn.Linear(64, 10))
print(f"before: {right(model):.0%} are right")
curves = {"Adam": train(model, nn.Adam(model, lr=0.005))}
print(f"after:  {right(model):.0%} are right")

# %% [markdown]
# Your own framework reads handwriting. The same network with SGD, for comparison:

# %%
seed(0)
plain = nn.Sequential(nn.Linear(64, 64), relu, nn.Linear(64, 10))
curves["SGD"] = train(plain, nn.SGD(plain, lr=0.5))
print(f"SGD: {right(plain):.0%} are right")
tn.show.training_curves(curves, smoothing=0.9, log=True, title="Two optimizers, one network")

# %% [markdown]
# ## See
# In this table a row is a digit, and a column is the network's answer. Right answers stand on the
# diagonal. Such a table is called a **confusion matrix**: which digits are confused with which?

# %%
given = answers(model)
counts = np.zeros((10, 10), int)
np.add.at(counts, (digits.held_out_labels, given), 1)
tn.show.matrix(counts, title="Digits and answers", y_label="digit", x_label="answer")

# %% [markdown]
# Each number off the diagonal is a mistake. Here are the mistakes. Would you have known better?

# %%
wrong = np.flatnonzero(given != digits.held_out_labels)
images(
    digits.held_out_images[wrong].reshape(-1, 8, 8),
    [f"{digits.held_out_labels[i]}, not {given[i]}" for i in wrong],
    title="Wrong answers",
    columns=7,
)

# %% [markdown]
# **What it costs.** A parameter takes 8 bytes. Adam keeps two further numbers for each parameter.
# Each operation keeps the arrays of its inputs until the next batch: pixels, hidden numbers before
# and after the bend, and scores.

# %%
parameters = sum(p.size for p in model.parameters())
print(f"{parameters} parameters: {8 * parameters:,} bytes; in Adam {16 * parameters:,} more")
kept = 32 * (4 * 64 + 8 * 64 + 8 * 64 + 8 * 10)  # pixels of 4 bytes, two times hidden, scores
print(f"kept for the backward pass of a batch: about {kept:,} bytes")

# %% tags=["varies"]
start = time.perf_counter()
train(model, nn.Adam(model, lr=0.005), rounds=1)
print(f"a round of 44 batches: {time.perf_counter() - start:.2f} s")

# %% [markdown]
# ## Break it
# Two mistakes that everybody makes once. First, forget `cleargrads`. Gradients then add up over
# all batches, and each step repeats all steps before.


# %%
class Forgetful(nn.SGD):
    """As if the line optimizer.cleargrads() were missing."""

    def cleargrads(self):
        pass


seed(0)
broken = nn.Sequential(nn.Linear(64, 64), relu, nn.Linear(64, 10))
losses = train(broken, Forgetful(broken, lr=0.5), rounds=2)
print("every 10th loss:", " ".join(f"{loss:.1f}" for loss in losses[::10]))
print(f"right: {right(broken):.0%}")

# %% [markdown]
# Second, type softmax as the formula has it. A score of 1000 is nothing special after a mistake in
# the learning rate, but $e^{1000}$ is no number of 64 bits.

# %%
scores = np.array([1000.0, 0.0])
with np.errstate(over="ignore", invalid="ignore"):
    print("by the formula:    ", np.exp(scores) / np.exp(scores).sum())
shifted = scores - scores.max()
print("largest score first:", np.exp(shifted) / np.exp(shifted).sum())

# %% [markdown]
# The first mistake raises no error, the second makes NaN of all parameters. **Look at the loss**,
# and know what a guess costs.
#
# ## Fix it

# %%
seed(0)
fixed = nn.Sequential(nn.Linear(64, 64), relu, nn.Linear(64, 10))
losses = train(fixed, nn.SGD(fixed, lr=0.5), rounds=2)
print("every 10th loss:", " ".join(f"{loss:.1f}" for loss in losses[::10]))
print(f"right: {right(fixed):.0%}")

# %% [markdown]
# Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015; Robbins and Monro, A
# Stochastic Approximation Method, 1951. The digits: Alpaydin and Kaynak, Optical Recognition of
# Handwritten Digits, 1998.
#
# ## Exercise
# 1. `functions/loss.py`: the value of `mean_squared_error`, from operations that you have. The
#    stub refuses two shapes that differ: broadcasting would hide a mistake.
# 2. `functions/cross_entropy.py`: `SoftmaxCrossEntropy`. `forward` and `backward` both need $\log
#    p$ of all classes: write `log_softmax`. Subtract the largest score $m$ of each row first:
#
# $$\log p_k = (x_k - m) - \log \sum_j e^{x_j - m}$$
#
# 3. `core/backprop.py`: labels have no gradient. `SoftmaxCrossEntropy.backward` gives `None` for
#    them, and `run_backward` goes on to the next input.
# 4. `nn/optimizers.py`: the loop of `Optimizer.update`, and `update_one` of `SGD` and of `Adam`.
#
# The last check trains your network with the digits, in a second or two.
#
#     python -m tinynode.learn start 09
#     python -m tinynode.learn check 09
#
# `python -m tinynode.learn run 09 --mine` runs this page with your own package.
