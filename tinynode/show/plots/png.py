"""A small PNG file from a matrix of palette indexes, without an imaging library.

Source: W3C, Portable Network Graphics Specification, third edition, 2025 (chunks, indexed colour).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy

Colour = tuple[int, int, int, int]
"""Red, green, blue and opacity, each from 0 to 255."""


def png(pixels: numpy.ndarray, colours: Sequence[Colour]) -> bytes:
    """The bytes of a PNG file.

    Args:
        pixels: a matrix of uint8: for each pixel the index of its colour.
        colours: at most 256 colours.
    """
    height, width = pixels.shape
    rows = numpy.pad(pixels, ((0, 0), (1, 0)))  # each row starts with its filter: 0, none
    parts = [
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", b"".join(bytes(colour[:3]) for colour in colours)),
        _chunk(b"tRNS", bytes(colour[3] for colour in colours)),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Length, kind, data and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
