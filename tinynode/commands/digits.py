"""The job ``train digits``: a perceptron on 1,797 handwritten digits.

The learning rate, the number of epochs and the jitter were chosen by cross-validation on the
training images alone. The layers have the largest size for which OpenBLAS multiplies matrices of
16 images in a single thread. On matrices of this size, several threads are slower than a single
thread, above all on a busy machine.
"""

from __future__ import annotations

from tinynode import nn, random
from tinynode.commands.training import Job, cross_entropy
from tinynode.devices import Array, Device, namespace_of
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


def jittered(images: Array, device: Device) -> Array:
    """Each image, shifted along both axes by a random part of a pixel: (n, 64) -> (n, 64).

    So no two epochs see the same pixels, and the model learns shapes rather than pixels.
    """
    n = images.shape[0]
    xp = namespace_of(images)
    down = random.uniform((n, 1, 1), -JITTER, JITTER, dtype=images.dtype, device=device)
    right = random.uniform((n, 1, 1), -JITTER, JITTER, dtype=images.dtype, device=device)
    square = xp.reshape(images, (n, SIDE, SIDE))
    moved = xp.matmul(xp.matmul(shift_matrix(-down), square), shift_matrix(right))
    return xp.reshape(moved, (n, SIDE * SIDE))


def shift_matrix(t: Array) -> Array:
    """The matrix S such that row @ S is the row shifted right by t pixels, from -1 to 1.

    t: (n, 1, 1) -> S: (n, 8, 8). Values between two pixels are interpolated linearly. Pixels
    outside are 0.
    """
    xp = namespace_of(t)
    stay = xp.eye(SIDE, dtype=t.dtype, device=t.device)[None, :, :]
    right = xp.eye(SIDE, k=1, dtype=t.dtype, device=t.device)[None, :, :]
    left = xp.eye(SIDE, k=-1, dtype=t.dtype, device=t.device)[None, :, :]
    size = xp.abs(t)
    return (1 - size) * stay + (size + t) / 2 * right + (size - t) / 2 * left


JOB = Job(
    name="digits",
    summary="a perceptron on 1,797 handwritten digits of 8 by 8 pixels",
    load_data=nn.datasets.load_digits,
    make_model=make_model,
    vary=jittered,
    loss=cross_entropy,
    epochs=40,
    batch_size=16,
    lr=0.002,
)
