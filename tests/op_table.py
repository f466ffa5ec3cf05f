"""The whole table: the rows of every module of cases, in one list.

Requirement: who runs the table sees all of it. A module of cases adds its rows to ``CASES`` when
it is imported, so they are imported here, and the table is read from here.
"""

from __future__ import annotations

import op_cases_arrays  # noqa: F401 - adds its rows
import op_cases_more  # noqa: F401 - adds its rows
import op_cases_networks  # noqa: F401 - adds its rows
import op_cases_options  # noqa: F401 - adds its rows
import op_cases_volumes  # noqa: F401 - adds its rows
from op_cases import CASES, LAYOUTS, Case, Input

__all__ = ["CASES", "LAYOUTS", "Case", "Input"]
