"""CUDAMemoryHook: the GPU memory that each function takes.

Requirement: what does not fit into a GPU's memory is found by looking at which function takes how
much. ``MemoryHook`` counts the arrays that the graph retains, on any device; this one asks the
backend's memory pool, so it also sees gradients, temporary arrays, and what the pool keeps.

Not yet run on a GPU: the tests run it on a backend that makes up its numbers.
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
    """What one forward or backward changed; calls inside it are counted in their own entries.

    ``used`` are bytes of arrays, ``reserved`` bytes that the pool took from the device.
    """

    name: str
    direction: str
    used: int
    reserved: int


class PoolUse(TypedDict):
    """What ``CUDAMemoryHook.summary`` tells of one function name; ``occurrence`` counts calls."""

    used_bytes: int
    acquired_bytes: int
    occurrence: int


class _Call:
    """A call that has begun: the pool then, and what calls inside it have changed since."""

    def __init__(self, used: int, reserved: int) -> None:
        self.used = used
        self.reserved = reserved
        self.inner_used = 0
        self.inner_reserved = 0


class CUDAMemoryHook(CallHook):
    """Counts by how much each function changes the use of a GPU's memory pool.

    ``used_bytes`` is what the function left in use, below 0 where it freed more than it made;
    ``acquired_bytes`` is by how much the pool grew, for temporary arrays too: a pool takes memory
    from the device when it has no free piece that is large enough, and keeps it. Work in other
    threads and on other streams is counted as well.

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
        """Every call whose end was seen, in that order."""
        self._peak = 0

    def _pool(self) -> tuple[int, int]:
        """The bytes used and reserved now."""
        backend = cast(MemoryPool, self.device.backend)
        used, reserved = (
            backend.memory_used(self.device.index),
            backend.memory_reserved(self.device.index),
        )
        self._peak = max(self._peak, used)
        return used, reserved

    def call_begins(
        self, function: FunctionNode, direction: str, arrays: OptionalArrays, around: Any
    ) -> _Call:
        return _Call(*self._pool())

    def call_ends(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        call: Any,
        around: Any,
    ) -> None:
        used, reserved = self._pool()
        used, reserved = used - call.used, reserved - call.reserved
        if around is not None:
            around.inner_used += used
            around.inner_reserved += reserved
        own = used - call.inner_used, reserved - call.inner_reserved
        self.calls.append(PoolChange(function._impl_name, direction, *own))

    # --- what was counted ----------------------------------------------------------------------

    @property
    def call_history(self) -> list[tuple[str, int, int]]:
        """(function name, used bytes, acquired bytes) of each call, in order of completion."""
        return [(call.name, call.used, call.reserved) for call in self.calls]

    def total_used_bytes(self) -> int:
        """By how much the use of the pool changed in all calls together."""
        return sum(call.used for call in self.calls)

    def total_acquired_bytes(self) -> int:
        """By how much the pool grew in all calls together."""
        return sum(call.reserved for call in self.calls)

    def peak_bytes(self) -> int:
        """The most bytes that were in use at the beginning or the end of a call."""
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
            unit: ``"B"``, ``"KiB"``, ``"MiB"`` or ``"GiB"``; ``"auto"`` picks one for the table.
            file: where to print; standard output by default.

        Raises:
            ValueError: there is no such unit.
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


def _used_bytes(item: tuple[str, PoolUse]) -> int:
    return item[1]["used_bytes"]


def _row(used: int, acquired: int, unit: str) -> list[str]:
    return [in_unit(used, unit), in_unit(acquired, unit)]
