"""Stepping into `x * y` stays short: the number of lines of tinynode that it executes."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
import tinynode_numpy
from tinynode.core import array_pass, function_node, messages

FOLDERS = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    for module in (tn, tinynode_numpy)
    if module.__file__
)


@pytest.fixture(autouse=True)
def only_real_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budgets are those of a program that never met a complex array."""
    monkeypatch.setattr(function_node, "complex_dtypes", set())
    monkeypatch.setattr(messages, "complex_dtypes", set())
    monkeypatch.setattr(array_pass, "complex_dtypes", set())


class Steps(NamedTuple):
    """What a call executes of tinynode and of the NumPy backend, in order.

    Attributes:
        lines: function and number of each line.
        calls: file and function of each call.
    """

    lines: list[str]
    calls: list[tuple[str, str]]

    def changes_of_file(self) -> int:
        """How often a step into a function leads into another file than the one before."""
        files = [file for file, _ in self.calls]
        return sum(one != other for one, other in itertools.pairwise(files))

    def __str__(self) -> str:
        return "\n".join(self.lines)


def steps_of(call: Callable[[], Any]) -> Steps:
    """The lines and the calls that a call executes, each as often as it is executed."""
    steps = Steps([], [])

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        file, function = frame.f_code.co_filename, frame.f_code.co_qualname
        if not file.startswith(FOLDERS):
            return None
        if event == "line":
            steps.lines.append(f"{function}:{frame.f_lineno}")
        elif event == "call":
            steps.calls.append((file, function))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


def leaves() -> tuple[tn.Variable, tn.Variable, tn.Variable]:
    return tuple(tn.Variable(np.ones(3)) for _ in range(3))


def backward_of(function: Callable[..., tn.Variable]) -> Steps:
    """The steps of the backward pass of a function of three leaves without gradients."""
    for _ in range(2):  # the first call fills the tables of array types
        held = leaves()
        y = function(*held)
        y.grad = np.ones(3)
        steps = steps_of(y.backward)
    return steps


def product(x: tn.Variable, w: tn.Variable, b: tn.Variable) -> tn.Variable:
    return x * w


def product_and_sum(x: tn.Variable, w: tn.Variable, b: tn.Variable) -> tn.Variable:
    return x * w + b


def test_the_count_sees_the_steps() -> None:
    x, y, _ = leaves()
    steps = steps_of(lambda: x * y)
    names = {function for _, function in steps.calls}
    assert {"ArrayMethods.__mul__", "Multiply.forward", "FunctionNode.apply", "forward"} <= names
    assert {line.partition(":")[0] for line in steps.lines} == names
    nothing = steps_of(lambda: len("tinynode"))
    assert nothing == ([], []) and nothing.changes_of_file() == 0


def test_the_forward_of_a_product_stays_within_its_budget() -> None:
    x, y, _ = leaves()
    _ = x * y  # the first call fills the tables of array types
    steps = steps_of(lambda: x * y)
    assert len(steps.lines) <= 76, f"x * y executes {len(steps.lines)} lines:\n{steps}"
    assert len(steps.calls) <= 8, f"x * y makes {len(steps.calls)} calls: {steps.calls}"


def test_a_number_beside_a_variable_takes_a_short_way() -> None:
    x, _, _ = leaves()
    _ = x * 2.0
    for product in (lambda: x * 2.0, lambda: 2.0 * x):
        steps = steps_of(product)
        assert len(steps.lines) <= 131, f"x * 2.0 executes {len(steps.lines)} lines:\n{steps}"
        assert len(steps.calls) <= 24, f"x * 2.0 makes {len(steps.calls)} calls: {steps.calls}"


def test_the_forward_without_a_graph_is_shorter() -> None:
    x, y, _ = leaves()
    with_graph = len(steps_of(lambda: x * y).lines)
    with tn.no_backprop_mode():
        assert len(steps_of(lambda: x * y).lines) < with_graph


def test_the_backward_of_a_product_stays_within_its_budget() -> None:
    steps = backward_of(product)
    assert len(steps.lines) <= 194, f"backward executes {len(steps.lines)} lines:\n{steps}"
    assert len(steps.calls) <= 30, f"backward makes {len(steps.calls)} calls: {steps.calls}"


def test_the_backward_of_a_product_and_a_sum_stays_in_few_files() -> None:
    steps = backward_of(product_and_sum)
    assert steps.changes_of_file() <= 24, steps.calls


@pytest.mark.parametrize("captures", [False, True])
def test_a_repeated_call_of_a_compiled_function_takes_the_short_way(captures: bool) -> None:
    x, w, b = leaves()
    compiled = tn.compile((lambda x, w: x * w + b) if captures else (lambda x, w: x * w + w))
    for _ in range(3):  # the first call records, the second makes the plan
        compiled(x, w)
    steps = steps_of(lambda: compiled(x, w))
    names = {function for _, function in steps.calls}
    assert not {"CompiledFunction._recording", "flatten"} & names
    assert ("Recording.run" in names) == captures
    assert len(steps.calls) <= (30 if captures else 25), steps.calls


def test_the_files_of_the_reading_path_stay_short() -> None:
    """``y = x * w + b; y.backward()`` leads through these five."""
    names = ("variable", "variable_node", "function_node", "gradient_table", "backprop")
    folder = Path(tn.core.__file__).parent
    sizes = {n: len((folder / f"{n}.py").read_text("utf-8").splitlines()) for n in names}
    assert sum(sizes.values()) <= 1150, sizes
