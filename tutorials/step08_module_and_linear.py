# %% [markdown]
# # Step 8: a network on points in the plane
#
# **Goal.** Your package gets layers. A network on your own engine learns to tell two classes of
# points apart, and a film shows each number of an iteration.

# %%
import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("08")
import mynode
from mynode import nn, relu, seed

rng = np.random.default_rng(0)
angle = rng.uniform(0.0, np.pi, 60)
upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
lower = np.stack([1.0 - np.cos(angle), 0.4 - np.sin(angle)], axis=1)
points = np.concatenate([upper, lower]) + rng.normal(0.0, 0.1, (120, 2))
classes = np.repeat([1.0, -1.0], 60)
tn.show.points(points, classes, title="Two arcs of points: the classes 1 and -1")

# %% [markdown]
# Each row of `points` has two numbers. A network gives a single number for each row, a **score**.
# A positive score is the answer 1, a negative score is the answer -1.
#
# ## What is new
# **A layer** computes $y = x W^T + b$ for each row $x$. The **weight** $W$ has a row for each
# output. The **bias** $b$ is added to every row, so its gradient is the sum of the rows: a
# repetition in forward is a sum in backward, as in step 7.
#
# $$g_x = g_y W \qquad g_W = g_y^T x \qquad g_b = \sum_{\text{rows}} g_y$$
#
# **relu** is $\max(x, 0)$, the bend between two layers. Its gradient is $g_y$ where $x > 0$, and
# 0 elsewhere.
#
# **A Parameter** is a leaf like any other. Its class tells a parameter from data. **A Module** is
# a layer or a model: it finds the parameters in its own attributes. Nothing is registered. A layer
# is a plain class, with parameters as attributes:
#
# <!-- mynode: nn/parameter.py Parameter -->
#
# <!-- mynode: nn/layers.py Linear -->
#
# `Sequential` calls layers one after the other. `Module.parameters()` is your work: it walks
# through attributes, modules inside of attributes, lists and tuples. `vars(value)` is the
# dictionary of the attributes of an object.
#
# **The first values of weights** are random. Their deviation is $\sqrt{1/n}$ for $n$ inputs. Then
# the outputs of a layer vary as much as its inputs. A relu behind the layer makes them smaller;
# step 10 has the deviation for that. The draws come from one generator, so `seed(0)` makes each
# run the same.
#
# In the package: [network](../source/tinynode/functions/network.md),
# [module](../source/tinynode/nn/module.md), [layers](../source/tinynode/nn/layers.md).
#
# ## Predict
# The network below has two inputs, 16 hidden numbers with relu, and one output. How many
# parameters are these? And without relu: which form has the border between the two answers?
#
# ## Run


# %%
def new_network(*hidden):
    """A network of two layers, with functions between them; the same numbers in each call."""
    seed(0)
    return nn.Sequential(nn.Linear(2, 16), *hidden, nn.Linear(16, 1))


def loss_of(net, rows=slice(None)):
    """The mean of (score - class)^2."""
    difference = net(points[rows]) - classes[rows, None]
    return mynode.mean(difference * difference)


def train(net, learning_rate=0.1, iterations=400):
    """Move each parameter against its gradient, again and again; returns the losses."""
    losses = []
    for _ in range(iterations):
        loss = loss_of(net)
        net.cleargrads()
        loss.backward()
        for p in net.parameters():
            p.array = p.array - learning_rate * p.grad
        losses.append(float(loss.array))
    return losses


def answer(xy):
    """The class of each point, by the network `net`."""
    return np.sign(net(xy).array[:, 0])


net = new_network(relu)
print("parameters:", sum(p.size for p in net.parameters()))
print("right before training:", int((answer(points) == classes).sum()), "of 120")
losses = train(net)
print(f"loss: {losses[0]:.2f} at first, {losses[-1]:.2f} after 400 iterations")
print("right after training:", int((answer(points) == classes).sum()), "of 120")

# %% [markdown]
# The engine of steps 1 to 7 did this. Nothing but `apply`, `backward` and the order by rank trains
# a network.
#
# ## See

# %%
tn.show.points(points, classes, region=answer, title="The answer at each place")

# %% [markdown]
# The film shows one iteration of a smaller network, with three points. `Linear` is one operation
# with three gradients: of its input, of its weight and of its bias.

# %%
seed(0)
small = nn.Sequential(nn.Linear(2, 3), relu, nn.Linear(3, 1))
with tn.show.record("One iteration on my own engine") as film:
    loss = loss_of(small, slice(58, 61))
    small.cleargrads()
    loss.backward()
film

# %% [markdown]
# ## Break it
# Two mistakes, and neither raises an error. First, leave out `relu`. A product of two matrices is
# a matrix, so two layers without a bend are a single layer.

# %%
net = new_network()
losses = train(net)
print(f"without relu: loss {losses[-1]:.2f}")
print("right:", int((answer(points) == classes).sum()), "of 120")
tn.show.points(points, classes, region=answer, title="Without relu: a straight border")

# %% [markdown]
# Second, begin with zeros. All hidden numbers are then equal, get equal gradients, and stay equal.

# %%
net = new_network(relu)
for p in net.parameters():
    p.array = np.zeros(p.shape)
losses = train(net)
print(f"zeros at first: loss {losses[-1]:.2f}")
print("the parameters that moved:", [p.name for p in net.parameters() if p.array.any()])

# %% [markdown]
# With zeros, relu gives 0 everywhere, and its gradient is 0. The last bias alone learns: the mean
# of the classes, which is 0.
#
# ## Fix it
# A bend between layers, and random first values:

# %%
net = new_network(relu)
losses = train(net)
print(f"loss {losses[-1]:.2f}, right:", int((answer(points) == classes).sum()), "of 120")

# %% [markdown]
# **Cost.** A parameter takes 8 bytes, and its gradient 8 bytes. Each operation keeps the arrays of
# its inputs until the graph is gone. For a batch of 120 points:

# %%
numbers = sum(p.size for p in net.parameters())
print(f"{numbers} parameters: {8 * numbers} bytes, and {8 * numbers} bytes of gradients")
y, kept = net(points), 0
waiting = [y.creator_node]
while waiting:
    function = waiting.pop()
    if function is not None:
        kept += sum(array.nbytes for array in function.input_arrays if len(array) == 120)
        waiting += [x.creator_node for x in function.inputs]
print(f"kept for backward: {kept:,} bytes, for 120 points")

# %% [markdown]
# Source: Rumelhart, Hinton and Williams, Learning Representations by Back-propagating Errors,
# 1986; for the first values LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998.
#
# ## Exercise
# `start` adds eight files. Given are `random.py`, `Parameter`, `linear`, the layer `Linear`, and
# most of `Module`. Yours are:
#
# 1. `functions/network.py`: `Linear.backward`, by the three formulas. The rows of `gy` and of `x`
#    may have more axes in front: `gy.reshape(-1, w.shape[0])` lines the rows up.
# 2. `functions/activation.py`: `ReLU`. At 0 the gradient is 0.
# 3. `nn/module.py`: the end of `Module.parameters`. A Parameter is found. What a module, a list or
#    a tuple holds waits in front, so the order is that of the attributes.
# 4. `nn/initializers.py`: `lecun_normal`. `nn/layers.py`: `Sequential.forward`.
#
# The last check trains your network with spirals of points.
#
#     python -m tinynode.learn start 08
#     python -m tinynode.learn check 08
#
# `python -m tinynode.learn run 08 --mine` runs this page on your own package. A film of your own
# program: write it into `my.py` beside `mynode`, and run `python -m tinynode step my.py`.
