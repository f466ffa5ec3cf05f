"""Exercise 7: are the gradients of broadcast inputs right, for many shapes?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import (
    Hint,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    leads_to,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_shapes": Hint(
        "Whose shape is the shape of a box?",
        "shape, ndim, size and dtype are properties that ask self.array.",
    ),
    "check_the_example": Hint(
        "Write the two shapes in two lines, so that both end in the same column. Over which "
        "columns was something repeated?",
        "Two sorts of axes are summed: those that shape does not have, in front, and those "
        "where shape has a 1. The second sort stays with length 1.",
    ),
    "check_many_shapes": Hint(
        "Which axes did broadcasting add, which axes did it repeat, and which of the two must"
        " stay?",
        "new = g.ndim - len(shape). First sum over range(new), then over the axes where shape"
        " has a 1, with keepdims=True.",
    ),
    "check_arithmetic": Hint(
        "A row met a matrix. Which shape has the gradient that you compute, and which shape "
        "must it have?",
        "add: (g, g). subtract: (g, -g). multiply: (g y, g x). divide: (g / y, -g x / y^2). "
        "Then unbroadcast to the shape of each input.",
    ),
    "check_numbers_and_arrays": Hint(
        "A plain number stands beside an array of 32 bits. Which dtype has the box that you "
        "make of the number?",
        "np.asarray(y, np.result_type(x.array, y)): a number of Python takes the dtype of the"
        " array beside it.",
    ),
    "check_shape_operations": Hint(
        "What did forward do with each element: move, repeat or add up? What undoes this for "
        "gradients?",
        "reshape: reshape back. broadcast_to: sum_to. sum_to: broadcast_to, as a copy.",
    ),
    "check_reductions": Hint(
        "How does the sum move if one of its elements moves, and which axes does the gradient"
        " miss?",
        "gx = gy with the summed axes of length 1, repeated to the shape of x; the mean "
        "divides by the number of elements.",
    ),
    "check_gradients_are_checked": Hint(
        "Who compares the shape of a gradient with the shape of its input, and when?",
        "run_backward calls check_shape(function, i, gx) for each gradient; the ValueError "
        "names function and shapes.",
    ),
    "check_care": CARE,
}

PAIRS = 200


def pairs_of_shapes() -> Iterator[Any]:
    """Pairs that broadcast: one full shape, some of its axes made 1, some left out in front."""
    rng = np.random.default_rng(11)
    for _ in range(PAIRS):
        full = rng.integers(1, 4, size=rng.integers(0, 5))
        shapes = []
        for _ in range(2):
            shape = np.where(rng.random(len(full)) < 0.4, 1, full)
            left_out = int(rng.integers(0, len(full) + 1)) if rng.random() < 0.5 else 0
            shapes.append(tuple(int(n) for n in shape[left_out:]))
        yield shapes[0], shapes[1], rng


def summed_back(g: Any, shape: tuple[int, ...]) -> Any:
    """The sum over repetitions, found by following each element to its source."""
    size = int(np.prod(shape, dtype=int))
    sources = np.broadcast_to(np.arange(size).reshape(shape), g.shape)
    return np.bincount(sources.ravel(), g.ravel(), minlength=size).reshape(shape)


def check_shapes(work: Any) -> None:
    """Variables know their shapes"""
    x = work.Variable(np.zeros((2, 3), np.float32))
    look = "core/variable.py: class Variable(ArrayOperators)"
    for name in ("shape", "ndim", "size", "dtype"):
        expect_true(f"a Variable has the property {name}", hasattr(x, name), look)
    found = (x.shape, x.ndim, x.size, str(x.dtype))
    expect_equal("shape, ndim, size and dtype", found, ((2, 3), 2, 6, "float32"), look)


def check_the_example(work: Any) -> None:
    """unbroadcast brings a gradient of shape (3, 4) back to (3, 1) and to (4,)"""
    from mynode.functions.shapes import unbroadcast

    g = np.arange(12.0).reshape(3, 4)
    for shape, look in (
        ((3, 1), "sum over the axis where the shape has a 1, and keep the axis: keepdims=True"),
        ((4,), "shapes line up at their ends: the first axis of g is new here"),
        ((3, 4), "nothing was repeated: nothing is to be summed"),
        ((), "all axes are new: the result is a single number"),
    ):
        what = f"unbroadcast(g, {shape}) for g of shape (3, 4)"
        expect_close(what, unbroadcast(g, shape), summed_back(g, shape), look)


def check_many_shapes(work: Any) -> None:
    """unbroadcast is right for many shapes"""
    from mynode.functions.shapes import unbroadcast

    for left, right, rng in pairs_of_shapes():
        g = np.asarray(rng.normal(size=np.broadcast_shapes(left, right)))
        for shape in left, right:
            look = "line the two shapes up at their ends. Over which axes do you sum, and why?"
            what = f"unbroadcast(g, {shape}) for g of shape {g.shape}"
            expect_close(what, unbroadcast(g, shape), summed_back(g, shape), look)


def check_arithmetic(work: Any) -> None:
    """+, -, * and / have the right gradients, for many shapes"""
    for left, right, rng in pairs_of_shapes():
        x, y = rng.normal(size=left), rng.uniform(0.5, 2.0, size=right)
        g = np.asarray(rng.normal(size=np.broadcast_shapes(left, right)))
        for name, z, gx, gy in (
            ("add", x + y, g, g),
            ("subtract", x - y, g, -g),
            ("multiply", x * y, g * y, g * x),
            ("divide", x / y, g / y, -g * x / y**2),
        ):
            a, b = work.Variable(np.asarray(x)), work.Variable(np.asarray(y))
            result = getattr(work, name)(a, b)
            about = f"{name} of shapes {left} and {right}"
            expect_close(about, result.array, z, f"functions/arithmetic.py: forward of {name}")
            result.grad = g
            result.backward()
            look = (
                f"functions/arithmetic.py: backward of {name} ends with self.unbroadcast(gx, gy)"
            )
            expect_close(f"the gradient of x, {about}", a.grad, summed_back(gx, left), look)
            expect_close(f"the gradient of y, {about}", b.grad, summed_back(gy, right), look)


def check_numbers_and_arrays(work: Any) -> None:
    """numbers and arrays beside a Variable work, and float32 stays float32"""
    x = work.Variable(np.array([[0.5, 1.5]], np.float32))
    y = 1.0 / (2.0 * x - 4) + x / 2
    look = "as_operands: np.asarray(y, np.result_type(x.array, y))"
    expect_equal("the dtype of 1 / (2 x - 4) + x / 2", str(y.dtype), "float32", look)
    expected = 1 / (2 * x.array - 4) + x.array / 2
    look = "Operators.__truediv__ and Operators.__rtruediv__: both orders of /"
    expect_close("1 / (2 x - 4) + x / 2", y.array, expected, look, rtol=1e-5)
    column = np.array([[1.0], [2.0]], np.float32)
    z = column * x
    expect_close("an array times a Variable", z.array, column * x.array, look)
    look = "as_operands: broadcasting repeats the number in forward; a copy of x's shape is waste"
    for other, name in ((3.0, "the number 3.0"), (column, "an array of shape (2, 1)")):
        for y in (x * other, other - x):
            others = [leaf.shape for leaf in leaves(y) if not leads_to(leaf, x)]
            for shape in others:
                what = f"the shape of the box for {name}, beside x of shape (1, 2)"
                expect_equal(what, shape, np.shape(other), look)


def leaves(y: Any) -> list[Any]:
    """The leaves of a graph: boxes, or their nodes, as the operations hold them."""
    found, waiting = [], [y.creator_node]
    while waiting:
        for one in waiting.pop().inputs:
            if one.creator_node is None:
                found.append(one)
            else:
                waiting.append(one.creator_node)
    return found


def check_shape_operations(work: Any) -> None:
    """reshape, broadcast_to and sum_to have the right values and gradients"""
    rng = np.random.default_rng(1)
    for name, shape, new, value, gradient in (
        ("reshape", (2, 3), (3, 2), lambda x: x.reshape(3, 2), lambda g: g.reshape(2, 3)),
        ("reshape", (2, 3), (-1,), lambda x: x.reshape(6), lambda g: g.reshape(2, 3)),
        ("broadcast_to", (3, 1), (2, 3, 4), None, None),
        ("sum_to", (2, 3, 4), (3, 1), None, None),
        ("sum_to", (2, 3), (2, 3), None, None),
    ):
        x = work.Variable(rng.normal(size=shape))
        y = getattr(work, name)(x, new)
        array = x.array
        if value is None:
            sums, repeats = name == "sum_to", name == "broadcast_to"
            expected = summed_back(array, new) if sums else np.broadcast_to(array, new)
        else:
            sums = repeats = False
            expected = value(array)
        about = f"{name} from {shape} to {new}"
        expect_close(about, y.array, expected, f"the forward of {name}")
        y.grad = g = rng.normal(size=y.array.shape)
        y.backward()
        if sums:
            expected = np.broadcast_to(g, shape)
        elif repeats:
            expected = summed_back(g, shape)
        else:
            expected = gradient(g)
        expect_close(f"the gradient, {about}", x.grad, expected, f"the backward of {name}")
        what = f"the gradient can be written to, {about}"
        look = f"the backward of {name}: np.broadcast_to(...).copy()"
        expect_true(what, x.grad.flags.writeable, look)


def check_reductions(work: Any) -> None:
    """sum and mean have the right values and gradients"""
    rng = np.random.default_rng(2)
    for shape in (2, 3), (4,), (2, 3, 2), ():
        axes = [None, *range(-len(shape), len(shape))] + ([(0, 1)] if len(shape) > 1 else [])
        for axis in axes:
            for keepdims in False, True:
                array = np.asarray(rng.normal(size=shape))
                for name, divisor in (("sum", 1), ("mean", array.size)):
                    x = work.Variable(array)
                    y = getattr(work, name)(x, axis=axis, keepdims=keepdims)
                    about = f"{name} of shape {shape}, axis={axis}, keepdims={keepdims}"
                    look = f"{name}: Sum.forward, and normalize_axes for axis"
                    expected = getattr(np, name)(array, axis=axis, keepdims=keepdims)
                    expect_close(about, y.array, expected, look)
                    y.grad = g = np.asarray(rng.normal(size=expected.shape))
                    y.backward()
                    kept = np.sum(array, axis=axis, keepdims=True).shape
                    count = array.size // max(1, int(np.prod(kept))) if divisor > 1 else 1
                    expected = np.broadcast_to(g.reshape(kept), shape) / count
                    look = "Sum.backward: gx = gy, with the summed axes of length 1, repeated"
                    expect_close(f"the gradient, {about}", x.grad, expected, look)


def check_gradients_are_checked(work: Any) -> None:
    """a gradient of a wrong shape is an error"""

    class Naive(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] + inputs[1],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return grad_outputs[0], grad_outputs[0]

    x, y = work.Variable(np.zeros((3, 1))), work.Variable(np.zeros(4))
    z = work.sum(Naive().apply((x, y))[0])
    look = "core/backprop.py: run_backward calls check_shape(function, i, gx)"
    error = expect_raises("a gradient of shape (3, 4) for (3, 1)", ValueError, z.backward, look)
    for fact in ("Naive", "(3, 1)", "(3, 4)"):
        expect_true(
            f"the message has {fact!r}", fact in str(error), "core/backprop.py: check_shape"
        )


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    # the lesson of step 5 too: a gradient that somebody holds is not written
    for name in ("square", "exp", "negative", "sin", "sum", "mean"):
        again = name != "mean"
        expect_careful(work, name, getattr(work, name), [[0.5, -1.0, 2.0]], again=again)
    for name in ("add", "subtract", "multiply", "divide"):
        operation = getattr(work, name)
        expect_careful(work, name, operation, [0.5, -1.0], [2.0, 3.0])
        expect_careful(work, name, operation, [[0.5], [-1.0]], [2.0, 3.0])
    for name, shape in (("reshape", (2,)), ("broadcast_to", (3, 2)), ("sum_to", (1, 1))):
        operation = getattr(work, name)
        expect_careful(
            work, name, lambda x, f=operation, s=shape: f(x, s), [[1.0, 2.0]], view=True
        )


_SHAPES, _ARITHMETIC = "functions/shapes.py", "functions/arithmetic.py"
_STATISTICAL = "functions/statistical.py"

MISTAKES = (
    (
        "a second backward writes into the gradient of the first, after the lesson of step 5",
        mistake(
            "07",
            "core/backprop.py",
            "        x.grad = gx if x.grad is None else x.grad + gx\n",
            "        if x.grad is None:\n            x.grad = gx\n"
            "        else:\n            x.grad += gx\n",
        ),
    ),
    (
        "the new axes in front are summed, those of length 1 are not",
        mistake("07", _SHAPES, "g.sum(axis=repeated, keepdims=True)", "g"),
    ),
    (
        "the shapes are lined up at their beginnings",
        mistake("07", _SHAPES, "tuple(range(new))", "tuple(range(len(shape), g.ndim))"),
    ),
    (
        "the mean is taken in place of the sum",
        mistake("07", _SHAPES, "g.sum(axis=repeated", "g.mean(axis=repeated"),
    ),
    (
        "both gradients are brought to the shape of the first input",
        mistake("07", _ARITHMETIC, "unbroadcast(gy, y.shape)", "unbroadcast(gy, x.shape)"),
    ),
    (
        "negative axes are not counted from the front",
        mistake("07", _STATISTICAL, "i + ndim if i < 0 else i for i in axes", "i for i in axes"),
    ),
    (
        "a number is float64 beside float32",
        mistake("07", _ARITHMETIC, "np.asarray(y, np.result_type(x.array, y))", "np.asarray(y)"),
    ),
    (
        "a number is repeated to the shape of the other",
        mistake(
            "07",
            _ARITHMETIC,
            "np.asarray(y, np.result_type(x.array, y))",
            "np.asarray(y, np.result_type(x.array, y)) + np.zeros_like(x.array)",
        ),
    ),
    (
        "the sign of the second gradient of a division is lost",
        mistake(
            "07",
            _ARITHMETIC,
            "self.unbroadcast(gx, -gx * x / y)",
            "self.unbroadcast(gx, gx * x / y)",
        ),
    ),
)
