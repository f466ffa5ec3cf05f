# %% [markdown]
# # Step 0: watch a network learn
#
# **Goal.** Train a network of 22 numbers, watch the gradients in a film, and break a gradient.

# %% [markdown]
# This step uses the finished package tinynode. From step 1 on you build a package of your own,
# `mynode`, with the same abilities. Read the short explanations here, and leave the rest: each
# word comes back in a later step.
#
# The data are 100 points in the plane. Half of the points lie in a disc (class 0), and half lie
# in a ring around the disc (class 1).

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

rng = np.random.default_rng(0)
angle = rng.uniform(0.0, 2.0 * np.pi, 100)
radius = np.repeat([1.0, 3.0], 50) + rng.normal(scale=0.2, size=100)
points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)
classes = np.repeat([0, 1], 50)

# %% [markdown]
# Six words are enough for today:
#
# | word | meaning | later |
# |---|---|---|
# | **network** | A function with numbers inside: from a point to two scores. | step 8 |
# | **parameters** | The numbers inside of the network. They are random at the start. | step 8 |
# | **loss** | A single number: large if the network's answers are wrong. | step 4 |
# | **gradient** | For each parameter: how fast the loss grows if the parameter grows. | step 2 |
# | **backward** | The method that computes all gradients. | step 4 |
# | **learning rate** | How far each parameter moves in one iteration. | step 4 |

# %% [markdown]
# ## Predict
# The network below has 22 parameters, all random. Training repeats four lines 30 times. How many
# of the 100 points will have the right class before training, and how many after training?

# %% [markdown]
# ## Run
# The network is two `Linear` layers with the function tanh between them.


# %%
def new_network():
    """A network with random parameters, the same in each call."""
    tn.seed(0)
    return nn.Sequential(nn.Linear(2, 4), F.tanh, nn.Linear(4, 2))


def correct(net):
    """The number of points with the right class: the class with the larger score."""
    scores = tn.to_host(net(points))  # as an array of NumPy
    return int(np.sum(np.argmax(scores, axis=1) == classes))


net = new_network()
print("parameters:", sum(p.size for p in net.parameters()))
print("right before training:", correct(net), "of 100")

# %% [markdown]
# An **iteration** has four parts: compute the loss, clear the old gradients, compute the new
# gradients, update the parameters. The update moves each parameter **against** its gradient, so
# that the loss becomes smaller.


# %%
def train(net, learning_rate, iterations=30, flip=None):
    """Train the network; returns the loss of each iteration."""
    losses = []
    for _ in range(iterations):
        loss = F.softmax_cross_entropy(net(points), classes)
        net.cleargrads()
        loss.backward()
        for p in net.parameters():
            if p is flip:  # only for "Break it"
                p.grad = -p.grad
            p.array = p.array - learning_rate * p.grad
        losses.append(float(loss.array))
    return losses


losses = train(net, learning_rate=1.0)
print(f"loss: {losses[0]:.2f} at first, {losses[-1]:.2f} after 30 iterations")
print("right after training:", correct(net), "of 100")

# %% [markdown]
# The program has no code about discs and rings. The gradients alone led to this shape.

# %% [markdown]
# ## See
# The colour behind the points is the network's answer at each place.


# %%
def answer(xy):
    """The class of each point."""
    return F.argmax(net(xy), axis=1)


tn.show.points(points, classes, region=answer, title="The answer after 30 iterations")

# %% [markdown]
# Now look inside of a single iteration. `tn.show.record` makes a **film**: it records each
# operation, forward and backward, with all numbers. To keep the numbers readable, the film uses
# three points only, and a new network.
#
# Press the play button of the film, or the button beside it for a single step. (In a terminal,
# `python -m tinynode.learn run 00 --save pictures` saves the film as a page.) The first half
# computes the loss. The second half goes back from the loss to the parameters, with one gradient
# in each step.

# %%
small = new_network()
with tn.show.record("One iteration", model=small) as film:
    loss = F.softmax_cross_entropy(small(points[[0, 1, 50]]), classes[[0, 1, 50]])
    small.cleargrads()
    loss.backward()
film

# %% [markdown]
# The film ends before the update. Each parameter has its gradient now: an array of the same
# shape. Here is the bias of the last layer, with two numbers:

# %%
bias = small.layers[2].bias
print("bias:    ", tn.to_host(bias).round(2))
print("gradient:", tn.to_host(bias.grad).round(2))

# %% [markdown]
# ## Turn a knob
# The learning rate was 1.0. Here are three trainings from the same random parameters, with three
# learning rates. Change the numbers and run the cell again.

# %%
curves = {}
for rate in (0.1, 1.0, 10.0):
    net = new_network()
    curves[f"rate {rate}"] = train(net, learning_rate=rate)
    print(f"learning rate {rate:4}: {correct(net)} points right")

tn.show.lines(
    range(30),
    curves,
    title="Three learning rates",
    x_label="iteration",
    y_label="loss",
    log_y=True,
)

# %% [markdown]
# A learning rate of 0.1 hardly moves. A learning rate of 10 jumps over the goal in each
# iteration, and the loss can be larger than at the start.

# %% [markdown]
# ## Break it
# Now turn the sign of **one** gradient, the gradient of the first layer's weight. First a single
# step of this parameter alone, with the right sign and with the wrong sign:

# %%
net = new_network()
weight = net.layers[0].weight
loss = F.softmax_cross_entropy(net(points), classes)
loss.backward()
print(f"before the step:  loss {float(loss.array):.4f}")
start = weight.array
for name, sign in (("right sign", 1.0), ("wrong sign", -1.0)):
    weight.array = start - sign * weight.grad
    loss = F.softmax_cross_entropy(net(points), classes)
    print(f"{name}:       loss {float(loss.array):.4f}")

# %% [markdown]
# With the wrong sign the loss goes up. Now the whole training, with this sign wrong in each
# iteration. The other three parameter arrays move downhill as before.

# %%
net = new_network()
broken = train(net, learning_rate=1.0, flip=net.layers[0].weight)
print(f"loss: {broken[0]:.2f} at first, {broken[-1]:.2f} after 30 iterations")
print("right after training:", correct(net), "of 100")

# %% [markdown]
# With a single wrong sign in four gradients, the network hardly learns. Python reports no error.
# Therefore the course compares each gradient with a measurement: step 3 builds the instrument.

# %% [markdown]
# ## Fix it
# Leave the sign as `backward` computes it.

# %%
net = new_network()
fixed = train(net, learning_rate=1.0)
print(f"loss: {fixed[0]:.2f} at first, {fixed[-1]:.2f} after 30 iterations")
tn.show.lines(
    range(30),
    {"one sign wrong": broken, "all signs right": fixed},
    title="One sign",
    x_label="iteration",
    y_label="loss",
)

# %% [markdown]
# **Cost.** A gradient has as many bytes as its parameter. Training needs two more kinds of arrays:
# the memory of the optimizer, which is empty here, and the arrays that backward needs. The second
# kind grows with the number of images (step 12). The elective `bytes` counts all four kinds.

# %%
print("bytes of the parameters:", sum(tn.to_host(p).nbytes for p in net.parameters()))
print("bytes of the gradients: ", sum(tn.to_host(p.grad).nbytes for p in net.parameters()))

# %% [markdown]
# Source: LeCun, Bengio and Hinton, Deep Learning, Nature, 2015.
#
# ## Exercise
# The file `step00.py` trains the same network, but the network does not learn. Do two things:
#
# 1. Repair one sign in the function `update`.
# 2. Choose a `LEARNING_RATE` with which the loss is below 0.15 after 30 iterations.
#
# `python -m tinynode.learn start 00` writes the file. `python -m tinynode.learn check 00` checks
# your file and prints how far you are. `python -m tinynode.learn hint 00` gives a hint.
