"""Every row of the table, on every backend, by every driver; and that the table is complete."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import operator
import pkgutil
from typing import Any

import array_api_strict
import numpy as np
import op_drivers
import pytest
import row_counts
from fast_kernels import set_all_limits
from op_cases import CASES, LAYOUTS, Case, Input

import tinynode as tn
from tinynode import functions as fn
from tinynode.devices import kernel_uses
from tinynode.errors import DeviceError

# array_api_strict on a device that refuses to become a NumPy array: no NumPy-ism survives there
DEVICES = ["numpy", "strict:device1", "fast"]


def why_no_gpu() -> str:
    """What CuPy says where it finds no usable GPU; empty where it finds one."""
    try:
        tn.get_device("cupy")
    except DeviceError as error:
        return f"no usable GPU: {error}"
    return ""


NO_GPU = why_no_gpu()
STRICT = "strict:device1"
WAYS = ["numpy", STRICT, "fast, limits 0", "fast, limits huge"]
"""Where each row runs; the fast backend with each limit at its lowest, and with huge ones."""
GPU = "" if NO_GPU else str(tn.get_device("cupy"))
if GPU:
    DEVICES.append(GPU)

ROWS = op_drivers.by_operation(CASES)
FIRST = 2
"""Rows of an operation that the default tests check in each respect; the slow tests take all."""


@pytest.mark.gpu
@pytest.mark.skipif(bool(NO_GPU), reason=NO_GPU)
def test_the_table_is_run_on_a_gpu():
    """Skipped with the reason where there is none: then no row of the table is."""
    assert GPU in DEVICES


@contextlib.contextmanager
def on_its_device(way):
    """The name of the device of a way.

    Arrays are the fast backend's only where it is the current device: NumPy owns them, too.
    """
    device, _, limits = way.partition(", ")
    if not limits:
        yield device
        return
    with pytest.MonkeyPatch.context() as patch, tn.using_device(device):
        set_all_limits(patch, limits == "limits huge")
        yield device


def rows_on(operation, device):
    """The rows of an operation that a device takes.

    Moves between NumPy and ``fast`` are tested with that backend: their memory is the same, so
    the drivers cannot tell by an array on which of the two it is to stand.
    """
    if (operation, device) == ("to_device", "fast"):
        return []
    return [case for case in ROWS[operation] if op_drivers.runs_on(case, device)]


@pytest.mark.parametrize("operation", ROWS)
def test_operation(operation, record_property):
    """Each row: derivatives are proven on the reference, other ways are compared with it."""
    for way in WAYS[:-1]:
        with_kernels = check_operation(operation, way)
    check_operation(operation, WAYS[-1], with_kernels)
    row_counts.tell(record_property, "numpy", len(rows_on(operation, "numpy")))


def check_operation(operation, way, only=None):
    """Run the checks of the rows, or of those with an id in ``only``.

    The ids of the rows for which kernels ran: limits decide about the other rows nowhere.
    """
    with_kernels = set()
    with on_its_device(way) as device:
        for number, case in enumerate(rows_on(operation, device)):
            if way == "fast, limits 0" and number >= FIRST and not with_kernels:
                break  # the operation has no kernel; the slow tests take all rows
            if way == STRICT and number >= 2 * FIRST:
                break  # likewise
            if only is None or case.id in only:
                kernel_uses.clear()
                left_out = [op_drivers.check_pure_steps] * (number >= FIRST)
                chosen = first_dtype(case) if way == STRICT else case
                op_drivers.run_checks(chosen, device, left_out)
                with_kernels |= {case.id} if kernel_uses else set()
    return with_kernels


def first_dtype(case):
    return dataclasses.replace(case, dtypes=case.dtypes[:1])


@pytest.mark.slow
@pytest.mark.parametrize("operation", ROWS)
def test_all_rows_on_the_strict_backend(operation, record_property):
    """The default tests take the first rows and one dtype: the reference has proven all dtypes."""
    with on_its_device(STRICT) as device:
        for case in rows_on(operation, device):
            op_drivers.run_checks(case, device)
    row_counts.tell(record_property, "strict", len(rows_on(operation, device)))


@pytest.mark.gpu
@pytest.mark.parametrize("operation", [] if NO_GPU else ROWS)
def test_operation_on_a_gpu(operation):
    check_operation(operation, GPU)
    for case in rows_on(operation, GPU):
        op_drivers.check_pure_steps(case, GPU)


@pytest.mark.slow
@pytest.mark.parametrize("operation", ROWS)
def test_steps_of_all_rows_are_pure(operation):
    """On every device; the default tests take the first rows on the reference."""
    for way in WAYS:
        with on_its_device(way) as device:
            for case in rows_on(operation, device):
                with op_drivers.naming(f"{case.id}: {way}"):
                    op_drivers.check_pure_steps(case, device)


@pytest.mark.slow
@pytest.mark.parametrize("operation", ROWS)
def test_rows_without_kernels_on_fast(operation, record_property):
    """The default tests leave an operation after a few rows without a kernel."""
    with on_its_device("fast, limits 0") as device:
        rows = rows_on(operation, device)[FIRST:]
        for case in rows:
            op_drivers.run_checks(case, device)
    row_counts.tell(record_property, "fast", len(rows))


def test_a_failing_row_is_named():
    wrong = Case("cube", "cube-wrong", cube, abs, (Input((2, 3)),))
    with pytest.raises(AssertionError) as caught:
        op_drivers.run_checks(wrong, "numpy")
    assert caught.value.__notes__ == ["row cube-wrong: check_forward on numpy"]


# --- the table is complete, and the drivers do what they say -------------------------------------


def function_classes() -> set[type]:
    """Every FunctionNode class in tinynode.functions that brings a forward, exported or not."""
    classes = set()
    for module in pkgutil.iter_modules(fn.__path__, fn.__name__ + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, tn.FunctionNode):
                classes.add(value)
    return {one for one in classes if one.forward is not tn.FunctionNode.forward}


# of shapes alone: no array goes in or comes out
NO_ARRAYS = {"broadcast_shapes"}


def exported_functions() -> dict[str, Any]:
    """The functions of tinynode.functions and of its linalg, by name."""
    exported = {name: getattr(fn, name) for name in fn.__all__ if name not in NO_ARRAYS}
    exported |= {name: getattr(fn.linalg, name) for name in fn.linalg.__all__}
    return {name: value for name, value in exported.items() if inspect.isfunction(value)}


def test_every_exported_function_has_a_row_that_calls_it():
    called = {inspect.unwrap(case.function) for case in CASES}
    functions = exported_functions()
    assert len(functions) > 150
    assert [name for name, value in functions.items() if value not in called] == []


def test_every_function_can_be_differentiated_twice():
    assert {case.operation for case in CASES if case.order == 1} == set()


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.not_on_strict], ids=operator.attrgetter("id")
)
def test_array_api_strict_refuses_what_rows_say_it_refuses(case):
    assert op_drivers.runs_on(case, "numpy") and not op_drivers.runs_on(case, "strict:device1")
    with pytest.raises((IndexError, RuntimeError, tn.errors.DeviceError)):
        op_drivers.check_forward(case, "strict:device1")


# rows have real inputs and outputs: test_complex.py has the functions of complex numbers
OF_COMPLEX_NUMBERS = {"Conj", "Fft", "InverseFft", "InverseRealFft", "Real", "RealFft"}


@pytest.mark.slow
def test_every_function_node_class_stands_in_the_graph_of_a_row():
    missing = function_classes()
    assert {value for value in vars(fn).values() if isinstance(value, type)} <= missing
    missing = {one for one in missing if one.__name__ not in OF_COMPLEX_NUMBERS}
    for case in CASES:
        missing -= op_drivers.record(case, "numpy", 0).classes
        missing -= op_drivers.record_without_graph(case, "numpy", 0).classes
        if not missing:
            return
    raise AssertionError(f"no row has a graph with {sorted(one.__name__ for one in missing)}")


def test_rows_have_names_of_their_own_that_start_with_what_they_are_about():
    assert len({case.id for case in CASES}) == len(CASES)
    known = {*exported_functions(), *(one.__name__ for one in function_classes())}
    assert {case.operation for case in CASES} <= known


def test_strict_rows_run_on_arrays_of_array_api_strict():
    device = tn.get_device("strict:device1")
    for case in CASES[::10]:
        for x in op_drivers.make_inputs(case, op_drivers.draw_inputs(case, "float32"), device):
            array = x.array if isinstance(x, tn.Variable) else x
            assert type(array) is type(array_api_strict.zeros(()))
            assert array.device == array_api_strict.Device("device1")


@pytest.mark.parametrize("device", DEVICES)
def test_layouts_are_what_they_say(device):
    host = np.arange(12.0).reshape(3, 4)
    strides = {}
    for layout in ("contiguous", *LAYOUTS):
        array = op_drivers.place(Input((3, 4), layout=layout), host, tn.get_device(device))
        np.testing.assert_array_equal(tn.to_host(array), host)
        strides[layout] = getattr(array, "_array", array).strides
    assert strides == {
        "contiguous": (32, 8),
        "strided": (128, 16),
        "transposed": (8, 24),
        "reversed": (-32, -8),
    }


def cube(x: Any) -> Any:
    return x**3 / 3


class Wrong(tn.FunctionNode):
    """y = x^3 / 3 with an error in its gradient; ``how`` says which."""

    def __init__(self, how: str) -> None:
        self.how = how

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        self.retain_inputs((0,))
        if self.how == "hands over by self":
            self.seen = x
        if self.how == "writes to its input":
            x[...] = x + 1
        return (x * x * x / 3,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        if self.how == "factor":
            return (gy * x * x * 1.00001,)
        if self.how == "cut":
            return (gy * x.detach() * x,)
        if self.how == "no second order":
            return (gy.detach() * (x * x).detach(),)
        if self.how == "imprecise at float32" and x.dtype == np.float32:
            return (gy * x * x * 1.001,)
        return (gy * x * x,)


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("factor", op_drivers.check_gradients),
        ("cut", op_drivers.check_gradients),
        ("no second order", op_drivers.check_gradients),
        ("imprecise at float32", op_drivers.check_dtypes),
        ("hands over by self", op_drivers.check_pure_steps),
        ("writes to its input", op_drivers.check_arrays_untouched),
    ],
)
def test_drivers_catch_a_wrong_function(how, check):
    def function(x: Any) -> Any:
        return Wrong(how).apply((x,))[0]

    check(Case("cube", "cube-right", cube, cube, (Input((2, 3)),)), "numpy")
    with pytest.raises((AssertionError, TypeError)):
        check(Case("cube", "cube-wrong", function, cube, (Input((2, 3)),)), "numpy")
