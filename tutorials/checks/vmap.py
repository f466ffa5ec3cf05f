"""Checks of vmap: code of one example, on all examples, against a loop."""

import numpy as np

from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, solution

HINTS = {
    "check_shape": Hint(
        "One axis is hidden. Which shape does the author of the function see?",
        "shape = raw.shape[1:].",
    ),
    "check_add_and_multiply": Hint(
        "One example has fewer axes than the other. Where must the new axes of length 1 stand?",
        "raw.shape[:1] + (1,) * missing + x.shape.",
    ),
    "check_sum": Hint(
        "The author counts axes without the hidden one. Which axis of raw is meant?",
        "axis % x.ndim + 1; None is all axes but the first.",
    ),
    "check_matmul": Hint(
        "What does a product need that a vector does not have, and what must go away again?",
        "A row x.raw[:, None, :], a column y.raw[:, :, None], np.matmul, then the added axes "
        "are taken off.",
    ),
    "check_vmap": Hint(
        "On which axis do the examples come in, and on which do they leave?",
        "np.moveaxis(array, axis, 0); array[None] is shared; the result is repeated to n "
        "examples.",
    ),
    "check_code_of_others": Hint(
        "The long function is made of four short ones. Which of them is wrong alone?",
        "add, multiply, sum, matmul, each on the hidden axis.",
    ),
}

N = 3
"""The number of examples. Other axes have the same length: wrong axes would fit each other."""

ALIGN = "The axes of length 1 go behind the hidden axis: (n) beside (n, 3) becomes (n, 1)."
SUM = "axis % x.ndim counts from the front in one example; in raw, each axis stands one further."
MATMUL = "A vector of n examples, (n, k), is a matrix for NumPy: make it (n, 1, k) or (n, k, 1)."


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def batched(work, *shape, length=N):
    return work.Batched(numbers(length, *shape))


def called(what, function, look, *arguments, **options):
    """What the learner's code gives; an exception of it is a failed check."""
    try:
        return function(*arguments, **options)
    except NotImplementedError:
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed(what, "a result", got, look) from error


def expect_each(what, work, got, reference, operands, look):
    """A Batched has the reference's result for each example."""
    if not isinstance(got, work.Batched):
        raise CheckFailed(what, "a Batched", type(got).__name__, look)
    rows = []
    for i in range(max(len(x.raw) for x in operands)):
        rows.append(reference(*(x.raw[i % len(x.raw)] for x in operands)))
    expect_close(f"{what}: raw", got.raw, np.stack(rows), look, rtol=1e-12)


def check_shape(work):
    """shape and ndim are those of one example."""
    for shape in (), (4,), (2, 4):
        x = batched(work, *shape)
        look = "The first axis of raw is hidden."
        expect_equal(f"shape, for raw of shape {x.raw.shape}", x.shape, shape, look)
        expect_equal(f"ndim, for raw of shape {x.raw.shape}", x.ndim, len(shape), look)


PAIRS = (((3,), (3,)), ((), (3,)), ((3,), ()), ((2, 3), (3,)), ((3,), (2, 3, 3)))


def check_add_and_multiply(work):
    """add and multiply broadcast within each example."""
    for one, other in PAIRS:
        for lengths in (N, N), (N, 1), (1, N):
            x = batched(work, *one, length=lengths[0])
            y = batched(work, *other, length=lengths[1])
            for name, reference in ("add", np.add), ("multiply", np.multiply):
                what = (
                    f"{name} of shapes {one} and {other}, {lengths[0]} and {lengths[1]} examples"
                )
                got = called(what, getattr(work.XP, name), ALIGN, x, y)
                expect_each(what, work, got, reference, (x, y), ALIGN)


def check_sum(work):
    """sum counts the axes of one example, from both ends, and never sums the examples."""
    for shape in (3,), (3, 3), (2, 3, 4):
        x = batched(work, *shape)
        for axis in (None, *range(-len(shape), len(shape))):
            what = f"sum of shape {shape}, axis={axis}"
            got = called(what, work.XP.sum, SUM, x, axis=axis)
            expect_each(what, work, got, lambda a, axis=axis: np.sum(a, axis=axis), (x,), SUM)
    x = batched(work)
    got = called("sum of shape ()", work.XP.sum, SUM, x)
    expect_each("sum of shape ()", work, got, np.sum, (x,), SUM)


PRODUCTS = (
    ((3, 3), (3, 3)),
    ((3,), (3,)),
    ((3,), (3, 3)),
    ((3, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((3,), (5, 3, 4)),
)


def check_matmul(work):
    """matmul multiplies vectors, matrices and stacks of matrices of one example."""
    for one, other in PRODUCTS:
        for lengths in (N, N), (N, 1), (1, N):
            x = batched(work, *one, length=lengths[0])
            y = batched(work, *other, length=lengths[1])
            what = f"matmul of shapes {one} and {other}, {lengths[0]} and {lengths[1]} examples"
            got = called(what, work.XP.matmul, MATMUL, x, y)
            expect_each(what, work, got, np.matmul, (x, y), MATMUL)


def check_vmap(work):
    """vmap takes the examples from any axis, calls f once, and gives an array."""
    x, w = numbers(3, 4), numbers(4)
    calls = []

    def scaled(x, w):
        calls.append((x.shape, w.shape))
        return x * w

    look = "np.moveaxis(array, axis, 0) brings the examples to the front; array[None] is shared."
    for axis in (0, -2):
        got = called("vmap", work.vmap(scaled, (axis, None)), look, x, w)
        expect_close(f"vmap with in_axes=({axis}, None)", got, x * w, look)
    expect_equal("the calls of f, with the shapes inside", calls[:1], [((4,), (4,))], look)
    expect_equal(
        "the number of calls for 3 examples", len(calls) // 2, 1, "No loop over examples."
    )
    for axis in (1, -1):
        got = called("vmap", work.vmap(scaled, (axis, 0)), look, x, w)
        expect_close(f"vmap with in_axes=({axis}, 0)", got, x.T * w[:, None], look)
    look = "np.broadcast_to(result.raw, (n, *result.shape))"
    got = called("vmap", work.vmap(lambda x, w: w * 2.0, (0, None)), look, x, w)
    expect_close("vmap of a function that gives the shared w", got, np.stack([2 * w] * 3), look)


def network(x, w, v, b):
    """Other people's code, for one example: x: (k), w: (k, m), v: (m), b: () -> ()."""
    xp = x.__array_namespace__()
    h = xp.exp(-0.5 * (x @ w) * (x @ w))
    return xp.sum(h * b, axis=-1) + v @ h


def plain(x, w, v, b):
    h = np.exp(-0.5 * (x @ w) ** 2)
    return np.sum(h * b) + v @ h


def plain_layer(x, w, b):
    powers = np.exp(x @ w + b)
    return powers * (1.0 + powers.sum())


def check_code_of_others(work):
    """Longer functions of one example run on all examples."""
    look = "Check each function of the namespace alone: add, multiply, sum, matmul."
    x, w, b = numbers(3, 3), numbers(3, 3), numbers(3)
    got = called("softmax_layer", work.vmap(work.softmax_layer, (0, None, 0)), look, x, w, b)
    right = np.stack([plain_layer(x[i], w, b[i]) for i in range(3)])
    expect_close("softmax_layer, with in_axes=(0, None, 0)", got, right, look)
    w, v = numbers(3, 3, 3), numbers(3, 3)
    got = called("network", work.vmap(network, (1, -1, None, 0)), look, x, w, v[0], b)
    right = np.stack([plain(x[:, i], w[..., i], v[0], b[i]) for i in range(3)])
    expect_close("a network, with in_axes=(1, -1, None, 0)", got, right, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "no axes are aligned",
        _SOLUTION.replace("shape[:1] + ones + one.shape", "shape[:1] + one.shape"),
    ),
    (
        "axes of length 1 before the hidden axis",
        _SOLUTION.replace("one.raw.shape[:1] + ones + one", "ones + one.raw.shape[:1] + one"),
    ),
    (
        "a negative axis is counted in raw",
        _SOLUTION.replace("axis % x.ndim + 1", "axis + 1"),
    ),
    ("the axis of raw", _SOLUTION.replace("axis % x.ndim + 1", "axis")),
    (
        "the sum of all includes the examples",
        _SOLUTION.replace("tuple(range(1, x.raw.ndim)) if", "None if"),
    ),
    ("the row stays in the result", _SOLUTION.replace("if x.ndim == 1:\n", "if False:\n")),
    (
        "the vector on the right is no column",
        _SOLUTION.replace("if y.ndim == 1 else y", "if 0 else y"),
    ),
    (
        "matrices are not aligned",
        _SOLUTION.replace(
            "left, right = aligned(row, column)", "left, right = row.raw, column.raw"
        ),
    ),
    ("in_axes is not used", _SOLUTION.replace("np.moveaxis(array, axis, 0)", "array")),
    (
        "the axes are swapped, not moved",
        _SOLUTION.replace("np.moveaxis(array, axis, 0)", "np.swapaxes(array, axis, 0)"),
    ),
    (
        "a shared result has one row",
        _SOLUTION.replace("np.broadcast_to(result.raw, (n, *result.shape))", "result.raw"),
    ),
    ("shape shows the hidden axis", _SOLUTION.replace("self.raw.shape[1:]", "self.raw.shape")),
)
