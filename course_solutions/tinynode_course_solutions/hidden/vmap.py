"""Hidden checks of the elective vmap: other shapes, a single example, and a shared array."""

import numpy as np

from tinynode_course.checks import expect_close

LOOK = "Each function has to work on (n, s) and on (1, s), for every shape s."


def distance(x, table):
    """Code for an example: x: (4,), table: (2, 3, 4) -> (2, 3)."""
    xp = x.__array_namespace__()
    difference = table + x * -1.0
    return xp.sum(difference * difference, axis=2)


def check_three_axes(work):
    """A row beside a table of three axes."""
    rng = np.random.default_rng(1)
    for n in (1, 6):
        x, table = rng.normal(size=(n, 4)), rng.normal(size=(n, 2, 3, 4))
        expected = ((table - x[:, None, None]) ** 2).sum(axis=-1)
        got = work.vmap(distance, (0, 0))(x, table)
        expect_close(f"the distances of {n} examples", got, expected, LOOK)
        shared = work.vmap(distance, (0, None))(x, table[0])
        expected = ((table[:1] - x[:, None, None]) ** 2).sum(axis=-1)
        expect_close("the distances to a shared table", shared, expected, LOOK)
