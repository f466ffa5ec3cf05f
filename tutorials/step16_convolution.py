# %% [markdown]
# # Step 16: convolution
#
# **Goal.** A small filter, the same at every place of an image, finds a stroke wherever it stands.

# %%
from tinynode_course import use_mynode

use_mynode("16")

import numpy as np
from mynode import nn, no_backprop_mode, relu, seed, softmax_cross_entropy

from tinynode.nn.datasets import load_digits
from tinynode_course.image_pictures import images

digits = load_digits()
labels = digits.train_labels[:800]


def on_field(pixels, down=0, right=0):
    """Digits of 8 by 8 pixels on fields of 10 by 10, moved by a pixel: (n, 1, 10, 10)."""
    fields = np.zeros((len(pixels), 1, 10, 10))
    fields[:, 0, 1 + down : 9 + down, 1 + right : 9 + right] = pixels.reshape(-1, 8, 8)
    return fields


train_fields = on_field(digits.train_images[:800])

# %% [markdown]
# ## Predict
# A **filter** is a small image of numbers, here of 3 by 3:
#
# $$\begin{pmatrix} -1 & 0 & 1 \\ -1 & 0 & 1 \\ -1 & 0 & 1 \end{pmatrix}$$
#
# The filter is laid on a **window** of the image. Each pixel is multiplied by the number on it,
# and the nine products are added. So a window gives a number, and all windows together give an
# image. How many windows of 3 by 3 fit on an image of 10 by 10? And is the result large at a
# vertical stroke, at a horizontal stroke, or at both?

# %%
edge = np.array([[-1.0, 0.0, 1.0]] * 3)
image = train_fields[7, 0]
found = np.zeros((8, 8))
for row in range(8):
    for column in range(8):
        window = image[row : row + 3, column : column + 3]
        found[row, column] = (window * edge).sum()
print(f"{found.size} windows")
images([image], title="A seven", pixel=12)

# %%
images([found], title="What the filter sees: green above 0, purple below 0", pixel=12)

# %% [markdown]
# The result is positive at the left edge of a stroke, negative at the right edge. Along a
# horizontal stroke, left and right are equal, and the result is near 0. The filter finds
# **vertical edges**, at whatever place.
#
# ## Run
# A convolution of a batch has many images, many input **channels** and many filters. With filter
# $w_o$ for output channel $o$, **stride** $s$ between windows, and $p$ rows and columns of zeros
# around the image, the **padding**:
#
# $$y_{n,o,r,q} = \sum_{c,i,j} w_{o,c,i,j} \; x_{n,\,c,\,r s + i - p,\,q s + j - p}$$
#
# Loops in Python would be slow. So all windows are copied next to each other, each as a column.
# Then a single matrix product lays all filters on all windows. The copies need a loop over the
# nine places in a window only:
#
# <!-- mynode: functions/convolution.py count places unfold -->
#
# ([tinynode's file](../source/tinynode/functions/convolution.md)) The rest of the file is yours.
# The layer holds the filters as parameters:
#
# <!-- mynode: nn/image_layers.py Conv2d -->
#
# ([tinynode's file](../source/tinynode/nn/image_layers.md)) The network has 24 filters of 5 by 5.
# Padding 4 lays them also on windows at the very edge. **Max pooling** then takes the largest
# number of each window. Here the window is the whole image: how well does each filter fit, at the
# best place? A linear layer makes scores of the 24 answers.


# %%
def train(model, lr, rounds=8):
    """Train on 800 digits in the middle of their fields."""
    optimizer, order = nn.Adam(model, lr=lr), np.random.default_rng(0)
    for _ in range(rounds):
        for batch in np.array_split(order.permutation(800), 25):
            loss = softmax_cross_entropy(model(train_fields[batch]), labels[batch])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()


def right(model, down=0, right=0):
    """The share of right answers, for digits that the model has never seen."""
    with no_backprop_mode():
        scores = model(on_field(digits.held_out_images, down, right)).array
    return float((scores.argmax(axis=1) == digits.held_out_labels).mean())


seed(0)
cnn = nn.Sequential(
    nn.Conv2d(1, 24, 5, padding=4), relu, nn.MaxPool2d(14), nn.Flatten(), nn.Linear(24, 10)
)
cnn.layers[0].weight.array *= 0.2  # small noise, so that the learned filters stand out
filters_before = cnn.layers[0].weight.array[:, 0]
train(cnn, lr=0.02)
filters_after = cnn.layers[0].weight.array[:, 0]
print(f"right: {right(cnn):.0%}")

# %% [markdown]
# ## See
# The filters before training are noise.

# %%
images(filters_before, title="24 filters before training", columns=12, pixel=8)

# %% [markdown]
# Nobody told the filters what to look for. After training many show strokes, edges and ends.

# %%
images(filters_after, title="The same filters after training", columns=12, pixel=8)

# %% [markdown]
# These are the images that the filters make of the seven, after `relu`: the **feature maps**.

# %%
with no_backprop_mode():
    maps = relu(cnn.layers[0](train_fields[7:8])).array[0]
images(maps[:12], [f"filter {k}" for k in range(12)], title="Feature maps of the seven", columns=6)

# %% [markdown]
# **What it costs.** A filter is used at every place, so there are few parameters. But the windows
# overlap: as columns, they take 25 times the memory of the image. So `Conv2d` keeps the image, and
# copies the windows once more in `backward`.

# %%
seed(0)
dense = nn.Sequential(nn.Conv2d(1, 64, 10), relu, nn.Flatten(), nn.Linear(64, 10))
for name, model in (("large filters", dense), ("small filters", cnn)):
    print(f"{name}: {sum(p.size for p in model.parameters())} parameters")
print(f"a batch of 32 images: {8 * 32 * 100:,} bytes, as windows {8 * 32 * 25 * 14 * 14:,} bytes")

# %% [markdown]
# ## Break it
# The second network has filters as large as the image. So each filter has a single window, and a
# weight for each pixel: that is a **dense** layer, `nn.Linear` of step 8. It reads digits in the
# middle about as well. Now move each digit by **one pixel**, which no reader would notice:

# %%
train(dense, lr=0.005)
moves = [(down, across) for down in (-1, 0, 1) for across in (-1, 0, 1)]
print("moved down, right    dense")
for down, across in moves:
    print(f"{down:7} {across:8} {right(dense, down, across):12.0%}")

# %% [markdown]
# The dense network has learned pixels, not strokes. What a weight knows of one pixel, it does not
# know of the pixel beside.
#
# ## Fix it
# A small filter is the same everywhere. A moved image gives moved feature maps, and the largest
# number of a map stays the same:

# %%
print("moved down, right    dense    small filters")
for down, across in moves:
    shares = right(dense, down, across), right(cnn, down, across)
    print(f"{down:7} {across:8} {shares[0]:12.0%} {shares[1]:12.0%}")

# %%
with no_backprop_mode():
    middle = cnn(on_field(digits.held_out_images)).array
    moved = cnn(on_field(digits.held_out_images, 1, -1)).array
print(f"largest difference of a score: {np.abs(middle - moved).max():.6f}")

# %% [markdown]
# Nine times the same share: the network cannot even see the move. That is a property of its
# construction, not of training.
#
# Source: LeCun, Bottou, Bengio and Haffner, Gradient-Based Learning Applied to Document
# Recognition, 1998.
#
# ## Exercise
# Add convolution to your package. The stubs have `unfold`, the checks of types, the forward of
# `MaxPool2d` and the three layers. Yours to find:
#
# - the loop of `fold` in `functions/convolution.py`, the gradient of `unfold`. A pixel lies in
#   many windows, so its gradient is the sum over these windows. Same loop, other direction.
# - the end of forward and backward of the operation `Conv2d`. Write the windows of an image as the
#   columns of a matrix $X$, and the filters as the rows of $W$. Then $Y = W X$, and you know the
#   gradients of a matrix product from step 15.
# - `functions/pooling.py`: the backward of `MaxPool2d`. The gradient goes to the largest number of
#   each window, whose place forward has kept. `np.put_along_axis` writes by places, and `fold`
#   adds up.
#
#     python -m tinynode.learn start 16
#     python -m tinynode.learn check 16
#
# `python -m tinynode.learn run 16 --mine` runs this page with your own package.
