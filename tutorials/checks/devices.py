"""Checks of exercise devices: a kernel on a stand-in for CuPy, and on a GPU if there is one."""

import contextlib
import re
import types
from unittest import mock

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
    "check_gpu": Hint(
        "What does one element of the result need, written in C++ and without NumPy?",
        "y = x / (1 + exp(-x))",
    ),
    "check_dtypes": Hint(
        "One text of a kernel serves two dtypes. Which letter stands for the type?",
        '"T x", "T y".',
    ),
    "check_one_kernel": Hint(
        "How many kernels do your operators start, beside the one that you wrote?",
        "The whole formula stands in the text; the kernel is called once with the input array.",
    ),
    "check_backward": Hint(
        "What does backward ask for that your forward must have kept?",
        "self.retain_inputs((0,)), as in forward_cpu.",
    ),
    "check_cpu": Hint(
        "Who chooses between the two forwards, and did a line of yours take this choice away?",
        "Write forward_gpu only; leave forward_cpu and no forward.",
    ),
    "check_on_a_real_gpu": Hint(
        "The stand-in accepts more than CUDA. Which word of your kernel is no C++?",
        "exp, a semicolon, and the names of the parameters.",
    ),
}

GUARDS = ("check_cpu", "check_on_a_real_gpu")

X = [-3.0, -0.5, 0.0, 0.5, 2.0]


# --- a stand-in for CuPy: it shows that a short kernel is right, and nothing about CUDA ----------

ran: list[str] = []
"""What was run on the stand-in: the names of kernels, and of single operations."""


class OnGPU(np.ndarray):
    """An array of the stand-in; its operations are NumPy's, and are counted."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        ran.append(ufunc.__name__)
        if "out" in options:
            options["out"] = tuple(plain(one) for one in options["out"])
        return on_gpu(getattr(ufunc, method)(*(plain(one) for one in inputs), **options))


def plain(value):
    """The NumPy array in an array of the stand-in; others as they are."""
    return value.view(np.ndarray) if isinstance(value, OnGPU) else value


def on_gpu(value, index="0"):
    """A NumPy array or scalar, as an array of the stand-in."""
    return np.array(value).view(OnGPU)


def host(array):
    """An array of the stand-in as one of NumPy."""
    return np.array(plain(array))


FUNCTIONS = {name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "tanh")}
FUNCTIONS |= {"abs": np.abs, "fabs": np.abs, "pow": np.power, "max": np.maximum, "where": np.where}
DECLARATION = re.compile(r"^(?:const\s+)?(?:T|auto|float|double)\s+(?=\w+\s*=)")
CHOICE = re.compile(r"^(.*?)\?(.*?):(.*)$")


class ElementwiseKernel:
    """A kernel of one line or a few, run by NumPy: ``name = expression;`` each."""

    def __init__(self, in_params, out_params, operation, name="kernel", **options):
        self.name = name
        self.inputs = parameters(in_params)
        self.outputs = parameters(out_params)
        self.statements = [one.strip() for one in operation.split(";") if one.strip()]

    def __call__(self, *arrays):
        if len(arrays) != len(self.inputs):
            raise TypeError(f"the kernel has {len(self.inputs)} inputs, it got {len(arrays)}")
        values = dict(FUNCTIONS)
        for (kind, name), array in zip(self.inputs, arrays, strict=True):
            if not isinstance(array, OnGPU):
                raise TypeError(f"Unsupported type {type(array)}")
            dtype = values.setdefault(kind, array.dtype) if kind == "T" else np.dtype(kind)
            if array.dtype != dtype:
                raise TypeError(f"Type is mismatched. {name} {array.dtype} {dtype}")
            values[name] = plain(array)
        dtype = values["T"] if "T" in values else arrays[0].dtype
        values["T"] = dtype.type
        for statement in self.statements:
            run(statement, values)
        ran.append("kernel")
        results = []
        for kind, name in self.outputs:
            if name not in values:
                raise NameError(f"the kernel never assigns its output {name}")
            results.append(on_gpu(values[name].astype(dtype if kind == "T" else kind)))
        return results[0] if len(results) == 1 else tuple(results)


def parameters(text):
    """Types and names out of "T x, T y"."""
    pairs = [tuple(one.split()) for one in text.split(",")]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f'a parameter is a type and a name, as in "T x"; got {text!r}')
        if pair[0] not in ("T", "float32", "float64"):
            raise ValueError(f"the stand-in knows the types T, float32 and float64; got {text!r}")
    return pairs


def run(statement, values):
    """Run ``name = expression``, C++ that reads as Python but for a choice and casts."""
    name, equals, expression = DECLARATION.sub("", statement).partition("=")
    if not equals or not name.strip().isidentifier():
        raise SyntaxError(f"the stand-in does not understand the statement {statement!r}")
    expression = re.sub(r"(\d\.?\d*)f\b", r"\1", expression.replace("(T)", ""))
    choice = CHOICE.match(expression)
    if choice:
        expression = f"where({choice[1]}, {choice[2]}, {choice[3]})"
    with np.errstate(over="ignore"):
        values[name.strip()] = eval(expression.strip(), {"__builtins__": {}}, values)


STAND_IN = types.ModuleType("cupy")
STAND_IN.ElementwiseKernel = ElementwiseKernel

BACKEND = types.ModuleType("stand_in")
BACKEND.name = "stand_in"
BACKEND.capabilities = frozenset({"gpu", "float64"})
BACKEND.devices = lambda: ("0",)
BACKEND.namespace = lambda: np
BACKEND.owns = lambda array: isinstance(array, OnGPU)
BACKEND.index_of = lambda array: "0"
BACKEND.from_host = on_gpu
BACKEND.to_host = host
BACKEND.synchronize = lambda index: None
BACKEND.lift = lambda value: None
BACKEND.forward = lambda node, arrays: node.forward(arrays)


@contextlib.contextmanager
def instead_of_cupy(work):
    """Within the block, the learner's cupy is the stand-in."""
    if "stand_in" not in tn.devices.backend_names():
        tn.register_backend(BACKEND)
    ran.clear()
    with mock.patch.dict("sys.modules", cupy=STAND_IN):
        if hasattr(work, "cupy"):
            with mock.patch.object(work, "cupy", STAND_IN):
                yield
        else:
            yield


# --- the checks ----------------------------------------------------------------------------------


def swish(x):
    """What it should be, by NumPy."""
    return x / (1.0 + np.exp(-x))


def apply(work, x):
    """The learner's function on the stand-in; errors of the kernel are put into words."""
    try:
        return work.Swish().apply((x,))[0]
    except NotImplementedError:
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        look = "On the page, look at the kernel of Bell: types, names, text, and how it is called."
        raise CheckFailed("Swish on a GPU (a stand-in)", "an output", got, look) from error


def check_gpu(work):
    """forward_gpu gives the right numbers."""
    with instead_of_cupy(work):
        y = apply(work, tn.asarray(np.array(X), device="stand_in"))
        look = "The text of the kernel is y = x / (1 + exp(-x))."
        expect_close("y by forward_gpu", host(y.array), swish(np.array(X)), look)


def check_dtypes(work):
    """It serves 32-bit and 64-bit numbers."""
    with instead_of_cupy(work):
        for dtype in "float32", "float64":
            y = apply(work, tn.asarray(X, device="stand_in", dtype=dtype))
            look = "Write T for the type of the input and of the output."
            expect_equal(f"the dtype of y for {dtype}", str(y.dtype), dtype, look)


def check_one_kernel(work):
    """It runs one kernel and nothing else."""
    with instead_of_cupy(work):
        x = tn.asarray(np.array(X), device="stand_in")
        ran.clear()
        apply(work, x)
        look = "Each operator outside of the kernel is a kernel of its own. Put all into the text."
        expect_equal("what ran on the GPU", list(ran), ["kernel"], look)


def check_backward(work):
    """The gradient is right on a GPU too."""
    with instead_of_cupy(work):
        x = tn.asarray(np.array(X), device="stand_in", requires_grad=True)
        y = apply(work, x)
        try:
            y.grad = on_gpu(np.ones(len(X)))
            y.backward()
        except Exception as error:
            got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            look = (
                "backward asks for the retained input. Which forward ran, and what did it retain?"
            )
            raise CheckFailed("backward on a GPU", "a gradient", got, look) from error
        s = 1.0 / (1.0 + np.exp(-np.array(X)))
        expected = s + np.array(X) * s * (1.0 - s)
        expect_close("x.grad on a GPU", host(x.grad), expected, "Leave backward as it was.")


def check_cpu(work):
    """On the CPU, forward_cpu still runs."""
    own = vars(work.Swish)
    look = "forward of the base class chooses between the two: do not override it."
    expect_true("Swish has no forward of its own", "forward" not in own, look)
    for device in "numpy", "fast":
        x = tn.asarray(np.array(X), device=device)
        (y,) = work.Swish().apply((x,))
        expect_close(f"y on {device}", y.array, swish(np.array(X)), "forward_cpu was right.")


def check_on_a_real_gpu(work):
    """The kernel on a GPU, if there is one."""
    try:
        x = tn.asarray(np.array(X), device="cupy", requires_grad=True)
    except tn.TinynodeError as error:
        print("Not run, for want of a GPU: CUDA has not compiled your kernel, and no GPU ran it.")
        print("The checks above ran it on a stand-in, which NumPy computes.")
        print(f"Why: {str(error).splitlines()[0][:150]}")
        return
    (y,) = work.Swish().apply((x,))
    look = "The stand-in is more lenient than CUDA: read what CUDA's compiler says."
    expect_close("y on the GPU", tn.to_host(y.array), swish(np.array(X)), look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "nothing is retained",
        _SOLUTION.replace("        self.retain_inputs((0,))\n        kernel", "        kernel"),
    ),
    (
        "the types are those of 32-bit numbers",
        _SOLUTION.replace("T x", "float32 x").replace("T y", "float32 y"),
    ),
    ("the output is always of 64 bits", _SOLUTION.replace("T y", "float64 y")),
    (
        "NumPy's name is in the text of the kernel",
        _SOLUTION.replace("1 + exp(-x)", "1 + np.exp(-x)"),
    ),
    (
        "the kernel does a part only",
        _SOLUTION.replace("y = x / (1 + exp(-x))", "y = exp(-x)").replace(
            "(kernel(*inputs),)", "(inputs[0] / (1.0 + kernel(*inputs)),)"
        ),
    ),
    (
        "it computes on the host",
        _SOLUTION.replace(
            "(kernel(*inputs),)", "(np.asarray(inputs[0] / (1.0 + np.exp(-inputs[0]))),)"
        ),
    ),
    ("the sign is lost", _SOLUTION.replace("1 + exp(-x)", "1 + exp(x)")),
    ("no tuple is returned", _SOLUTION.replace("(kernel(*inputs),)", "kernel(*inputs)")),
)
