"""MemoryHook: how much memory the graph keeps for backward.

Requirement: training needs memory for the arrays that functions retain; the report names the
functions. An array that several functions retain counts once, for the first function. Functions
retain arrays when they enter the graph, so the hook counts at the event ``applied``. A weak
reference tells the hook when a function is freed.
"""

from __future__ import annotations

import math
import re
import sys
import weakref
from typing import NamedTuple, TextIO, TypedDict

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable
from tinynode.devices import Array
from tinynode.errors import dtype_name
from tinynode.hooks.table import check_unit, fitting_unit, format_table

SIZE_OF_UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class FunctionMemory(TypedDict):
    """A row of ``MemoryHook.summary``, for a label.

    ``bytes`` counts arrays that no earlier function retained. ``shared_bytes`` counts arrays that
    an earlier function retained already. ``occurrence`` counts calls.
    """

    bytes: int
    shared_bytes: int
    occurrence: int


class Retained(NamedTuple):
    """A call: the bytes of new arrays, and of arrays that an earlier call retained."""

    label: str
    bytes: int
    shared_bytes: int


class MemoryHook(FunctionHook):
    """Counts the bytes that functions retain for backward, by function.

    The hook counts the arrays that a FunctionNode keeps after ``retain_inputs`` and
    ``retain_outputs``, weights included. Gradients, temporary arrays and arrays of Variables alone
    do not count. Every array object counts with all elements, so a view counts beside the base
    array. Without a recorded graph, functions retain no arrays.

        with MemoryHook() as memory:
            loss = model(x)
        memory.print_report()
    """

    name = "MemoryHook"

    def __init__(self) -> None:
        self.calls: list[Retained] = []
        """Every call, in order of completion."""
        self._current = 0
        self._peak = 0
        self._holders: dict[int, int] = {}
        """The number of living functions that retain an array, by the array's id."""
        self._living: dict[weakref.ref[FunctionNode], dict[int, int]] = {}
        """The sizes of the arrays that a living function retains, by the arrays' ids."""

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        kept = (*function.retained_input_data, *function.retained_output_data)
        sizes = {id(x): number_of_bytes(x) for x in kept if x is not None}
        own = sum(size for key, size in sizes.items() if key not in self._holders)
        self.calls.append(Retained(function.label, own, sum(sizes.values()) - own))
        if sizes:
            self._living[weakref.ref(function, self._release)] = sizes
            for key in sizes:
                self._holders[key] = self._holders.get(key, 0) + 1
        self._current += own
        self._peak = max(self._peak, self._current)

    def _release(self, reference: weakref.ref[FunctionNode]) -> None:
        """Forget the arrays of a freed function, unless another function retains them."""
        for key, size in self._living.pop(reference).items():
            self._holders[key] -= 1
            if self._holders[key] == 0:
                del self._holders[key]
                self._current -= size

    # --- the counts ------------------------------------------------------------------------------

    @property
    def call_history(self) -> list[tuple[str, int]]:
        """(label, bytes) of each call; an array of an earlier call counts there."""
        return [(call.label, call.bytes) for call in self.calls]

    def total_bytes(self) -> int:
        """The bytes of all arrays that were ever retained."""
        return sum(call.bytes for call in self.calls)

    def peak_bytes(self) -> int:
        """The most bytes retained at the same time."""
        return self._peak

    def current_bytes(self) -> int:
        """The bytes that living functions retain now; also after the ``with`` block.

        The arrays of an unchained function count until the function itself is freed.
        """
        return self._current

    def summary(self) -> dict[str, FunctionMemory]:
        """Bytes and calls by label."""
        summary: dict[str, FunctionMemory] = {}
        for call in self.calls:
            row = summary.setdefault(call.label, {"bytes": 0, "shared_bytes": 0, "occurrence": 0})
            row["bytes"] += call.bytes
            row["shared_bytes"] += call.shared_bytes
            row["occurrence"] += 1
        return summary

    def print_report(self, unit: str = "auto", file: TextIO | None = None) -> None:
        """Print a table of the summary, most bytes first, and the totals.

        Args:
            unit: ``"B"``, ``"KiB"``, ``"MiB"`` or ``"GiB"``; ``"auto"`` picks a fitting unit.
            file: the text stream to print to; standard output by default.

        Raises:
            ValueError: the unit is unknown.
        """
        check_unit(unit, SIZE_OF_UNIT, "auto")
        total = self.total_bytes()
        if unit == "auto":
            unit = fitting_unit(total, SIZE_OF_UNIT)
        rows = []
        for label, row in sorted(self.summary().items(), key=_bytes, reverse=True):
            sizes = [in_unit(row["bytes"], unit), in_unit(row["shared_bytes"], unit)]
            rows.append([label, *sizes, str(row["occurrence"])])
        rows.append(["total", in_unit(total, unit), "", str(len(self.calls))])
        rows.append(["at one time", in_unit(self._peak, unit), "", ""])
        rows.append(["now", in_unit(self._current, unit), "", ""])
        head = ["function", "retained", "shared", "calls"]
        print(format_table(head, rows, left=(0,)), file=file or sys.stdout)


def number_of_bytes(array: Array) -> int:
    """The bytes of an array's elements; the dtype's name says the bits of an element."""
    bits = re.search(r"\d+", dtype_name(array.dtype))  # bool has none, and takes a byte
    elements: int = math.prod(array.shape)
    return elements * (int(bits.group()) // 8 if bits else 1)


def _bytes(item: tuple[str, FunctionMemory]) -> int:
    return item[1]["bytes"]


def in_unit(size: int, unit: str) -> str:
    """A number of bytes as text."""
    return f"{size} B" if unit == "B" else f"{size / SIZE_OF_UNIT[unit]:.2f} {unit}"
