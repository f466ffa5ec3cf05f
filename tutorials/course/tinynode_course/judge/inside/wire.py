"""Values as text, for the pipe between the judge and a child.

Requirement: the child runs a stranger's program, so a message may be junk.
A value is None, a bool, an int, a float, a str, an array, a list, a tuple or a dict with texts as
keys. Each value is a pair ``[kind, content]`` of JSON. No kind builds an object, and no kind runs
code. ``decode`` refuses other content, and has limits of depth, of numbers and of bytes.

The module needs NumPy only: the judge and the child read the same file.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any

import numpy as np

MOST_BYTES = 8_000_000
"""The most bytes of all arrays and texts in a message."""

MOST_VALUES = 50_000
"""The most values in a message; an array counts as a value."""

MOST_DEPTH = 20

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = frozenset((*INTEGERS, "float16", "float32", "float64", "complex64", "complex128"))

Wire = list[Any]


class WireError(ValueError):
    """A value or a message is outside of the protocol."""


def encode(value: Any, depth: int = 0) -> Wire:
    """A value as pairs of kind and content.

    Raises:
        WireError: The value has another type, or lists in lists in lists without an end.
    """
    if depth > MOST_DEPTH:
        raise WireError(f"more than {MOST_DEPTH} lists in lists")
    if value is None or type(value) in (bool, int, str):
        return [type(value).__name__, value]
    if type(value) is float:
        return ["float", value if math.isfinite(value) else str(value)]
    if isinstance(value, np.ndarray | np.generic):
        return ["array", _encode_array(np.asarray(value))]
    if type(value) in (list, tuple):
        return [type(value).__name__, [encode(one, depth + 1) for one in value]]
    if type(value) is dict:
        if not all(type(key) is str for key in value):
            raise WireError("a dict with keys other than texts")
        return ["dict", {key: encode(one, depth + 1) for key, one in value.items()}]
    raise WireError(f"a value of the type {type(value).__name__}")


def _encode_array(array: Any) -> list[Any]:
    if array.dtype.name not in DTYPES:
        raise WireError(f"an array of the dtype {array.dtype}")
    if array.nbytes > MOST_BYTES:
        raise WireError(f"an array of {array.nbytes} bytes")
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return [array.dtype.name, list(array.shape), data]


class Decoder:
    """Reads a message, and counts values and bytes."""

    def __init__(self) -> None:
        self.values = 0
        self.bytes = 0

    def decode(self, wire: Any, depth: int = 0) -> Any:
        """The value of a pair.

        Raises:
            WireError: The pair is outside of the protocol, or the message is too large.
        """
        self.values += 1
        if self.values > MOST_VALUES or depth > MOST_DEPTH:
            raise WireError("too many values, or too many lists in lists")
        if type(wire) is not list or len(wire) != 2 or type(wire[0]) is not str:
            raise WireError("no pair of a kind and a content")
        kind, content = wire
        if kind == "NoneType" and content is None:
            return None
        if kind in ("bool", "int", "str") and type(content).__name__ == kind:
            return self._counted(content)
        if kind == "float":
            return _decode_float(content)
        if kind == "array":
            return self._decode_array(content)
        if kind in ("list", "tuple") and type(content) is list:
            values = [self.decode(one, depth + 1) for one in content]
            return tuple(values) if kind == "tuple" else values
        if kind == "dict" and type(content) is dict:
            return {self._counted(k): self.decode(v, depth + 1) for k, v in content.items()}
        raise WireError(f"no content of the kind {kind[:20]!r}")

    def _counted(self, content: Any) -> Any:
        if type(content) is str:
            self._count(len(content))
        return content

    def _count(self, number: int) -> None:
        self.bytes += number
        if self.bytes > MOST_BYTES:
            raise WireError(f"more than {MOST_BYTES} bytes")

    def _decode_array(self, content: Any) -> Any:
        if type(content) is not list or len(content) != 3:
            raise WireError("no array")
        name, shape, data = content
        if type(name) is not str or name not in DTYPES or type(data) is not str:
            raise WireError("no array of a known dtype")
        if type(shape) is not list or len(shape) > MOST_DEPTH:
            raise WireError("no shape of an array")
        if not all(type(length) is int and 0 <= length <= MOST_BYTES for length in shape):
            raise WireError("no shape of an array")
        self._count(len(data))
        dtype = np.dtype(name)
        try:
            raw = base64.b64decode(data.encode("ascii"), validate=True)
        except (UnicodeEncodeError, binascii.Error):
            raise WireError("no base64 text") from None
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise WireError("an array with another number of bytes than its shape says")
        return np.frombuffer(raw, dtype).reshape(shape).copy()


def _decode_float(content: Any) -> float:
    if type(content) is float:
        return content
    if type(content) is str and content in ("nan", "inf", "-inf"):
        return float(content)
    raise WireError("no float")


def decode(wire: Any) -> Any:
    """The value of a pair; see ``Decoder``."""
    return Decoder().decode(wire)


def to_line(message: dict[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message, allow_nan=False).encode("ascii") + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """The message of a line.

    Raises:
        WireError: The line is no JSON object.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError("a line that is no JSON") from None
    if type(message) is not dict:
        raise WireError("a line that is no JSON object")
    return message
