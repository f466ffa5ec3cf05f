"""Make tinynode/nn/datasets/digits.npz from the copy of the data that scikit-learn ships.

    python tools/make_digits.py [PATH]

The same input gives the same file, byte for byte. Images are held out by a rule without a choice
in it: those 360 of the 1,797 whose pixels have the smallest SHA-256 digests. Equal images would
have equal digests, so none can stand on both sides.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy

from tinynode.nn.serializers import npz_bytes

TARGET = Path(__file__).parent.parent / "tinynode" / "nn" / "datasets" / "digits.npz"
NUMBER_HELD_OUT = 360


def held_out_rows(images: Any) -> Any:
    """Which rows are held out: a bool for each."""
    digests = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
    last = sorted(digests)[NUMBER_HELD_OUT - 1]
    return numpy.asarray([digest <= last for digest in digests])


def content() -> bytes:
    """The bytes of the file."""
    from sklearn.datasets import load_digits  # needed to make the file only, not to use it

    images, labels = load_digits(return_X_y=True)
    assert images.shape == (1797, 64) and (images == images.astype(numpy.uint8)).all()
    images, labels = images.astype(numpy.uint8), labels.astype(numpy.uint8)
    held_out = held_out_rows(images)
    return npz_bytes(
        {
            "train_images": images[~held_out],
            "train_labels": labels[~held_out],
            "held_out_images": images[held_out],
            "held_out_labels": labels[held_out],
        }
    )


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_bytes(content())
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
