"""The table of what every function does: one row for each claim.

Requirement: a function is right on every backend, for every kind of input, to second order, and a
function that nobody checks cannot be exported. A row says what is computed, on which inputs, and
the same in plain NumPy (``rows.py``). The drivers in ``support/op_drivers.py`` check each row.

A module of the package adds its rows to ``CASES`` when it is imported. All modules are imported
here, so who imports the table sees all of it.
"""

from __future__ import annotations

from op_cases import (
    arrays,
    cross_entropies,
    distances_ctc,
    elementwise,
    linear_algebra,
    networks,
    options,
    reductions_shapes,
    special,
    volumes,
)
from op_cases.rows import CASES, LAYOUTS, Case, Input

MODULES = (
    elementwise,
    reductions_shapes,
    cross_entropies,
    arrays,
    linear_algebra,
    special,
    distances_ctc,
    networks,
    options,
    volumes,
)
"""The modules of rows."""

__all__ = ["CASES", "LAYOUTS", "MODULES", "Case", "Input"]
