"""Hidden checks of the elective vmap: other shapes, and a single example."""

import numpy as np

from tinynode.learn.checks import expect_close

LOOK = "Each function has to work on (n, s) and on (1, s), for every shape s."


def distance(work, x, table):
    """Code for an example: x: (4,), table: (2, 3, 4) -> (2, 3)."""
    difference = work.add(table, work.multiply(x, -1.0))
    return work.sum(work.multiply(difference, difference), axis=2)


def check_three_axes(work):
    """A row beside a table of three axes."""
    rng = np.random.default_rng(1)
    for n in (1, 6):
        x, table = rng.normal(size=(n, 4)), rng.normal(size=(n, 2, 3, 4))
        got = work.vmap(lambda x, table: distance(work, x, table))(x, table)
        expected = ((table - x[:, None, None]) ** 2).sum(axis=-1)
        expect_close(f"the distances of {n} examples", got, expected, LOOK)


def check_shared_arrays(work):
    """Arrays from outside are shared by all examples."""
    x, table = np.arange(6.0).reshape(3, 2), np.ones((5, 2))
    got = work.vmap(lambda x: work.multiply(table, x))(x)
    expect_close("a shared table times rows", got, table * x[:, None], LOOK)
