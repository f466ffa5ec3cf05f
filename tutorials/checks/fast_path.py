"""Checks of exercise fast_path: both ways agree, one array is made, and hooks still fire."""

import tracemalloc

import numpy as np

import tinynode as tn
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_values": Hint(
        "Which number does the last division need that an earlier line may have written over?",
        "y = |x|, y = y + 1, y = x / y, each with out=y; return (y,).",
    ),
    "check_input": Hint(
        "Into which array does each call of NumPy write, and whose is it?",
        "out=y, never out=x.",
    ),
    "check_memory": Hint(
        "Which line makes an array that nobody names?",
        "y = np.empty_like(x) is the one array; np.abs, np.add and np.divide write into it.",
    ),
    "check_fallback": Hint(
        "For which dtypes is your code meant, and what do you say of all others?",
        'return tn.Fallback(f"{x.dtype} has no kernel"), before anything is computed.',
    ),
    "check_gradients": Hint(
        "What does backward ask for, and is it still what came in?",
        "self.retain_inputs((0,)), and x stays as it is.",
    ),
    "check_hooks": Hint(
        "Who calls the hooks, and does your code go past this caller?",
        "Only forward_fast is new; apply stays as it is.",
    ),
}

GUARDS = ("check_input", "check_gradients")


class Ways(tn.FunctionHook):
    """Counts what runs."""

    name = "ways of exercise 23"

    def __init__(self):
        self.labels = []

    def forward_postprocess(self, function, in_data):
        self.labels.append(function.label)


def inputs_of(*dtypes):
    """Arrays of several shapes, one not in the order of memory, and special numbers."""
    rng = np.random.default_rng(23)
    for dtype in dtypes:
        for shape in (5,), (2, 3), (), (0, 4), (40, 50):
            yield (4.0 * rng.normal(size=shape)).astype(dtype)
        yield (4.0 * rng.normal(size=(4, 3))).astype(dtype).T
        yield np.array([0.0, 1e-3, -100.0, np.nan], dtype=dtype)


def fast(work, x):
    """What the learner's forward_fast returns for an array."""
    return work.Softsign().forward_fast((x,))


def check_values(work):
    """forward_fast gives what forward gives."""
    for x in inputs_of("float32", "float64"):
        what = f"forward_fast for {x.dtype} of shape {x.shape}"
        before = x.copy()
        result = fast(work, x)
        if result is tn.Fallback or isinstance(result, tn.Fallback):
            look = "float32 and float64 are the dtypes that the quick code is for."
            raise CheckFailed(what, "a tuple with the result", repr(result), look)
        look = "Return (y,), with a comma, where y is an array."
        is_tuple = isinstance(result, tuple) and len(result) == 1
        expect_true(f"{what} is a tuple of one array", is_tuple, look)
        rtol = 1e-6 if x.dtype == np.float32 else 1e-14
        look = "It is x / (1 + |x|), with x as it was given."
        expect_close(what, result[0], before / (1.0 + np.abs(before)), look, rtol=rtol)
        expect_equal(
            f"the dtype of the result for {x.dtype}", str(result[0].dtype), str(x.dtype), look
        )


def check_input(work):
    """x is left as it is."""
    for x in inputs_of("float32", "float64"):
        before = x.copy()
        fast(work, x)
        look = "Some out= writes into x. It belongs to the caller: write into y."
        expect_close("x after forward_fast", x, before, look, rtol=0.0, atol=0.0)


def check_memory(work):
    """It makes one array."""
    x = np.linspace(-3.0, 3.0, 200_000)
    fast(work, x)
    tracemalloc.start()
    result = fast(work, x)
    taken = round(tracemalloc.get_traced_memory()[1] / x.nbytes, 1)
    tracemalloc.stop()
    is_result = isinstance(result, tuple)
    expect_true("forward_fast gives a result for float64", is_result, "Do not fall back here.")
    look = "An operator such as 1.0 + y makes a new array. Use np.add(y, 1.0, out=y)."
    expect_equal("the arrays of the size of x that it makes", taken, 1.0, look)


def check_fallback(work):
    """Other dtypes fall back, with a reason."""
    for dtype in "float16", "int32", "uint8", "complex64":
        result = fast(work, np.ones(3, dtype=dtype))
        look = 'return tn.Fallback(f"{x.dtype} has no kernel"), before anything is computed.'
        is_fallback = isinstance(result, tn.Fallback)
        expect_true(f"forward_fast for {dtype} returns a tn.Fallback(...)", is_fallback, look)
        named = dtype in result.reason
        expect_true(f"the reason, {result.reason!r}, names {dtype}", named, look)
    x = tn.asarray([-3.0, 0.0, 1.0], device="fast", dtype="float16")
    (y,) = work.Softsign().apply((x,))
    expect_close("y for float16, which falls back", y.array, [-0.75, 0.0, 0.5], "Keep forward.")


def check_gradients(work):
    """The gradient on fast is that on numpy."""
    for data in inputs_of("float32", "float64", "float16"):
        gradients = []
        for device in "numpy", "fast":
            x = tn.asarray(data.copy(), device=device, requires_grad=True)
            (y,) = work.Softsign().apply((x,))
            y.grad = np.ones_like(data)
            try:
                y.backward()
            except Exception as error:
                got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                look = "backward asks for the retained input: does forward_fast retain it?"
                raise CheckFailed(f"backward on {device}", "a gradient", got, look) from error
            gradients.append(x.grad)
        look = "Retain the input, and leave it as it is."
        what = f"x.grad on fast, for {data.dtype} of shape {data.shape}"
        expect_close(what, gradients[1], gradients[0], look, rtol=1e-6)


def check_hooks(work):
    """Hooks see it on both ways, and the table of kernels counts it."""
    tn.show.fallbacks(reset=True)
    for device in "numpy", "fast":
        with Ways() as ways:
            work.Softsign().apply((tn.asarray([1.0, 2.0], device=device),))
        look = "Hooks are called by apply: leave that as it is."
        expect_equal(f"what a hook saw on {device}", ways.labels, ["Softsign"], look)
    table = tn.show.fallbacks()
    look = "Nothing in this file is to be done for that: it follows from forward_fast."
    expect_true("the table says that forward_fast ran", "forward_fast" in table, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("x is written to", _SOLUTION.replace("y = np.empty_like(x)", "y = x")),
    (
        "nothing is retained",
        _SOLUTION.replace("        self.retain_inputs((0,))\n        y =", "        y ="),
    ),
    ("the portable code, once more", _SOLUTION.replace("np.add(y, 1.0, out=y)", "y = y + 1.0")),
    ("it never falls back", _SOLUTION.replace("x.dtype not in (np.float32, np.float64)", "False")),
    (
        "it falls back without a reason",
        _SOLUTION.replace('tn.Fallback(f"{x.dtype} has no kernel")', "tn.Fallback"),
    ),
    ("it falls back for 32 bits", _SOLUTION.replace("(np.float32, np.float64)", "(np.float64,)")),
    ("the array is always of 64 bits", _SOLUTION.replace("np.empty_like(x)", "np.empty(x.shape)")),
    ("no tuple", _SOLUTION.replace("return (y,)", "return y")),
)
