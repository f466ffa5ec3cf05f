"""Checks of roofline: limits, bytes of tiles, the model of a cache, and a product in blocks."""

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_roof": Hint(
        "Two things limit a program. Which one is smaller at this intensity?",
        "roof = min(peak, intensity * bandwidth); ridge: intensity = peak / bandwidth.",
    ),
    "check_bytes_per_flop": Hint(
        "A tile of rows and columns: which numbers are read, and how many products are made?",
        "itemsize (rows + columns) bytes for 2 rows columns flops.",
    ),
    "check_lines_loaded": Hint(
        "Which line leaves a full cache, and what does a read do to a line that is there?",
        "line = address // 64; a list with the oldest first; a read moves a line to the end.",
    ),
    "check_product": Hint(
        "Which blocks of the two factors meet in one block of the result?",
        "y[i, j] += a[i, k] b[k, j] over all k blocks; a slice at the end may be shorter.",
    ),
    "check_blocks": Hint(
        "How large is the largest block that you hand on, and how often is one multiplied?",
        "Three loops over range(0, length, size), one call of multiply in the innermost.",
    ),
}


def called(what, function, *arguments):
    """What the learner's code gives; an exception is a failed check."""
    try:
        return function(*arguments)
    except (NotImplementedError, CheckFailed):
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise CheckFailed(what, "a result", got, "Follow the numbers by hand.") from error


def check_roof(work):
    """The roof, and its ridge."""
    look = "Below the ridge the bytes are the limit: intensity * bandwidth. Above: the peak."
    for intensity, right in ((0.0, 0.0), (0.25, 3.0), (4.0, 48.0), (5.0, 50.0), (100.0, 50.0)):
        what = f"roof({intensity}, peak=50, bandwidth=12)"
        expect_close(what, called(what, work.roof, intensity, 50.0, 12.0), right, look)
    look = "At the ridge, intensity * bandwidth is the peak."
    expect_close("ridge(48, 12)", called("ridge", work.ridge, 48.0, 12.0), 4.0, look)
    expect_close("ridge(10, 40)", called("ridge", work.ridge, 10.0, 40.0), 0.25, look)


def check_bytes_per_flop(work):
    """Tiles of several shapes, of float64 and float32."""
    look = "Count both: the bytes of rows + columns numbers, and 2 flops for each of the products."
    for rows, columns, itemsize, right in (
        (1, 1, 8, 8.0),
        (4, 8, 8, 1.5),
        (6, 16, 8, 11 / 12),
        (6, 16, 4, 11 / 24),
        (1, 32, 4, 2.0625),
    ):
        what = f"bytes_per_flop({rows}, {columns}, {itemsize})"
        found = called(what, work.bytes_per_flop, rows, columns, itemsize)
        expect_close(what, found, right, look)
    found = called("bytes_per_flop", work.bytes_per_flop, 2, 2)
    expect_close("bytes_per_flop(2, 2)", found, 4.0, "A number has 8 bytes if nobody says else.")


def check_lines_loaded(work):
    """The model of a cache, on short lists of reads."""
    for what, addresses, capacity, line, right in (
        ("no reads", [], 2, 64, 0),
        ("two numbers of a line", [0, 56], 1, 64, 1),
        ("neighbours in two lines", [56, 64], 4, 64, 2),
        ("lines of 32 bytes", [0, 8, 32, 40, 64], 4, 32, 3),
        ("a cache of one line", [0, 64, 0, 64], 1, 64, 4),
        ("the oldest line goes", [0, 64, 128, 64, 0], 2, 64, 4),
        ("a read makes a line the newest", [0, 64, 0, 128, 0], 2, 64, 3),
        ("a line comes back", [0, 64, 128, 0, 128], 2, 64, 4),
        ("a column of 5 rows, twice", [64 * k for k in range(5)] * 2, 5, 64, 5),
        ("a column of 5 rows, twice, in 4 lines", [64 * k for k in range(5)] * 2, 4, 64, 10),
    ):
        found = called(what, work.lines_loaded, list(addresses), capacity, line)
        look = f"addresses {addresses}, capacity {capacity}, line {line}: write down what is kept."
        expect_equal(f"lines_loaded, {what}", found, right, look)
    found = called("an iterator", work.lines_loaded, iter([0, 8, 64]), 2)
    look = "Go through the addresses once: they may come from a generator. A line has 64 bytes."
    expect_equal("lines_loaded of an iterator of reads", found, 2, look)


SHAPES = ((4, 4, 4, 2), (3, 5, 4, 2), (1, 7, 2, 3), (5, 1, 6, 4), (2, 3, 2, 8))


def matrices(m, length, n, dtype="float64"):
    """a: (m, length) and b: (length, n)."""
    rng = np.random.default_rng(m + 10 * length)
    return rng.normal(size=(m, length)).astype(dtype), rng.normal(size=(length, n)).astype(dtype)


def check_product(work):
    """The product, for shapes that are no multiples of the block."""
    for m, length, n, size in SHAPES:
        a, b = matrices(m, length, n)
        first, second = a.copy(), b.copy()
        what = f"product_in_blocks of {a.shape} and {b.shape}, size {size}"
        found = called(what, work.product_in_blocks, a, b, size)
        look = "Add the products of all k blocks; the last blocks of a row are smaller."
        expect_close(what, found, first @ second, look, rtol=1e-10, atol=1e-12)
        unchanged = np.array_equal(a, first) and np.array_equal(b, second)
        expect_true("a and b are unchanged", unchanged, "Write into y alone.")
    a, b = matrices(3, 3, 3, "float32")
    found = called("float32", work.product_in_blocks, a, b, 2)
    dtype = str(getattr(found, "dtype", type(found).__name__))
    expect_equal("the dtype for float32", dtype, "float32", "np.zeros(shape, dtype=a.dtype)")


def check_blocks(work):
    """The blocks are small, and none is multiplied twice."""
    for m, length, n, size in SHAPES:
        a, b = matrices(m, length, n)
        seen = []

        def multiply(x, y, seen=seen):
            seen.append((x.shape, y.shape))
            return x @ y

        what = f"product_in_blocks of {a.shape} and {b.shape}, size {size}"
        called(what, work.product_in_blocks, a, b, size, multiply)
        look = "Give multiply a block of a and a block of b, of at most size rows and columns."
        largest = max((number for pair in seen for shape in pair for number in shape), default=0)
        expect_true(f"{what}: no block is longer than {size}", 0 < largest <= size, look)
        blocks = -(-m // size) * -(-length // size) * -(-n // size)
        expect_equal(f"{what}: the calls of multiply", len(seen), blocks, look)
        products = sum(x[0] * x[1] * y[1] for x, y in seen)
        expect_equal(f"{what}: the multiplications", products, m * length * n, look)


_SOLUTION = solution(__file__)
_ADD = "y[i : i + size, j : j + size] += multiply(left, right)"

MISTAKES: tuple[tuple[str, str], ...] = (
    ("the larger limit", _SOLUTION.replace("min(peak,", "max(peak,")),
    (
        "bytes in a flop as intensity",
        _SOLUTION.replace("intensity * bandwidth", "bandwidth / intensity if intensity else 0.0"),
    ),
    ("the ridge upside down", _SOLUTION.replace("peak / bandwidth", "bandwidth / peak")),
    ("a flop for each product", _SOLUTION.replace("(2 * rows * columns)", "(rows * columns)")),
    (
        "the tile is read for each product",
        _SOLUTION.replace("itemsize * (rows + columns)", "itemsize * 2 * rows * columns"),
    ),
    ("8 bytes always", _SOLUTION.replace("itemsize * (rows", "8 * (rows")),
    ("addresses are lines", _SOLUTION.replace("address // line", "address")),
    ("lines of 64 bytes always", _SOLUTION.replace("address // line", "address // 64")),
    (
        "the first line goes, used or not",
        _SOLUTION.replace("            kept.remove(number)\n", "            continue\n"),
    ),
    ("the newest line goes", _SOLUTION.replace("kept.pop(0)", "kept.pop()")),
    (
        "a line too many is kept",
        _SOLUTION.replace("len(kept) == capacity", "len(kept) > capacity"),
    ),
    ("the cache is emptied when it is full", _SOLUTION.replace("kept.pop(0)", "kept.clear()")),
    (
        "every read loads",
        _SOLUTION.replace(
            "            kept.remove(number)\n",
            "            kept.remove(number)\n            loaded += 1\n",
        ),
    ),
    (
        "lines never go",
        _SOLUTION.replace("                kept.pop(0)\n", "                pass\n"),
    ),
    ("a block replaces the sum", _SOLUTION.replace(_ADD, _ADD.replace("+=", "="))),
    (
        "the last blocks are left out",
        _SOLUTION.replace("range(0, m, size)", "range(0, m - m % size, size)"),
    ),
    (
        "the last k block is left out",
        _SOLUTION.replace("range(0, length, size)", "range(0, length - length % size, size)"),
    ),
    ("float64 always", _SOLUTION.replace(", dtype=a.dtype", "")),
    (
        "no blocks at all",
        _SOLUTION.replace(
            "    y = np.zeros((m, n), dtype=a.dtype)\n",
            "    return multiply(a, b)\n    y = np.zeros((m, n), dtype=a.dtype)\n",
        ),
    ),
    (
        "whole rows of a",
        _SOLUTION.replace(
            "            for k in range(0, length, size):\n", "            for k in (0,):\n"
        ).replace("k : k + size", ":"),
    ),
    ("multiply is not called", _SOLUTION.replace("multiply(left, right)", "left @ right")),
    (
        "a block too many in each row",
        _SOLUTION.replace("range(0, n, size)", "range(0, n + size, size)"),
    ),
)
