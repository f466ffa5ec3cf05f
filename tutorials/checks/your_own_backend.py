"""Checks of your_own_backend: the protocol, conversions, functions, the entry point."""

import importlib
import inspect
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check
from tinynode.devices import loader
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_protocol": Hint(
        "How does tinynode know that an array is one of yours?",
        "owns: isinstance of the class of the library; one device with the index 0.",
    ),
    "check_conversions": Hint(
        "Two arrays with the same numbers: do they share memory after the way to the device?",
        "from_host: frozen of a copy. to_host: x.to_numpy().",
    ),
    "check_put": Hint(
        "These arrays never change. What does a method that changes one element return?",
        "array.replaced(key, value).",
    ),
    "check_functions": Hint(
        "Which of your methods does tinynode call when a function runs, and what comes back?",
        "forward returns node.forward(arrays).",
    ),
    "check_twice": Hint(
        "A gradient of a gradient runs the same functions. Which conversion happens on the way?",
        "Nothing beside the protocol: arrays of the library throughout.",
    ),
    "check_entry_point": Hint(
        "By which name does an installed program find your object?",
        '[project.entry-points."tinynode.backends"], then frozen = "your_own_backend:BACKEND".',
    ),
}


def device(work):
    """The learner's backend, registered when it is first asked for."""
    if "frozen" not in tn.devices.backend_names():
        try:
            tn.register_backend(work.BACKEND)
        except tn.TinynodeError as error:
            what, got = "register_backend(BACKEND)", str(error)[-300:]
            look = "help(tinynode.devices.Backend) shows the protocol; or see the page."
            raise CheckFailed(what, "no complaint", got, look) from error
    return tn.get_device("frozen")


def check_protocol(work):
    """The backend has all parts of the protocol."""
    look = "Leave the name as it is."
    expect_equal("the name of the backend", work.BACKEND.name, "frozen", look)
    device(work)
    array = work.frozen(np.ones(2))
    look = "It is for the arrays of this library, and for no others."
    expect_equal("owns(an array of the library)", work.BACKEND.owns(array), True, look)
    expect_equal("owns(an array of NumPy)", work.BACKEND.owns(np.ones(2)), False, look)
    look = "devices() lists the indices that there are."
    expect_equal("index_of(an array)", work.BACKEND.index_of(array), "0", look)


def check_conversions(work):
    """Arrays come from the host and go back."""
    host = np.arange(6.0).reshape(2, 3)
    array = device(work).from_host(host)
    look = "frozen(...) makes an array of the library."
    expect_true("from_host gives an array of the library", isinstance(array, work.Frozen), look)
    back = work.BACKEND.to_host(array)
    look = "x.to_numpy() is the way back."
    expect_true("to_host gives an array of NumPy", type(back) is np.ndarray, look)
    expect_close("to_host(from_host(array))", back, host, look)
    host[0, 0] = 100.0
    look = "frozen(array) shares its memory with array: copy it first."
    after = work.BACKEND.to_host(array)
    expect_equal("the array on the device, after host[0, 0] = 100", float(after[0, 0]), 0.0, look)


def check_put(work):
    """put gives a new array, and leaves the old one as it was."""
    look = "Write a method put(self, array, key, value)."
    has_put = tn.devices.supports(work.BACKEND, tn.devices.FunctionalWrites)
    expect_true("the backend has put", has_put, look)
    array = work.frozen(np.zeros(3))
    result = work.BACKEND.put(array, slice(0, 2), work.frozen(np.array([1.0, 2.0])))
    look = "array.replaced(key, value) returns the new array: return it."
    is_frozen = isinstance(result, work.Frozen)
    expect_true("put returns an array of the library", is_frozen, look)
    expect_close("the new array", result.to_numpy(), [1.0, 2.0, 0.0], look)
    look = "These arrays never change. replaced makes a new one."
    expect_close("the old array", array.to_numpy(), [0.0, 0.0, 0.0], look)


def square(x):
    """x^2"""
    return x * x


def part(x):
    """x[1:, 0]"""
    return x[1:, 0]


def padded(x):
    """x with a frame of zeros"""
    return F.pad(x, ((1, 1), (1, 1)))


def convolved(x):
    """x as an image, convolved with itself"""
    return F.conv2d(F.reshape(x, (1, 1, 3, 4)), F.reshape(x[:2, :2], (1, 1, 2, 2)))


def check_functions(work):
    """Functions give on it what they give on numpy."""
    data = np.linspace(0.1, 1.2, 12).reshape(3, 4)
    for function in square, F.softmax, F.tanh, part, padded, convolved:
        results = []
        for where in tn.get_device("numpy"), device(work):
            x = tn.asarray(data.copy(), device=where, requires_grad=True)
            try:
                y = function(x)
                F.sum(y * y).backward()
            except Exception as error:
                what = f"{inspect.getdoc(function).splitlines()[0]} on {where}"
                got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                look = "Which of your methods does tinynode call for it?"
                raise CheckFailed(what, "values and a gradient", got, look) from error
            results.append((tn.to_host(y.array), tn.to_host(x.grad)))
        what = function.__name__
        look = "forward has to return what node.forward(arrays) returns."
        expect_close(f"the values of {what}", results[1][0], results[0][0], look)
        expect_close(f"the gradient of {what}", results[1][1], results[0][1], look)


def check_twice(work):
    """Second derivatives, too."""
    rng = np.random.default_rng(25)
    arrays = [device(work).from_host(rng.normal(size=(3, 4))) for _ in range(3)]
    gradient_check.check_double_backward(F.tanh, *arrays, eps=1e-5, rng=rng)


def check_entry_point(work):
    """An installed package with this entry point is found by its name."""
    look = 'It has [project.entry-points."tinynode.backends"], then name = "module:object".'
    try:
        read = tomllib.loads(work.ENTRY_POINT)
    except tomllib.TOMLDecodeError as error:
        raise CheckFailed("ENTRY_POINT", "lines of TOML", str(error), look) from error
    points = read.get("project", {}).get("entry-points", {})
    expect_equal("the groups of entry points", sorted(points), ["tinynode.backends"], look)
    lines = [f"{name} = {value}" for name, value in points["tinynode.backends"].items()]
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder, "frozen_arrays-1.0.dist-info")
        note.mkdir()
        (note / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: frozen-arrays\nVersion: 1.0\n"
        )
        text = "\n".join(["[tinynode.backends]", *lines, ""])
        (note / "entry_points.txt").write_text(text, encoding="utf-8")
        loaded = load_backend([folder, str(Path(work.__file__).resolve().parent)])
    look = (
        "The name on the left is the backend's name. On the right: the module, a colon, BACKEND."
    )
    kind = type(work.BACKEND).__name__
    expect_equal("the class of the found object", type(loaded).__name__, kind, look)
    expect_equal("the name of the found backend", loaded.name, "frozen", look)


def load_backend(folders):
    """The object of the entry point ``frozen``, found in these folders."""
    look = 'tinynode looks for an entry point with the name of the device: "frozen".'
    before = list(sys.path)
    sys.path[:0] = folders
    importlib.invalidate_caches()
    try:
        points = [p for p in loader.offered_backends() if p.name == "frozen"]
        if not points:
            raise CheckFailed("an entry point frozen", "is found", "there is none", look)
        return points[0].load()
    except (ImportError, AttributeError) as error:
        look = "On the right: the module your_own_backend, a colon, and BACKEND."
        raise CheckFailed("what the entry point names", "BACKEND", str(error), look) from error
    finally:
        sys.path[:] = before


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("from_host shares the memory", _SOLUTION.replace("frozen(array.copy())", "frozen(array)")),
    ("put is not there", _SOLUTION.replace("def put(", "def puts(")),
    (
        "put forgets to return",
        _SOLUTION.replace("return array.replaced(key", "array.replaced(key"),
    ),
    (
        "put changes the array",
        _SOLUTION.replace(
            "return array.replaced(key, value)",
            "array._data[thawed(key)] = thawed(value)\n        return array",
        ),
    ),
    ("it owns everything", _SOLUTION.replace("return isinstance(array, Frozen)", "return True")),
    (
        "the entry point names the module only",
        _SOLUTION.replace("your_own_backend:BACKEND", "your_own_backend"),
    ),
    (
        "the entry point is in another group",
        _SOLUTION.replace("tinynode.backends", "tinynode.plugins"),
    ),
    (
        "the entry point has another name",
        _SOLUTION.replace('frozen = "your_own_backend', 'your_own_backend = "your_own_backend'),
    ),
    (
        "the arrays come back as they are",
        _SOLUTION.replace("return array.to_numpy()", "return array"),
    ),
)
