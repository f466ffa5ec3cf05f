"""asarray, and what else turns numbers, lists and arrays into Variables and back."""

from __future__ import annotations

import inspect

import array_api_strict
import numpy as np
import pytest

import tinynode as tn
from tinynode.core.array_arguments import RawArgument
from tinynode.core.conversion import as_variable, is_operand
from tinynode.errors import DeviceError, DeviceMixError, OperandError, RequiresGradError

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


# --- asarray: what it takes ------------------------------------------------------------------


def test_the_signature_is_that_of_the_contract():
    parameters = inspect.signature(tn.asarray).parameters
    assert list(parameters) == ["obj", "dtype", "device", "copy", "requires_grad", "name"]
    assert [p.default for p in list(parameters.values())[1:]] == [None] * 5
    assert parameters["name"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(
    ("obj", "dtype", "requires_grad"),
    [
        (1.5, np.float32, True),
        ([1.0, 2.0], np.float32, True),
        ([[1, 2.5], [3, 4]], np.float32, True),
        ((1.0,), np.float32, True),
        ([], np.float32, True),
        (3, np.int64, False),
        ([1, 2], np.int64, False),
        (True, np.bool_, False),
        ([True, False], np.bool_, False),
        (1j, np.complex128, True),
        (np.float64(1.5), np.float64, True),
        (np.float16(1.5), np.float16, True),
        (np.int32(3), np.int32, False),
        (np.zeros(2), np.float64, True),
        (np.zeros(2, np.float32), np.float32, True),
        (np.zeros(2, np.int8), np.int8, False),
    ],
)
def test_numbers_lists_and_arrays_their_dtypes_and_whether_they_require_a_gradient(
    obj, dtype, requires_grad
):
    x = tn.asarray(obj)
    assert type(x) is tn.Variable and type(x.array) is np.ndarray
    assert x.dtype == dtype and x.requires_grad is requires_grad
    assert x.shape == np.shape(obj) and x.device is tn.get_device("numpy")
    np.testing.assert_array_equal(x.array, np.asarray(obj))


def test_python_floats_become_config_dtype():
    with tn.using_config(dtype="float64"):
        assert tn.asarray([1.0]).dtype == np.float64
    with tn.using_config(dtype="float16"):
        assert tn.asarray(1.0).dtype == np.float16
        assert tn.asarray(np.zeros(1)).dtype == np.float64  # an array keeps its own


@pytest.mark.parametrize("obj", ["text", object(), None, {1: 2}, [1.0, "a"], np.float64])
def test_what_makes_no_array_is_a_type_error(obj):
    with pytest.raises(TypeError, match="asarray"):
        tn.asarray(obj)


def test_a_ragged_list_is_a_value_error():
    with pytest.raises(ValueError):
        tn.asarray([[1.0], [1.0, 2.0]])


def test_a_list_that_holds_variables_is_refused_with_the_cure():
    with pytest.raises(OperandError, match=r"list holds Variables.*concat"):
        tn.asarray([1.0, [variable(2.0)]])


# --- asarray: dtype --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, "float32", np.dtype("float32")])
@pytest.mark.parametrize("obj", [1, [1, 2], np.array([1, 2]), np.float64(1)])
def test_a_dtype_may_be_given_by_object_or_name(obj, dtype):
    x = tn.asarray(obj, dtype=dtype)
    assert x.dtype == np.float32 and x.requires_grad is True


def test_an_unknown_dtype_name_is_an_error_that_names_it():
    for obj in ([1.0], variable([1.0])):
        with pytest.raises(OperandError, match=r"asarray: dtype 'float33' is unknown on numpy"):
            tn.asarray(obj, dtype="float33")


def test_a_cast_to_integers_requires_no_gradient():
    x = tn.asarray([1.5, 2.5], dtype="int64")
    assert x.requires_grad is False
    np.testing.assert_array_equal(x.array, [1, 2])


# --- asarray: copy ---------------------------------------------------------------------------


def test_copy_none_shares_memory_and_true_never_does():
    array = np.zeros(2)
    assert tn.asarray(array).array is array
    assert tn.asarray(array, copy=False).array is array
    copied = tn.asarray(array, copy=True)
    assert not np.shares_memory(copied.array, array)
    assert tn.asarray(array, dtype="float64", copy=False).array is array
    strict = array_api_strict.asarray([1.0, 2.0])
    moved = tn.asarray(strict, device="numpy", copy=True)
    moved.array[0] = 5.0
    assert float(strict[0]) == 1.0
    moved = tn.asarray(strict, device="numpy")
    assert np.shares_memory(moved.array, tn.asarray(strict, device="numpy").array)
    cast = tn.asarray(array, dtype="float32", copy=True)
    assert not np.shares_memory(cast.array, array)


@pytest.mark.parametrize(
    "arguments",
    [
        {"obj": [1.0]},
        {"obj": 1.0},
        {"obj": np.float64(1.0)},
        {"obj": np.zeros(1), "dtype": "float32"},
        {"obj": np.zeros(1), "device": "strict"},
        {"obj": variable([1.0]), "dtype": "float32"},
        {"obj": variable([1.0]), "device": "strict"},
    ],
)
def test_copy_false_is_a_value_error_where_a_copy_is_needed(arguments):
    with pytest.raises(ValueError, match=r"asarray: copy=False"):
        tn.asarray(**arguments, copy=False)


# --- asarray: requires_grad ------------------------------------------------------------------


def test_requires_grad_may_be_asked_for_or_refused():
    assert tn.asarray([1.0], requires_grad=False).requires_grad is False
    assert tn.asarray([1], dtype="float32", requires_grad=True).requires_grad is True
    with pytest.raises(RequiresGradError, match=r"int64.*only floating dtypes"):
        tn.asarray([1], requires_grad=True)


# --- asarray: Variables ----------------------------------------------------------------------


def test_a_variable_comes_back_as_it_is():
    x = variable([1.0])
    for y in (tn.asarray(x), tn.asarray(x, copy=False), tn.asarray(x, dtype="float64")):
        assert y is x
    assert tn.asarray(x, device="numpy") is x and tn.asarray(x, requires_grad=True) is x


def test_a_variable_stays_on_its_device_unless_another_is_asked_for():
    x = tn.asarray([1.0], device="strict:device1")
    assert tn.asarray(x) is x
    assert tn.asarray(x, dtype="float32").device is tn.get_device("strict:device1")


def test_an_argument_of_a_net_gives_its_variable():
    x = variable([1.0])
    argument = RawArgument(x)
    assert as_variable(argument) is x and tn.asarray(argument) is x


def test_a_converted_variable_stays_in_its_graph():
    x = variable([1.0, 2.0])
    for y in (
        tn.asarray(x * 2.0, copy=True),
        tn.asarray(x * 2.0, dtype="float32"),
        tn.asarray(tn.asarray(x * 2.0, device="strict"), device="numpy"),
    ):
        x.cleargrad()
        F.sum(y).backward()
        np.testing.assert_array_equal(x.grad, [2.0, 2.0])


def test_copy_true_of_a_variable_shares_no_memory():
    x = variable([1.0])
    assert not np.shares_memory(tn.asarray(x, copy=True).array, x.array)


def test_another_requires_grad_makes_a_variable_outside_the_graph():
    x = variable([1.0])
    y = tn.asarray(x * 2.0, requires_grad=False)
    assert y.requires_grad is False and y.creator is None
    z = tn.asarray(y, requires_grad=True)
    assert z is not y and z.requires_grad and y.requires_grad is False
    with pytest.raises(RequiresGradError):
        tn.asarray(variable([1], np.int64), requires_grad=True)


# --- asarray: devices ------------------------------------------------------------------------


def test_an_array_stands_where_it_lies_and_moves_where_it_is_asked_to():
    strict_array = array_api_strict.asarray([1.0, 2.0])
    x = tn.asarray(strict_array)
    assert x.device is tn.get_device("strict:CPU_DEVICE") and x.array is strict_array
    moved = tn.asarray(strict_array, device="numpy")
    assert type(moved.array) is np.ndarray and moved.device is tn.get_device("numpy")
    back = tn.asarray(moved.array, device="strict:device1")
    assert back.device is tn.get_device("strict:device1") and back.requires_grad


def test_numbers_and_lists_stand_on_the_current_device():
    with tn.using_device("strict"):
        x = tn.asarray([1.0, 2.0])
    assert str(x.device) == "strict:CPU_DEVICE"
    assert x.dtype == array_api_strict.float32
    assert tn.asarray([1.0], device="strict:device2").device is tn.get_device("strict:device2")


def test_an_unknown_device_is_an_error():
    with pytest.raises(DeviceError, match="nowhere"):
        tn.asarray([1.0], device="nowhere")


# --- the others ------------------------------------------------------------------------------


def test_as_variable_wraps_arrays_without_a_gradient_and_gives_variables_back():
    x, array = variable([1.0]), np.zeros(2)
    assert tn.as_variable(x) is x
    y = tn.as_variable(array)
    assert y.array is array and y.requires_grad is False
    for value in (1.0, [1.0], np.str_("1.0"), None):
        with pytest.raises(DeviceMixError, match="as_variable: value must be an array"):
            tn.as_variable(value)


def test_as_array_gives_the_array():
    x, array = variable([1.0]), np.zeros(2)
    assert tn.as_array(x) is x.array and tn.as_array(array) is array
    for value in (1.0, [1.0], np.str_("1.0"), None):
        with pytest.raises(DeviceMixError, match="as_array: value must be an array"):
            tn.as_array(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, True),
        (1.5, True),
        (True, True),
        (1j, True),
        (np.float32(1), True),
        (np.ones(1), True),
        (variable([1.0]), True),
        (None, False),
        ([1.0], False),
        ("text", False),
        (np.float64, False),
        (float, False),
    ],
)
def test_what_may_stand_beside_a_variable(value, expected):
    assert is_operand(value) is expected


def test_to_host_gives_a_numpy_array():
    array = np.ones(2)
    assert tn.to_host(array) is array
    host = tn.to_host(array_api_strict.ones(2, device=array_api_strict.Device("device1")))
    assert type(host) is np.ndarray


def test_a_python_float_with_a_dtype_is_cast_once() -> None:
    assert tn.asarray(0.1, dtype="float64").array == 0.1
    assert tn.asarray([0.1], dtype="float64").array[0] == 0.1
