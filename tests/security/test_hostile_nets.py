"""Files of nets by a stranger: no attribute becomes code, and none leads to foreign memory."""

from __future__ import annotations

import copy
import ctypes
import json
import math
import os
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from c_compiler import missing_compiler

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import NetError
from tinynode.functions import activation, attributes
from tinynode.functions.attribute_types import attribute_types, fits
from tinynode.functions.attributes import AnyIndex, Axes, Dtype, Place, Shape, Slice, Within
from tinynode.functions.convolution import Conv2d, Conv2dGradW, Conv2dGradX
from tinynode.functions.image_windows import Windows
from tinynode.functions.pooling import TakeWinners
from tinynode.net import Scope, load_net, loads, registry, save_net
from tinynode.net.operator import operator_of
from tinynode.net.passes import TimesNumber
from tinynode.nn.updates import AdamUpdate
from tinynode_fast.native import build
from tinynode_fast.native.calls import NestCall
from tinynode_fast.native.formulas import formula, integer, number
from tinynode_fast.plan import CallPlan, FastPlan
from tinynode_fast.rules import RULES

MARK = "system"
COMMAND = '0 && ({extern int system(const char*);system("touch PATH");}) != -9'


pytestmark = pytest.mark.usefixtures("native_cache")


def net_text(type: str, inputs: list[str], outputs: list[str], attrs: dict[str, Any]) -> str:
    operator = {"type": type, "inputs": inputs, "outputs": outputs, "attrs": attrs}
    content = {"net": "f", "operators": [operator]}
    return json.dumps({"format": "tinynode net 1", "content": content})


# --- the text --------------------------------------------------------------------------------


def test_a_command_in_an_attribute_does_not_run(tmp_path: Any) -> None:
    path = tmp_path / "ran"
    label = COMMAND.replace("PATH", str(path))
    attrs = {"reduction": "sum", "ignore_label": label, "smoothing": 0.0}
    text = net_text("softmax_cross_entropy", ["x", "t"], ["y", "p"], attrs)

    def run(x: Any, t: Any) -> Any:
        scope = Scope({"x": x, "t": t})
        loads(text).run(scope)
        return scope.find("y")

    compiled = tn.compile(run)
    x, t = [tn.asarray(one, device="fast") for one in (np.ones((4, 3)), LABELS)]
    with pytest.raises(NetError, match="attribute ignore_label must be int, got str '0 &&"):
        for _ in range(3):
            compiled(x, t)
            build.wait()
    assert not path.exists()


def of_library() -> list[Any]:
    registry.get_op_info("add")
    infos = registry.OpInfoMap.values()
    return [info for info in infos if info.node_class.__module__.startswith("tinynode.")]


def test_each_attribute_of_the_library_has_a_declared_type() -> None:
    """A text in the place of a number, or a number in the place of a text, is refused."""
    seen = set()
    for info in of_library():
        for name, kind in attribute_types(info.node_class).items():
            if kind is Any:
                continue
            wrong = {"list": [COMMAND]}
            seen.add((info.name, name))
            message = f"{info.name}: (attribute {name} must be |'inputs' cannot be the name)"
            with pytest.raises(NetError, match=message):
                loads(net_text(info.name, ["x"], ["y"], {name: wrong}))
    assert {("conv2d", "windows"), ("leaky_relu", "slope"), ("split", "axis")} <= seen
    assert ("einsum", "subscripts") in seen and ("constant", "output_device") in seen
    assert len(seen) > 100


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, int),
        (np.int32(3), int),
        (-(2**63), int),
        (2, Annotated[int, Within(1, 2)]),
        ((0, 63), Axes),
        ((2, 3), Shape),
        ("mean", Literal["mean", "sum"]),
        ((1, Slice(None, -1, 2), None, ..., Place(1)), AnyIndex),
        (np.dtype("float32"), Dtype),
        (1, float),
        (np.float32(1.5), float),
        (False, bool),
        (np.bool_(True), bool),
        ((), tuple[int, ...]),
        ((1, 2), tuple[int, ...]),
        ((1, 2), tuple[int, int]),
        ((1, 2), tuple[int, int] | None),
        (None, tuple[int, int] | None),
        ("text", str),
        (Windows((2, 2), (1, 1), (0, 0), (1, 1)), Windows),
        (COMMAND, Any),
    ],
)
def test_what_fits(value: Any, kind: Any) -> None:
    assert fits(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", int),
        (1.0, int),
        (None, int),
        (True, int),
        (2**63, int),
        (-(2**63) - 1, int),
        (True, float),
        (2**2000, float),
        (0, Annotated[int, Within(1, 2)]),
        (float("nan"), Annotated[float, Within(0.0, 1.0)]),
        ((0, 0), Axes),
        ((-1,), Axes),
        ((64,), Axes),
        ((2**40,), Shape),
        ((2**20, 2**20), Shape),
        ((-1, 2), Shape),
        ("median", Literal["mean", "sum"]),
        (1, Literal["mean", "sum"]),
        ((..., ...), AnyIndex),
        ((Slice(0, 1, 0),), AnyIndex),
        ((Slice(0, "1", None),), AnyIndex),
        ((Place(-1),), AnyIndex),
        (("x",), AnyIndex),
        ("float32", Dtype),
        (np.ones(2), Dtype),
        ("1.0", float),
        (np.ones(1), float),
        (1, bool),
        ([1], tuple[int, ...]),
        ((1, "2"), tuple[int, ...]),
        ((1,), tuple[int, int]),
        ((1, 2, 3), tuple[int, int]),
        ((1, 2.0), tuple[int, int] | None),
        (Windows((2, 2), (1, 1), (0, 0), (1, 1)), tuple[int, ...]),
        (((2, 2), (1, 1), (0, 0), (1, 1)), Windows),
        (Windows((2, 2), (1, 1), (0, 0), (1, "1")), Windows),
        (b"text", str),
    ],
)
def test_what_does_not_fit(value: Any, kind: Any) -> None:
    assert not fits(value, kind)


def operator_text(**changes: Any) -> str:
    """A sum whose entries are changed."""
    attrs = {"axes": [0], "keepdims": False}
    entries = {"type": "sum", "inputs": ["x"], "outputs": ["y"], "attrs": attrs} | changes
    return net_text(entries["type"], entries["inputs"], entries["outputs"], entries["attrs"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attrs": {}}, "sum: attribute axes is missing: expected axes, keepdims, got none"),
        ({"attrs": {"axes": [0]}}, "attribute keepdims is missing"),
        ({"attrs": {"axes": [-1], "keepdims": False}}, r"attribute axes must be .*from 0 to 63"),
        ({"attrs": {"axes": [0, 0], "keepdims": False}}, "without an item twice"),
        ({"attrs": {"axes": [True], "keepdims": False}}, "attribute axes must be"),
        ({"attrs": {"axes": [2**64], "keepdims": False}}, "attribute axes must be"),
        ({"attrs": {"axes": [0], "keepdims": 0}}, "attribute keepdims must be bool, got int 0"),
        ({"inputs": []}, "sum: expected 1 inputs, got 0"),
        ({"inputs": ["x", "z"]}, "sum: expected 1 inputs, got 2"),
        ({"outputs": ["y", "z"]}, "sum: expected 1 outputs, got 2"),
        ({"type": "add", "attrs": {}}, "add: expected 2 inputs, got 1"),
        ({"type": "linear", "attrs": {}}, "linear: expected 2 or 3 inputs, got 1"),
        ({"type": "concat", "inputs": [], "attrs": {"axis": 0}}, "expected at least 1 inputs"),
        (
            {
                "type": "softmax_cross_entropy",
                "inputs": ["x", "t"],
                "outputs": ["y", "p"],
                "attrs": {"reduction": "median", "ignore_label": -1, "smoothing": 0.0},
            },
            "attribute reduction must be one of 'mean', 'sum', 'none', got str 'median'",
        ),
        (
            {
                "type": "softmax_cross_entropy",
                "inputs": ["x", "t"],
                "outputs": ["y", "p"],
                "attrs": {"reduction": "sum", "ignore_label": 2**64, "smoothing": 0.0},
            },
            "attribute ignore_label must be int, got int 18446744073709551616",
        ),
        ({"type": "broadcast_to", "attrs": {"shape": [2**40]}}, "attribute shape must be"),
        ({"type": "polygamma", "attrs": {"n": 10**6}}, "attribute n must be int from 0 to 100"),
    ],
)
def test_an_operator_that_its_class_does_not_allow(changes: Any, message: str) -> None:
    with pytest.raises(NetError, match=f"loads: operator 0: .*{message}"):
        loads(operator_text(**changes))


LONG = "nan" * 100_000


@pytest.mark.parametrize(
    "operator",
    [
        {"type": LONG},
        {"attrs": {LONG: 1}},
        {"attrs": {"axes": {LONG: 1}}},
        {"attrs": {"axes": {"scalar": LONG, "dtype": "int8"}}},
        {"attrs": {"axes": {"dtype": LONG}}},
        {"attrs": {"axes": {"device": LONG}}},
        {"attrs": {"axes": {"array": [LONG], "shape": [1], "dtype": "int8", "device": "numpy"}}},
        {"inputs": LONG},
    ],
)
def test_the_message_is_short_for_a_long_text(operator: Any) -> None:
    with pytest.raises(NetError) as caught:
        loads(operator_text(**operator))
    assert len(str(caught.value)) <= 1000


@pytest.mark.parametrize(
    "content", [LONG, {"net": LONG}, {"net": LONG, "operators": [], "writes": LONG}]
)
def test_the_message_is_short_for_a_long_name(content: Any) -> None:
    with pytest.raises(NetError) as caught:
        loads(json.dumps({"format": "tinynode net 1", "content": content}))
    assert len(str(caught.value)) <= 1000


@pytest.mark.parametrize(
    ("elements", "shape", "message"),
    [
        ([], [2**40, 0], "shape must be"),
        ([1.0, 2.0], [-1], "shape must be"),
        ([1.0, 2.0], [2.0], "shape must be"),
        ([1.0, 2.0], 2, "shape must be"),
        ([1.0], [1] * 65, "cannot be read"),
        ("12", [2], "array must be a list"),
        ({"1": 2}, [1], "array must be a list"),
        ([[1.0], [2.0]], [2], "number"),
        ([None], [1], "number"),
    ],
)
def test_an_array_of_a_text_is_numbers_and_a_shape(
    elements: Any, shape: Any, message: str
) -> None:
    array = {"array": elements, "shape": shape, "dtype": "float32", "device": "numpy"}
    attrs = {"value": array, "output_device": {"device": "numpy"}}
    with pytest.raises(NetError, match=f"operator 0: constant: attribute value .*{message}"):
        loads(net_text("constant", [], ["y"], attrs))


def test_a_name_with_half_of_a_surrogate_pair_is_saved_and_loaded(tmp_path: Any) -> None:
    net = loads(net_text("exp", ["x"], ["\ud800"], {}))
    save_net(tmp_path / "net.json", net)
    assert load_net(tmp_path / "net.json").output_names == ["\ud800"]


def test_the_message_has_the_place_in_nested_nets() -> None:
    inner = json.loads(operator_text(attrs={}))["content"]
    first = {"type": "exp", "inputs": ["a"], "outputs": ["x"], "attrs": {}}
    content = {"net": "f", "operators": [first, inner]}
    with pytest.raises(NetError, match="loads: operator 1: operator 0: sum: attribute axes is"):
        loads(json.dumps({"format": "tinynode net 1", "content": content}))


def test_integers_of_a_text_are_exact() -> None:
    axes = [{"scalar": 1, "dtype": "int8"}]
    (found,) = loads(operator_text(attrs={"axes": axes, "keepdims": False})).flattened()
    assert found.attrs["axes"] == (1,) and type(found.attrs["axes"][0]) is int


def test_no_other_object_of_scipy_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """``scipy.special.test`` starts pytest, with options of the caller."""
    special = pytest.importorskip("scipy.special")
    calls: list[Any] = []
    monkeypatch.setattr(special, "test", lambda *arguments, **options: calls.append(arguments))
    x = tn.Variable(np.asarray([0.1, 0.2]))
    tn.trace(x.__array_namespace__().special.ellipj, x, 0.5)  # registers the class
    attrs = {"function": "test", "constants": [[0, "fast"]], "keywords": []}
    message = r"attribute function must be str with the name of a function of scipy\.special"
    for name in ("test", "seterr", "SpecialFunctionError", "__doc__", "no such function"):
        text = net_text("opaque_special", ["x"], ["y"], attrs | {"function": name})
        with pytest.raises(NetError, match=f"loads: operator 0: opaque_special: {message}, got"):
            loads(text)
    with pytest.raises(AttributeError, match="has no function 'test'"):
        x.__array_namespace__().special.test(x)
    assert calls == []


# --- the C -----------------------------------------------------------------------------------


class HostileFloat(float):
    """A number whose text is code."""

    def __repr__(self) -> str:
        return COMMAND

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return COMMAND


class HostileInt(int):
    """An integer whose text is code."""

    def __repr__(self) -> str:
        return COMMAND

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return COMMAND


HOSTILE = [COMMAND, [COMMAND], (COMMAND,), {"a": COMMAND}, np.asarray(COMMAND)]
HOSTILE += [HostileFloat(0.25), HostileInt(1), True, -1, 2**64, -(2**63), 10**400, 1e-300]
HOSTILE += [float("nan"), float("inf"), -float("inf"), None, 1j, object(), b"system", int]
X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
LABELS = np.asarray([0, 1, 2, 0])
IMAGES = np.linspace(-1.0, 1.0, 32).reshape(1, 2, 4, 4)
TILES = Windows((2, 2), (2, 2), (0, 0), (1, 1))
ONE = np.asarray(1.0)
WITH_ATTRIBUTES: list[tuple[Any, list[Any]]] = [
    (TimesNumber(2.0), [X]),
    (fn.LeakyReLU(0.1), [X]),
    (fn.ELU(1.0, 2.0), [X]),
    (fn.MatMulOfTransposed(True, False), [X, X]),
    (fn.Reshape((3, 4)), [X]),
    (fn.PermuteDims((1, 0)), [X]),
    (fn.BroadcastTo((2, 4, 3)), [X]),
    (fn.Split((1,), 0), [X]),
    (fn.Unstack(0), [X]),
    (fn.Sum((0,), False), [X]),
    (fn.SumTo((3,)), [X]),
    (fn.Max((0,), False), [X]),
    (fn.Mean((0,), False), [X]),
    (fn.Std((0,), False, 4.0), [X]),
    (fn.VectorNorm((0,), False, 2.0), [X]),
    (fn.Gauss(0.5), [X]),
    (fn.AddAt(5), [X, LABELS]),
    (fn.SoftmaxCrossEntropy("mean", -1), [X, LABELS]),
    (fn.SoftmaxCrossEntropy("sum", -1), [X, LABELS]),
    (fn.SoftmaxCrossEntropyGrad("mean", -1), [X, ONE, LABELS]),
    (fn.SoftmaxCrossEntropyGrad("sum", -1), [X, ONE, LABELS]),
    (fn.SoftmaxCrossEntropy("none", -1), [X, LABELS]),
    (fn.SoftmaxCrossEntropyGrad("none", -1), [X, X[:, 0], LABELS]),
    (fn.RowWeights("mean", -1), [X, ONE, LABELS]),
    (fn.RowWeights("none", -1), [X, X[:, 0], LABELS]),
    (fn.GetItem((Slice(0, 2, None), 1)), [X]),
    (fn.Concat(0), [X, X]),
    (activation.Softmax(1), [X]),
    (activation.SoftmaxGrad(1), [X, X]),
    (activation.LogSoftmax(1), [X]),
    (fn.Standardize((1,), 1e-5, True), [X]),
    (fn.StandardizeGrad((1,), True), [X, X, X[:, :1]]),
    (fn.MaxPool2d(TILES), [IMAGES]),
    (fn.MaxPool2dGrad(TILES, (4, 4)), [IMAGES[..., :2, :2], np.zeros((1, 2, 2, 2), np.int8)]),
    (TakeWinners(TILES), [IMAGES, np.zeros((1, 2, 2, 2), np.int8)]),
    (AdamUpdate((0.9, 0.99), 1e-8, 0.1), [X, X, X, X * X, ONE, ONE]),
]
"""A row for each rule of a class with attributes, and for each reduction that writes another."""


def test_the_rows_are_all_rules_with_attributes() -> None:
    with_attributes = {kind for kind in RULES if attribute_types(kind)}
    assert with_attributes == {type(node) for node, _ in WITH_ATTRIBUTES}


def plan_with(node: Any, arrays: list[Any], attrs: dict[str, Any]) -> FastPlan:
    """The plan of a net of one operator, with other attributes than the operator ran with."""
    names = [f"x{i}" for i in range(len(arrays))]
    expected = node.forward(tuple(arrays))
    outputs = [f"y{i}" for i in range(len(expected))]
    operator = operator_of(node, names, outputs)
    operator.attrs = operator.attrs | attrs
    operator._note_checked()  # here the plan alone is attacked, without the check before
    values = zip([*names, *outputs], [*arrays, *expected], strict=True)
    forms = {name: (a.shape, a.dtype) for name, a in values}
    device = tn.get_device("fast")
    return FastPlan([operator], dict.fromkeys(names, device), outputs, forms)


def hostile_values(value: Any) -> list[Any]:
    """Values in the place of an attribute: hostile ones, and tuples with one hostile item."""
    found = list(HOSTILE)
    if isinstance(value, tuple):
        for i in range(len(value)):
            for item in hostile_values(value[i]):
                items = (*value[:i], item, *value[i + 1 :])
                found.append(Windows(*items) if isinstance(value, Windows) else items)
    return found


@pytest.mark.parametrize(
    ("node", "arrays"), WITH_ATTRIBUTES, ids=[type(node).__name__ for node, _ in WITH_ATTRIBUTES]
)
def test_no_attribute_is_written_into_c_but_numbers(node: Any, arrays: list[Any]) -> None:
    node.forward(tuple(arrays))
    for name, value in operator_of(node, [], []).attrs.items():
        for hostile in hostile_values(value):
            try:
                source = plan_with(node, arrays, {name: hostile}).c_source()
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue
            assert MARK not in source, (name, hostile)


def test_numbers_of_c() -> None:
    assert [number(x) for x in (2, 0.1, -1.0, np.float32(0.5), True, -0.0)] == [
        *("2.0", "0.1", "(-1.0)", "0.5", "1.0", "-0.0")
    ]
    assert [number(float(x)) for x in ("inf", "-inf", "nan")] == [
        *("INFINITY", "(-INFINITY)", "(NAN)")
    ]
    assert [integer(x) for x in (3, -1, np.int8(-5), True)] == ["3", "-1", "-5", "1"]
    assert integer(-(2**63)) == "(-9223372036854775807 - 1)"
    assert number(HostileFloat(0.25)) == "0.25" and integer(HostileInt(1)) == "1"


@pytest.mark.parametrize("value", ["1.0", None, np.ones(1), (1.0,), b"1", 1j])
def test_what_is_no_number_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="number: a constant of C must be a number, got"):
        number(value)
    with pytest.raises(TypeError):
        integer(value)


def test_a_formula_has_numbers_and_functions_alone() -> None:
    assert formula("x * {k} + exp(y)", k=number(-0.5)) == "x * (-0.5) + exp(y)"
    for text in (COMMAND, "system(x)", "x; {y}", "x # y", 'x + "y"', "x[0]", "xy", "x\\y", "é"):
        with pytest.raises((ValueError, KeyError)):
            formula(text)
        with pytest.raises((ValueError, KeyError)):
            formula(text, k=number(1.0))


@pytest.mark.slow
def test_a_type_checker_refuses_a_text_in_the_place_of_a_number(tmp_path: Any) -> None:
    """``CNumber`` is made by two functions alone, and a formula takes no other constant."""
    api = pytest.importorskip("mypy.api")
    lines = ["from tinynode_fast.native.formulas import ElementFormula, formula, number"]
    lines += ["formula('x * {k}', k=number(2.0))", "formula('x * {k}', k='2.0')"]
    lines += ["ElementFormula('f', ('x',), 'x * 2.0')"]
    file = tmp_path / "typed.py"
    file.write_text("\n".join(lines))
    found, _, status = api.run(["--config-file", os.devnull, "--follow-imports=silent", str(file)])
    errors = [line for line in found.splitlines() if ": error:" in line]
    assert status == 1 and ['"CNumber"' in errors[0], '"CFormula"' in errors[1]] == [True, True]
    assert len(errors) == 2


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64])
def test_an_integer_of_more_bits_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match="at most 64 bits"):
        integer(value)


@pytest.mark.parametrize("label", [2**64, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, -(2**70)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_an_ignored_label_of_many_bits_is_compared_exactly(label: int, dtype: str) -> None:
    limits = np.iinfo(dtype)
    labels = LABELS.astype(dtype)
    if limits.min <= label <= limits.max:
        labels[1] = label

    def loss(x: Any, t: Any) -> Any:
        return fn.softmax_cross_entropy(x, t, ignore_label=label)

    compiled = tn.compile(tn.value_and_grad(loss))
    expected, gradient = tn.value_and_grad(loss)(tn.Variable(X), labels)
    x, t = tn.asarray(X, device="fast"), tn.asarray(labels, device="fast")
    for _ in range(3):
        y, gx = compiled(x, t)
        build.wait()
        np.testing.assert_allclose(y.array, expected.array, rtol=1e-14)
        np.testing.assert_allclose(gx.array, gradient.array, rtol=1e-12, atol=1e-17)


# --- memory ----------------------------------------------------------------------------------


def wrong_values(value: Any) -> list[Any]:
    """Other values of the same type: larger, smaller, negative, longer, shorter."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value + 100, 0, -1, -100]
    if not isinstance(value, tuple):
        return []
    found: list[Any] = [] if isinstance(value, Windows) else [value[:-1], (*value, 2), value[::-1]]
    for i in range(len(value)):
        for item in wrong_values(value[i]):
            items = (*value[:i], item, *value[i + 1 :])
            found.append(Windows(*items) if isinstance(value, Windows) else items)
    return found


class NoLibrary:
    """Stands for the compiled functions; none is called."""

    def __getitem__(self, name: str) -> Any:
        return ctypes.CFUNCTYPE(None)()


def assert_stays_inside(call: NestCall) -> None:
    """No loop of a nest reads or writes behind the end of an array."""
    nest = call.nest
    assert call.late == []
    for name, array in zip((*nest.reads, *nest.writes), call.kept, strict=True):
        pairs = zip(array.shape, array.strides, strict=True)
        size = array.itemsize + sum((n - 1) * step for n, step in pairs)
        last = sum((n - 1) * step for n, step in zip(nest.dims, nest.steps[name], strict=True))
        assert (last + 1) * array.itemsize <= size, (name, nest.dims, array.shape)


@pytest.mark.parametrize(
    ("node", "arrays"), WITH_ATTRIBUTES, ids=[type(node).__name__ for node, _ in WITH_ATTRIBUTES]
)
def test_no_attribute_leads_out_of_an_array(node: Any, arrays: list[Any]) -> None:
    node.forward(tuple(arrays))
    for name, value in operator_of(node, [], []).attrs.items():
        for wrong in wrong_values(value):
            plan = plan_with(node, arrays, {name: wrong})
            try:
                calls = CallPlan(plan.net, plan.layout, lambda source: NoLibrary()).bound
            except (TypeError, ValueError, IndexError, ZeroDivisionError):
                continue
            for call in calls.values():
                assert_stays_inside(call)


def convolution_text(windows: Any, counts: list[int]) -> str:
    attrs = {"windows": {"Windows": windows}, "groups": 1, "counts": counts}
    return net_text("conv2d", ["x", "w"], ["y"], attrs)


OUTSIDE = [
    ([[3, 3], [1, 1], [0, 0], [1, 1]], [7, 6]),
    ([[3, 3], [1, 1], [0, 0], [1, 1]], [6, 4000]),
    ([[3, 3], [2, 1], [0, 0], [1, 1]], [4, 6]),
    ([[3, 3], [1, 1], [0, 0], [1, 5]], [6, 1]),
    ([[3, 3], [1, 1], [1, 1], [1, 1]], [9, 8]),
    ([[3, 3], [1, 1], [0, 0], [1, 1]], [-1, 6]),
    ([[3, 3], [1, 1], [0, 0], [1, 1]], [0, 6]),
    ([[2**40, 3], [1, 1], [0, 0], [1, 1]], [1, 6]),
    ([[3, 3], [2**62, 1], [0, 0], [1, 1]], [2, 6]),
]


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize(("windows", "counts"), OUTSIDE)
def test_windows_outside_of_the_image(
    windows: Any, counts: list[int], device: str, compiles: bool
) -> None:
    text = convolution_text(windows, counts)

    def run(x: Any, w: Any) -> Any:
        scope = Scope({"x": x, "w": w})
        loads(text).run(scope)
        return scope.find("y")

    run = tn.compile(run) if compiles else run
    x, w = [tn.asarray(np.ones((1, 1, n, n)), device=device) for n in (8, 3)]
    message = (
        r"Windows\(size=.*\) cannot lie .* times on an image|attribute counts must|go with kernels"
    )
    with pytest.raises(ValueError, match=message):
        run(x, w)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_gradients_of_convolutions_have_as_many_windows_as_fit(device: str) -> None:
    windows = Windows((3, 3), (1, 1), (0, 0), (1, 1))
    x, gy = [tn.asarray(np.ones((2, 1, n, n)), device=device) for n in (8, 7)]
    w = tn.asarray(np.ones((1, 1, 3, 3)), device=device)
    wide = tn.asarray(np.ones((1, 16, 3, 3)), device=device)
    for node, inputs in [
        (Conv2dGradW(windows, 1), (x, gy)),
        (Conv2dGradX(windows, 1, (8, 8)), (gy, w)),
        (Conv2dGradX(windows, 1, (8, 8)), (gy, wide)),
    ]:
        with pytest.raises(ValueError, match=r"lie \(7, 7\) times on an image of \(8, 8\)"):
            node.apply(inputs)


HUGE = Windows((2**40, 2), (2, 2), (0, 0), (1, 1))
WINNERS = np.zeros((1, 2, 2, 2), np.int8)


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize(
    ("node", "arrays"),
    [
        (fn.MaxPool2d(HUGE), [IMAGES]),
        (fn.AvgPool2d(HUGE), [IMAGES]),
        (fn.MaxPool2dGrad(HUGE, (4, 4)), [IMAGES[..., :2, :2], WINNERS]),
        (fn.AvgPool2dGrad(HUGE, (4, 4)), [IMAGES[..., :2, :2]]),
        (TakeWinners(HUGE), [IMAGES, WINNERS]),
        (fn.Unfold(HUGE, (1, 1)), [IMAGES]),
        (fn.Fold(HUGE, (4, 4)), [np.ones((2, 1, 2, 1, 2, 2))]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_loop_runs_over_the_places_of_a_huge_window(
    node: Any, arrays: list[Any], device: str
) -> None:
    """The loop took hours, and the memory."""
    inputs = tuple([tn.asarray(array, device=device) for array in arrays])
    with pytest.raises(
        ValueError, match=r"cannot lie .* times on an image of \(4, 4\)|with kernels"
    ):
        node.apply(inputs)


@pytest.mark.parametrize(
    "windows",
    [
        [[0, 3], [1, 1], [0, 0], [1, 1]],
        [[3, 3], [0, 1], [0, 0], [1, 1]],
        [[3, 3], [1, -1], [0, 0], [1, 1]],
        [[3, 3], [1, 1], [0, -1], [1, 1]],
        [[3, 3], [1, 1], [0, 0], [1, 0]],
        [[3, 3], [1, 1], [0, 0], [1, 1.5]],
        [[3, 3, 3], [1, 1], [0, 0], [1, 1]],
        [[3, 3], [1, 1], [0, 0]],
        ["33", [1, 1], [0, 0], [1, 1]],
    ],
)
def test_windows_with_numbers_out_of_range(windows: Any) -> None:
    with pytest.raises(NetError, match="conv2d: attribute windows cannot be read"):
        loads(convolution_text(windows, [6, 6]))


@pytest.mark.parametrize("transposes", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    "shapes", [((1, 4, 3), (4, 5)), ((4, 3), (2, 4, 5)), ((2, 4, 3), (2, 4, 5))]
)
def test_a_stack_of_transposed_matrices_has_the_same_product_when_compiled(
    shapes: Any, transposes: tuple[bool, bool]
) -> None:
    """No pass makes such an operator; a text may have it."""
    hosts = [np.arange(math.prod(shape)).reshape(shape) * 1.0 for shape in shapes]
    xs = [hosts[0] if transposes[0] else np.swapaxes(hosts[0], -1, -2)]
    xs.append(np.swapaxes(hosts[1], -1, -2) if transposes[1] else hosts[1])
    attrs = {"transpose_x": transposes[0], "transpose_y": transposes[1]}
    net = loads(net_text("matmul_of_transposed", ["x", "y"], ["z"], attrs))

    def run(x: Any, y: Any) -> Any:
        scope = Scope({"x": x, "y": y})
        net.run(scope)
        return scope.find("z")

    compiled = tn.compile(run)
    given = [tn.asarray(np.ascontiguousarray(x), device="fast") for x in xs]
    for _ in range(3):
        np.testing.assert_allclose(compiled(*given).array, run(*given).array, rtol=1e-14)
        build.wait()


class Shortened(tn.FunctionNode):
    """y = the first elements of x, as many as x[0] says."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0][: int(inputs[0][0])].copy(),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return (None,)


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler())
def test_c_reads_no_array_of_another_shape() -> None:
    compiled = tn.compile(lambda x: fn.exp(Shortened().apply((x,))[0]) * 2.0)

    def with_length(n: int) -> Any:
        return tn.asarray(np.concatenate([[n], np.zeros(4999)]), device="fast")

    with np.errstate(over="ignore"):
        for _ in range(3):
            assert compiled(with_length(4000)).shape == (4000,)
            build.wait()
        with pytest.raises(
            NetError, match=r"must be an array of shape \(4000,\), float64, .* got"
        ):
            compiled(with_length(10))
        assert compiled(with_length(4000)).shape == (4000,)


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize(
    ("node", "shapes", "message"),
    [
        (
            fn.MaxPool2dGrad(TILES, (4, 4)),
            [(1, 2, 2, 2), (1, 2, 2, 1)],
            "a winner for each window",
        ),
        (
            fn.MaxPool2dGrad(TILES, (4, 4)),
            [(1, 1, 2, 2), (1, 2, 2, 2)],
            "a winner for each window",
        ),
        (TakeWinners(TILES), [(1, 1, 4, 4), (1, 2, 2, 2)], "a winner for each window"),
        (Conv2d(TILES, 1, (2, 2)), [(1, 2, 4, 4), (1, 8, 1, 1)], "the size of the kernels"),
        (Conv2dGradX(TILES, 1, (4, 4)), [(1, 1, 2, 2), (1, 8, 1, 1)], "the size of the kernels"),
        (fn.Fold(TILES, (4, 4)), [(2, 1, 1, 1, 2, 2)], "the size of the kernels"),
        (fn.GetItem((Place(1), Place(1))), [(4, 4)], "more places than the 0 arrays"),
    ],
)
def test_arrays_that_do_not_go_with_the_attributes(
    node: Any, shapes: list[Any], message: str, device: str
) -> None:
    """With as many elements in another order, the two devices would give other numbers."""
    dtypes = [np.float64, np.int8 if "Winners" in type(node).__name__ else np.float64]
    arrays = [np.ones(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]
    inputs = tuple([tn.asarray(array, device=device) for array in arrays])
    with pytest.raises(ValueError, match=message):
        type(node).forward(node, tuple([x.array for x in inputs]))
    fresh = copy.copy(node)
    with pytest.raises(ValueError, match=message):
        fresh.apply(inputs)


def test_bounds_of_two_classes_are_never_equal() -> None:
    """Some versions of ``typing`` give one annotation for another with equal bounds.

    A program that imports tinynode anew, as the course in the browser, has other classes.
    """
    assert attributes.Distinct() != attributes.Letters()
    assert attributes.AtMostElements(64) != attributes.AtMostAxes(64)
    for bound in (attributes.Within(0, 1), attributes.NamedKind("dtype", "a dtype")):
        assert bound == copy.copy(bound)
        of_former_import = type(type(bound).__name__, (type(bound),), {})
        assert bound != of_former_import(*vars(bound).values())
