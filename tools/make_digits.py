"""Make tinynode/nn/datasets/digits.npz from scikit-learn's copy of the data.

    python tools/make_digits.py [PATH]

The same input gives the same file, byte for byte. Of the 1,797 images, the 360 with the
smallest SHA-256 digests of the pixels are held out: a rule without a choice. Equal images would
have equal digests, so no image is on both sides.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy

from tinynode.nn.serializers import npz_bytes

TARGET = Path(__file__).parent.parent / "tinynode" / "nn" / "datasets" / "digits.npz"
NUMBER_HELD_OUT = 360


def held_out_rows(images: Any) -> Any:
    """A bool for each row: True if held out."""
    digests = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
    last = sorted(digests)[NUMBER_HELD_OUT - 1]
    return numpy.asarray([digest <= last for digest in digests])


def content() -> bytes:
    """The bytes of the file."""
    from sklearn.datasets import load_digits  # needed for making the file, not for using it

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
    parser = argparse.ArgumentParser(description="Make digits.npz.")
    parser.add_argument("path", metavar="PATH", nargs="?", type=Path, default=TARGET)
    target = parser.parse_args().path
    target.write_bytes(content())
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
