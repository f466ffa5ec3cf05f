"""Checks of xlogy and of its rows: the function, then nine planted bugs for the rows."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)
from tinynode_course.rows import Row, failures

HINTS = {
    "check_value": Hint(
        "What does forward return, and what does the function beside the class return?",
        "x times the logarithm of y, as a tuple of one array.",
    ),
    "check_zero": Hint(
        "Which of the two inputs decides if the result is zero?",
        "The logarithm of xp.where(x == 0, ones, y).",
    ),
    "check_shapes_and_dtypes": Hint(
        "Two shapes meet. Who brings them to one shape?",
        "F.broadcast_arrays(x, y), then apply.",
    ),
    "check_gradients": Hint(
        "Move x a little, then y. How does x log y move?",
        "gx = gz log y, gy = gz x / y, with the retained Variables.",
    ),
    "check_rows_hold": Hint(
        "A row of yours fails for a right function. Which of its inputs has no finite gradient?",
        "Zeros in y, or nan: order=0.",
    ),
    "check_rows_catch": Hint(
        "A bug lives. On which input would it show?",
        "Both signs, two dtypes, shapes (3,) with (2, 3), the empty shape (0, 3), zeros.",
    ),
}


def values(work, x, y):
    """The learner's xlogy of two arrays, as an array."""
    with tn.using_device("numpy"), np.errstate(all="ignore"):
        z = work.xlogy(tn.asarray(np.asarray(x)), tn.asarray(np.asarray(y)))
    expect_true("the result is a Variable", isinstance(z, tn.Variable), "Return apply(...)[0].")
    return z.array


def check_value(work):
    """xlogy is x log y."""
    x, y = np.array([1.5, -2.0, 0.5]), np.array([0.5, 3.0, 1.0])
    look = "forward returns a tuple of one array, and xlogy its first output."
    expect_close("xlogy of three numbers", values(work, x, y), x * np.log(y), look)
    look = "There is no logarithm of a negative number: NaN, in backward too."
    expect_close("xlogy of 2, -1", values(work, [2.0], [-1.0]), np.array([np.nan]), look)
    with tn.using_device("numpy"), np.errstate(all="ignore"):
        x, y = tn.Variable(np.array([2.0])), tn.Variable(np.array([-1.0]))
        (gx,) = tn.grad([work.xlogy(x, y)], [x])
    expect_true("xlogy of 2, -1 has a gradient for x", gx is not None, "backward returns both.")
    expect_close("dL/dx of xlogy of 2, -1", gx.array, np.array([np.nan]), look)


def check_zero(work):
    """xlogy is 0 where x is 0, and infinite where only y is 0."""
    x, y = np.zeros(4), np.array([0.0, 1.0, np.inf, -1.0])
    look = "0 * log(0) is nan. xp.where chooses the input of the logarithm: 1 where x is 0."
    expect_close("xlogy of 0 and 0, 1, inf, -1", values(work, x, y), np.zeros(4), look)
    look = "Only x decides: 2 * log(0) is minus infinity."
    expect_close("xlogy of 2, 0", values(work, [2.0], [0.0]), np.array([-np.inf]), look)


def check_shapes_and_dtypes(work):
    """Shapes broadcast, and the dtype stays."""
    for first, second, shape in (
        ((3,), (2, 3), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((), (2,), (2,)),
        ((0, 3), (3,), (0, 3)),
    ):
        found = values(work, np.ones(first), np.ones(second))
        look = "F.broadcast_arrays in xlogy repeats both inputs to the common shape."
        expect_equal(f"the shape for {first} and {second}", found.shape, shape, look)
    single = values(work, np.ones(2, "float32"), np.ones(2, "float32"))
    expect_equal("the dtype for float32", str(single.dtype), "float32", "Use xp.ones_like(y).")


def check_gradients(work):
    """The gradients of first and second order are right."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=3), rng.uniform(0.5, 2.0, size=(2, 3))
    gy = rng.normal(size=(2, 3))
    weights = rng.normal(size=3), rng.normal(size=(2, 3))
    look = "dL/dx = dL/dz log y, dL/dy = dL/dz x / y; F.log of the retained Variable."
    with tn.using_device("numpy"):
        values(work, *inputs)
        try:
            order = "first"
            gradient_check.check_backward(work.xlogy, inputs, gy, eps=1e-5)
            order = "second"
            gradient_check.check_double_backward(work.xlogy, inputs, gy, weights, eps=1e-5)
        except Exception as error:
            got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            raise CheckFailed(f"the {order} order", "that of differences", got, look) from error


class Right(tn.FunctionNode):
    """xlogy, for comparison."""

    def forward(self, inputs):
        """The value."""
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x * np.log(np.where(x == 0, np.ones_like(y), y)),)

    def backward(self, target_input_indexes, grad_outputs):
        """The gradients."""
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        return gz * F.log(y), gz * x / y


class WrongValue(Right):
    """The logarithm with base 10."""

    def forward(self, inputs):
        """The value."""
        return (super().forward(inputs)[0] / np.float32(2.302585),)


class WrongSign(Right):
    """The gradient of y has the wrong sign."""

    def backward(self, target_input_indexes, grad_outputs):
        """The gradients."""
        gx, gy = super().backward(target_input_indexes, grad_outputs)
        return gx, -gy


class NoSecondOrder(Right):
    """The gradient is a constant."""

    def backward(self, target_input_indexes, grad_outputs):
        """The gradients."""
        gx, gy = super().backward(target_input_indexes, grad_outputs)
        return tn.asarray(gx.array), tn.asarray(gy.array)


class WrongDtype(Right):
    """The result is float64."""

    def forward(self, inputs):
        """The value."""
        return (super().forward(inputs)[0].astype("float64"),)


class NoNegative(Right):
    """Wrong for negative x."""

    def forward(self, inputs):
        """The value."""
        x, y = inputs
        super().forward(inputs)
        return super().forward((abs(x), y))


class NoEmpty(Right):
    """An error for empty arrays."""

    def forward(self, inputs):
        """The value."""
        inputs[0].max()
        return super().forward(inputs)


class NanAtZero(Right):
    """0 * log(0) is nan."""

    def forward(self, inputs):
        """The value."""
        self.retain_inputs((0, 1))
        return (inputs[0] * np.log(inputs[1]),)


class ZeroAtZero(Right):
    """0 in place of an infinity, where y is 0."""

    def forward(self, inputs):
        """The value."""
        x, y = inputs
        return (np.where(y == 0, np.zeros_like(x), super().forward(inputs)[0]),)


BUGS = (
    (WrongValue, "the logarithm has the base 10"),
    (WrongSign, "the gradient of y has the wrong sign"),
    (NoSecondOrder, "the gradient is a constant, so the second order is lost"),
    (WrongDtype, "the result is float64 for float32"),
    (NoNegative, "a negative x gives a wrong value"),
    (NoEmpty, "an error for empty arrays"),
    (NanAtZero, "nan at x = 0, y = 0"),
    (ZeroAtZero, "0 in place of an infinity, where y is 0 and x is not"),
)


def with_class(kind):
    """xlogy of a class."""

    def function(x, y):
        return kind().apply(tuple(F.broadcast_arrays(x, y)))[0]

    return function


def no_broadcasting(x, y):
    """xlogy without F.broadcast_arrays."""
    return Right().apply((x, y))[0]


def rows_of(work):
    """The learner's rows."""
    rows = list(work.ROWS)
    expect_true("ROWS has rows", len(rows) > 0, "ROWS is a list of row(...).")
    are_rows = all(isinstance(one, Row) for one in rows)
    expect_true("every entry of ROWS is a row", are_rows, "Write row(claim, reference, inputs).")
    claims = {one.claim for one in rows}
    expect_equal("the number of different claims", len(claims), len(rows), "One name, one row.")
    return rows


def check_rows_hold(work):
    """The rows hold for a right function, and for yours."""
    rows = rows_of(work)
    for whose, function in (("a right xlogy", with_class(Right)), ("your xlogy", work.xlogy)):
        with tn.using_device("numpy"):
            found = failures(function, rows)
        if found:
            claim, reason = next(iter(found.items()))
            look = "With zeros in y, or nan, use order=0: there is no finite gradient."
            raise CheckFailed(f"the row {claim!r} for {whose}", "it holds", reason, look)


def check_rows_catch(work):
    """The rows catch nine planted bugs."""
    rows = rows_of(work)
    bugs = [(with_class(kind), what) for kind, what in BUGS]
    bugs.append((no_broadcasting, "inputs of different shapes get gradients of a wrong shape"))
    with tn.using_device("numpy"):
        living = [what for bug, what in bugs if not failures(bug, rows)]
    if living:
        got = f"your rows caught {len(bugs) - len(living)} of {len(bugs)}; one lives: {living[0]}"
        look = "Add a row with inputs on which this bug shows."
        raise CheckFailed("the number of caught bugs", f"all {len(bugs)}", got, look)


_SOLUTION = solution(__file__)


def _without(claim):
    """The solution without a row."""
    lines = _SOLUTION.splitlines(keepends=True)
    return "".join(line for line in lines if f'row("{claim}"' not in line)


MISTAKES: tuple[tuple[str, str], ...] = (
    ("nan at x = 0", _SOLUTION.replace("xp.where(x == 0, one, y)", "y")),
    (
        "no broadcasting",
        _SOLUTION.replace("    x, y = F.broadcast_arrays(x, y)\n", ""),
    ),
    ("the gradient of y lacks x", _SOLUTION.replace("gz * x / y", "gz / y")),
    ("the logarithm of |y| in backward", _SOLUTION.replace("F.log(y)", "F.log(abs(y))")),
    ("the logarithm of |y| in forward", _SOLUTION.replace("one, y)),)", "one, abs(y))),)")),
    ("arrays in backward", _SOLUTION.replace("F.log(y)", "F.log(y.array)")),
    ("no row with empty arrays", _without("empty")),
    ("no row with negative x and float32", _without("both signs")),
    ("no row at x = 0", _without("0 at x = 0")),
    ("no row at y = 0", _without("infinite at y = 0")),
    (
        "rows that claim too much",
        _SOLUTION.replace("zeros(3), zeros(3), order=0", "zeros(3), zeros(3)"),
    ),
)
