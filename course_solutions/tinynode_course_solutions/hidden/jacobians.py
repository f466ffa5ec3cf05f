"""Hidden checks of the elective jacobians: a longer chain, and a random pattern."""

import numpy as np

import tinynode as tn
from tinynode_course.checks import expect_close, expect_true

LOOK = "Compare with tn.jacrev(f)(x)."


def check_a_longer_chain(work):
    """All ways agree."""
    x = np.linspace(-1.0, 2.0, 8)
    expected = tn.jacrev(work.chain)(x).array
    pattern = np.eye(7, 8, dtype=bool) | np.eye(7, 8, 1, dtype=bool)
    expect_close("by_rows", work.by_rows(work.chain, x), expected, LOOK)
    expect_close("by_columns", work.by_columns(work.chain, x), expected, LOOK)
    expect_close("by_colours", work.by_colours(work.chain, x, pattern), expected, LOOK)


def check_a_random_pattern(work):
    """Columns of a colour have no common row."""
    pattern = np.random.default_rng(3).random((12, 10)) < 0.2
    found = np.array(work.colours(pattern))
    for c in range(found.max() + 1):
        alone = pattern[:, found == c].sum(axis=1).max() <= 1
        expect_true(f"the columns of colour {c} share no row", alone, "Look at all columns.")
