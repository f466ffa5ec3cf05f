"""The data sets of the package.

Requirement: the first real training needs no download. The files are small. Beside each file, a
page names the source, the licence, and the command for making the file, if any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy

from tinynode.configuration import config
from tinynode.nn.datasets.generators import (
    Examples,
    make_circles,
    make_moons,
    make_regression,
    make_sines,
    make_spirals,
)
from tinynode.nn.serializers import load

__all__ = [
    "Classification",
    "Examples",
    "SplitText",
    "load_digits",
    "load_sonnets",
    "make_circles",
    "make_moons",
    "make_regression",
    "make_sines",
    "make_spirals",
]
__dir__ = __all__.copy  # for completion


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


class SplitText(NamedTuple):
    """A text for training and, held out, for measuring.

    Attributes:
        train: the text for training.
        held_out: the held-out text.
        characters: all characters of both, sorted; a character's number is its index here.
    """

    train: str
    held_out: str
    characters: str

    def encode(self, text: str) -> Any:
        """The numbers of the characters: (len(text)), int64.

        Raises:
            ValueError: the text has a character that is not in ``characters``.
        """
        numbers = {character: number for number, character in enumerate(self.characters)}
        unknown = [character for character in text if character not in numbers]
        if unknown:
            raise ValueError(
                f"SplitText.encode: {unknown[0]!r} is none of the {len(numbers)} characters of "
                "the text. Leave it out."
            )
        return numpy.asarray([numbers[character] for character in text], dtype=numpy.int64)

    def decode(self, numbers: Any) -> str:
        """The text of the numbers; undoes ``encode``."""
        return "".join(self.characters[int(number)] for number in numbers)


def load_sonnets() -> SplitText:
    """35 sonnets of Shakespeare, 21,000 characters in all, for models of characters.

    Every seventh sonnet is held out: five sonnets.

    Source: Shake-speares Sonnets, London, 1609; public domain. See sonnets.md beside the data.
    """
    text = Path(__file__).with_name("sonnets.txt").read_text(encoding="ascii")
    sonnets = text.strip().split("\n\n")
    train = [sonnet for number, sonnet in enumerate(sonnets) if number % 7 != 6]
    held_out = [sonnet for number, sonnet in enumerate(sonnets) if number % 7 == 6]
    return SplitText(
        "\n\n".join(train) + "\n", "\n\n".join(held_out) + "\n", "".join(sorted(set(text)))
    )


def _scaled(pixels: Any) -> Any:
    return (pixels / 16).astype(config.dtype)
