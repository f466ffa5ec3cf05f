"""Checks of exercise 14: which bugs were found, and whether they are gone."""

import numpy as np

import tinynode as tn
from tinynode import gradient_check
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_found": Hint(
        "For how many of the six classes did a check of the gradient fail, at inputs drawn at"
        " random?",
        "FOUND has three names of classes.",
    ),
    "check_blamed": Hint(
        "Was the function wrong, or was the input a place without a derivative?",
        "LeakyReLU has a kink at 0; use 64 bits; two axes for Transpose.",
    ),
    "check_bugs": Hint(
        "Which bug hides if all numbers are ones, or if both inputs are equal?",
        "check_backward(function, inputs, g) with all inputs and g drawn at random.",
    ),
    "check_forward": Hint(
        "Which of the two methods was wrong from the beginning?",
        "forward stays as it was: the bugs stand in backward.",
    ),
    "check_repaired": Hint(
        "On which inputs does one output depend, and how does it move with each?",
        "tanh: 1 - tanh^2. z = a b: (g b, g a). Share: g / sum - (the sum of g x) / sum^2.",
    ),
}

GUARDS = ("check_blamed", "check_forward")

NAMES = ("LeakyReLU", "Product", "Share", "SoftSign", "Tanh", "Transpose")
BUGS = ("Product", "Share", "Tanh")

WHY_RIGHT = {
    "LeakyReLU": "It is right. At 0 it has a kink, and no derivative: check it at other inputs.",
    "SoftSign": "It is right. Did you check it in 64 bits?",
    "Transpose": "It is right. Its x has two axes, and its g the shape of the swapped ones.",
}
HOW_TO_FIND = {
    "Tanh": "Look for one that is wrong for nearly every x.",
    "Product": "Look for one that is right as long as its two inputs are equal.",
    "Share": "Look for one that is right as long as g has the same number everywhere.",
}


def inputs_of(name, rng, shape):
    """Random inputs, away from the kinks, and where Share has no sum near 0."""
    if name == "Transpose":
        shape = (2, 3) if len(shape) < 2 else shape
    x = rng.normal(size=shape)
    x = np.copysign(abs(x) + 0.1, x)
    if name == "Share":
        x = abs(x)
    return (x, rng.normal(size=shape)) if name == "Product" else (x,)


def expected_output(name, x, *others):
    """What forward computes, by NumPy."""
    if name == "Product":
        return x * others[0]
    if name == "Transpose":
        return x.T
    if name == "Share":
        return x / x.sum()
    if name == "LeakyReLU":
        return np.where(x > 0, x, 0.1 * x)
    return np.tanh(x) if name == "Tanh" else x / (1 + abs(x))


def check_found(work):
    """FOUND names three functions."""
    look = "Three of the names of the classes, each in quotes, with commas between them."
    is_list = isinstance(work.FOUND, tuple | list | set)
    expect_true("FOUND is a tuple, list or set", is_list, look)
    for name in work.FOUND:
        expect_true(f"{name!r} is the name of one of the six classes", name in NAMES, look)
    expect_equal("the number of names in FOUND", len(set(work.FOUND)), 3, look)


def check_blamed(work):
    """No function is blamed that is right."""
    for name in sorted(set(work.FOUND) - set(BUGS)):
        raise CheckFailed("the names in FOUND", "functions with a bug", name, WHY_RIGHT[name])


def check_bugs(work):
    """All three bugs are found."""
    for name in BUGS:
        expect_true("FOUND names all three bugs", name in work.FOUND, HOW_TO_FIND[name])


def check_forward(work):
    """The forward of all six is as it was."""
    rng = np.random.default_rng(1)
    for name in NAMES:
        inputs = inputs_of(name, rng, (2, 3))
        (y,) = getattr(work, name)().apply(tuple(tn.Variable(x) for x in inputs))
        look = "forward was right: repair backward, and put forward back."
        expect_close(f"what {name} computes", y.array, expected_output(name, *inputs), look)


def check_repaired(work):
    """The backward of all six is right, for many inputs."""
    for name in NAMES:
        rng = np.random.default_rng(2)

        def function(*xs, name=name):
            return getattr(work, name)().apply(xs)[0]

        for shape in ((5,), (2, 3), (4, 1), (1,)):
            inputs = inputs_of(name, rng, shape)
            g = rng.normal(size=expected_output(name, *inputs).shape)
            try:
                gradient_check.check_backward(function, inputs, g, eps=1e-5, rng=rng)
            except AssertionError as error:
                what = f"the gradient of {name} for inputs of shape {inputs[0].shape}"
                look = "Derive it on paper: which inputs does one output depend on, and how?"
                expected = "slopes by backward and by difference that agree"
                raise CheckFailed(what, expected, str(error).splitlines()[1], look) from None


_SOLUTION = solution(__file__)

_BROKEN_AGAIN = (
    _SOLUTION.replace("1 - y * y", "1 - y")
    .replace("return g * b, g * a", "return g * a, g * b")
    .replace("F.sum(g * x) / total)", "F.mean(g))")
)

_TRUE = '("Product", "Share", "Tanh")'

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "LeakyReLU is blamed for its kink at 0",
        _SOLUTION.replace(_TRUE, '("LeakyReLU", "Product", "Tanh")'),
    ),
    (
        "Share was checked with a gradient of ones, and passed",
        _SOLUTION.replace(_TRUE, '("Product", "Tanh")').replace(
            "F.sum(g * x) / total)", "F.mean(g))"
        ),
    ),
    ("everything is blamed", _SOLUTION.replace(_TRUE, repr(tuple(NAMES)))),
    ("the bugs are named, but not repaired", _BROKEN_AGAIN),
    (
        "Share is repaired with the formula of softmax",
        _SOLUTION.replace(
            "(g - F.sum(g * x) / total) / total", "x / total * (g - F.sum(g * x) / total)"
        ),
    ),
    ("forward was changed to fit", _SOLUTION.replace(".tanh(inputs[0])", ".exp(-inputs[0])")),
)
