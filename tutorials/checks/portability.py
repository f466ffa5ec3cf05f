"""Checks of portability: the function on several array libraries, and no NumPy in its source."""

import ast
import inspect
import types

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check
from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, solution

HINTS = {
    "check_numpy_and_fast": Hint(
        "Which function is it, for one number, and over which axis is its mean?",
        "log(cosh x) = |x| + log1p(e^(-2 |x|)) - log 2, then the mean over axis 1.",
    ),
    "check_box": Hint(
        "Which of your lines knows only NumPy, and which library would the array name itself?",
        "xp = tn.namespace_of(x); xp.abs, xp.exp, xp.log1p, xp.mean(y, axis=1).",
    ),
    "check_dtype": Hint(
        "Which number in your formula has 64 bits and makes everything around it wide?",
        "math.log(2.0) is a number of Python, np.log(2.0) is not.",
    ),
    "check_twice": Hint(
        "Where in backward does a Variable become an array?",
        "F.tanh(x) * F.reshape(g, (-1, 1)) / x.shape[1]: Variables throughout.",
    ),
    "check_source": Hint(
        "Which line still names NumPy, and what would name the library of x in its place?",
        "tn.namespace_of(x) in forward, tn.asarray outside.",
    ),
    "check_strict": Hint(
        "Which method of your array is no function of the standard?",
        "Functions of xp in place of methods: xp.mean(y, axis=1).",
    ),
}


class Box:
    """An array that only the functions of its own library understand."""

    __array_ufunc__ = None  # NumPy's functions raise a TypeError

    def __init__(self, data):
        self.data, self.shape, self.dtype = data, data.shape, data.dtype
        self.ndim, self.size, self.device = data.ndim, data.size, "cpu"

    def __array__(self, *arguments, **options):
        raise TypeError("NumPy cannot look into a box")

    @property
    def mT(self):  # the transpose of a matrix
        return boxed(self.data.mT)

    def __float__(self):
        return float(self.data)

    def __getitem__(self, key):
        return boxed(self.data[unboxed(key)])

    def __setitem__(self, key, value):
        self.data[unboxed(key)] = unboxed(value)


def unboxed(value):
    if isinstance(value, tuple | list):
        return type(value)(unboxed(one) for one in value)
    if isinstance(value, np.ndarray):
        raise TypeError("this library takes boxes, and no arrays of NumPy")
    return value.data if isinstance(value, Box) else value


def boxed(value):
    if isinstance(value, tuple | list):
        return type(value)(boxed(one) for one in value)
    return Box(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def for_boxes(function):
    """A function of NumPy's, for boxes."""

    def call(*inputs, **options):
        return boxed(function(*unboxed(inputs), **options))

    return call


SIGNS = ("add", "sub", "mul", "truediv", "pow", "matmul", "radd", "rsub", "rmul", "rtruediv")
SIGNS += ("neg", "abs", "lt", "le", "gt", "ge", "eq")
for sign in SIGNS:
    setattr(Box, f"__{sign}__", for_boxes(getattr(np.ndarray, f"__{sign}__")))

library = types.SimpleNamespace()
for word, thing in vars(np).items():
    is_function = callable(thing) and not isinstance(thing, type)
    setattr(library, word, for_boxes(thing) if is_function else thing)

box = types.ModuleType("box")
box.name = "box"
box.capabilities = frozenset({"cpu", "float64"})
box.devices = lambda: ("cpu",)
box.namespace = lambda: library
box.owns = lambda array: isinstance(array, Box)
box.index_of = lambda array: "cpu"
box.from_host = lambda array, index: Box(np.array(array))
box.to_host = lambda array: array.data
box.synchronize = lambda index: None
box.lift = lambda value: None
box.forward = lambda node, arrays: node.forward(arrays)


def box_device():
    """The device of boxes, registered when it is first asked for."""
    if "box" not in tn.devices.backend_names():
        tn.register_backend(box)
    return tn.get_device("box")


X = [[0.0, 1.0, -2.0], [0.5, 1000.0, -0.25]]


def apply(work, x):
    """The learner's function; an error says on which device it came."""
    try:
        return work.LogCosh().apply((x,))[0]
    except Exception as error:
        what = f"LogCosh on the device {x.device}"
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        look = "forward gets an array of that library. Use its own functions: xp.abs(x) ..."
        raise CheckFailed(what, "an output", got, look) from error


def expect_right(work, device):
    """Values and gradients on a device, in 64 bits."""
    x = tn.asarray(np.array(X), device=device, requires_grad=True)
    look = "It is abs(x) + log1p(exp(-2 abs(x))) - log(2), and of that the mean along axis 1."
    y = apply(work, x)
    expected = np.mean(np.abs(X) + np.log1p(np.exp(-2 * np.abs(X))) - np.log(2.0), axis=1)
    expect_close(f"the values on {device}", tn.to_host(y.array), expected, look)
    weights = tn.asarray(np.array([1.0, -3.0]), device=device)
    look = "Its formula is in the docstring of the class: write it with functions of F."
    try:
        F.sum(y * weights).backward()
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed(f"backward on {device}", "a gradient", got, look) from error
    expected = np.tanh(X) * np.array([[1.0], [-3.0]]) / 3
    expect_close(f"the gradient on {device}", tn.to_host(x.grad), expected, look)


def check_numpy_and_fast(work):
    """LogCosh is right on numpy and on fast."""
    expect_right(work, "numpy")
    expect_right(work, "fast")


def check_box(work):
    """LogCosh is right on a library that is not NumPy."""
    expect_right(work, box_device())


def check_dtype(work):
    """32-bit numbers stay 32-bit numbers."""
    for device in "numpy", box_device():
        x = tn.asarray(X, device=device, dtype="float32", requires_grad=True)
        y = apply(work, x)
        look = (
            "Which number in your formula is a 64-bit one? One of NumPy's is, one of Python's not."
        )
        expect_equal(f"the dtype of y on {device}", str(y.dtype), "float32", look)
        F.sum(y).backward()
        expect_equal(f"the dtype of x.grad on {device}", str(x.grad.dtype), "float32", look)


def check_twice(work):
    """The gradient can be differentiated again."""
    rng = np.random.default_rng(21)
    x, g, gg = rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(size=(2, 3))

    def function(one):
        return work.LogCosh().apply((one,))[0]

    try:
        gradient_check.check_double_backward(function, x, g, gg, eps=1e-5, rng=rng)
    except Exception as error:
        look = "In backward use Variables from beginning to end: g and x themselves, no .array."
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed("check_double_backward", "no complaint", got, look) from error


def check_source(work):
    """No NumPy is left in the file."""
    for node in ast.walk(ast.parse(inspect.getsource(work))):
        names = [node.id] if isinstance(node, ast.Name) else []
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [*(one.name for one in node.names), getattr(node, "module", None) or ""]
        for name in names:
            if name in ("np", "numpy"):
                where = f"{name} in line {node.lineno}"
                look = "Outside of forward you can do without arrays: use tn.asarray."
                raise CheckFailed("the names in your file", "neither np nor numpy", where, look)


def check_strict(work):
    """LogCosh is right on array_api_strict, if that is installed."""
    try:
        tn.get_device("strict")
    except tn.errors.DeviceError:
        print("array_api_strict is not installed: this was not run.")
        print("To have it: pip install array-api-strict")
        return
    expect_right(work, "strict")


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "a method of NumPy's arrays is left",
        _SOLUTION.replace("xp.mean(y, axis=1)", "y.mean(axis=1)"),
    ),
    (
        "the logarithm of 2 is a 64-bit array",
        _SOLUTION.replace("math.log(2.0)", "xp.log(xp.asarray(2.0, dtype=xp.float64))"),
    ),
    (
        "backward works on arrays, and cannot be differentiated",
        _SOLUTION.replace(
            "return (F.tanh(x) * F.reshape(g, (-1, 1)) / x.shape[1],)",
            "gx = tn.namespace_of(x.array).tanh(x.array) * g.array[:, None] / x.shape[1]\n"
            "        return (tn.asarray(gx),)",
        ),
    ),
    (
        "the array is brought to NumPy and back",
        _SOLUTION.replace("import math", "import math\nimport numpy as np")
        .replace("(x,) = inputs\n", "(x,) = inputs\n        device, x = x, tn.to_host(x)\n", 1)
        .replace("xp.mean(y, axis=1)", "tn.namespace_of(device).asarray(np.mean(y, axis=1))"),
    ),
    (
        "the mean is taken along the wrong axis",
        _SOLUTION.replace("mean(y, axis=1)", "mean(y, axis=0)"),
    ),
    (
        "it overflows for large x",
        _SOLUTION.replace(
            "a + xp.log1p(xp.exp(-2.0 * a))", "xp.log(xp.exp(a) + xp.exp(-a))"
        ).replace("a = xp.abs(x)", "a = 3.0 * x / 3.0"),
    ),
)
