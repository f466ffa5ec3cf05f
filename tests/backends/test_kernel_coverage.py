"""Each kernel, rule, pass and reason of the fast path is run and compared, or a test here fails.

The tables of the source say what there is: ``KERNELS``, ``RULES``, ``PASSES``, ``LIMITS`` and the
calls of ``Fallback``. Each entry runs here at each dtype that it declares, and the result is
compared with the portable forward. An entry without a comparison is named.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fast_kernels import CHANGEABLE, HUGE, set_limits, use_two_threads
from kernel_cases import COUNTS, HALF, IMAGES, KERNEL_CASES, REASONS, WINDOWS, check_kernel, draw
from net_specs import specs_of

import tinynode as tn
import tinynode_fast
from tests.net.test_passes import constant, op
from tinynode import functions as fn
from tinynode.devices import Fallback, fallback_uses, kernel_uses
from tinynode.functions import convolution, pooling
from tinynode.functions.attributes import Place, Slice
from tinynode.functions.image_windows import Windows
from tinynode.functions.trigonometric import CircleRoot
from tinynode.net.helpers import StopGradient
from tinynode.net.operator import Operator, operator_of
from tinynode.net.passes import PASSES, TimesNumber
from tinynode.net.plan import Plan
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate
from tinynode_fast.actions import FunctionCall, Net, OpaqueCall
from tinynode_fast.images import CHANNELS_LAST, KERNELS
from tinynode_fast.lowering import Lowering
from tinynode_fast.native import formulas
from tinynode_fast.plan import FastPlan
from tinynode_fast.rules import RULES

FAST = tn.get_device("fast")
NUMPY = tn.get_device("numpy")
FLOATS = ("float32", "float64")


def tolerance_of(dtype: Any) -> dict[str, float]:
    rtol = {"float16": 1e-2, "float32": 2e-5}.get(np.dtype(dtype).name, 1e-12)
    return {"rtol": rtol, "atol": 10 * rtol}


def assert_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for y, wanted in zip(found, expected, strict=True):
        assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(y, wanted, **tolerance_of(wanted.dtype))


def plan_of(node: Any, arrays: list[Any], outputs: int) -> FastPlan:
    """The plan of a net of one operator."""
    inputs = {f"x{i}": x for i, x in enumerate(arrays)}
    names = [f"y{i}" for i in range(outputs)]
    operators = [operator_of(node, list(inputs), names)]
    specs = specs_of(operators, inputs, FAST)
    return FastPlan(operators, dict.fromkeys(inputs, FAST), names, specs, ())


# --- kernels -------------------------------------------------------------------------------------

DECLARED = [(kernel.__name__, dtype) for kernel in KERNELS.values() for dtype in FLOATS]


def inputs_of(arrays: list[Any], dtype: str) -> list[Any]:
    return [x.astype(dtype) if x.dtype == np.float32 else x.copy() for x in arrays]


def test_every_kernel_has_inputs() -> None:
    assert {kernel.__name__ for kernel in KERNELS.values()} == set(KERNEL_CASES)
    kinds = {kernel.__name__: kind for kind, kernel in KERNELS.items()}
    assert all(type(make()) is kinds[name] for name, (make, _) in KERNEL_CASES.items())


@pytest.mark.parametrize("name", KERNEL_CASES)
def test_a_kernel_retains_what_the_portable_forward_retains(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, arrays = KERNEL_CASES[name]
    retained: list[list[Any]] = []
    for forward in (lambda node: tinynode_fast.forward(node, tuple(arrays)),
                    lambda node: node.forward(tuple(arrays))):  # fmt: skip
        node = make()
        retained.append([set(), set()])
        for kind, found in zip(("inputs", "outputs"), retained[-1], strict=True):
            monkeypatch.setattr(node, f"retain_{kind}", found.update, raising=False)
        assert isinstance(forward(node), tuple)
    assert retained[0] == retained[1]


@pytest.mark.parametrize(("name", "dtype"), DECLARED)
def test_a_kernel_is_right_at_each_limit(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limits as they are, and with each of them at its lowest number and huge.

    The kernel runs eagerly, which the counts show, and in a plan. It writes to no input.
    """
    make, given = KERNEL_CASES[name]
    arrays = inputs_of(given, dtype)
    copies = [x.copy() for x in arrays]
    expected = [np.asarray(y) for y in make().forward(tuple(arrays))]
    use_two_threads(monkeypatch)
    kernel_uses.clear()
    for limit in ["as they are", *CHANGEABLE]:
        for huge in (False, True):
            numbers = {limit: HUGE if huge else 0} if limit in CHANGEABLE else {}
            with monkeypatch.context() as patch:
                set_limits(patch, **numbers)
                check_kernel(name, arrays, falls_back=True)
                made = plan_of(make(), arrays, len(expected))
                for _ in range(2):
                    assert_same(made.run(tuple(arrays)), expected)
            if not numbers:
                break
    assert [key[2] for key in kernel_uses] == [name]
    kernel_uses.clear()
    for x, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(x, copy)


# --- rules of plans ------------------------------------------------------------------------------

UPDATED = [draw(300, 3), draw(300, 3), np.asarray(0.1)]
WINNERS = np.asarray([[[[0, 3], [2, 1]]]], "int8")
TILES = Windows((2, 2), (2, 2), (0, 0), (1, 1))
UNARY = [kind for kind, made in formulas.FORMULAS.items() if made.letters == ("x",)]
BINARY = [kind for kind, made in formulas.FORMULAS.items() if made.letters == ("x", "y")]
WITHIN_1 = {fn.Acos, fn.Asin, fn.Atanh, CircleRoot}
RULE_CASES: dict[type, tuple[Callable[[], Any], list[Any]]] = {
    **{kind: (kind, [abs(draw(30, 4)) / 5 + (kind not in WITHIN_1)]) for kind in UNARY},
    **{kind: (kind, [draw(30, 4), draw(30, 4)]) for kind in BINARY},
    fn.Where: (fn.Where, [draw(30, 4) > 0, draw(30, 4), draw(30, 4)]),
    fn.KeepZeros: (fn.KeepZeros, [draw(30, 4), 0 * draw(30, 4), draw(30, 4)]),
    fn.LeakyReLU: (lambda: fn.LeakyReLU(0.1), [draw(30, 4)]),
    fn.GELU: (fn.GELU, [draw(30, 4)]),
    fn.GELUGrad: (fn.GELUGrad, [draw(30, 4), draw(30, 4)]),
    fn.Gauss: (lambda: fn.Gauss(0.5), [draw(30, 4)]),
    fn.ELU: (lambda: fn.ELU(1.0, 1.0), [draw(30, 4)]),
    fn.Softmax: (lambda: fn.Softmax(1), [draw(30, 4)]),
    fn.SoftmaxGrad: (lambda: fn.SoftmaxGrad(1), [draw(30, 4), draw(30, 4)]),
    fn.LogSoftmax: (lambda: fn.LogSoftmax(1), [draw(30, 4)]),
    fn.Max: (lambda: fn.Max((1,), False), [draw(30, 4)]),
    fn.Mean: (lambda: fn.Mean((1,), False), [draw(30, 4)]),
    fn.Standardize: (lambda: fn.Standardize((1,), 1e-5, True), [draw(30, 4)]),
    fn.Std: (lambda: fn.Std((0, 1), False, 119.0), [draw(30, 4)]),
    fn.VectorNorm: (lambda: fn.VectorNorm((1,), True, 2.0), [draw(30, 4)]),
    fn.StandardizeGrad: (
        lambda: fn.StandardizeGrad((1,), True),
        [draw(30, 4), draw(30, 4), draw(30, 1)],
    ),
    fn.SoftmaxCrossEntropy: (
        lambda: fn.SoftmaxCrossEntropy("mean", -1),
        [draw(3, 4), np.asarray([0, 3, 1])],
    ),
    fn.SoftmaxCrossEntropyGrad: (
        lambda: fn.SoftmaxCrossEntropyGrad("mean", -1),
        [draw(3, 4), np.asarray(0.5, "float32"), np.asarray([0, 3, 1])],
    ),
    fn.RowWeights: (
        lambda: fn.RowWeights("mean", -1),
        [draw(3, 4), np.asarray(0.5, "float32"), np.asarray([0, -1, 1])],
    ),
    pooling.MaxPool2d: (lambda: pooling.MaxPool2d(TILES), [draw(1, 1, 4, 4)]),
    pooling.MaxPool2dGrad: (
        lambda: pooling.MaxPool2dGrad(TILES, (4, 4)),
        [draw(1, 1, 2, 2), WINNERS],
    ),
    pooling.TakeWinners: (lambda: pooling.TakeWinners(TILES), [draw(1, 1, 4, 4), WINNERS]),
    fn.AddAll: (fn.AddAll, [draw(30, 4), draw(30, 4), draw(30, 4)]),
    fn.AddAt: (lambda: fn.AddAt(7), [draw(30, 4), np.arange(30) % 6]),
    fn.Identity: (fn.Identity, [draw(30, 4)]),
    StopGradient: (StopGradient, [draw(30, 4)]),
    fn.Reshape: (lambda: fn.Reshape((4, 30)), [draw(30, 4)]),
    fn.PermuteDims: (lambda: fn.PermuteDims((1, 0)), [draw(30, 4)]),
    fn.BroadcastTo: (lambda: fn.BroadcastTo((30, 4)), [draw(4)]),
    fn.Split: (lambda: fn.Split((1, 3), 1), [draw(30, 4)]),
    fn.Unstack: (lambda: fn.Unstack(1), [draw(30, 4)]),
    fn.Linear: (fn.Linear, [draw(30, 4), draw(5, 4), draw(5)]),
    fn.GetItem: (lambda: fn.GetItem((Slice(3, 20, 2), 1)), [draw(30, 4)]),
    fn.Concat: (lambda: fn.Concat(0), [draw(30, 4), draw(2, 4)]),
    fn.MatMul: (fn.MatMul, [draw(2, 30, 4), draw(4, 5)]),
    fn.Sum: (lambda: fn.Sum((0,), False), [draw(30, 4)]),
    fn.SumTo: (lambda: fn.SumTo((1, 4)), [draw(30, 4)]),
    fn.MatMulOfTransposed: (lambda: fn.MatMulOfTransposed(True, True), [draw(4, 30), draw(5, 4)]),
    TimesNumber: (lambda: TimesNumber(0.7), [draw(30, 4)]),
    SGDUpdate: (SGDUpdate, UPDATED),
    MomentumUpdate: (MomentumUpdate, [*UPDATED[:2], draw(300, 3), *UPDATED[2:], np.asarray(0.9)]),
    AdamUpdate: (
        lambda: AdamUpdate((0.8, 0.95), 1e-3, 0.1),
        [*(draw(30, 3) for _ in range(3)), draw(30, 3) ** 2, np.array(0.1), np.array(3.0)],
    ),
}
RULES_AND_DTYPES = [(kind, dtype) for kind in RULES for dtype in FLOATS]


def test_every_rule_has_inputs() -> None:
    assert set(RULE_CASES) == set(RULES)


@pytest.mark.parametrize(
    ("kind", "dtype"), RULES_AND_DTYPES, ids=[f"{k.__name__}-{d}" for k, d in RULES_AND_DTYPES]
)
def test_a_rule_gives_what_the_portable_forward_gives(
    kind: type, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator becomes calls and views, and runs in NumPy on copied and on large arrays."""
    make, given = RULE_CASES[kind]
    node = make()
    assert type(node) is kind
    arrays = inputs_of(given, dtype)
    expected = [np.asarray(y) for y in node.forward(tuple(arrays))]
    names = [f"x{i}" for i in range(len(arrays))], [f"y{i}" for i in range(len(expected))]
    operator = operator_of(make(), *names)
    inputs = dict(zip(names[0], arrays, strict=True))
    lowering = lowered([operator], inputs)
    assert lowering.actions
    assert not any(isinstance(action, OpaqueCall) for action in lowering.actions)
    for is_large in (False, True):
        if is_large:
            set_limits(monkeypatch, copied_bytes=0)
        made = plan_of(make(), arrays, len(expected))
        for _ in range(2):
            assert_same(made.run(tuple(arrays)), expected)


def lowered(operators: list[Operator], arrays: dict[str, Any]) -> Lowering:
    specs = specs_of(operators, arrays, FAST)
    outputs = list(operators[-1].output_names)
    net = Net(operators, dict.fromkeys(arrays, FAST), outputs, specs, (), None)
    return Lowering(net, is_native=True)


def title_of(action: Any) -> str:
    """The function of an action."""
    if not isinstance(action, FunctionCall):
        return type(action).__name__
    function = getattr(action.function, "func", action.function)
    return str(getattr(function, "name", "") or function.__name__)


LABELLED = [draw(3, 4), np.asarray(0.5, "float32"), np.asarray([0, 3, 1])]
TITLES_OF_LABELS = "View {0} sum {0} {0} sum {0} {0}".format("softmaxcrossentropygrad")
OF_ROWS = [LABELLED[0], draw(3), LABELLED[2]]
TITLES_OF_ROWS = "View View {0} sum {0} {0}".format("softmaxcrossentropygrad")
WHOLE = np.arange(12).reshape(3, 4)
ACTIONS: dict[str, tuple[Any, list[Any], str]] = {
    "a sum of one": (fn.AddAll(), [draw(3, 4)], "View"),
    "a sum of three": (fn.AddAll(), [draw(3, 4)] * 3, "add add"),
    "a number": (TimesNumber(0.7), [draw(3, 4)], "timesnumber"),
    "integers": (fn.Add(), [WHOLE, WHOLE], "OpaqueCall"),
    "two dtypes": (fn.Add(), [draw(3, 4), draw(3, 4).astype("float64")], "OpaqueCall"),
    "matrices": (fn.MatMul(), [draw(3, 4), draw(4, 2)], "matrix_product"),
    "a stack of matrices": (fn.MatMul(), [draw(5, 3, 4), draw(4, 2)], "product"),
    "a matrix with a stack": (fn.MatMul(), [draw(3, 4), draw(5, 4, 2)], "matrix_product"),
    "two stacks": (fn.MatMul(), [draw(5, 3, 4), draw(5, 4, 2)], "matrix_product"),
    "transposed": (
        fn.MatMulOfTransposed(True, True),
        [draw(4, 3), draw(2, 4)],
        "View View matrix_product",
    ),
    "a column times a row": (fn.MatMul(), [draw(5, 1), draw(1, 3)], "multiply"),
    "a gradient of one example": (
        fn.MatMulOfTransposed(True, False),
        [draw(1, 5), draw(1, 3)],
        "View multiply",
    ),
    "a layer": (fn.Linear(), [draw(3, 4), draw(2, 4), draw(2)], "View matrix_product add"),
    "a layer of a vector": (fn.Linear(), [draw(4), draw(2, 4), draw(2)], "matrix_product add"),
    "a matrix with a vector": (fn.MatMul(), [draw(3, 4), draw(4)], "matrix_product"),
    "two vectors": (fn.MatMul(), [draw(4), draw(4)], "matrix_product"),
    "a part": (fn.GetItem((Slice(0, 2, None), None, 1)), [draw(3, 4)], "View"),
    "a part from behind": (fn.GetItem((Slice(None, None, -1),)), [draw(3, 4)], "OpaqueCall"),
    "chosen rows": (fn.GetItem((Place(1), 0)), [draw(3, 4), np.asarray([2, 0])], "OpaqueCall"),
    "joined": (fn.Concat(1), [draw(3, 4), draw(3, 2)], "_joined"),
    "a sum of one element": (fn.Sum((1,), False), [draw(3, 1)], "sum View"),
    "a step": (SGDUpdate(), UPDATED, "sgdupdate"),
    "a step with momentum": (*RULE_CASES[MomentumUpdate], "momentumupdate momentumupdate"),
    "no elements": (fn.Add(), [draw(0, 4), draw(0, 4)], "OpaqueCall"),
    "an unusual slope": (fn.LeakyReLU(-0.5), [draw(3, 4)], "OpaqueCall"),
    "a sum of vectors": (fn.SumTo((4,)), [draw(3, 4)], "sum View"),
    "a mean": (fn.Mean((0,), True), [draw(3, 4)], "sum mean"),
    "a softmax": (
        fn.Softmax(1),
        [draw(3, 4)],
        "largest softmax softmax softmax sum softmax softmax",
    ),
    "a loss of each row": (fn.SoftmaxCrossEntropyGrad("none", -1), OF_ROWS, TITLES_OF_ROWS),
    "weights of rows": (fn.RowWeights("none", -1), OF_ROWS, "View View rowweights"),
    "labels": (fn.SoftmaxCrossEntropyGrad("mean", -1), LABELLED, TITLES_OF_LABELS),
    "a sum": (fn.SumTo((1, 4)), [draw(3, 4)], "sum"),
    "a sum of images": (fn.SumTo((1, 3, 1, 1)), [draw(2, 3, 4, 5)], "sum"),
}


@pytest.mark.parametrize("what", ACTIONS)
def test_a_rule_has_the_quickest_actions(what: str) -> None:
    node, arrays, titles = ACTIONS[what]
    node = node() if isinstance(node, type) else node
    inputs = {f"x{i}": x for i, x in enumerate(arrays)}
    written = ["y", "z"] if isinstance(node, MomentumUpdate) else ["y"]
    operators = [operator_of(node, list(inputs), written)]
    lowering = lowered(operators, inputs)
    assert [title_of(action) for action in lowering.actions] == titles.split()
    if what == "transposed":
        shapes = [lowering.forms[action.writes[0]][0] for action in lowering.actions]
        assert shapes == [(3, 4), (4, 2), (3, 2)]


def test_values_after_a_convolution_have_the_channels_last() -> None:
    windows = Windows((2, 2), (1, 1), (0, 0), (1, 1))
    operators = [
        operator_of(convolution.Conv2d(WINDOWS, 1, COUNTS), ["x", "w"], ["h"]),
        op("add", "hb", "a"),
        op("add", "hv", ["five"]),
        operator_of(pooling.MaxPool2d(windows), ["a"], ["m", "winners"]),
        op("sum_to", "h", "s", shape=(1, 4, 1, 1)),
        op("exp", "x", "e"),
    ]
    inputs = {"x": IMAGES, "w": draw(4, 9, 3, 2), "b": draw(1, 4, 1, 1), "v": draw(1, 1, 1, 1, 1)}
    orders = lowered(operators, inputs).orders
    orders = {name: order for name, order in orders.items() if name[0] != "@"}
    assert orders == dict.fromkeys(["h", "a", "m", "winners"], CHANNELS_LAST)


# --- passes --------------------------------------------------------------------------------------


PASS_CASES: dict[str, Callable[[str], list[Operator]]] = {}
"""For each pass a net of x, an array of shape (3, 4), and of a dtype; y is the result."""


def of_pass(function: Callable[[str], list[Operator]]) -> Callable[[str], list[Operator]]:
    PASS_CASES[function.__name__] = function
    return function


@of_pass
def eliminate_copies(dtype: str) -> list[Operator]:
    return [op("reshape", "x", "a", shape=(3, 4)), op("sin", "a", "y")]


@of_pass
def cancel_sums(dtype: str) -> list[Operator]:
    wide = op("broadcast_to", "x", "a", shape=(5, 3, 4))
    return [wide, op("sum_to", "a", "y", shape=(3, 4))]


@of_pass
def fold_constants(dtype: str) -> list[Operator]:
    number = constant("c", np.asarray(0.5, dtype))
    return [number, op("exp", "c", "d"), op("multiply", "xd", "y")]


@of_pass
def drop_ones(dtype: str) -> list[Operator]:
    ones = constant("o", np.ones((3, 4), dtype))
    return [ones, op("multiply", "xo", "a"), op("sin", "a", "y")]


@of_pass
def eliminate_common_subexpressions(dtype: str) -> list[Operator]:
    return [op("exp", "x", "a"), op("exp", "x", "b"), op("multiply", "ab", "y")]


@of_pass
def fold_transposes(dtype: str) -> list[Operator]:
    return [op("permute_dims", "x", "t", axes=(1, 0)), op("matmul", "xt", "y")]


@of_pass
def cancel_permutes(dtype: str) -> list[Operator]:
    turned = op("permute_dims", "x", "t", axes=(1, 0))
    return [turned, op("permute_dims", "t", "b", axes=(1, 0)), op("exp", "b", "y")]


@of_pass
def recognize_reshapes(dtype: str) -> list[Operator]:
    return [op("get_item", "x", "r", index=(None, Ellipsis)), op("exp", "r", "y")]


@of_pass
def skip_ones(dtype: str) -> list[Operator]:
    return [
        op("reshape", "x", "a", shape=(1, 3, 4)),
        op("permute_dims", "a", "b", axes=(0, 2, 1)),
        op("reshape", "b", "y", shape=(4, 3)),
    ]


@of_pass
def merge_reshapes(dtype: str) -> list[Operator]:
    return [op("reshape", "x", "r", shape=(12,)), op("reshape", "r", "y", shape=(2, 6))]


@of_pass
def drop_dummies(dtype: str) -> list[Operator]:
    return [
        op("dummy_gradient", "x", "u"),
        op("zero_safe_multiply", "xx", "p"),
        op("keep_zeros", "pux", "w"),
        op("exp", "w", "y"),
    ]


@of_pass
def drop_other_gradients(dtype: str) -> list[Operator]:
    attrs = {"kind": "relu", "constants": (), "retained": ((), (0,)), "count": 1}
    return [op("exp", "x", "t"), op("gradient_of", "xt", "y", **attrs)]


@of_pass
def drop_guards(dtype: str) -> list[Operator]:
    return [constant("c", np.asarray(2.0, dtype)), op("zero_safe_multiply", "xc", "y")]


@of_pass
def fold_choices(dtype: str) -> list[Operator]:
    names = {"condition": ["c"], "x": ["x"], "y": ["e"]}
    return [
        constant("c", np.zeros((3, 4), bool)),
        op("exp", "x", "e"),
        Operator("where", names, ["w"]),
        op("exp", "w", "y"),
    ]


@of_pass
def restore_linear(dtype: str) -> list[Operator]:
    stack = op("reshape", "x", "s", shape=(1, 3, 4))
    return [stack, op("permute_dims", "x", "t", axes=(1, 0)), op("matmul", "st", "y")]


@of_pass
def drop_broadcasts(dtype: str) -> list[Operator]:
    row = op("get_item", "x", "r", index=(0,))
    return [row, op("broadcast_to", "r", "b", shape=(3, 4)), op("multiply", "bx", "y")]


def test_every_pass_has_a_net() -> None:
    assert set(PASS_CASES) == {one.__name__ for one in PASSES}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("one", dict.fromkeys(PASSES), ids=lambda one: one.__name__)
def test_a_pass_changes_a_net_and_keeps_its_results(one: Any, dtype: str) -> None:
    x = np.asarray(draw(3, 4), dtype)
    operators = PASS_CASES[one.__name__](dtype)
    simpler = one(operators, ["y"], specs_of(operators, {"x": x}, NUMPY))
    assert [str(operator) for operator in simpler] != [str(operator) for operator in operators]
    found, expected = (
        [np.asarray(y) for y in Plan(ops, {"x": NUMPY}, ["y"]).run((x,))]
        for ops in (simpler, operators)
    )
    assert_same(found, expected)


# --- reasons of fallbacks ------------------------------------------------------------------------

SOURCES = sorted(Path(tinynode_fast.__file__).parent.glob("*.py"))


def calls_of_fallback() -> set[tuple[str, int]]:
    """File and line of each ``Fallback(...)`` of the backend."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Fallback":
                found.add((path.name, node.lineno))
    return found


class Seen(Fallback):
    """A Fallback that notes the line where it was made."""

    lines: set[tuple[str, int]] = set()  # noqa: RUF012 - of all instances

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        frame = sys._getframe(1)
        self.lines.add((Path(frame.f_code.co_filename).name, frame.f_lineno))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, int]]]:
    for module in list(sys.modules.values()):
        if str(getattr(module, "__name__", "")).startswith("tinynode_fast") and hasattr(
            module, "Fallback"
        ):
            monkeypatch.setattr(module, "Fallback", Seen)
    Seen.lines.clear()
    fallback_uses.clear()
    kernel_uses.clear()
    with tn.using_device("fast"):
        yield Seen.lines
    fallback_uses.clear()
    kernel_uses.clear()


def check_falls_back(make: Callable[[], Any], arrays: list[Any], reason: str) -> None:
    """No kernel runs, the reason is counted, and the values are those of NumPy's backend."""
    fallback_uses.clear()
    xs = [tn.Variable(x, requires_grad=False) for x in arrays]
    outputs = [y.array for y in make().apply(xs)]
    assert [key[2] for key in fallback_uses] == [reason]
    assert not kernel_uses
    assert_same(outputs, [np.asarray(y) for y in make().forward(tuple(arrays))])


def test_a_kernel_of_float32_computes_for_float16(seen: set[tuple[str, int]]) -> None:
    """Dispatch widens the inputs of ``MaxPool2dGrad``, and narrows the output."""
    make = KERNEL_CASES["max_pool_gradient"][0]
    arrays = [draw(10, 9, 8, 7, dtype=HALF), np.zeros((10, 9, 8, 7), np.int8)]
    (y,) = make().apply(arrays)
    assert list(kernel_uses) == [("fast", "MaxPool2dGrad", "max_pool_gradient")]
    assert not fallback_uses
    (wanted,) = make().forward((arrays[0].astype(np.float32), arrays[1]))
    assert_same([y.array], [wanted.astype(HALF)])


def grouped() -> convolution.Conv2d:
    return convolution.Conv2d(WINDOWS, 3, COUNTS)


class Cubed(tn.FunctionNode):
    """A class of a user."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] ** 3,)


def test_every_reason_is_given_and_its_fallback_computes(seen: set[tuple[str, int]]) -> None:
    for name, arrays, reason in REASONS:
        check_falls_back(KERNEL_CASES[name][0], arrays, reason)
    check_falls_back(grouped, [IMAGES, draw(6, 3, 3, 2)], "groups")
    check_falls_back(Cubed, [draw(30, 4)], "no kernel for this class")
    assert calls_of_fallback() - seen == set()
