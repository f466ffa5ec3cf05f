"""Start here with few examples: a trained network learns two new classes from 5 images each.

python tutorials/examples/start_finetune.py

The network knows the digits 0 to 7. Its body is frozen, and small matrices beside the frozen ones
are trained on the digits 8 and 9. For your own network, load parameters by `nn.load` in step 2.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: many images of the digits 0 to 7, and 5 of each new digit
digits = nn.datasets.load_digits()
x, t = digits.train_images.reshape(-1, 64), digits.train_labels
rows = np.concatenate([np.flatnonzero(t == digit)[:5] for digit in (8, 9)])
known = nn.ArrayDataset(x[t < 8], t[t < 8])
few = nn.ArrayDataset(x[rows], t[rows] - 8)

is_new = digits.held_out_labels >= 8  # images that nothing is chosen by
test_x = digits.held_out_images.reshape(-1, 64)[is_new]
test_t = digits.held_out_labels[is_new] - 8


def loss(model, x, t):
    return F.softmax_cross_entropy(model(x), t)


def train(model, dataset, epochs):
    """Train the parameters that are not frozen."""
    loader = nn.DataLoader(dataset, 25, shuffle=True, seed=0)
    nn.Trainer(model, loss, nn.Adam(model, lr=0.003), loader).run(epochs)


def accuracy(model):
    """The share of right answers on the held-out images, in percent."""
    with tn.no_grad():
        return 100 * float(nn.metrics.accuracy(model(test_x), test_t))


# 2. the body of the network, trained on the digits 0 to 7
def make_body():
    return nn.Sequential(nn.Linear(64, 128), F.relu, nn.Linear(128, 128), F.relu)


tn.seed(0)
body = make_body()
train(nn.Sequential(body, nn.Linear(128, 8)), known, 10)


# 3. LoRA: y = W x + b + B A x, with a frozen W and narrow A and B (Hu et al., 2021)
class LoRA(nn.Module):
    def __init__(self, linear, rank):
        outputs, inputs = linear.weight.shape
        self.linear = linear.freeze()
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False, initializer=nn.initializers.zeros)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


body[0], body[2] = LoRA(body[0], 4), LoRA(body[2], 4)
model = nn.Sequential(body, nn.Linear(128, 2))  # a new last layer for the new classes
trained = sum(p.size for p in model.parameters() if p.requires_grad)
print("trained:", trained, "of", sum(p.size for p in model.parameters()), "numbers")

# 4. the result on held-out images, beside a network that starts from random numbers
fresh = nn.Sequential(make_body(), nn.Linear(128, 2))
train(fresh, few, 50)
train(model, few, 50)
print(f"from random numbers: {accuracy(fresh):.1f} %")
print(f"held-out accuracy of the new digits: {accuracy(model):.1f} %")
