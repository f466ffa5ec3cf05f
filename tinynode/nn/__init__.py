"""What one trains with: parameters, layers, optimizers, saving and loading, small data sets.

from tinynode import nn
from tinynode.functions import relu, softmax_cross_entropy

model = nn.Sequential(nn.Linear(64, 128), relu, nn.Linear(128, 10))
optimizer = nn.Adam(model, lr=0.001)

optimizer.cleargrads()
softmax_cross_entropy(model(images), labels).backward()
optimizer.update()

nn.save("model.npz", model)
model.load_state_dict(nn.load("model.npz"))
"""

from tinynode.nn import datasets, initializers
from tinynode.nn.layers import Linear, Sequential
from tinynode.nn.module import Module
from tinynode.nn.optimizers import SGD, Adam, Optimizer
from tinynode.nn.parameter import Parameter
from tinynode.nn.serializers import load, save

__all__ = [
    "SGD",
    "Adam",
    "Linear",
    "Module",
    "Optimizer",
    "Parameter",
    "Sequential",
    "datasets",
    "initializers",
    "load",
    "save",
]
