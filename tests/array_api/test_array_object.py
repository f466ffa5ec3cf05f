"""The array object of the standard: attributes, operators, writes and conversions of Variables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import GraphError, OperandError

DEVICES = ("numpy", "strict", "fast")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make(device: str, values: Any, dtype: str = "float64", grad: bool = False) -> tn.Variable:
    """A Variable on a device."""
    return tn.asarray(np.asarray(values, dtype=dtype), device=device, requires_grad=grad)


def host(x: Any) -> Any:
    return tn.to_host(x)


def dtype_name(x: tn.Variable) -> str:
    return str(host(x).dtype)


def names_of_the_standard() -> set[str]:
    """The public and special names that array_api_strict's Array defines itself."""
    kind = type(array_api_strict.zeros(()))
    known = {"__buffer__", "__array__", "__array_ufunc__"}  # NumPy's protocols
    plain = set(vars(type("Plain", (), {})))
    own = set(vars(kind)) - plain - known
    return {n for n in own if not n.startswith("_") or n.startswith("__")}


def test_a_variable_has_every_name_of_the_standard() -> None:
    names = names_of_the_standard()
    assert {"mT", "__dlpack__", "__rrshift__", "__complex__", "to_device"} <= names
    assert sorted(names - set(dir(tn.Variable))) == []


# --- operators -----------------------------------------------------------------------------------

OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
]
IN_PLACE: list[Callable[[Any, Any], Any]] = [
    operator.iand,
    operator.ior,
    operator.ixor,
    operator.ilshift,
    operator.irshift,
]


@pytest.mark.parametrize("of", OPERATORS, ids=lambda of: of.__name__)
def test_bitwise_operators_take_variables_arrays_and_numbers(of: Any, device: str) -> None:
    a, b = np.asarray([12, -7, 33]), np.asarray([1, 2, 0])
    x, y = make(device, a, "int64"), make(device, b, "int64")
    for found in (of(x, y), of(x, y.array), of(x.array, y) if device != "strict" else of(x, y)):
        assert isinstance(found, tn.Variable) and not found.requires_grad
        assert host(found).tolist() == of(a, b).tolist()
    assert host(of(x, 3)).tolist() == of(a, 3).tolist()
    assert host(of(9, y)).tolist() == of(9, b).tolist()
    assert host(of(x, np.int64(3))).tolist() == of(a, 3).tolist()


@pytest.mark.parametrize("of", IN_PLACE, ids=lambda of: of.__name__)
def test_in_place_bitwise_operators_keep_dtype_and_variable(of: Any, device: str) -> None:
    a = np.asarray([12, -7, 33], dtype="int32")
    x = make(device, a, "int32")
    held, before = x, x.array
    x = of(x, make(device, [1, 2, 0], "int64"))
    assert x is held and dtype_name(x) == "int32"
    assert host(before).tolist() == a.tolist()  # the old array never changes
    assert host(x).tolist() == of(a.copy(), np.asarray([1, 2, 0], dtype="int32")).tolist()


def test_bools_combine_and_invert(device: str) -> None:
    a, b = np.asarray([True, True, False]), np.asarray([True, False, False])
    x, y = make(device, a, "bool"), make(device, b, "bool")
    assert host(x & y).tolist() == (a & b).tolist()
    assert host(x | True).tolist() == [True] * 3
    assert host(np.bool(True) ^ x).tolist() == (~a).tolist()
    assert host(~x).tolist() == (~a).tolist() and dtype_name(~x) == "bool"
    assert host(~make(device, [0, 5], "int32")).tolist() == [-1, -6]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda f, i, b: f & i, "bitwise_and"),
        (lambda f, i, b: i | 2.0, "bitwise_or"),
        (lambda f, i, b: b ^ i, "bitwise_xor"),
        (lambda f, i, b: b ^ 1, "bitwise_xor"),
        (lambda f, i, b: b << b, "bitwise_left_shift"),
        (lambda f, i, b: ~f, "bitwise_invert"),
        (lambda f, i, b: fn.logical_and(i, i), "logical_and"),
        (lambda f, i, b: fn.logical_not(i), "logical_not"),
    ],
)
def test_other_dtypes_are_refused_by_name(call: Any, name: str, device: str) -> None:
    floats, integers = make(device, [1.0, 2.0]), make(device, [1, 2], "int64")
    bools = make(device, [True, False], "bool")
    with pytest.raises(OperandError, match=rf"^{name}: .*x != 0"):
        call(floats, integers, bools)


def test_numpy_s_functions_of_bits_are_those_of_tinynode(device: str) -> None:
    x, mask = make(device, [12, 7], "int64"), make(device, [True, False], "bool")
    for ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift):
        found = ufunc(x, 2)
        assert isinstance(found, tn.Variable)
        assert host(found).tolist() == ufunc(np.asarray([12, 7]), 2).tolist()
    assert host(np.invert(x)).tolist() == [-13, -8]
    assert host(np.logical_not(mask)).tolist() == [False, True]
    assert host(np.logical_or(mask, True)).tolist() == [True, True]
    for test in (np.isnan, np.isinf, np.isfinite, np.signbit):
        values = [np.nan, -np.inf, -0.0, 1.0]
        found = test(make(device, values, grad=True))
        assert isinstance(found, tn.Variable) and not found.requires_grad
        assert host(found).tolist() == test(np.asarray(values)).tolist()


SCALARS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.mod,
    operator.floordiv,
    fn.maximum,
    fn.atan2,
    fn.hypot,
]


@pytest.mark.parametrize("of", SCALARS, ids=lambda of: of.__name__)
def test_a_numpy_scalar_is_as_weak_as_a_number(of: Any, device: str) -> None:
    x = make(device, [1.0, 2.0, 3.5], "float32")
    for number in (np.float64(2.0), np.int64(2), np.float32(2.0), np.bool(True)):
        for found in (of(x, number), of(number, x)):
            assert isinstance(found, tn.Variable) and dtype_name(found) == "float32"
        assert host(of(x, number)).tolist() == host(of(x, float(number))).tolist()
        assert host(of(number, x)).tolist() == host(of(float(number), x)).tolist()


def test_a_numpy_scalar_in_a_comparison_is_a_number(device: str) -> None:
    x = make(device, [0.1, 0.2], "float32")  # 0.1 in float32 differs from 0.1 in float64
    assert host(x == np.float64(0.1)).tolist() == [True, False]
    assert host(np.float64(0.1) == x).tolist() == [True, False]
    assert host(x > np.float64(0.1)).tolist() == [False, True]
    assert host(np.float64(0.1) >= x).tolist() == [True, False]


def test_numbers_beside_complex_and_complex_numbers_beside_floats(device: str) -> None:
    z = make(device, [1j, 2.0], "complex64")
    for number in (2, 2.0, 2j, np.float64(2.0), np.complex128(2j), True):
        assert dtype_name(z * number) == dtype_name(number * z) == "complex64"
        assert host(z * number).tolist() == [1j * number, 2.0 * number]
    x = make(device, [1.0, 2.0], "float32")
    assert dtype_name(x + 1j) == dtype_name(np.complex128(1j) * x) == "complex64"
    assert dtype_name(make(device, [1.0]) + 1j) == "complex128"


# --- writes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", 2.5),
        ("int64", 2.0),
        ("int64", 1j),
        ("int32", np.float64(2.5)),
        ("int32", np.float32(2.0)),
        ("float32", 1j),
        ("float64", np.complex64(1j)),
        ("bool", 2),
        ("bool", np.int8(1)),
        ("int64", [1.5, 2.0]),
        ("int64", [1j, 2j]),
    ],
)
def test_a_write_refuses_a_higher_kind(dtype: str, value: Any, device: str) -> None:
    x = make(device, [0, 1], dtype)
    with pytest.raises(OperandError):
        x[:] = value
    with pytest.raises(OperandError):
        x[:] = make(device, value, np.asarray(value).dtype.name)
    with pytest.raises(OperandError):
        x[x == x] = value
    with pytest.raises(OperandError):
        x += value
    with pytest.raises(OperandError):
        x *= make(device, value, np.asarray(value).dtype.name)
    assert host(x).tolist() == [0, 1] and dtype_name(x) == dtype


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 2),
        ("float32", np.float64(2.0)),
        ("float32", True),
        ("int32", np.int64(2)),
        ("int32", True),
        ("complex64", 2.5),
        ("complex64", 1j),
        ("bool", True),
    ],
)
def test_a_write_keeps_the_dtype(dtype: str, value: Any, device: str) -> None:
    x = make(device, [0, 1], dtype)
    before = x.array
    x[1] = value
    assert dtype_name(x) == dtype and host(x).tolist()[1] == value
    assert host(before).tolist() == [0, 1]


@pytest.mark.parametrize("wide", ["float64", "int64", "int32"])
def test_a_written_array_is_cast_within_the_kind(wide: str, device: str) -> None:
    x = make(device, [0, 0, 0], "float32")
    x[1:] = make(device, [1, 2], wide)
    x += make(device, [1, 1, 1], wide)
    assert dtype_name(x) == "float32" and host(x).tolist() == [1.0, 2.0, 3.0]


def test_a_write_moves_the_variable_and_not_its_readers(device: str) -> None:
    x = make(device, [1.0, 2.0, 3.0], grad=True)
    y = x * 1.0
    square = fn.sum(y * y)
    y[0] = 10.0
    y *= 2.0
    square.backward()  # of the values before the write
    assert host(x.grad).tolist() == [2.0, 4.0, 6.0]
    assert host(y).tolist() == [20.0, 4.0, 6.0]


def test_a_leaf_is_not_written_to(device: str) -> None:
    x = make(device, [1.0, 2.0], grad=True)
    with pytest.raises(GraphError, match="leaf"):
        x[0] = 2.0
    with pytest.raises(GraphError, match="leaf"):
        x *= 2.0


INDEXES: list[Any] = [
    1,
    slice(None, None, 2),
    slice(None, None, -1),
    (..., None),
    "mask",
]


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_writes_have_gradients_to_second_order(index: Any, device: str) -> None:
    def program(x: tn.Variable, v: tn.Variable) -> tn.Variable:
        y = x * x
        chosen = make(device, [True, False, True], "bool") if index == "mask" else index
        y[chosen] = v * v * v
        y *= y
        y[0] += v * x[1]
        return fn.sum(y * y)

    x, v = make(device, [0.5, -0.8, 0.7], grad=True), make(device, 0.9, grad=True)
    arrays = (x.array, v.array)
    weights = (make(device, [0.3, -1.0, 2.0]).array, make(device, 0.5).array)
    one = make(device, 1.0).array
    with tn.using_device(device):
        tn.gradient_check.check_backward(program, arrays, one)
        tn.gradient_check.check_double_backward(program, arrays, one, weights)


def test_the_gradient_of_a_write_is_exact(device: str) -> None:
    x, v = make(device, [1.0, 2.0, 3.0], grad=True), make(device, [4.0, 5.0], grad=True)
    y = x * 1.0
    y[x > 1.5] = v
    fn.sum(y * y).backward(enable_double_backprop=True)
    assert host(x.grad).tolist() == [2.0, 0.0, 0.0] and host(v.grad).tolist() == [8.0, 10.0]
    second = v.grad_var
    v.cleargrad()
    fn.sum(second).backward()
    assert host(v.grad).tolist() == [2.0, 2.0]


def test_the_pattern_of_array_api_extra(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = pytest.importorskip("array_api_extra").at
    xp = SimpleNamespace(asarray=tn.asarray)
    monkeypatch.setattr(tn.Variable, "__array_namespace__", lambda self: xp, raising=False)
    x, v = make(device, [1.0, 2.0, 3.0], grad=True), make(device, 7.0, grad=True)
    y = at(x)[1].set(v, copy=True, xp=xp)
    z = at(y * 1.0)[y > 2.5].multiply(2.0, xp=xp)
    w = at(z)[0].add(v, copy=True, xp=xp)
    assert host(w).tolist() == [8.0, 14.0, 6.0] and host(x).tolist() == [1.0, 2.0, 3.0]
    fn.sum(w).backward()
    assert host(x.grad).tolist() == [1.0, 0.0, 2.0] and float(host(v.grad)) == 3.0


def test_a_part_is_a_value_and_no_view(device: str) -> None:
    x = make(device, [[1.0, 2.0], [3.0, 4.0]])
    row, turned = x[0], x.T
    row[0] = 9.0
    turned[1, 1] = 9.0
    assert host(x).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    x[0] += 1.0
    assert host(x).tolist() == [[2.0, 3.0], [3.0, 4.0]]


# --- conversions ---------------------------------------------------------------------------------


def test_iteration_over_a_number_fails_at_once(device: str) -> None:
    x = make(device, 1.0)
    with pytest.raises(TypeError, match="0-d"):
        iter(x)
    with pytest.raises(TypeError, match="0-d"):
        len(x)
    assert not np.iterable(x) and np.iterable(make(device, [1.0]))
    assert [float(row) for row in make(device, [1.0, 2.0])] == [1.0, 2.0]


def test_python_s_numbers(device: str) -> None:
    x = make(device, 2.5, grad=True)
    assert (bool(x), int(x), float(x), complex(x)) == (True, 2, 2.5, 2.5 + 0j)
    assert type(complex(x)) is complex and type(float(x)) is float
    z = make(device, 1 + 2j, "complex128")
    assert complex(z) == 1 + 2j and bool(z)
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(z)
    with pytest.raises(ValueError):
        int(make(device, np.nan))
    with pytest.raises(OverflowError):
        int(make(device, np.inf))
    assert operator.index(make(device, 3, "int32")) == 3 and "abc"[make(device, 1, "int64")] == "b"
    assert not make(device, False, "bool") and float(make(device, 3, "int64")) == 3.0


@pytest.mark.parametrize(
    ("values", "dtype"), [(2.0, "float64"), (True, "bool"), ([3], "int64"), (1j, "complex128")]
)
def test_only_an_integer_is_an_index(values: Any, dtype: str, device: str) -> None:
    with pytest.raises(TypeError, match=r"operator\.index\(x\): only an integer"):
        operator.index(make(device, values, dtype))


def test_dlpack_shares_the_memory(device: str) -> None:
    x = make(device, [1.0, 2.0, 3.0])
    kind, number = x.__dlpack_device__()
    assert (int(kind), number) == (1, 0)
    shared = np.from_dlpack(x)
    assert np.shares_memory(shared, host(x)) and shared.tolist() == [1.0, 2.0, 3.0]
    copied = np.from_dlpack(x, copy=True)
    assert not np.shares_memory(copied, host(x))
    assert "dltensor" in repr(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False))


def test_dlpack_cuts_no_graph(device: str) -> None:
    x = make(device, [1.0, 2.0], grad=True)
    with pytest.raises(BufferError, match=r"x\.detach\(\)"):
        np.from_dlpack(x)
    with pytest.raises(BufferError, match=r"__dlpack__\(\): x requires a gradient"):
        x.__dlpack__()
    assert np.from_dlpack((x * 2.0).detach()).tolist() == [2.0, 4.0]


def test_an_empty_variable_is_not_exported() -> None:
    with pytest.raises(GraphError, match="empty"):
        tn.Variable(None, requires_grad=False).__dlpack__()


def test_to_device_has_the_signature_of_the_standard(device: str) -> None:
    x = make(device, [1.0, 2.0], grad=True)
    assert x.to_device(x.device, stream=None) is x
    with pytest.raises(OperandError, match=r"x\.to_device: stream must be None, got int 3"):
        x.to_device(x.device, stream=3)
    with pytest.raises(TypeError):
        x.to_device(device=x.device)  # type: ignore[call-arg]
    moved = x.to_device("numpy")
    fn.sum(moved * moved).backward()
    assert host(x.grad).tolist() == [2.0, 4.0]
