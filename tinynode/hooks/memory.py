"""MemoryHook: how much memory the graph keeps for backward.

Requirement: the memory of training is what functions retain, so one wants to see which of them
retain it. An array that several functions retain lies in memory once, and is counted once: for the
first of them. What is retained is known only when a function is in the graph, so the hook looks
after that, and hears from each function when it is freed.
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import NamedTuple, TextIO, TypedDict

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Array
from tinynode.errors import dtype_name
from tinynode.hooks.results import ResultHook
from tinynode.hooks.table import check_unit, fitting_unit, format_table

SIZE_OF_UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class FunctionMemory(TypedDict):
    """What ``MemoryHook.summary`` tells of one label.

    ``bytes`` are those of arrays that no earlier function held; ``shared_bytes`` those of arrays
    that an earlier one held already, and that are counted there. ``occurrence`` counts calls.
    """

    bytes: int
    shared_bytes: int
    occurrence: int


class Retained(NamedTuple):
    """What one call retained: bytes of its own, and bytes that an earlier call held already."""

    label: str
    bytes: int
    shared_bytes: int


class MemoryHook(ResultHook):
    """Counts the bytes that functions retain for backward, by function.

    Counted are the arrays that a FunctionNode keeps after ``retain_inputs`` and
    ``retain_outputs``: also those that somebody else keeps too, such as weights. Not counted are
    arrays that only Variables hold, gradients, and arrays that nobody keeps. Every array object
    counts with the bytes of its elements, so a view counts beside the array that it looks into.
    Where no graph is recorded, nothing is retained.

        with MemoryHook() as memory:
            loss = model(x)
        memory.print_report()
    """

    name = "MemoryHook"

    def __init__(self) -> None:
        self.calls: list[Retained] = []
        """Every call that the hook has seen, in order of completion."""
        self._current = 0
        self._peak = 0
        self._holders: dict[int, int] = {}
        """How many living functions retain an array, by its id: it lives as long as they do."""
        self._living: dict[weakref.ref[FunctionNode], dict[int, int]] = {}
        """The sizes of the arrays that a living function retains, by their ids."""

    def after_forward(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        kept = (*function._input_data, *function._output_data)
        sizes = {id(array): number_of_bytes(array) for array in kept if array is not None}
        own = sum(size for key, size in sizes.items() if key not in self._holders)
        self.calls.append(Retained(function.label, own, sum(sizes.values()) - own))
        if sizes:
            self._living[weakref.ref(function, self._release)] = sizes
            for key in sizes:
                self._holders[key] = self._holders.get(key, 0) + 1
        self._current += own
        self._peak = max(self._peak, self._current)

    def _release(self, reference: weakref.ref[FunctionNode]) -> None:
        """A function was freed, and with it the arrays that no other one retains."""
        for key, size in self._living.pop(reference).items():
            self._holders[key] -= 1
            if self._holders[key] == 0:
                del self._holders[key]
                self._current -= size

    # --- what was counted ----------------------------------------------------------------------

    @property
    def call_history(self) -> list[tuple[str, int]]:
        """(label, bytes) of each call; an array that an earlier call held counts there."""
        return [(call.label, call.bytes) for call in self.calls]

    def total_bytes(self) -> int:
        """The bytes of all arrays that were retained, whether they are still or not."""
        return sum(call.bytes for call in self.calls)

    def peak_bytes(self) -> int:
        """The most bytes that were retained at one time."""
        return self._peak

    def current_bytes(self) -> int:
        """The bytes retained now, by functions that are alive; also after the ``with`` block.

        What ``unchain()`` takes out of a graph counts until the function itself is freed.
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
            unit: ``"B"``, ``"KiB"``, ``"MiB"`` or ``"GiB"``; ``"auto"`` picks one for the table.
            file: where to print; standard output by default.

        Raises:
            ValueError: there is no such unit.
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
    """The bytes of an array's elements: their number times the size that the dtype's name says."""
    name = dtype_name(array.dtype)
    bits = "".join(character for character in name if character.isdigit())
    elements: int = math.prod(array.shape)
    return elements * (int(bits) // 8 if bits else 1)


def _bytes(item: tuple[str, FunctionMemory]) -> int:
    return item[1]["bytes"]


def in_unit(size: int, unit: str) -> str:
    """A number of bytes as text."""
    return f"{size} B" if unit == "B" else f"{size / SIZE_OF_UNIT[unit]:.2f} {unit}"
