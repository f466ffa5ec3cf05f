"""The helper of the checks for dtype, purity and aliasing, and the place that a failure names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from forked_examiner import events_of

from tinynode_course import mynode, sources
from tinynode_course.careful import expect_careful
from tinynode_course.checks import CheckFailed
from tinynode_course.locating import operation_lines

Backward = Callable[[Any, Any], Any]


class Box:
    """A Variable with the least that the helper uses."""

    def __init__(self, array: Any, origin: tuple[Box, Backward] | None = None) -> None:
        self.array = array
        self.grad: Any = None
        self.origin = origin
        self.in_place = False

    def backward(self) -> None:
        """Send the gradient to the input."""
        assert self.origin is not None
        x, function = self.origin
        gx = function(x, self)
        if x.grad is None:
            x.grad = gx
        elif x.in_place:
            x.grad += gx
        else:
            x.grad = x.grad + gx


WORK = SimpleNamespace(Variable=Box)


def right(x: Box) -> Box:
    """2 x, without a fault."""
    return Box(2 * x.array, (x, lambda x, y: 2 * y.grad))


def wide_result(x: Box) -> Box:
    return Box(2 * x.array.astype(float), (x, lambda x, y: 2 * y.grad))


def wide_gradient(x: Box) -> Box:
    return Box(2 * x.array, (x, lambda x, y: 2 * y.grad.astype(float)))


def written_input(x: Box) -> Box:
    x.array *= 2
    return Box(x.array.copy(), (x, lambda x, y: 2 * y.grad))


def shared_result(x: Box) -> Box:
    return Box(x.array, (x, lambda x, y: y.grad.copy()))


def shared_gradient(x: Box) -> Box:
    return Box(2 * x.array, (x, lambda x, y: x.array))


def written_gy(x: Box) -> Box:
    return Box(2 * x.array, (x, lambda x, y: np.multiply(y.grad, 2, out=y.grad)))


def written_result(x: Box) -> Box:
    return Box(2 * x.array, (x, lambda x, y: np.multiply(y.array, y.grad, out=y.array)))


def written_retained(x: Box) -> Box:
    kept = 2 * x.array

    def backward(x: Box, y: Box) -> Any:
        kept[...] -= 1
        return kept * y.grad

    return Box(2 * x.array, (x, backward))


def written_leaf(x: Box) -> Box:
    x.in_place = True
    return right(x)


def test_a_careful_operation_passes() -> None:
    expect_careful(WORK, "double", right, [1.0, 2.0])
    expect_careful(WORK, "view", shared_result, [1.0, 2.0], view=True)


class ChainedBox(Box):
    """A Variable of the first steps: each box between keeps the gradient of a backward pass."""

    @property
    def creator_node(self) -> Any:
        """The operation, with its input; None for a leaf."""
        return None if self.origin is None else SimpleNamespace(inputs=(self.origin[0],))

    def backward(self) -> None:
        """Send the gradient through all boxes in a row."""
        super().backward()
        assert self.origin is not None
        if self.origin[0].origin is not None:
            self.origin[0].backward()


def test_an_operation_of_two_operations_is_careful_too() -> None:
    def twice(x: Box) -> Box:
        between = ChainedBox(2 * x.array, (x, lambda x, y: 2 * y.grad))
        return ChainedBox(3 * between.array, (between, lambda x, y: 3 * y.grad))

    work = SimpleNamespace(Variable=ChainedBox)
    expect_careful(work, "double", twice, [1.0, 2.0])


@pytest.mark.parametrize(
    ("function", "fact"),
    [
        (wide_result, "dtype of double"),
        (wide_gradient, "dtype of the gradient of input 0"),
        (written_input, "input 0 of double after the forward"),
        (shared_result, "the result of double has memory of its own"),
        (shared_gradient, "the gradient of input 0 of double has memory of its own"),
        (written_gy, "y.grad of double after the backward"),
        (written_result, "the result of double after the backward"),
        (written_retained, "when backward runs again"),
        (written_leaf, "x.grad += gx"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_careless_operation_is_refused(function: Callable[[Box], Box], fact: str) -> None:
    with pytest.raises(CheckFailed) as failure:
        expect_careful(WORK, "double", function, [1.0, 2.0])
    assert fact in str(failure.value)


TREE = ast.parse(
    "class MaxPool2d:\n    def forward(self): ...\n    def backward(self): ...\n"
    "def run_backward(f): ...\ndef other_function(f): ...\n"
)


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("backward of max_pool2d: is gy in it?", [3]),
        ("the gradient of input 0 of max_pool2d", [3]),
        ("MaxPool2d.forward", [2]),
        ("run_backward: add", [4]),
        ("the sum of all gradients", []),
    ],
)
def test_a_message_leads_to_its_operation(message: str, lines: list[int]) -> None:
    assert list(operation_lines(message, TREE)) == lines


def test_your_code_names_the_wrong_backward(tmp_path: Path) -> None:
    step = sources.find("02")
    wrong = mynode.mistake("02", "functions/arithmetic.py", "return (-gy,)", "return (gy,)")
    mynode.write_files(mynode.reference("02") | wrong, tmp_path / mynode.NAME)
    failed = [event for event in events_of(step, tmp_path / step.work) if "lines" in event]
    number = wrong["functions/arithmetic.py"].split("def backward")[0].count("\n") + 1
    assert failed[0]["lines"] == [
        f"mynode/functions/arithmetic.py, line {number}: "
        "def backward(self, target_input_indexes, grad_outputs):"
    ]
