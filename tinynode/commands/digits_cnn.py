"""The job ``train digits-cnn``: a small convolutional network on the same digits."""

from __future__ import annotations

from typing import Any

from tinynode import nn
from tinynode.commands.digits import SIDE, load_data
from tinynode.commands.job import Job, accuracy, accuracy_line, cross_entropy
from tinynode.core.variable import Variable
from tinynode.functions import relu, reshape
from tinynode.nn.initializers import he_normal


class AsImages(nn.Module):
    """Rows of pixels as images with a single channel: (n, 64) -> (n, 1, 8, 8)."""

    def forward(self, x: Any) -> Variable:
        """The rows as images."""
        return reshape(x, (x.shape[0], 1, SIDE, SIDE))

    def __repr__(self) -> str:
        return "AsImages()"


def make_model() -> nn.Module:
    """Two convolutions, a pooling to 4 by 4, and two linear layers."""
    return nn.Sequential(
        AsImages(),
        nn.Conv2d(1, 16, 3, padding=1, initializer=he_normal),
        relu,
        nn.Conv2d(16, 32, 3, padding=1, initializer=he_normal),
        relu,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64, initializer=he_normal),
        relu,
        nn.Linear(64, 10),
    )


JOB = Job(
    name="digits-cnn",
    summary="a small convolutional network on the same digits",
    load_data=load_data,
    make_model=make_model,
    loss=cross_entropy,
    metrics={"accuracy": accuracy},
    result=accuracy_line,
    epochs=20,
    batch_size=32,
    lr=0.002,
)
