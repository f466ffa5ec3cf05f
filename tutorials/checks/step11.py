"""Checks of exercise 11: gradients of broadcast inputs, for many shapes."""

import numpy as np

import tinynode as tn
from tinynode.learn.checks import CheckFailed, expect_close, expect_equal, expect_true, solution

HINTS = (
    "Write the two shapes one above the other, so that they end in the same column. Every column "
    "where shape has a 1, or nothing at all, is an axis to sum over.",
    "Two sorts of axes: new = g.ndim - len(shape) axes in front, which shape does not have; then "
    "those where shape has a 1. The second sort must stay, with length 1: keepdims=True.",
    "g = F.sum(g, axis=tuple(range(new))) and then F.sum(g, axis=..., keepdims=True) for the axes "
    "where shape has a 1. In Add, return one unbroadcast(g, node.shape) for each of self.inputs.",
)

PAIRS = 300


class Calls(tn.FunctionHook):
    """Remembers which functions ran."""

    name = "calls of exercise 11"

    def __init__(self):
        self.labels = []

    def forward_preprocess(self, function, in_data):
        self.labels.append(function.label)


def pairs_of_shapes():
    """Pairs that broadcast: one full shape, some of its axes made 1, some left out in front."""
    rng = np.random.default_rng(11)
    for _ in range(PAIRS):
        full = rng.integers(1, 4, size=rng.integers(0, 5))
        shapes = []
        for _ in range(2):
            shape = np.where(rng.random(len(full)) < 0.4, 1, full)
            left_out = int(rng.integers(0, len(full) + 1)) if rng.random() < 0.5 else 0
            shapes.append(tuple(int(n) for n in shape[left_out:]))
        yield shapes[0], shapes[1], rng


def summed_back(g, shape):
    """What unbroadcast should give, found by following each element to where it was copied."""
    size = int(np.prod(shape, dtype=int))
    sources = np.broadcast_to(np.arange(size).reshape(shape), g.shape)
    return np.bincount(sources.ravel(), g.ravel(), minlength=size).reshape(shape)


def expect_gradients(work, left, right, g, look):
    """The learner's Add gives the gradients that following each copy gives."""
    a, b = tn.Variable(np.zeros(left)), tn.Variable(np.zeros(right))
    (z,) = work.Add().apply((a, b))
    z.grad = g
    try:
        z.backward()
    except tn.TinynodeError as error:
        what = f"the gradients of {left} + {right}"
        raise CheckFailed(
            what, "two gradients", f"{type(error).__name__}: {error}", look
        ) from None
    for name, x in (("a", a), ("b", b)):
        what = f"the gradient of {name} in {left} + {right}"
        expect_close(what, x.grad, summed_back(g, x.shape), look)


def check_the_example(work):
    """unbroadcast brings a gradient of shape (3, 4) back to (3, 1) and to (4,)."""
    g = np.arange(12.0).reshape(3, 4)
    for shape, look in (
        ((3, 1), "Sum over the axis where the shape has a 1, and keep that axis: keepdims=True."),
        ((4,), "Shapes line up at their ends. So it is the first axis of g that is new here."),
        ((3, 4), "Nothing was repeated: nothing is to be summed."),
        ((), "All axes are new: the result is one number."),
    ):
        got = work.unbroadcast(tn.Variable(g), shape)
        what = f"unbroadcast(g, {shape}) for g of shape (3, 4)"
        is_variable = isinstance(got, tn.Variable)
        expect_true(f"{what} is a Variable", is_variable, "Work with F.sum, not with arrays.")
        expect_close(what, got.array, summed_back(g, shape), look)


def check_many_shapes(work):
    """unbroadcast is right for many shapes."""
    for left, right, rng in pairs_of_shapes():
        g = np.asarray(rng.normal(size=np.broadcast_shapes(left, right)))
        for shape in left, right:
            got = work.unbroadcast(tn.Variable(g), shape)
            look = "Line the two shapes up at their ends. Over which axes do you sum, and why?"
            what = f"unbroadcast(g, {shape}) for g of shape {g.shape}"
            expect_close(what, got.array, summed_back(g, shape), look)


def check_by_hand(work):
    """unbroadcast is written with F.sum and F.reshape."""
    with Calls() as calls:
        work.unbroadcast(tn.Variable(np.ones((2, 3, 4))), (3, 1))
    look = "sum_to would do it, but here you write it yourself."
    expect_equal("SumTo ran", "SumTo" in calls.labels, False, look)


def check_add(work):
    """The gradients of (3, 1) + (4,), by Add."""
    look = "In backward: one unbroadcast(g, node.shape) for each node of self.inputs."
    expect_gradients(work, (3, 1), (4,), np.arange(12.0).reshape(3, 4), look)


def check_add_many_shapes(work):
    """The gradients of many sums, by Add."""
    look = "Each input has its own shape: self.inputs[0].shape and self.inputs[1].shape."
    for left, right, rng in pairs_of_shapes():
        g = np.asarray(rng.normal(size=np.broadcast_shapes(left, right)))
        expect_gradients(work, left, right, g, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the new axes in front are summed, those of length 1 are not",
        _SOLUTION.replace("F.sum(g, axis=repeated, keepdims=True)", "g"),
    ),
    (
        "the shapes are lined up at their beginnings",
        _SOLUTION
        + """
def unbroadcast(g, shape):
    for axis in reversed(range(g.ndim)):
        if axis >= len(shape):
            g = F.sum(g, axis=axis)
        elif shape[axis] == 1:
            g = F.sum(g, axis=axis, keepdims=True)
    return g
""",
    ),
    ("the mean is taken in place of the sum", _SOLUTION.replace("F.sum(", "F.mean(")),
    (
        "Add brings both gradients to the shape of its first input",
        _SOLUTION.replace("node.shape", "self.inputs[0].shape"),
    ),
    (
        "sum_to does the work",
        _SOLUTION
        + """
def unbroadcast(g, shape):
    return F.sum_to(g, shape)
""",
    ),
)
