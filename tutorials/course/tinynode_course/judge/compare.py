"""Compares the values of a drill: the student's with the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = {"float16": 2e-2, "float32": 2e-4, "complex64": 2e-4}
"""The relative tolerance by dtype; 1e-6 for others with a fraction."""

LONGEST = 120


def difference(got: Any, right: Any, where: str = "the value") -> str:
    """The first difference in words; "" for equal values.

    Types, dtypes, shapes, lengths and keys must be equal; floating numbers may differ a little.
    """
    if type(got) is not type(right) and not (_is_list(got) and _is_list(right)):
        return f"{where}: expected {shown(right)}, got {shown(got)}"
    if isinstance(right, dict):
        if sorted(got) != sorted(right):
            return f"{where}: expected the keys {sorted(right)}, got {sorted(got)}"
        pairs = [(f"{where}[{key!r}]", got[key], right[key]) for key in right]
    elif _is_list(right):
        if len(got) != len(right):
            return f"{where}: expected {len(right)} values, got {len(got)}"
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(got, right, strict=True))]
    else:
        return (
            "" if _is_same(got, right) else f"{where}: expected {shown(right)}, got {shown(got)}"
        )
    for inner, one, other in pairs:
        found = difference(one, other, inner)
        if found:
            return found
    return ""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_same(got: Any, right: Any) -> bool:
    if isinstance(right, np.ndarray):
        return got.dtype == right.dtype and got.shape == right.shape and _is_close(got, right)
    if isinstance(right, float):
        return _is_close(np.asarray(got), np.asarray(right))
    return bool(got == right)


def _is_close(got: Any, right: Any) -> bool:
    if right.dtype.kind not in "fc":
        return bool(np.array_equal(got, right))
    rtol = TOLERANCE.get(right.dtype.name, 1e-6)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.allclose(got, right, rtol=rtol, atol=rtol / 100, equal_nan=True))


def shown(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, np.ndarray):
        numbers = " ".join(f"{one:.6g}" for one in value.ravel()[:5])
        dots = " ..." if value.size > 5 else ""
        return f"[{numbers}{dots}] (shape {value.shape}, {value.dtype})"
    said = f"{value!r} ({type(value).__name__})"
    return said if len(said) <= LONGEST else said[: LONGEST - 4] + " ..."
