"""Exercise jacobians, solved: rows, columns and colours."""

import numpy as np

import tinynode as tn
from tinynode import functions as F


def by_rows(f, x):
    """J (m, n) of f at x (n,): a vjp for each result."""
    value, pullback = tn.vjp(f, x)
    rows = []
    for i in range(value.size):
        u = np.zeros(value.size)
        u[i] = 1.0
        rows.append(pullback(u)[0].array)
    return np.stack(rows)


def by_columns(f, x):
    """J (m, n) of f at x (n,): a jvp for each argument."""
    columns = []
    for j in range(len(x)):
        v = np.zeros(len(x))
        v[j] = 1.0
        columns.append(tn.jvp(f, (x,), (v,))[1].array)
    return np.stack(columns, axis=1)


def colours(pattern):
    """A colour for each column, from 0: columns of a colour share no row. Greedy."""
    taken = []  # for each colour, the rows of its columns
    found = []
    for j in range(pattern.shape[1]):
        rows = pattern[:, j]
        colour = 0
        while colour < len(taken) and np.any(taken[colour] & rows):
            colour += 1
        if colour == len(taken):
            taken.append(np.zeros(len(rows), dtype=bool))
        taken[colour] = taken[colour] | rows
        found.append(colour)
    return found


def by_colours(f, x, pattern):
    """J (m, n) of f at x (n,): a jvp for each colour of the pattern (m, n)."""
    colour = np.array(colours(pattern))
    J = np.zeros(pattern.shape)
    for c in range(max(colour) + 1):
        product = tn.jvp(f, (x,), ((colour == c).astype(float),))[1].array
        for j in np.flatnonzero(colour == c):
            J[pattern[:, j], j] = product[pattern[:, j]]
    return J


def cheapest(results, arguments, number_of_colours):
    """ "rows", "columns" or "colours": the way with the fewest passes."""
    passes = {"rows": results, "columns": arguments, "colours": number_of_colours}
    return min(passes, key=passes.get)


def chain(x):
    """(n,) -> (n - 1,): each result depends on two neighbours."""
    return F.sin(x[1:]) * x[:-1]


if __name__ == "__main__":  # python jacobians.py
    point = np.linspace(0.0, 1.0, 5)
    print(by_rows(chain, point).round(2))
    print(by_columns(chain, point).round(2))
    entries = np.eye(4, 5, dtype=bool) | np.eye(4, 5, 1, dtype=bool)
    print(colours(entries), by_colours(chain, point, entries).round(2))
