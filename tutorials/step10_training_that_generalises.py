# %% [markdown]
# # Step 10: training that generalises
#
# **Goal.** You measure whether a network has learned the digits or the training images, and you
# know five means against learning by heart. Deep networks get first values that keep the signal
# alive.

# %%
from tinynode_course import use_mynode

use_mynode("10")

import numpy as np
from mynode import Variable, nn, relu, seed, softmax_cross_entropy, using_config
from mynode.nn.initializers import he_normal, lecun_normal

import tinynode as tn
from tinynode.nn.datasets import load_digits

digits = load_digits()
images = digits.train_images.astype(float)
labels = digits.train_labels

# %% [markdown]
# A network should answer for images that it has never seen. So the data are **split** in three:
#
# | part | use | here |
# |---|---|---|
# | training | the gradients come from these images | the first 150 |
# | validation | you choose by them: rounds, rates, sizes | the last 400 of the rest |
# | test | measured once, at the very end | the 360 held-out digits |
#
# To see the effect in seconds, training is made hard: 150 images only, and a careless person has
# written a wrong label under every fifth.


# %%
def careless(count):
    """The first images of training, with 20 % wrong labels."""
    rng = np.random.default_rng(1)
    given = labels[:count].copy()
    wrong = rng.choice(count, count // 5, replace=False)
    given[wrong] = (given[wrong] + rng.integers(1, 10, len(wrong))) % 10
    return images[:count], given


training = careless(150)
validation = images[1037:], labels[1037:]
test = digits.held_out_images.astype(float), digits.held_out_labels

# %% [markdown]
# ## Predict
# A network of 64 hidden numbers is trained with these 150 images for 60 rounds. Thirty labels are
# wrong, so nobody who knows digits can have more than 80 % right. Which share of the training
# images will the network have right at the end? And which share of the validation images: more
# after 10 rounds, or more after 60?
#
# ## Run


# %%
def measure(model, data):
    """The loss, and the share of right answers. Dropout is off."""
    with using_config("train", False):
        scores = model(data[0])
        loss = softmax_cross_entropy(scores, data[1])
    return float(loss.array), float((scores.array.argmax(axis=1) == data[1]).mean())


def train(data, ratio=0.0, weight_decay=0.0, rounds=60):
    """A row for each round: loss and share for the data, loss and share for validation."""
    seed(0)
    model = nn.Sequential(nn.Linear(64, 64), relu, nn.Dropout(ratio), nn.Linear(64, 10))
    optimizer = nn.AdamW(model, lr=0.01, weight_decay=weight_decay)
    order, rows = np.random.default_rng(0), []
    count = len(data[0])
    for _ in range(rounds):
        for batch in np.array_split(order.permutation(count), count // 30):
            loss = softmax_cross_entropy(model(data[0][batch]), data[1][batch])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
        rows.append((*measure(model, data), *measure(model, validation)))
    return rows


rows = train(training)
for number in (10, 60):
    loss, share, held_loss, held_share = rows[number - 1]
    print(f"after {number} rounds: training {loss:.2f}, {share:.0%} right;", end=" ")
    print(f"validation {held_loss:.2f}, {held_share:.0%} right")

# %% [markdown]
# The network knows all 150 labels in the end, the wrong ones too. It has learned them by heart.
# This is **overfitting**: the loss of training falls, and the loss of validation rises.
#
# ## See

# %%
tn.show.lines(
    range(1, 61),
    {"training": [row[0] for row in rows], "validation": [row[2] for row in rows]},
    title="Two losses of one network",
    x_label="round",
    y_label="loss",
)

# %% [markdown]
# **Validation tells when to stop.** Keep the parameters of the best round, and stop when many
# rounds bring no better one. This is **early stopping**. The best round here:

# %%
best = min(range(60), key=lambda number: rows[number][2])
print(f"round {best + 1}: validation {rows[best][2]:.2f}, {rows[best][3]:.0%} right")

# %% [markdown]
# ## What is new
# **Weight decay** makes each parameter a little smaller in each step. Only what the gradients ask
# for again and again stays large. **AdamW** does this beside the step of Adam, not in its
# gradient:
#
# $$p \leftarrow p - \eta \lambda p, \quad \text{then Adam's step}$$
#
# **Dropout** sets each hidden number to 0 with probability $r$, and multiplies the others by
# $1 / (1 - r)$, so the mean stays. No hidden number can rely on a single other one. Dropout is for
# training only. A setting says so: `config.train`. `using_config` changes a setting for a block:
#
# <!-- mynode: configuration.py using_config -->
#
# `@contextlib.contextmanager` makes a `with` block of a function: the part before `yield` runs at
# the beginning of the block, the part after it at the end.
#
# **More data** is the best means. A loss that each image shares cannot be learned by heart.

# %%
table = {
    "nothing": rows,
    "weight decay 3": train(training, weight_decay=3.0),
    "dropout 0.5": train(training, ratio=0.5),
    "600 images": train(careless(600), rounds=15),
}
print("                 training     validation")
for name, found in table.items():
    loss, share, held_loss, held_share = found[-1]
    print(f"{name:15} {loss:5.2f} {share:4.0%}     {held_loss:5.2f} {held_share:4.0%}")

# %% [markdown]
# All four had the same number of updates. The row with the least loss in training is the worst.
#
# In the package: [draws](../source/tinynode/functions/draws.md),
# [optimizers](../source/tinynode/nn/optimizers.md),
# [initializers](../source/tinynode/nn/initializers.md).
#
# ## First values for deep networks
# relu sets half of the numbers to 0, so the mean square is halved in each layer. `lecun_normal`
# with variance $1/n$ does not know this. `he_normal` has the variance $2/n$. Twenty layers show
# it:


# %%
def mean_squares(initializer, depth=20):
    """The mean square of the hidden numbers behind each layer."""
    seed(0)
    h, found = Variable(np.random.default_rng(0).normal(size=(64, 64))), []
    for _ in range(depth):
        h = relu(nn.Linear(64, 64, initializer=initializer)(h))
        found.append(float((h.array**2).mean()))
    return found


squares = {"lecun_normal": mean_squares(lecun_normal), "he_normal": mean_squares(he_normal)}
for name, found in squares.items():
    print(f"{name:13} after 1 layer {found[0]:.2f}, after 20 layers {found[-1]:.2g}")
tn.show.lines(
    range(1, 21), squares, title="The signal in a deep network", x_label="layer", log_y=True,
    y_label="mean square",
)  # fmt: skip

# %% [markdown]
# ## A good learning rate, in one run
# Let the rate grow with each batch, from far too small to far too large, and look at the loss. A
# good rate is about a tenth of the rate at which the loss explodes.


# %%
def find_rate(first=1e-3, last=100.0, count=60):
    """The rates, and the loss of a batch before each step."""
    seed(0)
    model = nn.Sequential(nn.Linear(64, 64), relu, nn.Linear(64, 10))
    optimizer, order = nn.SGD(model, lr=first), np.random.default_rng(0)
    rates, losses = np.geomspace(first, last, count), []
    for rate in rates:
        batch = order.integers(0, 1000, 100)
        loss = softmax_cross_entropy(model(images[batch]), labels[batch])
        optimizer.cleargrads()
        loss.backward()
        optimizer.lr = rate
        optimizer.update()
        losses.append(float(loss.array))
        if losses[-1] > 4.0 * losses[0]:
            break
    return rates[: len(losses)], losses


rates, losses = find_rate()
print(f"least loss {min(losses):.2f} at rate {rates[np.argmin(losses)]:.2g};", end=" ")
print(f"exploded at {rates[-1]:.2g}")
tn.show.lines(
    rates, {"SGD": losses}, title="The rate grows", x_label="rate", y_label="loss", log_x=True
)

# %% [markdown]
# ## Break it
# Forget to switch dropout off when you measure. The same network then gives other answers in each
# call, and worse ones.

# %%
seed(0)
model = nn.Sequential(nn.Linear(64, 64), relu, nn.Dropout(0.5), nn.Linear(64, 10))
optimizer = nn.AdamW(model, lr=0.01)
for start in range(0, 1000, 50):
    loss = softmax_cross_entropy(model(images[start : start + 50]), labels[start : start + 50])
    optimizer.cleargrads()
    loss.backward()
    optimizer.update()
shares = [(model(validation[0]).array.argmax(axis=1) == validation[1]).mean() for _ in range(3)]
print("dropout is on: ", " ".join(f"{share:.1%}" for share in shares))

# %% [markdown]
# A second mistake has no line of code: **choose by the test images**. Whoever tries a hundred
# settings and reports the best test result has made a validation set of the test set. The number
# is too good, and nobody can measure by how much.
#
# ## Fix it
# Measure with `config.train` False, choose by validation, and look at the test images once.

# %%
print("dropout is off:", " ".join(f"{measure(model, validation)[1]:.1%}" for _ in range(3)))
print(f"the test, once: {measure(model, test)[1]:.1%}")

# %% [markdown]
# **Cost.** Validation costs a forward pass, and no backward. Dropout keeps its mask for backward:
# as many bytes as the hidden numbers. Weight decay costs one product for each parameter.
#
# Source: He, Zhang, Ren and Sun, Delving Deep into Rectifiers, 2015; Srivastava et al., Dropout: A
# Simple Way to Prevent Neural Networks from Overfitting, 2014; Loshchilov and Hutter, Decoupled
# Weight Decay Regularization, 2019; for the growing rate Smith, Cyclical Learning Rates for
# Training Neural Networks, 2017.
#
# ## Exercise
# Given are `configuration.py` and the constructor of `AdamW`. Yours are:
#
# 1. `nn/initializers.py`: `he_normal`. `nn/layers.py`: `Linear` gets a parameter more, in
#    `def __init__(self, in_size, out_size, bias=True, *, initializer=lecun_normal):`.
# 2. `functions/draws.py`: `dropout`. Draw with `get_generator().random(x.shape)`. The mask has the
#    dtype of `x`. `nn/layers.py`: the layer `Dropout`.
# 3. `nn/optimizers.py`: `AdamW.update_one`.
#
# The check looks at masks, at gradients, at the signal in a deep network, and at steps of AdamW.
#
#     python -m tinynode.learn start 10
#     python -m tinynode.learn check 10
#
# `python -m tinynode.learn run 10 --mine` runs this page with your own package.
