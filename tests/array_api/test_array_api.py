"""The namespace of the Array API standard, name by name against array_api_strict.

Each call below runs on array_api_strict itself and on the namespaces of tinynode: the values, the
dtypes and the signatures must be the same. The differentiable ones are checked by differences.
"""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

import array_api_strict
import numpy as np
import pytest

import tinynode as tn
from tinynode.array_api.namespace import API_VERSIONS
from tinynode.errors import DeviceMixError, OperandError

DEVICES = ("numpy", "fast", "strict", "strict:device1")

A = np.array([[0.6, -1.2, 2.5], [-0.4, 0.3, 1.7]])
B = np.array([[1.5, 0.7, -0.8], [0.9, -2.1, 0.2]])
UNIT = np.array([0.3, -0.6, 0.1])
BIG = np.array([1.2, 2.5, 3.4])
ROW = np.array([0.5, -1.5, 2.0])
SQUARE = np.array([[2.0, 0.5, -0.3], [0.1, 1.5, 0.4], [-0.2, 0.3, 3.0]])
SYMMETRIC = SQUARE + SQUARE.T
INTEGERS = np.array([[5, -3, 2], [0, 7, -3]])
POSITIVE_INTEGERS = np.array([[1, 2, 3], [2, 0, 1]])
BOOLS = np.array([[True, False, True], [False, False, True]])
COMPLEX = np.array([1.0 + 2.0j, -0.5j, 3.0])
HALVES = np.array([0.5, 1.5, -2.5, 2.3])
TIES = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
SORTED = np.array([-1.0, 0.0, 0.5, 2.0])
INDICES = np.array([2, 0, 1])


class Call(NamedTuple):
    """A call of a function of the standard; arrays among the arguments go to each library."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = types.MappingProxyType({})


UNARY = {
    "abs": [A, INTEGERS], "acos": [UNIT], "acosh": [BIG], "asin": [UNIT], "asinh": [A],
    "atan": [A], "atanh": [UNIT], "ceil": [A, INTEGERS], "cos": [A], "cosh": [A], "exp": [A],
    "expm1": [A], "floor": [A, INTEGERS], "log": [BIG], "log10": [BIG], "log1p": [UNIT],
    "log2": [BIG], "negative": [A, INTEGERS], "positive": [A, INTEGERS], "reciprocal": [A],
    "round": [HALVES, INTEGERS], "sign": [A, INTEGERS], "sin": [A], "sinh": [A], "sqrt": [BIG],
    "square": [A, INTEGERS], "tan": [A], "tanh": [A], "trunc": [A, INTEGERS],
    "bitwise_invert": [INTEGERS, BOOLS], "isfinite": [np.array([1.0, np.inf, np.nan])],
    "isinf": [np.array([1.0, -np.inf, np.nan])], "isnan": [np.array([1.0, np.inf, np.nan])],
    "logical_not": [BOOLS], "signbit": [np.array([-0.0, 0.0, -2.0])], "conj": [COMPLEX],
    "imag": [COMPLEX], "real": [COMPLEX], "nonzero": [INTEGERS], "matrix_transpose": [A],
    "unique_all": [TIES], "unique_counts": [TIES], "unique_inverse": [TIES],
    "unique_values": [TIES],
}  # fmt: skip

BINARY = {
    "add": [(A, B), (INTEGERS, 2), (1.5, A), (A, ROW)], "atan2": [(A, B)],
    "copysign": [(A, B)], "divide": [(A, B), (A, 2.0)], "equal": [(A, B), (INTEGERS, 5)],
    "floor_divide": [(A, B), (INTEGERS, 2)], "greater": [(A, B), (A, 0.5)],
    "greater_equal": [(A, B)], "hypot": [(A, B)], "less": [(A, B), (0.5, A)],
    "less_equal": [(A, B)], "logaddexp": [(A, B)], "maximum": [(A, B), (A, 0.5)],
    "minimum": [(A, B)], "multiply": [(A, B), (INTEGERS, 3)], "nextafter": [(A, B)],
    "not_equal": [(A, B)], "pow": [(BIG, ROW), (BIG, 2.0), (INTEGERS, 2)],
    "remainder": [(A, B), (INTEGERS, 3)], "subtract": [(A, B), (2, INTEGERS)],
    "bitwise_and": [(INTEGERS, 6), (BOOLS, BOOLS)], "bitwise_or": [(INTEGERS, 6)],
    "bitwise_xor": [(INTEGERS, 6)], "bitwise_left_shift": [(INTEGERS, 2)],
    "bitwise_right_shift": [(INTEGERS, 1)], "logical_and": [(BOOLS, True)],
    "logical_or": [(BOOLS, BOOLS)], "logical_xor": [(BOOLS, BOOLS)],
    "matmul": [(A, SQUARE)], "tensordot": [(A, B)], "vecdot": [(A, B), (COMPLEX, COMPLEX)],
    "isin": [(INTEGERS, np.array([2, 7]))], "searchsorted": [(SORTED, ROW)],
    "take": [(ROW, INDICES)], "take_along_axis": [(A, np.array([[2, 0], [1, 1]]))],
}  # fmt: skip

CALLS = [
    *[Call(name, (x,)) for name, xs in UNARY.items() for x in xs],
    *[Call(name, pair) for name, pairs in BINARY.items() for pair in pairs],
    *[
        Call(name, (A,), {"axis": 1, "keepdims": True})
        for name in ("max", "mean", "min", "prod", "std", "sum", "var", "all", "any")
    ],
    *[Call(name, (A,)) for name in ("max", "mean", "min", "prod", "std", "sum", "var")],
    *[Call(name, (A,), {"axis": (0, 1)}) for name in ("max", "mean", "min", "std", "sum")],
    *[Call(name, (INTEGERS,)) for name in ("max", "min", "prod", "sum")],
    *[Call(name, (INTEGERS.astype(np.int8),)) for name in ("prod", "sum")],
    *[Call(name, (A, ), {"dtype": np.float32}) for name in ("prod", "sum")],
    *[Call(name, (A,), {"correction": 1}) for name in ("std", "var")],
    *[Call(name, (BOOLS,), {"axis": 0}) for name in ("all", "any", "count_nonzero")],
    *[Call(name, (A,), {"axis": 1}) for name in ("argmax", "argmin", "argsort", "sort")],
    *[Call(name, (TIES,), {"descending": True}) for name in ("argsort", "sort")],
    *[Call(name, (A,)) for name in ("argmax", "argmin", "argsort", "sort")],
    *[Call(f"cumulative_{name}", (A,), {"axis": 1}) for name in ("sum", "prod")],
    *[
        Call(f"cumulative_{name}", (INTEGERS.astype(np.int8)[0],), {"include_initial": True})
        for name in ("sum", "prod")
    ],
    Call("clip", (A, -0.5, 1.0)), Call("clip", (INTEGERS, 0, 3)), Call("clip", (A,)),
    Call("clip", (A, np.zeros_like(A), B + 5.0)), Call("clip", (A,), {"max": 1.0}),
    Call("diff", (A,)), Call("diff", (A,), {"axis": 0}),
    Call("diff", (ROW,), {"n": 2, "prepend": np.array([1.0])}),
    Call("broadcast_arrays", (A, ROW)), Call("broadcast_to", (ROW, (2, 3))),
    Call("broadcast_shapes", ((2, 1), (1, 3))),
    Call("concat", ([A, B],), {"axis": 1}), Call("concat", ([A, B],), {"axis": None}),
    Call("expand_dims", (A, 1)), Call("expand_dims", (A, (0, 2))), Call("flip", (A,)),
    Call("flip", (A,), {"axis": 0}), Call("moveaxis", (A, 0, 1)),
    Call("permute_dims", (A, (1, 0))), Call("repeat", (A, 2), {"axis": 0}),
    Call("repeat", (ROW, np.array([1, 0, 2]))), Call("reshape", (A, (3, 2))),
    Call("reshape", (A, (-1,)), {"copy": True}), Call("roll", (A, 1)),
    Call("roll", (A, (1, 1)), {"axis": (0, 1)}), Call("squeeze", (A[:, None], 1)),
    Call("stack", ([A, B],), {"axis": 1}), Call("tile", (A, (2, 1))), Call("unstack", (A,)),
    Call("unstack", (A,), {"axis": 1}), Call("take", (A, INDICES), {"axis": 1}),
    Call("where", (BOOLS, A, B)), Call("where", (BOOLS, A, 0.0)), Call("where", (BOOLS, 1, A)),
    Call("tensordot", (A, B), {"axes": ((1,), (1,))}), Call("vecdot", (A, B), {"axis": -2}),
    Call("searchsorted", (SORTED, ROW), {"side": "right"}),
    Call("searchsorted", (TIES, ROW), {"sorter": np.array([1, 4, 3, 0, 2])}),

    Call("astype", (A, np.float32)), Call("astype", (INTEGERS, np.float64)),
    Call("asarray", (A,)), Call("asarray", (2.5,)), Call("asarray", ([[1, 2], [3, 4]],)),
    Call("asarray", ([True, False],)), Call("asarray", (1,), {"dtype": np.float64}),
    Call("asarray", (A,), {"copy": True}), Call("asarray", (1j,)),
    Call("arange", (5,)), Call("arange", (1, 9), {"step": 2}), Call("arange", (0.0, 1.0, 0.25)),
    Call("empty", ((0, 2),)), Call("empty_like", (A[:0],)), Call("eye", (2,)),
    Call("eye", (2, 4), {"k": 1}), Call("full", ((2, 2), 1.5)), Call("full", (3, 2)),
    Call("full_like", (A, 2.0)), Call("linspace", (0.0, 1.0, 5)),
    Call("linspace", (0, 4, 4), {"endpoint": False}), Call("meshgrid", (ROW, BIG)),
    Call("meshgrid", (ROW, BIG[:2]), {"indexing": "ij"}), Call("ones", ((2, 3),)),
    Call("ones_like", (INTEGERS,)), Call("tril", (SQUARE,)), Call("triu", (SQUARE,), {"k": 1}),
    Call("zeros", (4,), {"dtype": np.int64}), Call("zeros_like", (A,)),
    Call("from_dlpack", (A,)), Call("can_cast", (np.float32, np.float64)),
    Call("can_cast", (np.float64, np.int64)), Call("isdtype", (np.float64, "real floating")),
    Call("isdtype", (np.int64, ("bool", "integral"))), Call("result_type", (np.int8, np.int32)),
    Call("result_type", (A, np.float32)), Call("finfo", (np.float32,)), Call("finfo", (A,)),
    Call("iinfo", (np.int16,)), Call("iinfo", (INTEGERS,)),
    *[Call(f"linalg.{name}", (SQUARE,)) for name in (
        "det", "inv", "matrix_norm", "matrix_rank", "matrix_transpose", "pinv", "slogdet",
        "svdvals", "trace", "diagonal", "vector_norm", "eigvals")],
    *[Call(f"linalg.{name}", (SYMMETRIC,)) for name in ("cholesky", "eigvalsh")],
    Call("linalg.cholesky", (SYMMETRIC,), {"upper": True}),
    Call("linalg.cross", (ROW, BIG)), Call("linalg.diagonal", (A,), {"offset": 1}),
    Call("linalg.matmul", (A, SQUARE)), Call("linalg.matrix_norm", (A,), {"ord": 1}),
    Call("linalg.matrix_norm", (A,), {"ord": "nuc", "keepdims": True}),
    Call("linalg.matrix_power", (SQUARE, 3)), Call("linalg.matrix_power", (SQUARE, -1)),
    Call("linalg.outer", (ROW, BIG)), Call("linalg.solve", (SQUARE, ROW)),
    Call("linalg.solve", (SQUARE, SYMMETRIC)), Call("linalg.tensordot", (A, B)),
    Call("linalg.trace", (A,), {"offset": 1}), Call("linalg.vecdot", (A, B)),
    Call("linalg.trace", (INTEGERS.astype(np.int8),)),
    Call("linalg.vector_norm", (A,), {"axis": 1, "ord": 3}),
    Call("linalg.vector_norm", (A,), {"ord": math.inf, "keepdims": True}),
    Call("linalg.svd", (A,)), Call("linalg.svd", (A,), {"full_matrices": False}),
    Call("linalg.qr", (A,)), Call("linalg.qr", (A.T,), {"mode": "complete"}),
    Call("linalg.eigh", (SYMMETRIC,)), Call("linalg.eig", (SQUARE,)),
    *[Call(f"fft.{name}", (COMPLEX,)) for name in ("fft", "ifft", "irfft", "hfft")],
    *[Call(f"fft.{name}", (ROW,)) for name in ("rfft", "ihfft", "fftshift", "ifftshift")],
    *[Call(f"fft.{name}", (COMPLEX[:, None] * ROW,)) for name in ("fftn", "ifftn", "irfftn")],
    Call("fft.rfftn", (A,), {"norm": "ortho"}), Call("fft.fft", (COMPLEX,), {"n": 5}),
    Call("fft.fftfreq", (5,)), Call("fft.rfftfreq", (6,), {"d": 0.5}),
    Call("fft.fftshift", (A,), {"axes": 0}), Call("fft.ifftshift", (A,), {"axes": (0, 1)}),
]  # fmt: skip


def public_functions(module: Any, prefix: str = "") -> dict[str, Any]:
    """The functions of a namespace of array_api_strict, with the extensions' functions."""
    found = {}
    for name in module.__all__:
        member = getattr(module, name)
        if isinstance(member, types.ModuleType):
            found |= public_functions(member, f"{name}.")
        elif inspect.isfunction(member) and "array_api_strict_flags" not in name:
            found[prefix + name] = member
    if prefix == "linalg.":  # these two are missing in the list of array_api_strict 2.6.1
        found |= {f"linalg.{name}": getattr(module, name) for name in ("eig", "eigvals")}
    return found


STANDARD = public_functions(array_api_strict)


def member(xp: Any, name: str) -> Any:
    for part in name.split("."):
        xp = getattr(xp, part)
    return xp


def namespace(device: str) -> Any:
    return tn.array_api.namespace_of_device(tn.get_device(device))


def convert(value: Any, xp: Any) -> Any:
    """An argument for a library: arrays and dtypes of NumPy become those of the library."""
    if isinstance(value, np.ndarray):
        return xp.asarray(value.tolist(), dtype=getattr(xp, value.dtype.name))
    if isinstance(value, type) and issubclass(value, np.generic):
        return getattr(xp, np.dtype(value).name)
    if isinstance(value, list) and isinstance(value[0], np.ndarray):
        return [convert(one, xp) for one in value]
    return value


def run(call: Call, xp: Any) -> Any:
    arguments = [convert(x, xp) for x in call.arguments]
    options = {name: convert(x, xp) for name, x in call.options.items()}
    return member(xp, call.name)(*arguments, **options)


def host(array: Any) -> np.ndarray:
    if isinstance(array, tn.Variable):
        return tn.to_host(array)
    return np.asarray(array)


def compare(actual: Any, expected: Any, is_unique: bool = True) -> None:
    """Values and dtypes are the same; factors of a decomposition in their shapes only."""
    if isinstance(expected, tuple) and not isinstance(expected, type):
        assert len(actual) == len(expected)
        assert getattr(actual, "_fields", None) == getattr(expected, "_fields", None)
        for one, other in zip(actual, expected, strict=True):
            compare(one, other, is_unique)
    elif isinstance(expected, type(array_api_strict.zeros(()))):
        assert isinstance(actual, tn.Variable)
        found, wanted = host(actual), host(expected)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        if is_unique:
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    elif hasattr(expected, "smallest_normal") or hasattr(expected, "bits"):
        assert (actual.bits, actual.max, actual.min) == (expected.bits, expected.max, expected.min)
    elif hasattr(expected, "_np_dtype"):
        assert str(getattr(actual, "_np_dtype", actual)) == str(expected._np_dtype)
    else:
        assert actual == expected


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_call_gives_what_array_api_strict_gives(call: Call, device: str) -> None:
    expected = run(call, array_api_strict)
    is_unique = call.name not in ("linalg.svd", "linalg.qr", "linalg.eigh", "linalg.eig")
    compare(run(call, namespace(device)), expected, is_unique)


def test_every_function_of_the_standard_is_called_above() -> None:
    called = {call.name for call in CALLS}
    assert set(STANDARD) - called == {"__array_namespace_info__"}


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_the_signature_is_the_standard_s(name: str) -> None:
    expected = inspect.signature(STANDARD[name]).parameters.values()
    actual = inspect.signature(member(namespace("numpy"), name)).parameters.values()
    assert [(p.name, p.kind) for p in actual] == [(p.name, p.kind) for p in expected]
    for one, other in zip(actual, expected, strict=True):
        if "UNDEF" not in repr(other.default):
            assert one.default == other.default


def test_there_is_nothing_else_in_the_extensions() -> None:
    for part in ("linalg", "fft"):
        public = {name for name in dir(member(namespace("numpy"), part)) if name[0] != "_"}
        standard = {name.partition(".")[2] for name in STANDARD if name.startswith(f"{part}.")}
        extra = public - standard
        extra -= {name for name in STANDARD if "." not in name}  # linalg inherits these
        assert standard <= public, part
        assert not extra, part


SAMPLES_OF_GRADIENTS = [
    call
    for call in CALLS
    if call.name not in ("asarray", "full_like", "linspace", "from_dlpack", "meshgrid")
    and any(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in call.arguments[:1])
    and not any(x is TIES or x is HALVES for x in call.arguments)
    and not call.options.get("dtype")
    and not any(x is np.float32 for x in call.arguments)
]
WITHOUT_RULE = {"nextafter", "linalg.eig", "linalg.eigvals"}
INTEGER_RESULTS = {
    "argmax",
    "argmin",
    "argsort",
    "isfinite",
    "isinf",
    "isnan",
    "signbit",
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "not_equal",
    "isin",
    "searchsorted",
    "all",
    "any",
    "linalg.matrix_rank",
    "empty_like",
    "ones_like",
    "zeros_like",
    "can_cast",
    "isdtype",
    "result_type",
    "finfo",
}


def weighted(result: Any, xp: Any) -> Any:
    """A number from the result of a call: the sum of all floating parts with fixed weights."""
    parts = result if isinstance(result, tuple) else (result,)
    total: Any = 0.0
    for part in parts:
        if "complex" in str(part.dtype):
            part = xp.real(part) + 0.7 * xp.imag(part)
        elif "float" not in str(part.dtype):
            continue
        weights = np.cos(np.arange(math.prod(part.shape)) + 1.0).reshape(part.shape)
        total = total + xp.sum(part * xp.asarray(weights.tolist(), dtype=part.dtype))
    return total


@pytest.mark.parametrize("device", ["numpy", "strict:device1"])
@pytest.mark.parametrize("call", SAMPLES_OF_GRADIENTS, ids=lambda call: call.name)
def test_a_gradient_is_right_or_refused_or_has_no_meaning(call: Call, device: str) -> None:
    xp = namespace(device)
    x = tn.asarray(call.arguments[0], dtype="float64", device=device, requires_grad=True)
    rest = [convert(argument, xp) for argument in call.arguments[1:]]
    options = {name: convert(value, xp) for name, value in call.options.items()}
    function = member(xp, call.name)
    if call.name in WITHOUT_RULE:
        with pytest.raises(NotImplementedError, match="no gradient rule"):
            function(x, *rest, **options)
        return
    if call.options.get("full_matrices", call.name == "linalg.svd") or "mode" in call.options:
        with pytest.raises(ValueError, match="arbitrary"):  # of the whole U, V or Q
            function(x, *rest, **options)
        return
    result = function(x, *rest, **options)
    if call.name in INTEGER_RESULTS:
        assert not getattr(result, "requires_grad", False)
        return
    if call.name in ("linalg.svd", "linalg.qr", "linalg.eigh"):
        assert all(part.requires_grad for part in result)
        return  # tests of functions.linalg check these; signs of vectors are free
    weighted(result, xp).backward()
    gradient = np.zeros_like(call.arguments[0]) if x.grad is None else tn.to_host(x.grad)
    expected = differences(call, function, xp, rest, options, device)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


def differences(
    call: Call, function: Any, xp: Any, rest: Any, options: Any, device: str
) -> np.ndarray:
    """Fourth-order central differences of the weighted sum; symmetric for matrices that are."""
    start, step = call.arguments[0], 1e-3
    gradient = np.zeros_like(start)
    symmetric = call.name in ("linalg.cholesky", "linalg.eigvalsh")
    for place in np.ndindex(start.shape):
        for distance, weight in ((1, 8.0), (2, -1.0), (-1, -8.0), (-2, 1.0)):
            moved = start.copy()
            moved[place] += distance * step / (2 if symmetric else 1)
            if symmetric:
                moved[place[::-1]] += distance * step / 2
            x = tn.asarray(moved, dtype="float64", device=device, requires_grad=False)
            gradient[place] += weight * float(weighted(function(x, *rest, **options), xp))
    return gradient / (12 * step)


# --- the namespace object --------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_there_is_a_single_namespace_for_each_device(device: str) -> None:
    x = tn.asarray([1.0], device=device)
    xp = x.__array_namespace__()
    assert xp is namespace(device) is (x + 1).__array_namespace__()
    assert xp is copy.deepcopy(xp) is pickle.loads(pickle.dumps(xp))
    assert len({namespace(one) for one in DEVICES}) == len(DEVICES)
    assert xp.__name__ == "tinynode.array_api"
    assert xp.zeros(1).device is x.device is xp.device


@pytest.mark.parametrize("version", [None, *API_VERSIONS])
def test_releases_of_the_standard(version: str | None) -> None:
    x = tn.asarray([1.0])
    assert x.__array_namespace__(api_version=version) is namespace("numpy")


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(ValueError, match=r"api_version must be one of .*2025\.12, got '2019\.10'"):
        tn.asarray([1.0]).__array_namespace__(api_version="2019.10")


@pytest.mark.parametrize("device", DEVICES)
def test_what_the_namespace_says_about_itself(device: str) -> None:
    xp = namespace(device)
    info = xp.__array_namespace_info__()
    assert info.default_device() is tn.get_device(device)
    assert tn.get_device(device) in info.devices()
    assert xp.zeros(1).dtype == info.default_dtypes()["real floating"]
    assert info.dtypes(kind="bool") == {"bool": xp.bool}
    assert set(info.dtypes()) >= {"float32", "int64", "complex128"}
    assert info.capabilities()["boolean indexing"] is True
    assert (xp.pi, xp.e, xp.inf, xp.newaxis) == (math.pi, math.e, math.inf, None)
    assert math.isnan(xp.nan)


def test_arrays_are_lifted_and_number_operands_are_weak() -> None:
    xp = namespace("numpy")
    assert xp.add(np.ones(2, dtype="float32"), np.float64(1.5)).dtype == np.float32
    assert xp.add(np.ones(2, dtype="float32"), np.ones(2)).dtype == np.float64
    assert xp.sqrt(4.0).dtype == np.float64
    for wrong in ([1.0], "text", None, np.float64):
        with pytest.raises(OperandError, match=r"xp\.exp: the argument must be"):
            xp.exp(wrong)
    with pytest.raises(DeviceMixError, match=r"xp\.exp: .*strict"):
        xp.exp(array_api_strict.ones(2))


def test_variables_in_lists_are_stacked() -> None:
    xp = namespace("numpy")
    x = tn.asarray(2.0, dtype="float64", requires_grad=True)
    y = xp.asarray([[x, 1.0], [x * x, np.float64(3.0)]])
    assert y.dtype == np.float64 and y.shape == (2, 2)
    xp.sum(y).backward()
    assert x.grad == 5.0
    assert xp.full((2,), x).requires_grad
    assert xp.linspace(x, 4.0, 3).requires_grad
    np.testing.assert_allclose(xp.linspace(x, 4.0, 3).array, [2.0, 3.0, 4.0])


def test_asarray_keeps_the_graph() -> None:
    xp = namespace("numpy")
    x = tn.asarray([1.0, 2.0], requires_grad=True)
    same = xp.asarray(x)
    assert same.requires_grad and same is not x  # so that a write leaves the leaf
    same[0] = 5.0
    np.testing.assert_array_equal(x.array, [1.0, 2.0])
    assert xp.asarray(same) is same
    copied = xp.asarray(x, copy=True)
    assert copied is not x and copied.requires_grad
    assert xp.asarray(x, dtype=xp.float64).requires_grad
    assert not xp.asarray(x, dtype=xp.int64).requires_grad
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    moved = xp.asarray(x, device="strict")
    assert moved.device is tn.get_device("strict") and moved.requires_grad
    assert xp.zeros(2, device="strict").device is tn.get_device("strict")
    with pytest.raises(OperandError, match="device must be"):
        xp.zeros(2, device=3)


def test_isin_inverted() -> None:
    """array_api_strict 2.6.1 forgets ``invert``."""
    found = namespace("numpy").isin(INTEGERS, np.array([2]), invert=True)
    np.testing.assert_array_equal(found.array, INTEGERS != 2)


def test_unique_values_have_a_gradient() -> None:
    xp = namespace("numpy")
    x = tn.asarray(TIES, requires_grad=True)
    values = xp.unique_values(x)
    xp.sum(values * xp.asarray([1.0, 10.0, 100.0])).backward()
    np.testing.assert_array_equal(x.grad, [100.0, 1.0, 0.0, 10.0, 0.0])


# --- array_namespace -------------------------------------------------------------------------


def root_mean_square(x: Any) -> Any:
    xp = tn.array_namespace(x)
    return xp.sqrt(xp.mean(x * x))


@pytest.mark.parametrize("device", DEVICES)
def test_code_is_written_once(device: str) -> None:
    x = tn.asarray(A, device=device, requires_grad=True)
    y = root_mean_square(x)
    y.backward()
    expected = root_mean_square(x.array)
    assert not isinstance(expected, tn.Variable)
    np.testing.assert_allclose(host(y), tn.to_host(x.device.lift(expected)), rtol=1e-15)
    np.testing.assert_allclose(tn.to_host(x.grad), A / (A.size * host(y)), rtol=1e-14)


def test_array_namespace_of_several_arguments() -> None:
    x = tn.asarray([1.0])
    assert tn.array_namespace() is namespace("numpy")
    assert tn.array_namespace(x, 2.0, None, x.array) is namespace("numpy")
    assert tn.array_namespace(x.array, 1) is np
    with tn.using_device("strict"):
        assert tn.array_namespace() is namespace("strict")
    with pytest.raises(DeviceMixError, match=r"array_namespace: .* on numpy and on strict"):
        tn.array_namespace(x, tn.asarray([1.0], device="strict"))
    with pytest.raises(OperandError, match="array_namespace: the arguments must be"):
        tn.array_namespace("text")


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("before", ["bool", "uint8", "int8", "int32", "int64", "float32"])
def test_the_dtype_that_was_asked_for_is_the_dtype_of_the_result(name: str, before: str) -> None:
    x = tn.asarray(np.ones(3, before))
    xp = x.__array_namespace__()
    for dtype in (xp.int8, xp.uint8, xp.int16, xp.int32, xp.uint64, xp.float32, xp.float64):
        y = getattr(xp, name)(x, dtype=dtype)
        assert y.dtype == dtype
        assert float(y.array if name in ("sum", "prod") else y.array[-1]) == (
            3 if "sum" in name else 1
        )
    wide = xp.sum(tn.asarray(np.full(3, 100, "int8")), dtype=xp.int16)
    assert int(wide) == 300
