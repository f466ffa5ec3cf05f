"""Exercise jacobians: rows, columns and colours.

1. Write ``by_rows``: ``tn.vjp(f, x)`` gives the value and a function ``pullback``. The call
   ``pullback(u)`` gives a tuple with u J. Which u gives row i?
2. Write ``by_columns``: ``tn.jvp(f, (x,), (v,))`` gives the value and J v. Which v gives column j?
3. Write ``colours``: each column in turn takes the first colour without a common row.
4. Write ``by_colours``: one jvp for each colour. Where does each number of the product belong?
5. Write ``cheapest``: the way with the fewest passes.
"""

import numpy as np

import tinynode as tn  # noqa: F401 - for your code
from tinynode import functions as F


def by_rows(f, x):
    """J (m, n) of f at x (n,): a vjp for each result."""
    raise NotImplementedError("write by_rows")


def by_columns(f, x):
    """J (m, n) of f at x (n,): a jvp for each argument."""
    raise NotImplementedError("write by_columns")


def colours(pattern):
    """A colour for each column, from 0: columns of a colour share no row. Greedy."""
    raise NotImplementedError("write colours")


def by_colours(f, x, pattern):
    """J (m, n) of f at x (n,): a jvp for each colour of the pattern (m, n)."""
    raise NotImplementedError("write by_colours")


def cheapest(results, arguments, number_of_colours):
    """ "rows", "columns" or "colours": the way with the fewest passes."""
    raise NotImplementedError("write cheapest")


def chain(x):
    """(n,) -> (n - 1,): each result depends on two neighbours."""
    return F.sin(x[1:]) * x[:-1]


if __name__ == "__main__":  # python jacobians.py
    point = np.linspace(0.0, 1.0, 5)
    print(by_rows(chain, point).round(2))
    print(by_columns(chain, point).round(2))
    entries = np.eye(4, 5, dtype=bool) | np.eye(4, 5, 1, dtype=bool)
    print(colours(entries), by_colours(chain, point, entries).round(2))
