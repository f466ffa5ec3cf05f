"""CUDAMemoryHook: the GPU memory of each function.

Requirement: if a program does not fit into a GPU's memory, some function takes too much.
``MemoryHook`` counts the arrays that the graph retains, on any device. This hook asks the memory
pool of the backend: gradients, temporary arrays and the pool's reserve count too.

Not yet run on a GPU: the tests use a backend with invented numbers.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO, TypedDict, cast

from tinynode.core.function_node import FunctionNode
from tinynode.devices import Device, MemoryPool
from tinynode.hooks.calls import CallHook, OptionalArrays
from tinynode.hooks.memory import SIZE_OF_UNIT, in_unit
from tinynode.hooks.nvtx import device_with
from tinynode.hooks.table import check_unit, fitting_unit, format_table


class PoolChange(NamedTuple):
    """The changes by a forward or a backward, without the calls inside.

    ``used`` counts bytes of arrays, ``reserved`` bytes that the pool took from the device.
    """

    name: str
    direction: str
    used: int
    reserved: int


class PoolUse(TypedDict):
    """A row of ``CUDAMemoryHook.summary``, for a function name; ``occurrence`` counts calls."""

    used_bytes: int
    acquired_bytes: int
    occurrence: int


class _Call:
    """A running call: the pool at its beginning, and the changes by the calls inside."""

    def __init__(self, used: int, reserved: int) -> None:
        self.used = used
        self.reserved = reserved
        self.inner_used = 0
        self.inner_reserved = 0


class CUDAMemoryHook(CallHook):
    """Counts by how much each function changes the use of a GPU's memory pool.

    ``used_bytes`` is the change of the bytes in use; a function that frees memory has a negative
    number. ``acquired_bytes`` is the growth of the pool, for temporary arrays too. A pool takes
    memory from the device when no free piece is large enough, and keeps it. Work in other threads
    and on other streams counts as well.

        with CUDAMemoryHook() as memory:
            loss = model(x)
            loss.backward()
        memory.print_report()

    Args:
        device: the GPU; the current device by default.

    Raises:
        DeviceError: the device's backend has no memory pool.
    """

    name = "CUDAMemoryHook"

    def __init__(self, device: str | Device | None = None) -> None:
        super().__init__()
        self.device = device_with("CUDAMemoryHook", MemoryPool, "memory pool", device)
        self.calls: list[PoolChange] = []
        """Every complete call, in order of completion."""
        self._peak = 0

    def _pool(self) -> tuple[int, int]:
        """The bytes in use and the bytes reserved now."""
        backend, index = cast(MemoryPool, self.device.backend), self.device.index
        used, reserved = backend.memory_used(index), backend.memory_reserved(index)
        self._peak = max(self._peak, used)
        return used, reserved

    def begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> _Call:
        return _Call(*self._pool())

    def end(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        record: Any,
        outer: Any,
    ) -> None:
        used, reserved = self._pool()
        used, reserved = used - record.used, reserved - record.reserved
        _add_inner(outer, used, reserved)
        own = used - record.inner_used, reserved - record.inner_reserved
        self.calls.append(PoolChange(function._impl_name, direction, *own))

    def lose(self, record: Any, outer: Any) -> None:
        _add_inner(outer, record.inner_used, record.inner_reserved)

    # --- the counts ------------------------------------------------------------------------------

    @property
    def call_history(self) -> list[tuple[str, int, int]]:
        """(function name, used bytes, acquired bytes) of each call, in order of completion."""
        return [(call.name, call.used, call.reserved) for call in self.calls]

    def total_used_bytes(self) -> int:
        """The change of the bytes in use, over all calls together."""
        return sum(call.used for call in self.calls)

    def total_acquired_bytes(self) -> int:
        """The growth of the pool, over all calls together."""
        return sum(call.reserved for call in self.calls)

    def peak_bytes(self) -> int:
        """The most bytes in use at the beginning or the end of a call."""
        return self._peak

    def summary(self) -> dict[str, PoolUse]:
        """Bytes and calls by function name, forward and backward together."""
        summary: dict[str, PoolUse] = {}
        for call in self.calls:
            row = summary.setdefault(
                call.name, {"used_bytes": 0, "acquired_bytes": 0, "occurrence": 0}
            )
            row["used_bytes"] += call.used
            row["acquired_bytes"] += call.reserved
            row["occurrence"] += 1
        return summary

    def print_report(self, unit: str = "auto", file: TextIO | None = None) -> None:
        """Print a table of the summary, most used bytes first.

        Args:
            unit: ``"B"``, ``"KiB"``, ``"MiB"`` or ``"GiB"``; ``"auto"`` picks a fitting unit.
            file: the text stream to print to; standard output by default.

        Raises:
            ValueError: the unit is unknown.
        """
        check_unit(unit, SIZE_OF_UNIT, "auto")
        if unit == "auto":
            unit = fitting_unit(self._peak, SIZE_OF_UNIT)
        rows = []
        for name, row in sorted(self.summary().items(), key=_used_bytes, reverse=True):
            rows.append([name, *_row(row["used_bytes"], row["acquired_bytes"], unit)])
            rows[-1].append(str(row["occurrence"]))
        sizes = _row(self.total_used_bytes(), self.total_acquired_bytes(), unit)
        rows.append(["total", *sizes, str(len(self.calls))])
        rows.append(["at one time", in_unit(self._peak, unit), "", ""])
        head = ["function", "used", "acquired", "calls"]
        print(format_table(head, rows, left=(0,)), file=file or sys.stdout)


def _add_inner(outer: _Call | None, used: int, reserved: int) -> None:
    """Add the changes by an inner call to the record of the call around it, or to none."""
    if outer is not None:
        outer.inner_used += used
        outer.inner_reserved += reserved


def _used_bytes(item: tuple[str, PoolUse]) -> int:
    return item[1]["used_bytes"]


def _row(used: int, acquired: int, unit: str) -> list[str]:
    return [in_unit(used, unit), in_unit(acquired, unit)]
