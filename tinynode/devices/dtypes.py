"""Kinds of dtypes: bool, integer, real floating, complex.

Requirement: each array library has own dtypes, and dtypes of two libraries do not compare.
So a dtype is always looked at together with the namespace of its library.
"""

from __future__ import annotations

from typing import Any

BOOL, INTEGER, FLOATING, COMPLEX = range(4)
"""The kinds, in the order of lossless casts."""
seen_complex_dtypes: set[str] = set()
"""The names of the complex dtypes met so far. A program of real numbers leaves the set empty."""


def kind_of_dtype(namespace: Any, dtype: Any) -> int:
    """The kind of a dtype: ``BOOL``, ``INTEGER``, ``FLOATING`` or ``COMPLEX``."""
    for kind, name in ((BOOL, "bool"), (INTEGER, "integral"), (FLOATING, "real floating")):
        if namespace.isdtype(dtype, name):
            return kind
    seen_complex_dtypes.add(str(dtype))
    return COMPLEX
