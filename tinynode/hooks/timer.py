"""TimerHook: how long each function took.

Requirement: the total is the time that passed. Functions run inside others (the sums inside a
backward, the forward that ``forget`` repeats), and that time must not count twice. So each call
remembers the call around it, and the total adds up the outermost ones only.

The end of a function that raised is not seen, and how long it took is not known. So a call counts
as nested only where the call around it has come to its end.
"""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO, TypedDict

from tinynode.core.function_node import FunctionNode
from tinynode.devices import backend_of, current_device
from tinynode.errors import dtype_name
from tinynode.hooks.calls import CallHook, OptionalArrays
from tinynode.hooks.table import check_unit, fitting_unit, format_table

SECONDS_OF_UNIT = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class FunctionTime(TypedDict):
    """What ``TimerHook.summary`` tells of one function name; times in seconds.

    ``time`` includes what ran inside, ``own_time`` does not; ``time`` is ``forward_time`` plus
    ``backward_time``. ``occurrence`` counts calls, forward and backward.
    """

    time: float
    own_time: float
    occurrence: int
    forward_time: float
    backward_time: float
    dtypes: list[str]


class Call:
    """One forward or backward of one function.

    Attributes:
        around: the call that was running when this one began, if any.
        seconds: how long it took; None as long as its end was not seen.
        inner_seconds: how long the calls directly inside it took.
    """

    __slots__ = (
        "around",
        "direction",
        "dtypes",
        "inner_seconds",
        "name",
        "seconds",
        "start",
    )

    def __init__(
        self, function: FunctionNode, direction: str, arrays: OptionalArrays, around: Call | None
    ) -> None:
        self.name = function._impl_name
        self.direction = direction
        self.dtypes = {dtype_name(array.dtype) for array in arrays if array is not None}
        self.around = around
        self.seconds: float | None = None
        self.inner_seconds = 0.0
        self.start = 0.0

    def depth(self) -> int:
        """How many finished calls are around this one."""
        depth = 0
        call = self.around
        while call is not None:
            if call.seconds is not None:
                depth += 1
            call = call.around
        return depth


class TimerHook(CallHook):
    """Measures the time of every function, forward and backward.

    Before it reads the clock it waits until the device is done, so work that a GPU still has to
    do is counted where it was asked for. The measuring takes time itself, so functions on small
    arrays look slower than they are.

        with TimerHook() as timer:
            loss = model(x)
            loss.backward()
        timer.print_report()
    """

    name = "TimerHook"

    def __init__(self) -> None:
        super().__init__()
        self.finished: list[Call] = []
        """Every call whose end was seen, in that order."""

    def call_begins(
        self, function: FunctionNode, direction: str, arrays: OptionalArrays, around: Any
    ) -> Call:
        call = Call(function, direction, arrays, around)
        _wait_for_device(function, arrays)
        call.start = time.perf_counter()
        return call

    def call_ends(
        self,
        function: FunctionNode,
        direction: str,
        arrays: OptionalArrays,
        call: Any,
        around: Any,
    ) -> None:
        _wait_for_device(function, arrays)
        call.seconds = time.perf_counter() - call.start
        if around is not None:
            around.inner_seconds += call.seconds
        self.finished.append(call)

    # --- what was measured -------------------------------------------------------------------

    @property
    def call_history(self) -> list[tuple[str, float]]:
        """(function name, seconds) of each call, forward and backward, in order of completion."""
        return [(call.name, call.seconds or 0.0) for call in self.finished]

    def total_time(self) -> float:
        """The seconds spent in functions; a call inside another one does not count again."""
        return sum(call.seconds or 0.0 for call in self.finished if call.depth() == 0)

    def summary(self) -> dict[str, FunctionTime]:
        """Times and calls by function name; times include what ran inside."""
        summary: dict[str, FunctionTime] = {}
        for call in self.finished:
            row = summary.setdefault(call.name, _no_time())
            seconds = call.seconds or 0.0
            row["time"] += seconds
            row["own_time"] += seconds - call.inner_seconds
            row["occurrence"] += 1
            if call.direction == "forward":
                row["forward_time"] += seconds
            else:
                row["backward_time"] += seconds
            row["dtypes"] = sorted({*row["dtypes"], *call.dtypes})
        return summary

    def print_report(self, unit: str = "auto", file: TextIO | None = None) -> None:
        """Print a table of the summary, longest own time first.

        Args:
            unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; ``"auto"`` picks one for the table by
                its longest time, ``"auto_foreach"`` one for each number.
            file: where to print; standard output by default.

        Raises:
            ValueError: there is no such unit.
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
        number = str(len(self.finished))
        rows.append(["total", _in_unit(total, unit), "", number, "", "", ""])
        head = ["function", "time", "own time", "calls", "forward", "backward", "dtype"]
        print(format_table(head, rows, left=(0, 6)), file=file or sys.stdout)


def _wait_for_device(function: FunctionNode, arrays: OptionalArrays) -> None:
    """Wait for the device of the arrays, and for that of the outputs if it is another one."""
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
