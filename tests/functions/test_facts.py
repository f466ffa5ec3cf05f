"""The facts on the classes of functions, compared with what the functions do.

The rows of the operation table apply the functions: forward, backward and backward of backward.
A few applications of each class are kept, and run again with other elements.
"""

from __future__ import annotations

import ast
import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_cases import CASES
from op_drivers import BY_STEPS_IF_RECORDED, Derivatives, draw_inputs, runs_on

import tinynode as tn
from tinynode import functions as fn
from tinynode.core.dispatch import run_forward
from tinynode.devices import sums

MOST = 4
"""The kept applications of a class, each with other shapes or dtypes."""
OF_ENGINES = {"inputs", "outputs", "rank"}
"""The attributes that films ask functions of other engines for."""
READERS = {"getattr", "hasattr"}
COMPLEX = np.asarray([[1 + 2j, 3 - 1j, 0.5j], [2, 1j, -1 - 1j]])


class Applications(tn.FunctionHook):
    """The first applications of each class: the function, the inputs, the outputs."""

    name = "Applications"

    def __init__(self) -> None:
        self.found: dict[type, dict[Any, Any]] = {}

    def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
        shapes = tuple((x.shape, x.dtype) for x in inputs)
        kept = self.found.setdefault(type(function), {})
        if len(kept) < MOST and shapes not in kept:
            arrays = [np.asarray(x.array) for x in inputs]
            kept[shapes] = function, arrays, [np.asarray(y.array) for y in outputs]


@functools.cache
def applications() -> dict[type, list[Any]]:
    """The applications by a few calls that the rows lack, and by the rows."""
    hook, device = Applications(), tn.get_device("numpy")
    with hook, np.errstate(all="ignore"):
        z = tn.Variable(COMPLEX)
        for function in (fn.real, fn.imag, fn.conj, fn.fft.fft, fn.fft.ifft, fn.fft.irfft):
            function(z)
        fn.fft.rfft(tn.Variable(COMPLEX.real))
        fn.dropout(tn.Variable(COMPLEX.real), 0.5)
        fn.gumbel_softmax(tn.Variable(COMPLEX.real))
        fn.data_types.ToDevice(device, device).apply((z,))
        infinite = np.full(3, np.inf)
        fn.masking.KeepZeros().apply((np.ones(3), np.zeros(3), infinite))
        fn.isfinite(infinite)
        fn.logistic.SameInfinity().apply((infinite, infinite))
        fn.loss.MeanOfCountedGrad(1, (2,)).apply((np.asarray(1.0), np.arange(70_000)))
        many = np.ones((3000, 2))
        fn.einsum("ij,ik->jk", many, many)  # in float16 the sums end at 2,048
        for case in CASES:
            if case.operation != "to_device" and runs_on(case, device.name):
                found = Derivatives(case, draw_inputs(case, case.dtypes[0]), device)
                if case.order >= 2:
                    found.differentiate_again()
                if case.operation in BY_STEPS_IF_RECORDED:
                    tn.backward(found.ys, found.gys)  # the gradient's function has no graph
    return {kind: list(kept.values()) for kind, kept in hook.found.items()}


def classes() -> list[type[tn.FunctionNode]]:
    """The classes of tinynode.functions that can be applied."""
    found, waiting = [], [tn.FunctionNode]
    while waiting:
        waiting += (below := waiting.pop().__subclasses__())
        found += [one for one in below if one.__module__.startswith("tinynode.functions")]
    return sorted(filter(can_run, found), key=lambda one: one.__name__)


def can_run(kind: type[tn.FunctionNode]) -> bool:
    methods = "forward forward_cpu"
    return any(vars(tn.FunctionNode)[name] is not getattr(kind, name) for name in methods.split())


BY_NAME = {one.__name__: one for one in classes()}


# --- is_elementwise ------------------------------------------------------------------------------


def others_of(value: Any) -> list[Any]:
    """Other elements in the place of one."""
    if value.dtype.kind == "b":
        return [~value]
    if value.dtype.kind in "iu":
        return [value + 1, value - 1] if value else [value + 1]
    return [value + 0.37, -value - 1.1, np.zeros_like(value)]


def run(function: Any, arrays: list[Any]) -> list[Any] | None:
    """The outputs of a function on other arrays; None if the function refuses them."""
    try:
        return [np.asarray(y) for y in copy.copy(function).forward(tuple(arrays))]
    except (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
        return None


def differ(a: Any, b: Any) -> Any:
    return (a != b) & ~((a != a) & (b != b))


def changes(function: Any, arrays: list[Any], results: list[Any], whole: Any) -> set[str]:
    """Where outputs change with one element of an input: "here", "elsewhere", or in "form"."""
    found = set()
    for i, x in enumerate(arrays):
        for place in list(np.ndindex(x.shape))[:8]:
            is_here = np.zeros(x.shape, bool)
            is_here[place] = True
            is_here = np.broadcast_to(is_here, whole)
            for value in others_of(x[place]):
                moved = x.copy()
                moved[place] = value
                again = run(function, [*arrays[:i], moved, *arrays[i + 1 :]])
                for y, z in zip(results, again or (), strict=again is not None):
                    if z.shape != whole:
                        return {"form"}
                    is_other = differ(y, z)
                    found |= {"here"} if (is_other & is_here).any() else set()
                    if (is_other & ~is_here).any():
                        return {"elsewhere"}
    return found


def knows_positions(function: Any, arrays: list[Any], results: list[Any]) -> bool:
    """True if the outputs of reversed inputs are not the reversed outputs."""
    again = run(function, [np.asarray(np.flip(x)) for x in arrays])
    pairs = zip(results, again or (), strict=again is not None)
    is_equal = all(np.allclose(np.flip(y), z, equal_nan=True) for y, z in pairs)
    return again is None or not is_equal


def kinds_of(function: Any, arrays: list[Any], results: list[Any]) -> set[str]:
    """What an application shows: "here" alone for an elementwise function."""
    try:
        whole = np.broadcast_shapes(*[x.shape for x in arrays])
    except ValueError:
        return {"form"}
    if not arrays or any(y.shape != whole for y in results):
        return {"form"}
    found = changes(function, arrays, results, whole)
    if "form" not in found and knows_positions(function, arrays, results):
        found.add("elsewhere")
    return found


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_is_elementwise_is_what_the_function_does(name: str) -> None:
    kind = BY_NAME[name]
    assert kind in applications(), "no row applies the class: add a row or a call"
    if kind.is_random:
        assert not kind.is_elementwise
        return
    found: set[str] = set()
    with np.errstate(all="ignore"):
        for one in applications()[kind]:
            found |= kinds_of(*one)
    assert kind.is_elementwise is (found == {"here"}), found


# --- wide ----------------------------------------------------------------------------------------

MAKERS = ("asarray", "astype", "empty", "full", "mean", "ones", "prod", "sum", "zeros")
"""Functions of NumPy that take the dtype of the result."""
WIDE_INSIDE = {
    "Sum": "the sum of the array library takes the dtype, without a copy of the input",
    "SumTo": "likewise",
    "Mean": "likewise",
    "Conv2d": "the products stay in float16, and their sums are in float32",
    "Conv2dGradX": "likewise",
    "Conv2dGradW": "likewise",
}
"""The classes with float32 inside of a forward on float16, which dispatch cannot give."""


def halves(kind: type[tn.FunctionNode]) -> list[tuple[Any, list[Any]]]:
    """The applications of a class with floating inputs, in float16."""
    found = []
    for function, arrays, _ in applications()[kind]:
        with np.errstate(over="ignore"):
            own = [x.astype(np.float16) if x.dtype.kind == "f" else x for x in arrays]
        if any(x.dtype == np.float16 for x in own):
            found.append((function, own))
    return found


def dispatched(function: Any, arrays: list[Any]) -> list[Any]:
    """The outputs of a function by dispatch."""
    device = tn.get_device("numpy")
    with np.errstate(all="ignore"):
        return list(run_forward(copy.copy(function), tuple(arrays), device, device))


@pytest.mark.parametrize("name", sorted(one for one in BY_NAME if BY_NAME[one].wide))
def test_wide_function_computes_in_float32(name: str) -> None:
    """The outputs are those of float32, rounded; a forward in float16 would give others."""
    is_needed = False
    for function, arrays in halves(BY_NAME[name]):
        wide = [x.astype(np.float32) if x.dtype == np.float16 else x for x in arrays]
        found, wanted = dispatched(function, arrays), dispatched(function, wide)
        with np.errstate(all="ignore"):
            narrow = run(function, arrays)
        assert narrow is not None
        for half, y, own in zip(found, wanted, narrow, strict=True):
            assert half.dtype == (np.float16 if y.dtype.kind == "f" else y.dtype)
            with np.errstate(over="ignore"):
                assert not differ(half, y.astype(half.dtype)).any()
            is_needed = is_needed or differ(half, own).any()
    assert is_needed, "float16 alone gives the same outputs: the class need not be wide"


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_only_dispatch_widens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No forward on float16 makes an array of float32; a class says ``wide``."""
    made: set[str] = set()

    def noted(maker: Any) -> Any:
        def make(*args: Any, **options: Any) -> Any:
            dtypes = [one for one in (*args[1:2], options.get("dtype")) if one is np.float32]
            made.update(maker.__name__ for _ in dtypes)
            return maker(*args, **options)

        return make

    found = halves(BY_NAME[name])
    # dispatch never gives float16 to the ``sum_array`` of a wide class
    for maker in set(MAKERS) - ({"sum"} if BY_NAME[name].wide else set()):
        monkeypatch.setattr(np, maker, noted(getattr(np, maker)))
    if not BY_NAME[name].wide:  # dispatch never gives float16 to the sums of these
        monkeypatch.setattr(sums, "add_up", noted(sums.add_up))
    with np.errstate(all="ignore"):
        for function, arrays in found:
            try:
                copy.copy(function).forward(tuple(arrays))
            except TypeError as error:  # NumPy has no linear algebra in float16
                assert "float16 is unsupported" in str(error)
    assert bool(made) is (name in WIDE_INSIDE), made


def test_beside_a_wider_input_the_outputs_are_wide() -> None:
    half, single = np.ones(3000, np.float16), np.ones(3000, np.float32)
    product = fn.Einsum(("i", "i"), "")
    assert dispatched(product, [half, half])[0].dtype == np.float16
    assert dispatched(product, [half, single])[0].dtype == np.float32


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_texts_of_the_class(name: str) -> None:
    kind = BY_NAME[name]
    for text in (kind.guard, kind.type_hint):
        assert text == "" or (text.endswith(".") and "{" not in text)
    assert type(kind.input_names) is tuple and all(one.isidentifier() for one in kind.input_names)


@pytest.mark.parametrize("name", sorted(one for one in BY_NAME if BY_NAME[one].input_names))
def test_input_names_are_those_of_the_inputs(name: str) -> None:
    kind = BY_NAME[name]
    counts = {len(arrays) for _, arrays, _ in applications()[kind]}
    assert max(counts) <= len(kind.input_names), counts


# --- readers -------------------------------------------------------------------------------------


def test_facts_are_read_as_attributes() -> None:
    """FunctionNode declares each fact: nobody needs getattr with a default, or hasattr."""
    facts = set(tn.FunctionNode.__annotations__) - OF_ENGINES
    root, found = Path(tn.__file__).parent.parent, []
    for path in [*root.glob("tinynode/**/*.py"), *root.glob("backends/**/*.py")]:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_reader = isinstance(call, ast.Call) and ast.unparse(call.func) in READERS
            if is_reader and ast.unparse(call.args[1]).strip("'") in facts:
                found.append(f"{path.relative_to(root)}:{call.lineno}: {ast.unparse(call)}")
    assert not found
