"""Step 6: does each operation run once, after all users of its output?"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_ranks": Hint(
        "How many operations stand between a box and the leaves, at most?",
        "leaf: 0. Operation: the largest rank of its inputs. Output: the rank of its "
        "operation + 1.",
    ),
    "check_inner_box": Hint(
        "When is the gradient of an inner box complete, and when does your walk use it?",
        "An operation runs after all users of its output: the operation with the largest rank"
        " first.",
    ),
    "check_both_orders": Hint(
        "Two operations wait. Which one may run first, and which number tells you?",
        "The heap gives the smallest entry first, so an entry begins with -function.rank.",
    ),
    "check_long_and_short_ways": Hint(
        "A long way and a short way lead to one box. Which way must be walked to its end "
        "before the box passes on?",
        "rank = max of the ranks of all inputs, not of the first one alone.",
    ),
    "check_each_runs_once": Hint(
        "How do you notice that an operation waits already when its second user arrives?",
        "A set of the operations seen so far: push an operation only once.",
    ),
    "check_random_programs": Hint(
        "Draw a box with two users at different depths. In which order do the operations run "
        "with your rule?",
        "The largest rank first, each operation once, all contributions added.",
    ),
    "check_equal_ranks": Hint(
        "Two entries of the heap begin with equal numbers. What does the heap compare next?",
        "An entry is (-rank, a number that grows, function): the number is different for each"
        " entry.",
    ),
}

GUARDS = ("check_equal_ranks",)

RANK = "FunctionNode.apply: the rank of an operation is the largest rank of its inputs"
ORDER = (
    "push: the highest rank comes first, each operation once; backward: an operation runs when "
    "all its users have run"
)


def _box(work: Any, value: float) -> Any:
    return work.Variable(np.array(value))


def check_ranks(work: Any) -> None:
    """leaves, operations and outputs have the right ranks"""
    x, w = _box(work, 0.5), _box(work, 2.0)
    look = "Variable.__init__: self.rank = 0"
    expect_true("Variable has the attribute rank", hasattr(x, "rank"), look)
    expect_equal("the rank of a leaf", x.rank, 0, look)
    a = work.square(x)
    b = work.sin(a)
    y = b * w
    z = w * y
    for text, box, rank in (
        ("a = square(x)", a, 1),
        ("b = sin(a)", b, 2),
        ("y = b * w", y, 3),
        ("z = w * y", z, 4),
    ):
        expect_equal(f"the rank of the operation in {text}", box.creator_node.rank, rank - 1, RANK)
        expect_equal(f"the rank of the output in {text}", box.rank, rank, RANK)


def check_inner_box(work: Any) -> None:
    """a + a, for an inner box a"""
    x = _box(work, 3.0)
    a = work.square(x)
    (a + a).backward()
    expect_close("the gradient of a + a, a = square(x), at 3", x.grad, 12.0, ORDER)


def check_both_orders(work: Any) -> None:
    """a + square(a) and square(a) + a have the same gradient"""
    for text in ("a + square(a)", "square(a) + a"):
        x = _box(work, 3.0)
        a = work.square(x)
        y = a + work.square(a) if text.startswith("a") else work.square(a) + a
        y.backward()
        expect_close(f"the gradient of {text}, a = square(x), at 3", x.grad, 114.0, ORDER)


def check_long_and_short_ways(work: Any) -> None:
    """a long and a short way to one box, on either side"""
    for swapped in (False, True):
        x = _box(work, 1.1)
        a = work.square(x)
        far = a
        for _ in range(5):
            far = work.sin(far)
        y = a * far if swapped else far * a
        y.backward()
        value, slope = 1.1**2, 2 * 1.1
        far_value, far_slope = value, slope
        for _ in range(5):
            far_value, far_slope = np.sin(far_value), np.cos(far_value) * far_slope
        right = slope * far_value + value * far_slope
        text = "a * sin(...(a))" if swapped else "sin(...(a)) * a"
        expect_close(f"the gradient of {text}, five sines, at 1.1", x.grad, right, ORDER)


def check_each_runs_once(work: Any) -> None:
    """each operation runs backward once"""
    runs: list[str] = []

    class Same(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] + 0.0,)

        def backward(self, target_input_indexes, grad_outputs):
            runs.append("run")
            return (grad_outputs[0],)

    x = _box(work, 1.0)
    a = x
    for _ in range(12):
        (b,) = Same().apply((a,))
        a = b + b
    a.backward()
    expect_equal("the number of visits of 12 operations", len(runs), 12, ORDER)
    expect_close("the gradient of twelve doublings", x.grad, 4096.0, ORDER)


def check_random_programs(work: Any) -> None:
    """20 random programs have the right gradients"""
    for seed in range(20):
        draw = random.Random(seed)
        x = _box(work, 0.7)
        boxes, values, slopes = [x], [0.7], [1.0]
        for _ in range(12):
            i, j = draw.randrange(len(boxes)), draw.randrange(len(boxes))
            kind = draw.choice(("sin", "add", "subtract", "multiply"))
            u, v, du, dv = values[i], values[j], slopes[i], slopes[j]
            if kind == "sin":
                boxes.append(work.sin(boxes[i]))
            else:
                boxes.append(getattr(work, kind)(boxes[i], boxes[j]))
            value, slope = {
                "sin": (np.sin(u), np.cos(u) * du),
                "add": (u + v, du + dv),
                "subtract": (u - v, du - dv),
                "multiply": (u * v, du * v + u * dv),
            }[kind]
            values.append(float(value))
            slopes.append(float(slope))
        y = work.sin(boxes[-1]) + work.sin(boxes[-2]) * work.sin(boxes[-3])
        right = np.cos(values[-1]) * slopes[-1]
        right += np.cos(values[-2]) * slopes[-2] * np.sin(values[-3])
        right += np.sin(values[-2]) * np.cos(values[-3]) * slopes[-3]
        y.backward()
        got = 0.0 if x.grad is None else x.grad
        expect_close(f"the gradient of random program {seed}", got, right, ORDER, atol=1e-7)


def check_equal_ranks(work: Any) -> None:
    """5,000 operations of the same rank"""
    x = _box(work, 1.0)
    y = x * 0.0
    for _ in range(5_000):
        y = y + work.negative(x)
    y.backward()
    look = "Negative.backward and run_backward: the sum over 5,000 uses of x"
    expect_close("the gradient of a sum of 5,000 terms -x", x.grad, -5000.0, look)


_PATH = "core/backprop.py"
_NODE = "core/function_node.py"

MISTAKES = (
    (
        "the smallest rank of the inputs",
        mistake("06", _NODE, "self.rank = max(", "self.rank = min("),
    ),
    (
        "the rank of the first input",
        mistake("06", _NODE, "max(x.rank for x in inputs)", "inputs[0].rank"),
    ),
    (
        "all ranks are 0",
        mistake("06", _NODE, "y.rank = self.rank + 1", "y.rank = 0"),
    ),
    (
        "the lowest rank comes first",
        mistake("06", _PATH, "(-function.rank,", "(function.rank,"),
    ),
    (
        "an operation is put on the heap for each use",
        mistake("06", _PATH, " and function not in seen", ""),
    ),
    (
        "no number in the entries, so Python compares operations",
        mistake("06", _PATH, "len(seen), function))", "0, function))"),
    ),
)  # fmt: skip
