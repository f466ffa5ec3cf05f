"""Functions and operators with hostile arguments: a named error, or the same values each way."""

from __future__ import annotations

import contextlib
import inspect
import os
from typing import Any

import hostile_constructors
import mutated_nets
import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.core.function_node import FunctionNode
from tinynode.errors import NetError, OperandError
from tinynode.functions.attribute_types import attribute_types, fits
from tinynode.functions.attributes import Place, Slice
from tinynode.functions.image_windows import Windows
from tinynode.functions.pooling import SumBlocks2d, UpsampleNearest2d
from tinynode.net import NetOp, Operator, Scope, dumps, loads, registry
from tinynode.net.body import Body
from tinynode.net.operator import operator_of

X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)


# --- the attack ----------------------------------------------------------------------------------


def check_attacks(every: int) -> None:
    report = hostile_constructors.run(0, None, every, rows=1)
    assert report.nets > 16_000 // every
    assert report.findings == []
    assert 0 < report.with_values < report.nets / 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX processes")
def test_some_hostile_constructors() -> None:
    """Every 997th of the attacks; the next test makes more."""
    check_attacks(997)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX processes")
@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.long)])
def test_many_hostile_constructors(every: int) -> None:
    check_attacks(every)


def test_a_nameless_error_is_found() -> None:
    row = hostile_constructors.Row("sum", fn.Sum, {}, [])
    attack = hostile_constructors.Attack(row, "axes", 1)
    errors = [KeyError("sum"), ValueError("of another thing"), ValueError("sum " * 1000)]
    for error in errors:
        ways = {"applied": mutated_nets.Outcome(None, error)}
        assert hostile_constructors.nameless(attack, ways).startswith("nameless error, applied")
    for named in (ValueError("sum: x"), IndexError("axes"), MemoryError()):
        ways = {"applied": mutated_nets.Outcome(None, named)}
        assert hostile_constructors.nameless(attack, ways) == ""


# --- each class of the library -------------------------------------------------------------------


def classes() -> list[Any]:
    """The classes of the library whose constructors take arguments."""
    registry.get_op_info("add")
    found = [info.node_class for info in registry.OpInfoMap.values()]
    return [one for one in found if registry.is_of_tinynode(one) and attribute_types(one)]


def a_value_of(kind: Any) -> Any:
    """A value of a declared type."""
    windows = Windows((1, 1), (1, 1), (0, 0), (1, 1))
    candidates = [0, 1, -1, 0.5, True, "mean", "ortho", "a", (), (0,), (1, 1), windows]
    candidates += [np.dtype("float32"), tn.get_device("numpy"), np.random.default_rng(0), X]
    candidates += [("a",), ((), ()), (0.5, 0.5), Body(NetOp([]), ("x",), ("x",)), "dense"]
    return next(value for value in candidates if fits(value, kind))


@pytest.mark.parametrize("node_class", classes(), ids=lambda one: one.__name__)
def test_constructors_refuse_what_the_schema_refuses(node_class: Any) -> None:
    """Each argument is checked, and by the annotations alone."""
    kinds = attribute_types(node_class)
    names = list(inspect.signature(node_class.__init__).parameters)[1:]
    good = {name: a_value_of(kinds[name]) for name in names}
    assert isinstance(node_class(**good), FunctionNode)
    for name in names:
        for value in hostile_constructors.hostile_values(good[name]):
            is_open = kinds[name] in (str, Any)
            if fits(value, kinds[name], of_text=False) or is_open:
                continue
            with pytest.raises((OperandError, ValueError), match=f"{name} (must be|is) .*"):
                node_class(**good | {name: value})


# --- what the arguments become -------------------------------------------------------------------


def test_numbers_of_numpy_become_those_of_python() -> None:
    node = fn.Sum((np.int64(0), np.int8(1)), np.bool_(True))
    assert [type(axis) for axis in node.axes] == [int, int] and node.keepdims is True
    windows = Windows((np.int64(2), 2), (1, 1), (0, 0), (1, 1))
    assert type(fn.MaxPool2d(windows).windows.size[0]) is int
    assert type(fn.LeakyReLU(np.float64(0.5)).slope) is float
    assert fn.GetItem((slice(0, 1), 2)).index == (Slice(0, 1, None), 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: fn.Sum(("a",), False),
            r"Sum: axes must be tuple\[int from 0 to 63, .* got",
        ),
        (lambda: fn.Sum((0,), 2), "Sum: keepdims must be bool, got int 2"),
        (lambda: fn.Reshape((-1,)), r"Reshape: shape must be tuple\[int not below 0"),
        (lambda: fn.BroadcastTo((1,) * 65), "BroadcastTo: shape must be .* of at most 64 axes"),
        (lambda: fn.LeakyReLU(X), "LeakyReLU: slope must be float, got"),
        (lambda: fn.GetItem((Place(-1),)), "GetItem: index must be a tuple of integers, Slice"),
        (lambda: fn.Roll((2**64,), (0,)), "Roll: shifts must be"),
        (lambda: fn.PolyGamma(1001), "PolyGamma: n must be int from 0 to 1000, got int 1001"),
        (
            lambda: fn.MaxPool2d(Windows((2, 2), (0, 1), (0, 0), (1, 1))),
            r"MaxPool2d: windows must be Windows\(size: tuple\[int not below 1, .* got Windows",
        ),
    ],
)
def test_the_error_names_class_argument_and_value(make: Any, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        make()


def test_an_error_of_the_array_library_has_the_arguments_in_a_note() -> None:
    with pytest.raises(ValueError, match="axis 5 is out of bounds") as caught:
        fn.Sum((5,), False).apply((X,))
    (note,) = caught.value.__notes__
    assert note == "It was raised by the forward of Sum, axes=(5,), keepdims=False."


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_huge_stride_of_a_single_window_is_no_step_in_memory(device: str) -> None:
    images = tn.asarray(np.arange(32.0).reshape(1, 2, 4, 4), device=device)
    compiled = tn.compile(lambda x: fn.max_pool2d(x, 2, stride=(2, 2**62)))
    for _ in range(3):
        assert compiled(images).array.tolist() == [[[[5.0], [13.0]], [[21.0], [29.0]]]]


@pytest.mark.parametrize("shape", [(2, 2, 4, 6), (0, 2, 4, 6), (2, 2, 0, 6), (2, 2, 0, 0)])
@pytest.mark.parametrize("scale", [(2**62, 2), (2, 2**31), (3, 2), (2**31, 2**31)])
def test_no_loop_runs_over_a_huge_scale(shape: Any, scale: Any) -> None:
    x = np.ones(shape)
    fits_in = shape[2] % scale[0] == 0 and shape[3] % scale[1] == 0
    if fits_in:
        SumBlocks2d(scale).apply((x,))
    else:
        with pytest.raises(
            ValueError, match="SumBlocks2d: scale must divide the height and width"
        ):
            SumBlocks2d(scale).apply((x,))
    if scale != (3, 2):
        with contextlib.suppress(MemoryError, ValueError):
            UpsampleNearest2d(scale).apply((x[:0],))


# --- operators of nets in code -------------------------------------------------------------------


def sum_operator(**changes: Any) -> Operator:
    return Operator("sum", ["x"], ["y"], {"axes": (0,), "keepdims": False} | changes)


def test_an_operator_made_in_code_has_the_schema_of_a_text() -> None:
    with pytest.raises(NetError, match="Sum: axes must be"):
        sum_operator(axes=("0",))
    with pytest.raises(NetError, match="sum: expected 1 inputs, got 2"):
        Operator("sum", ["x", "z"], ["y"], {"axes": (0,), "keepdims": False})
    assert type(sum_operator(axes=(np.int64(0),)).attrs["axes"][0]) is int


@pytest.mark.parametrize("value", [("0",), (-1,), (0, 0), [0], None, (True,), (2**64,)])
def test_a_changed_attribute_is_checked_before_the_next_run(value: Any) -> None:
    operator = sum_operator()
    net, scope = NetOp([operator]), Scope({"x": X})
    net.run(scope)
    operator.attrs["axes"] = value
    with pytest.raises(NetError, match=r"sum: attribute axes must be .*, got"):
        net.run(scope)
    with pytest.raises(NetError, match=r"sum: attribute axes must be .*, got"):
        tn.compile(lambda x: net.run(Scope({"x": x})))(X)
    operator.attrs["axes"] = (1,)
    net.run(scope)
    assert scope.find("y").shape == (4,)
    del operator.attrs["keepdims"]
    with pytest.raises(NetError, match="sum: attribute keepdims is missing"):
        net.run(scope)


def test_the_schema_is_asked_once_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, calls = sum_operator(), []
    monkeypatch.setattr(Operator, "check", lambda self: calls.append(self))
    for _ in range(3):
        operator.make_node()
    assert calls == []
    operator.attrs["axes"] = (1,)
    operator.make_node()
    assert calls == [operator]


def test_large_shapes_are_refused_in_a_text_alone() -> None:
    """Arrays of code may be large; the text of a net may claim anything."""
    wide = fn.BroadcastTo((2**20, 2**20))
    operator = operator_of(wide, ["x"], ["y"])
    assert operator.make_node().shape == (2**20, 2**20)
    with pytest.raises(NetError, match="broadcast_to: attribute shape must be"):
        loads(dumps(NetOp([operator])))


def test_nets_of_the_table_are_read_again() -> None:
    """The constructors allow what the schema of a text allows."""
    for row in hostile_constructors.rows_of(mutated_nets.seeds(1)):
        assert isinstance(row.node_class(**row.arguments), row.node_class)
