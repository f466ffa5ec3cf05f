"""TimerHook: how long each function took.

Requirement: the total is the elapsed time. Functions run inside other functions: the additions
inside a backward, or the forward that ``checkpoint`` repeats. Inner time must not count twice. So
each call has an own time, without the calls inside, and the total is the sum of the own times.

The time of a call that raised is unknown. The calls inside it count as calls of the next outer
call.
"""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO, TypedDict

from tinynode.core.function_node import FunctionNode
from tinynode.devices import HostCopy, backend_of, current_device
from tinynode.errors import dtype_name
from tinynode.hooks.calls import CallHook, OptionalArrays
from tinynode.hooks.table import check_unit, fitting_unit, format_table

SECONDS_OF_UNIT = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class FunctionTime(TypedDict):
    """A row of ``TimerHook.summary``, for a function name; times in seconds.

    ``time`` includes the calls inside, ``own_time`` does not. ``time`` is the sum of
    ``forward_time`` and ``backward_time``. ``occurrence`` counts calls, forward and backward.
    """

    time: float
    own_time: float
    occurrence: int
    forward_time: float
    backward_time: float
    dtypes: list[str]


class TimedCall:
    """A forward or a backward of a function.

    Attributes:
        start: the clock at the beginning, in seconds.
        seconds: the time from beginning to end; 0 until the end.
        inner_seconds: the time of the calls directly inside.
    """

    __slots__ = ("direction", "dtypes", "inner_seconds", "name", "seconds", "start")

    def __init__(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        self.name = function._impl_name
        self.direction = direction
        self.dtypes = {dtype_name(array.dtype) for array in arrays if array is not None}
        self.seconds = 0.0
        self.inner_seconds = 0.0
        _wait_for_device(function, arrays)
        self.start = time.perf_counter()

    @property
    def own_seconds(self) -> float:
        """The time without the calls inside."""
        return self.seconds - self.inner_seconds


class TimerHook(CallHook):
    """Measures the time of every function, forward and backward.

    The hook waits for the device before it reads the clock. So a GPU's pending work counts for the
    right function. Measuring takes time too: on small arrays, functions look slower. With a hook a
    backward pass applies functions to Variables, and these forwards count as forward. For the
    times of the forward alone, end the block before ``backward``.

        with TimerHook() as timer:
            loss = model(x)
            loss.backward()
        timer.print_report()
    """

    name = "TimerHook"

    def __init__(self) -> None:
        super().__init__()
        self.finished: list[TimedCall] = []
        """Every complete call, in order of completion."""
        self.copies: list[HostCopy] = []
        """Every copy of an array of NumPy to a device, in order."""

    def begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> TimedCall:
        return TimedCall(function, direction, arrays)

    def end(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        record: Any,
        outer: Any,
    ) -> None:
        _wait_for_device(function, arrays)
        record.seconds = time.perf_counter() - record.start
        if outer is not None:
            outer.inner_seconds += record.seconds
        self.finished.append(record)

    def copied_from_host(self, host_copy: HostCopy) -> None:
        outer = self._outer()
        if outer is not None:
            outer.inner_seconds += host_copy.seconds
        self.copies.append(host_copy)

    def lose(self, record: Any, outer: Any) -> None:
        if outer is not None:
            outer.inner_seconds += record.inner_seconds

    # --- the times -------------------------------------------------------------------------------

    @property
    def call_history(self) -> list[tuple[str, float]]:
        """(function name, seconds) of each call, forward and backward, in order of completion."""
        return [(call.name, call.seconds) for call in self.finished]

    def total_time(self) -> float:
        """The seconds spent in functions, and in copies of NumPy arrays to a device.

        A call inside another call does not count again.
        """
        copying = sum(host_copy.seconds for host_copy in self.copies)
        return sum(call.own_seconds for call in self.finished) + copying

    def summary(self) -> dict[str, FunctionTime]:
        """Times and calls by function name."""
        summary: dict[str, FunctionTime] = {}
        for call in self.finished:
            row = summary.setdefault(call.name, _no_time())
            row["time"] += call.seconds
            row["own_time"] += call.own_seconds
            row["occurrence"] += 1
            if call.direction == "forward":
                row["forward_time"] += call.seconds
            else:
                row["backward_time"] += call.seconds
            row["dtypes"] = sorted({*row["dtypes"], *call.dtypes})
        return summary

    def print_report(self, unit: str = "auto", file: TextIO | None = None) -> None:
        """Print a table of the summary, longest own time first.

        If NumPy arrays were copied to a device, the table has a column "copied", in bytes. Then
        each function that copied has a row for the copies.

        Args:
            unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; ``"auto"`` picks the unit that fits the
                longest time, ``"auto_foreach"`` a unit for each number.
            file: the text stream to print to; standard output by default.

        Raises:
            ValueError: the unit is unknown.
        """
        check_unit(unit, SECONDS_OF_UNIT, "auto", "auto_foreach")
        summary = self.summary()
        total = self.total_time()
        if unit == "auto":
            longest = max([total, *(row["time"] for row in summary.values())])
            unit = fitting_unit(longest, SECONDS_OF_UNIT)
        rows = [
            _report_row(name, row, unit)
            for name, row in sorted(summary.items(), key=_own_time, reverse=True)
        ]
        number = str(len(self.finished) + len(self.copies))
        rows.append(["total", _in_unit(total, unit), "", number, "", "", ""])
        head = ["function", "time", "own time", "calls", "forward", "backward", "dtype"]
        if self.copies:
            rows = _with_copies(rows, self.copies, unit)
            head.append("copied")
        print(format_table(head, rows, left=(0, 6)), file=file or sys.stdout)


def _wait_for_device(function: FunctionNode, arrays: OptionalArrays) -> None:
    """Wait for the device of the arrays, and for the device of the outputs if it differs."""
    for array in arrays:
        if array is not None:
            backend = backend_of(array)
            backend.synchronize(backend.index_of(array))
            break
    else:
        current_device().synchronize()
    if function.output_device is not None:
        function.output_device.synchronize()


def _no_time() -> FunctionTime:
    return {
        "time": 0.0,
        "own_time": 0.0,
        "occurrence": 0,
        "forward_time": 0.0,
        "backward_time": 0.0,
        "dtypes": [],
    }


def _own_time(item: tuple[str, FunctionTime]) -> float:
    return item[1]["own_time"]


def _in_unit(seconds: float, unit: str) -> str:
    if unit == "auto_foreach":
        unit = fitting_unit(seconds, SECONDS_OF_UNIT)
    return f"{seconds / SECONDS_OF_UNIT[unit]:.2f} {unit}"


def _report_row(name: str, row: FunctionTime, unit: str) -> list[str]:
    return [
        name,
        _in_unit(row["time"], unit),
        _in_unit(row["own_time"], unit),
        str(row["occurrence"]),
        _in_unit(row["forward_time"], unit),
        _in_unit(row["backward_time"], unit),
        ", ".join(row["dtypes"]),
    ]


def _with_copies(rows: list[list[str]], copies: list[HostCopy], unit: str) -> list[list[str]]:
    """The rows with a column "copied", and a row before the total for the copies by function."""
    by_function: dict[str, list[HostCopy]] = {}
    for host_copy in copies:
        by_function.setdefault(host_copy.function, []).append(host_copy)
    copied = []
    for function, found in by_function.items():
        seconds = _in_unit(sum(host_copy.seconds for host_copy in found), unit)
        nbytes = sum(host_copy.nbytes for host_copy in found)
        times = [seconds, seconds, str(len(found)), seconds, ""]
        copied.append([f"copy for {function}", *times, "", f"{nbytes:,}"])
    total = f"{sum(host_copy.nbytes for host_copy in copies):,}"
    *functions, last = rows
    return [*([*row, ""] for row in functions), *copied, [*last, total]]
