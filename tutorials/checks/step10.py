"""Checks of exercise 10: which inputs MatMul refuses, and in which words."""

import numpy as np

import tinynode as tn
from tinynode.errors import InvalidType
from tinynode.learn.checks import (
    CheckFailed,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    solution,
)

HINTS = (
    "Begin with the number of inputs, alone in its expect: in_types.size() == 2. After that you "
    "can write x, y = in_types.",
    "Python computes all arguments of a call before the call. So what needs another condition to "
    "hold, as x.shape[1] needs two axes, goes into a later expect.",
    "The conditions are: in_types.size() == 2; x.ndim == 2, y.ndim == 2; is_floating(x), "
    "x.dtype == y.dtype; x.shape[1] == y.shape[0].",
)

WORDS = (
    "Compare what in_types gives, without len(...), tuple(...) or int(...) around it: only then "
    "the message can say what was compared."
)


def zeros(*shape, dtype="float64"):
    return np.zeros(shape, dtype=dtype)


def refusal(work, what, *inputs):
    """The InvalidType that MatMul raises for these inputs."""
    look = (
        "No error, or one from forward: the check let these inputs through. Another error from "
        "the check: a line of it needs a condition that must stand in an expect above it."
    )

    def call():
        return work.MatMul().apply(inputs)[0]

    error = expect_raises(f"MatMul of {what}", InvalidType, call, look)
    about = f"MatMul of {what}: the message shows the condition that failed"
    expect_true(about, "in_types" in error.expect, WORDS)
    return error


def check_products(work):
    """Matrices that fit are multiplied as before."""
    rng = np.random.default_rng(0)
    for n, k, m in (2, 3, 4), (1, 1, 1), (3, 1, 2), (2, 2, 2):
        for dtype in "float32", "float64":
            x, y = rng.normal(size=(n, k)).astype(dtype), rng.normal(size=(k, m)).astype(dtype)
            what = f"MatMul of shapes ({n}, {k}) and ({k}, {m}), {dtype}"
            try:
                z = work.MatMul().apply((tn.Variable(x), tn.Variable(y)))[0]
            except InvalidType as error:
                came = f"InvalidType: {error.expect}, but {error.actual}"
                look = "This condition refuses inputs that fit: it asks for something else."
                raise CheckFailed(what, "their product", came, look) from None
            look = "forward was right as it stood: put back what you changed there."
            expect_close(what, z.array, x @ y, look)


def check_number_of_inputs(work):
    """Another number of inputs than two is refused."""
    for number in 1, 3:
        what = f"{number} input{'s' * (number > 1)}"
        error = refusal(work, what, *[zeros(2, 2)] * number)
        look = "expect(in_types.size() == 2), before x, y = in_types."
        expect_equal(f"{what}: the condition", error.expect, "in_types.size() == 2", look)


def check_axes(work):
    """Inputs that are no matrices are refused."""
    matrix = zeros(3, 3)
    for position, inputs in (
        (0, (zeros(3), matrix)),
        (1, (matrix, zeros(3))),
        (0, (zeros(), matrix)),
        (0, (zeros(2, 3, 3), matrix)),
        (1, (matrix, zeros(2, 3, 3))),
    ):
        what = f"shapes {inputs[0].shape} and {inputs[1].shape}"
        error = refusal(work, what, *inputs)
        look = "A matrix has two axes: ndim == 2, for x and for y, before you look at a length."
        condition = f"in_types[{position}].ndim == 2"
        expect_equal(f"{what}: the condition", error.expect, condition, look)


def check_dtypes(work):
    """Integers are refused, and so are two dtypes at once."""
    double, single, whole = (zeros(2, 2, dtype=d) for d in ("float64", "float32", "int64"))
    look = "is_floating(x) asks for a floating dtype, x.dtype == y.dtype for equal ones."
    error = refusal(work, "two arrays of integers", whole, whole)
    expect_true(
        f"two arrays of integers: the condition {error.expect!r} is about floating dtypes",
        "is floating" in error.expect,
        look,
    )
    for what, inputs in (
        ("float64 and float32", (double, single)),
        ("float64 and int64", (double, whole)),
        ("int64 and float64", (whole, double)),
    ):
        error = refusal(work, what, *inputs)
        about = f"{what}: the condition {error.expect!r} is about a dtype"
        expect_true(about, "dtype" in error.expect, look)


def check_lengths(work):
    """Lengths that do not fit are refused, with both of them in the message."""
    look = "z[i, j] is the sum of x[i, k] * y[k, j] over k. Which two lengths must be equal?"
    for left, right in ((2, 3), (2, 3)), ((3, 2), (4, 3)), ((2, 1), (3, 2)), ((4, 5), (4, 5)):
        what = f"shapes {left} and {right}"
        error = refusal(work, what, zeros(*left), zeros(*right))
        lengths = sorted(int(word) for word in error.actual.replace("!=", " ").split())
        expected = sorted((left[1], right[0]))
        expect_equal(f"{what}: the lengths in the message", lengths, expected, look)


def check_names(work):
    """The message names x and y, and says what to try."""
    message = str(refusal(work, "shapes (2, 3) and (2, 3)", zeros(2, 3), zeros(2, 3)))
    look = 'Set input_names = ("x", "y"): a tuple of texts, in the order of the inputs.'
    expect_true("the message names the inputs (x) and (y)", "(x)" in message, look)
    expect_true("the message names the inputs (x) and (y)", "(y)" in message, look)
    look = "Set type_hint to a sentence for somebody who called matmul with the wrong shapes."
    expect_true("the message ends with something to try", "\nTry: " in message, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the lengths are compared at the wrong axes",
        _SOLUTION.replace("x.shape[1] == y.shape[0]", "x.shape[0] == y.shape[1]"),
    ),
    (
        "lengths are looked at in the same expect as the number of axes",
        _SOLUTION.replace("y.ndim == 2)", "y.ndim == 2, x.shape[1] == y.shape[0])"),
    ),
    (
        "len() of the inputs is a plain number: the message cannot show the condition",
        _SOLUTION.replace("in_types.size() == 2", "len(in_types) == 2"),
    ),
    (
        "two dtypes at once are let through",
        _SOLUTION.replace("x.dtype == y.dtype", "is_floating(y)"),
    ),
)
