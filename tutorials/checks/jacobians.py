"""Checks of jacobians: numbers by hand, and the number of passes."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, solution

HINTS = {
    "check_rows": Hint(
        "Which question to the pullback gives one row of the matrix?",
        "Row i = pullback(u)[0] with u = 1 at i, 0 elsewhere.",
    ),
    "check_columns": Hint(
        "Which direction gives one column of the matrix?",
        "Column j = J v with v = 1 at j; the columns stand side by side.",
    ),
    "check_colours": Hint(
        "When may two columns share one pass?",
        "A column takes the first colour whose columns have no entry in one of its rows.",
    ),
    "check_by_colours": Hint(
        "A pass gives a sum of columns. Which column does the number of a row belong to?",
        "The one column of the colour with an entry in this row.",
    ),
    "check_cheapest": Hint(
        "How many passes do rows cost, and how many do columns cost?",
        "rows: one pass per result. columns: one per argument. colours: one per colour. The "
        "smallest number wins.",
    ),
}
M = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


def mixed(x):
    """(2,) -> (3,)"""
    return F.tanh(x @ M)


def by_hand(x):
    return (1 - np.tanh(x @ M) ** 2)[:, None] * M.T


def ring(x):
    """(6,) -> (6,): each result depends on a neighbour, and on itself."""
    return F.concat([x[1:], x[:1]]) * x


def ring_by_hand(x):
    return np.diag(np.roll(x, -1)) + np.roll(np.diag(x), 1, axis=1) * 1.0


class Sweeps(tn.FunctionHook):
    """Counts backward passes, and those that differentiate a gradient."""

    name = "sweeps of a check"

    def __init__(self):
        self.count = 0

    def sweep_began(self, sweep):
        self.count += 1


def check_rows(work):
    """by_rows, with a backward pass for each result."""
    x = np.array([0.3, -0.5])
    with Sweeps() as sweeps:
        got = work.by_rows(mixed, x)
    look = "Row i is u J with u = 1 at i. The rows stand below each other."
    expect_close("by_rows of (2,) -> (3,)", got, by_hand(x), look)
    expect_equal("the backward passes of by_rows", sweeps.count, 3, "One vjp for each result.")


def check_columns(work):
    """by_columns, with two backward passes for each argument."""
    x = np.array([0.3, -0.5])
    with Sweeps() as sweeps:
        got = work.by_columns(mixed, x)
    look = "Column j is J v with v = 1 at j. The columns stand side by side."
    expect_close("by_columns of (2,) -> (3,)", got, by_hand(x), look)
    look = "A jvp is two backward passes, and there are two arguments."
    expect_equal("the backward passes of by_columns", sweeps.count, 4, look)


def check_colours(work):
    """Colours: right, and few."""
    n = 9
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1
    full = np.ones((2, 4), dtype=bool)
    cross = np.array([[True, False, True], [False, True, False]])
    rows = (("a band", band, 3), ("a full matrix", full, 4), ("a cross", cross, 2))
    for what, pattern, number in rows:
        found = list(work.colours(pattern))
        expect_equal(f"the number of colours for {what}", len(found), pattern.shape[1], "")
        for c in set(found):
            most = pattern[:, [one == c for one in found]].sum(axis=1).max()
            if most > 1:
                raise CheckFailed(
                    f"the columns of colour {c} for {what}",
                    "no common row",
                    f"a row with {most} entries",
                    "Compare a column with all columns of the colour, not with the last one.",
                )
        look = "Each column takes the first colour that fits."
        expect_equal(f"the colours of {what}", max(found) + 1, number, look)


def check_by_colours(work):
    """by_colours of a ring: two passes of a jvp."""
    x = np.arange(1.0, 7.0)
    pattern = np.eye(6, dtype=bool) | np.roll(np.eye(6, dtype=bool), 1, axis=1)
    with Sweeps() as sweeps:
        got = work.by_colours(ring, x, pattern)
    look = "In row i, the product of a colour has the entry of the one column with an entry there."
    expect_close("by_colours of a ring", got, ring_by_hand(x), look)
    look = "A ring of even length has two colours, and a jvp is two backward passes."
    expect_equal("the backward passes of by_colours", sweeps.count, 4, look)


def check_cheapest(work):
    """The way with the fewest passes."""
    look = "Rows: one pass for each result. Columns: one for each argument."
    expect_equal("cheapest(1, 1000, 1000)", work.cheapest(1, 1000, 1000), "rows", look)
    expect_equal("cheapest(500, 2, 300)", work.cheapest(500, 2, 300), "columns", look)
    expect_equal("cheapest(500, 500, 3)", work.cheapest(500, 500, 3), "colours", look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the columns stand below each other",
        _SOLUTION.replace("np.stack(columns, axis=1)", "np.stack(columns)"),
    ),
    (
        "columns made of rows",
        _SOLUTION.replace("    columns = []\n", "    return by_rows(f, x)\n    columns = []\n"),
    ),
    (
        "all rows at once",
        _SOLUTION.replace("        u[i] = 1.0\n", "        u[:] = 1.0\n"),
    ),
    (
        "only the last column of a colour is compared",
        _SOLUTION.replace("taken[colour] = taken[colour] | rows", "taken[colour] = rows"),
    ),
    (
        "a colour for each column",
        _SOLUTION.replace("        colour = 0\n", "        colour = len(taken)\n"),
    ),
    (
        "the product goes into the whole column",
        _SOLUTION.replace("J[pattern[:, j], j] = product[pattern[:, j]]", "J[:, j] = product"),
    ),
    ("the most passes", _SOLUTION.replace("return min(passes", "return max(passes")),
)
