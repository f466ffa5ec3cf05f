"""Checks of vmap: code for an example, run on all examples, beside a loop."""

import numpy as np

from tinynode.learn.checks import CheckFailed, expect_close, expect_equal, solution

HINTS = (
    "with_axes: x.raw.reshape(x.raw.shape[0], then ones, then the example's shape).",
    "An axis from the front moves by one, since the hidden axis stands before it. An axis from "
    "the end stays.",
    "vmap: result.raw may have length 1, if the result does not depend on the example. "
    "np.broadcast_to gives all rows.",
)
RNG = np.random.default_rng(0)
ROWS, TABLES = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2, 3))


def expect_like_loop(work, what, f, arrays, look):
    """vmap of f gives the results of a loop over examples of shape (1, ...)."""
    rows = []
    for i in range(len(arrays[0])):
        rows.append(reference(f, [x[i] for x in arrays]))
    try:
        got = work.vmap(lambda *xs: f(work, *xs))(*arrays)
    except NotImplementedError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed(what, "an array", text, look) from error
    expect_close(what, got, np.stack(rows), look)


class OneExample:
    """The functions of the exercise, on arrays of NumPy: for the loop."""

    add, multiply, tanh, where = np.add, np.multiply, np.tanh, np.where

    @staticmethod
    def sum(x, axis):
        return np.sum(x, axis=axis)


def reference(f, xs):
    return f(OneExample, *xs)


def check_axes(work):
    """Axes of length 1 stand behind the hidden axis."""
    x = work.Batched(ROWS)
    look = "(5, 3) with two axes for the example is (5, 1, 3): the hidden axis stays in front."
    expect_equal("with_axes(x, 2).shape", work.with_axes(x, 2).shape, (5, 1, 3), look)
    expect_equal("with_axes(x, 1).shape", work.with_axes(x, 1).shape, (5, 3), look)


def check_add(work):
    """Sums and products of arrays of different ranks."""
    look = "Align the axes first: aligned(x, y) gives both raw arrays."
    expect_like_loop(work, "a row plus a table", row_plus_table, (ROWS, TABLES), look)
    expect_like_loop(work, "a table times a row", table_times_row, (TABLES, ROWS), look)
    expect_like_loop(work, "a number times a row", number_times_row, (ROWS[:, 0], ROWS), look)
    expect_like_loop(work, "tanh of a row plus 1", tanh_plus_one, (ROWS,), look)


def row_plus_table(xp, x, y):
    return xp.add(x, y)


def table_times_row(xp, x, y):
    return xp.multiply(x, y)


def number_times_row(xp, x, y):
    return xp.multiply(x, y)


def tanh_plus_one(xp, x):
    return xp.add(xp.tanh(x), 1.0)


def sum_first(xp, x):
    return xp.sum(x, axis=0)


def sum_last(xp, x):
    return xp.sum(x, axis=-1)


def sum_second(xp, x):
    return xp.sum(x, axis=1)


def check_sum(work):
    """Sums over axes of the example."""
    look = "The example counts its axes without the hidden axis."
    for what, f in (("axis 0", sum_first), ("axis 1", sum_second), ("axis -1", sum_last)):
        expect_like_loop(work, f"the sum over {what} of a table", f, (TABLES,), look)


def relu(xp, x, y):
    return xp.where(positive(x), y, 0.0)


def positive(x):
    return type(x)(x.raw > 0) if hasattr(x, "raw") else x > 0


def check_where(work):
    """where chooses in each example."""
    look = "The condition gets the axes of the choices, too."
    expect_like_loop(work, "where of rows", relu, (ROWS, ROWS * 2), look)
    expect_like_loop(work, "where of a number and a table", relu, (ROWS[:, 0], TABLES), look)


def constant(xp, x):
    return xp.add(np.array([1.0, 2.0]), 0.0)


def check_vmap(work):
    """The whole: the model of the file, and a result that all examples share."""
    look = "Broadcast the raw result to a row for each example."
    expect_like_loop(work, "a constant result", constant, (ROWS,), look)
    got = work.vmap(work.model)(ROWS, ROWS[:, 1])
    weights = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]])
    expected = (np.tanh(ROWS @ weights.T).sum(axis=1) - ROWS[:, 1]) ** 2
    expect_close("vmap(model)", got, expected, "Check add, multiply, tanh and sum alone first.")


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the new axes stand before the hidden axis",
        _SOLUTION.replace(
            "x.raw.reshape(x.raw.shape[0], *(1,) * (axes - x.ndim), *x.shape)",
            "x.raw.reshape(*(1,) * (axes - x.ndim), *x.raw.shape)",
        ),
    ),
    (
        "no alignment in add",
        _SOLUTION.replace(
            "a, b = aligned(x, y)\n    return Batched(a + b)",
            "return Batched(batched(x).raw + batched(y).raw)",
        ),
    ),
    (
        "the axis of the sum is not moved",
        _SOLUTION.replace("axis=axis + 1 if axis >= 0 else axis", "axis=axis"),
    ),
    (
        "a negative axis is moved, too",
        _SOLUTION.replace("axis=axis + 1 if axis >= 0 else axis", "axis=axis + 1"),
    ),
    (
        "the condition is not aligned",
        _SOLUTION.replace(
            "np.where(with_axes(batched(condition), axes), a, b)",
            "np.where(batched(condition).raw, a, b)",
        ),
    ),
    (
        "a shared result has a single row",
        _SOLUTION.replace(
            "np.broadcast_to(result.raw, (len(arrays[0]), *result.shape))", "result.raw"
        ),
    ),
)
