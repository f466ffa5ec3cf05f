"""Stepping into `x * y` stays short: the number of lines of tinynode that it executes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import tinynode as tn
import tinynode_numpy

FOLDERS = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    for module in (tn, tinynode_numpy)
    if module.__file__
)
BUDGET = 100


def executed_lines(call: Callable[[], Any]) -> list[str]:
    """The lines of tinynode that a call executes, each as often as it is executed."""
    lines = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDERS):
            return None
        if event == "line":
            lines.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines


def test_the_count_sees_the_steps() -> None:
    x, y = tn.Variable(np.ones(3)), tn.Variable(np.ones(3))
    lines = executed_lines(lambda: x * y)
    names = {line.partition(":")[0] for line in lines}
    assert {"Variable.__mul__", "Multiply.forward", "FunctionNode.apply", "forward"} <= names
    assert executed_lines(lambda: len("tinynode")) == []


def test_multiply_stays_within_its_budget() -> None:
    x, y = tn.Variable(np.ones(3)), tn.Variable(np.ones(3))
    x * y  # the first call fills the tables of array types
    lines = executed_lines(lambda: x * y)
    assert len(lines) <= BUDGET, f"x * y executes {len(lines)} lines:\n" + "\n".join(lines)


def test_multiply_without_a_graph_is_shorter() -> None:
    x, y = tn.Variable(np.ones(3)), tn.Variable(np.ones(3))
    with_graph = len(executed_lines(lambda: x * y))
    with tn.no_backprop_mode():
        assert len(executed_lines(lambda: x * y)) < with_graph
