"""The data sets of the package.

Requirement: the first real training needs no download. The files are small. Beside each
file, a page names the source, the licence, and the command for making the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy

from tinynode.configuration import config
from tinynode.nn.serializers import load

__all__ = ["Classification", "load_digits"]


class Classification(NamedTuple):
    """Images and labels as NumPy arrays, for training and, held out, for measuring accuracy.

    Attributes:
        train_images: (n, pixels), floating, from 0 to 1.
        train_labels: (n), int64, from 0 to classes - 1.
        held_out_images: (m, pixels).
        held_out_labels: (m).
    """

    train_images: Any
    train_labels: Any
    held_out_images: Any
    held_out_labels: Any


def load_digits() -> Classification:
    """The UCI optical digits: 1,797 handwritten digits of 8 by 8 pixels; classes 0 to 9.

    1,437 images are for training. The 360 images with the smallest SHA-256 digests are held out:
    as good as a random choice, but without a choice by a person. Each of the 13 writers is
    probably on both sides, so the held-out accuracy is the accuracy for known writers.

    The images have ``config.dtype``: the pixels 0 to 16, divided by 16.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
    Repository, 1998 (the test set); licence CC BY 4.0. See digits.md beside the data.
    """
    arrays = load(Path(__file__).with_name("digits.npz"))
    return Classification(
        _scaled(arrays["train_images"]),
        arrays["train_labels"].astype(numpy.int64),
        _scaled(arrays["held_out_images"]),
        arrays["held_out_labels"].astype(numpy.int64),
    )


def _scaled(pixels: Any) -> Any:
    return (pixels / 16).astype(config.dtype)
