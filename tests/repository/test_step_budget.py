"""Stepping into ``y = x * w + b; y.backward()`` stays short: a debugger meets few files and calls.

The limits are not on executed lines: a named value costs a line, and is worth the line.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
import tinynode_numpy

ROOT = Path(__file__).resolve().parents[2]
FILES_OF_TWO_LINES = 9
LINES_OF_THESE_FILES = 3_180  # 3,021 and 5 %; the goal: 1,900
CALLS_OF_PRODUCT = 8
CALLS_OF_STEP = 10  # of the backward pass: for one function more, and its leaf

FOLDERS = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    for module in (tn, tinynode_numpy)
    if module.__file__
)


@pytest.fixture(autouse=True)
def only_real_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budgets are those of a program that never met a complex array."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tinynode.core.") and hasattr(module, "seen_complex_dtypes"):
            monkeypatch.setattr(module, "seen_complex_dtypes", set())


class Steps(NamedTuple):
    """The calls of Python functions in tinynode and in the NumPy backend, in order.

    Attributes:
        calls: file and function of each call.
    """

    calls: list[tuple[str, str]]

    def files(self) -> list[str]:
        """The files that the calls lead into, each once."""
        return sorted({file for file, _ in self.calls})

    def changes_of_file(self) -> int:
        """The number of calls that lead into another file than the call before."""
        files = [file for file, _ in self.calls]
        return sum(one != other for one, other in itertools.pairwise(files))

    def __str__(self) -> str:
        """The files with their lines and calls, and the calls in order."""
        calls = collections.Counter(file for file, _ in self.calls)
        files = [f"{lines_of(path):5} lines, {n:3} calls: {path}" for path, n in calls.items()]
        functions = [f"{os.path.basename(file)}: {function}" for file, function in self.calls]
        return "\n".join(["", *files, "", *functions])


def lines_of(file: str) -> int:
    """The number of lines of a file."""
    return len(Path(file).read_text(encoding="utf-8").splitlines())


def steps_of(action: Callable[[], Any]) -> Steps:
    """The calls that an action makes, each as often as it is made."""
    steps = Steps([])

    def trace(frame: FrameType, event: str, _: Any) -> None:
        file, function = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and file.startswith(FOLDERS):
            steps.calls.append((file, function))

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return steps


def leaves(shape: tuple[int, ...] = (3,)) -> tuple[tn.Variable, tn.Variable, tn.Variable]:
    return tuple(tn.Variable(np.ones(shape)) for _ in range(3))


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


def calls_of_backward(number: int, shape: tuple[int, ...] = (3,)) -> int:
    """The calls of the backward pass of a chain of so many products, each with a new leaf."""
    factors = [tn.Variable(np.ones(shape)) for _ in range(number + 1)]
    y = functools.reduce(operator.mul, factors)
    y.grad = np.ones(shape)
    return len(steps_of(y.backward).calls)


def test_the_count_sees_the_steps() -> None:
    x, y, _ = leaves()
    steps = steps_of(lambda: x * y)
    names = {function for _, function in steps.calls}
    assert {"Operators.__mul__", "Multiply.forward", "FunctionNode.apply", "forward"} <= names
    assert any(file.endswith("function_node.py") for file in steps.files())
    assert "calls: " in str(steps) and "function_node.py: FunctionNode.apply" in str(steps)
    nothing = steps_of(lambda: len("tinynode"))
    assert nothing.calls == [] and nothing.files() == [] and nothing.changes_of_file() == 0


def test_the_two_lines_enter_few_files() -> None:
    """``y = x * w + b`` and ``y.backward()``; the gradient to start from is set in between."""
    held = leaves()
    _ = product_and_sum(*held)  # the first call fills the tables of array types
    forward = steps_of(lambda: product_and_sum(*held))
    both = Steps(forward.calls + backward_of(product_and_sum).calls)
    total = sum(lines_of(file) for file in both.files())
    assert len(both.files()) <= FILES_OF_TWO_LINES, f"{len(both.files())} files:{both}"
    assert total <= LINES_OF_THESE_FILES, f"{total} lines in {len(both.files())} files:{both}"


@pytest.mark.parametrize("page", ["tinynode/core/README.md", "docs/read-the-core.md"])
def test_the_pages_have_the_files_of_the_two_lines_in_order(page: str) -> None:
    held = leaves()
    _ = product_and_sum(*held)  # the first call fills the tables of array types
    forward = steps_of(lambda: product_and_sum(*held))
    entered = [Path(file) for file, _ in forward.calls + backward_of(product_and_sum).calls]
    first_table = (ROOT / page).read_text(encoding="utf-8").partition("| file |")[2]
    named = re.findall(r"^\| `([\w/]+\.py)` \|", first_table.partition("\n\n")[0], re.MULTILINE)
    assert [path.relative_to(ROOT).as_posix() for path in dict.fromkeys(entered)] == named


def test_the_forward_of_a_product_makes_few_calls() -> None:
    x, y, _ = leaves()
    _ = x * y  # the first call fills the tables of array types
    steps = steps_of(lambda: x * y)
    assert len(steps.calls) <= CALLS_OF_PRODUCT, f"x * y makes {len(steps.calls)} calls:{steps}"


def test_a_number_beside_a_variable_takes_a_short_way() -> None:
    x, _, _ = leaves()
    _ = x * 2.0
    for product in (lambda: x * 2.0, lambda: 2.0 * x):
        steps = steps_of(product)
        assert len(steps.calls) <= 24, f"x * 2.0 makes {len(steps.calls)} calls:{steps}"


def test_the_forward_without_a_graph_is_shorter() -> None:
    x, y, _ = leaves()
    with_graph = len(steps_of(lambda: x * y).calls)
    with tn.no_backprop_mode():
        assert len(steps_of(lambda: x * y).calls) < with_graph


def test_a_step_of_backward_makes_few_calls() -> None:
    """A step adds calls to a pass: ten steps more, divided by ten."""
    calls_of_backward(1)
    step = (calls_of_backward(11) - calls_of_backward(1)) / 10
    assert 1 <= step <= CALLS_OF_STEP, f"a step makes {step} calls:{backward_of(product)}"


def test_scalars_take_nearly_the_way_of_arrays() -> None:
    """NumPy's results of 0-d arrays are scalars: each becomes an array by one call."""
    x, y, _ = leaves(())
    _ = x * y  # the first call fills the tables of scalar types
    forward = steps_of(lambda: x * y)
    assert len(forward.calls) <= CALLS_OF_PRODUCT + 1, str(forward)
    calls_of_backward(1, ())
    step = (calls_of_backward(11, ()) - calls_of_backward(1, ())) / 10
    assert step <= CALLS_OF_STEP + 2, f"a step makes {step} calls"  # a call for each gradient


def test_the_backward_of_a_product_makes_few_calls() -> None:
    steps = backward_of(product)
    assert len(steps.calls) <= 30, f"backward makes {len(steps.calls)} calls:{steps}"


def test_the_backward_of_a_product_and_a_sum_stays_in_few_files() -> None:
    steps = backward_of(product_and_sum)
    assert steps.changes_of_file() <= 24, str(steps)


@pytest.mark.parametrize("captures", [False, True])
def test_a_repeated_call_of_a_compiled_function_takes_the_short_way(captures: bool) -> None:
    x, w, b = leaves()
    compiled = tn.compile((lambda x, w: x * w + b) if captures else (lambda x, w: x * w + w))
    for _ in range(3):  # the first call records, the second makes the plan
        compiled(x, w)
    steps = steps_of(lambda: compiled(x, w))
    names = {function for _, function in steps.calls}
    assert not {"CompiledFunction._recording", "flatten"} & names
    assert ("NetRecording.run" in names) == captures
    assert len(steps.calls) <= (30 if captures else 25), steps.calls
