"""The job ``train digits``: a perceptron on 1,797 handwritten digits.

The learning rate, the number of epochs and the jitter were chosen by cross-validation on the
training images alone. The layers have the largest size for which OpenBLAS multiplies matrices of
16 images in a single thread. On matrices of this size, several threads are slower than a single
thread, above all on a busy machine.
"""

from __future__ import annotations

from typing import Any

import numpy

from tinynode import nn
from tinynode.commands.job import Job, Loaders, accuracy, accuracy_line, cross_entropy
from tinynode.functions import relu
from tinynode.nn.initializers import he_normal

SIDE = 8
"""Images are 8 pixels high and wide."""
JITTER = 0.5
"""The largest shift of an image, in pixels."""


def make_model() -> nn.Module:
    """64 pixels, two hidden layers, 10 classes."""
    return nn.Sequential(
        nn.Linear(SIDE * SIDE, 128, initializer=he_normal),
        relu,
        nn.Linear(128, 128, initializer=he_normal),
        relu,
        nn.Linear(128, 10),
    )


def load_data(batch_size: int) -> Loaders:
    """The digits in batches; the training images are shifted anew in each epoch."""
    digits = nn.datasets.load_digits()
    images = nn.ArrayDataset(digits.train_images, digits.train_labels)
    held_out = nn.ArrayDataset(digits.held_out_images, digits.held_out_labels)
    return (
        nn.DataLoader(images, batch_size, shuffle=True, batch_transform=jittered),
        nn.DataLoader(held_out, len(held_out), seed=0),
    )


def jittered(batch: tuple[Any, Any], generator: Any) -> tuple[Any, Any]:
    """Each image, shifted along both axes by a random part of a pixel: (n, 64) -> (n, 64).

    So no two epochs see the same pixels, and the model learns shapes rather than pixels.
    """
    images, labels = batch
    n = images.shape[0]
    down, right = generator.uniform(-JITTER, JITTER, (2, n, 1, 1))
    square = images.reshape(n, SIDE, SIDE)
    moved = shift_matrix(-down) @ square @ shift_matrix(right)
    return moved.reshape(n, SIDE * SIDE), labels


def shift_matrix(t: Any) -> Any:
    """The matrix S such that row @ S is the row shifted right by t pixels, from -1 to 1.

    t: (n, 1, 1) -> S: (n, 8, 8). Values between two pixels are interpolated linearly. Pixels
    outside are 0.
    """
    stay, right, left = (numpy.eye(SIDE, k=k)[None, :, :] for k in (0, 1, -1))
    size = numpy.abs(t)
    return (1 - size) * stay + (size + t) / 2 * right + (size - t) / 2 * left


JOB = Job(
    name="digits",
    summary="a perceptron on 1,797 handwritten digits of 8 by 8 pixels",
    load_data=load_data,
    make_model=make_model,
    loss=cross_entropy,
    metrics={"accuracy": accuracy},
    result=accuracy_line,
    epochs=40,
    batch_size=16,
    lr=0.002,
)
