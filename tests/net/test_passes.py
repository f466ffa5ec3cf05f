"""Each pass on nets: it simplifies what it says, leaves the rest alone, and keeps the results.

Sums may be added up in another order, so what a net with those computes is compared within 1e-13;
everything else bit for bit.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import array_api_strict
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from net_specs import specs_of
from op_cases import CASES
from op_drivers import draw_inputs

import tinynode as tn
from tests.net import test_net_random
from tinynode import functions as fn
from tinynode.core import function_node
from tinynode.functions.attributes import Place, Slice
from tinynode.functions.draws import DropoutMask
from tinynode.net import Operator, passes
from tinynode.net.helpers import Constant
from tinynode.net.operator import EMPTY, ArraySpecs, operator_of
from tinynode.net.passes import (
    PASSES,
    cancel_permutes,
    cancel_sums,
    drop_broadcasts,
    drop_dummies,
    drop_guards,
    drop_ones,
    drop_other_gradients,
    eliminate_common_subexpressions,
    eliminate_copies,
    fold_choices,
    fold_constants,
    fold_transposes,
    merge_reshapes,
    recognize_reshapes,
    restore_linear,
    simplify,
    skip_ones,
)
from tinynode.net.plan import Plan

N = tn.get_device("numpy")
X = np.asarray([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
SPECIAL = np.asarray([[0.0, -0.0, np.nan], [np.inf, -np.inf, 5e-324]])


def op(type: str, reads: Sequence[str], writes: Sequence[str], **attrs: Any) -> Operator:
    return Operator(type, list(reads), list(writes), attrs)


def constant(name: str, value: Any) -> Operator:
    return operator_of(Constant(np.asarray(value), N), [], [name])


def ones(name: str, shape: Any = (2, 3), dtype: Any = np.float64) -> Operator:
    return constant(name, np.ones(shape, dtype))


def results(
    operators: Sequence[Operator], inputs: Mapping[str, Any], outputs: Sequence[str]
) -> list[Any]:
    plan = Plan(operators, dict.fromkeys(inputs, N), outputs)
    with np.errstate(all="ignore"):
        return [np.array(y) for y in plan.run(tuple(inputs.values()))]


def same_bits(actual: Any, expected: Any) -> None:
    """Equal, NaN where NaN is, and -0.0 is not 0.0."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[known], np.signbit(expected)[known])


def after(
    one: Any, operators: list[Operator], outputs: Sequence[str], inputs: Mapping[str, Any]
) -> list[str]:
    """The lines of a net after a pass; what it computes, also on infinities and NaN, is kept."""
    before = [str(operator) for operator in operators]
    specs = specs_of(operators, inputs, N)
    simpler = one(operators, outputs, specs)
    assert [str(operator) for operator in operators] == before, (
        "the pass changed what it was given"
    )
    special = {name: np.resize(SPECIAL, x.shape).astype(x.dtype) for name, x in inputs.items()}
    for given in (inputs, special) if all(x.dtype.kind == "f" for x in inputs.values()) else ():
        expected = results(operators, given, outputs)
        for ours, theirs in zip(results(simpler, given, outputs), expected, strict=True):
            if one is cancel_sums:
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=0)
            else:
                same_bits(ours, theirs)
    return [str(operator) for operator in simpler]


def unchanged(
    one: Any, operators: list[Operator], outputs: Sequence[str], inputs: Mapping[str, Any]
) -> None:
    assert after(one, operators, outputs, inputs) == [str(operator) for operator in operators]


def test_each_pass_is_short() -> None:
    tree = ast.parse(inspect.getsource(passes))
    lengths = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            lengths[node.name] = node.end_lineno - node.lineno + 1
    assert {one.__name__ for one in PASSES} <= set(lengths)
    assert all(length < 40 for length in lengths.values()), lengths
    assert all(one.__doc__ for one in PASSES)


# --- copies --------------------------------------------------------------------------------------


def test_what_hands_an_array_on_is_left_out() -> None:
    net = [
        op("identity", "x", "a"),
        op("stop_gradient", "a", "b"),
        op("reshape", "b", "c", shape=(2, 3)),
        op("broadcast_to", "c", "d", shape=(2, 3)),
        op("add", ["d", "a"], "y"),
    ]
    assert after(eliminate_copies, net, ["y"], {"x": X}) == ["y = add(x, x)"]


def test_a_sum_over_nothing_is_left_out() -> None:
    """It would make 0.0 of -0.0."""
    net = [op("sum_to", "x", "a", shape=(2, 3)), op("exp", "a", "y")]
    simpler = eliminate_copies(net, ["y"], specs_of(net, {"x": X}, N))
    assert [str(one) for one in simpler] == ["y = exp(x)"]


def test_a_copy_that_is_an_output_stays() -> None:
    net = [op("identity", "x", "a"), op("identity", "a", "b"), op("exp", "b", "y")]
    assert after(eliminate_copies, net, ["a", "y"], {"x": X}) == ["a = identity(x)", "y = exp(a)"]


def test_the_value_of_a_copied_output_is_written_there() -> None:
    net = [op("exp", "x", "a"), op("concat", "a", "y", axis=0), op("sin", "a", "z")]
    assert after(eliminate_copies, net, ["y", "z"], {"x": X}) == ["y = exp(x)", "z = sin(y)"]
    twice = [op("exp", "x", "a"), op("identity", "a", "y"), op("identity", "a", "z")]
    lines = after(eliminate_copies, twice, ["y", "z"], {"x": X})
    assert lines == ["y = exp(x)", "z = identity(y)"]
    unchanged(eliminate_copies, twice[:2], ["a", "y"], {"x": X})
    ends = [ones("o"), op("identity", "o", "y")]
    unchanged(eliminate_copies, ends, ["y"], {"x": X})


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fn.concat([fn.reshape(x, (3, 2))]),
        lambda x: fn.concat([x[:1]]),
        lambda x: fn.concat([fn.flip(x, axis=0)]),
        lambda x: fn.concat([fn.split(x, 2)[0]]),
        lambda x: fn.concat([tn.asarray([1.0, 2.0])]),
        lambda x: fn.concat([View().apply((x,))[0]]),
    ],
)
def test_a_copied_output_shares_no_memory_with_the_input(function: Any) -> None:
    """A program may change the input's array in place, such as a buffer of batches."""
    x = tn.asarray(np.arange(6.0).reshape(2, 3))
    compiled = tn.compile(function)
    first, second = compiled(x), compiled(x)
    assert not np.shares_memory(second.array, x.array)
    assert not np.shares_memory(first.array, second.array)
    np.testing.assert_array_equal(second.array, function(x).array)


class View(tn.FunctionNode):
    """A user's function that gives a view of the input."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0][:1],)


def test_the_functions_that_may_share_memory_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the inputs and outputs of each function in the rows of the table."""
    found = set()
    run_forward = function_node.run_forward

    def watched(function: Any, arrays: Any, *others: Any) -> Any:
        outputs = run_forward(function, arrays, *others)
        pairs = [(x, y) for x in arrays for y in outputs if y is not None]
        if any(np.may_share_memory(x, y) for x, y in pairs):
            found.add(type(function))
        return outputs

    monkeypatch.setattr(function_node, "run_forward", watched)
    for case in CASES:
        inputs = [tn.Variable(x) for x in draw_inputs(case, "float32")]
        with contextlib.suppress(Exception):  # rows for other tests
            case.function(*inputs)
    own = {one for one in found if one.__module__.startswith("tinynode.")}
    assert {passes.GetItem, passes.Reshape, passes.Split} <= own
    assert own <= passes.MAY_SHARE_MEMORY | {passes.Identity, passes.StopGradient}


@pytest.mark.parametrize(
    "change",
    [
        op("reshape", "x", "a", shape=(3, 2)),
        op("broadcast_to", "x", "a", shape=(1, 2, 3)),
        op("sum_to", "x", "a", shape=(1, 3)),
        op("permute_dims", "x", "a", axes=(1, 0)),
        op("astype", "x", "a", dtype=np.dtype("float32")),
    ],
    ids=str,
)
def test_what_changes_shape_dtype_or_order_is_no_copy(change: Operator) -> None:
    unchanged(eliminate_copies, [change, op("exp", "a", "y")], ["y"], {"x": X})


def test_a_square_matrix_transposed_has_the_same_form_and_is_no_copy() -> None:
    net = [op("permute_dims", "x", "a", axes=(1, 0)), op("exp", "a", "y")]
    unchanged(eliminate_copies, net, ["y"], {"x": X[:, :2].copy()})


# --- common subexpressions -----------------------------------------------------------------------


def test_what_is_the_same_runs_once() -> None:
    net = [
        op("exp", "x", "a"),
        op("exp", "x", "b"),
        op("sum", "a", "c", axes=(0,), keepdims=False),
        op("sum", "b", "d", axes=(0,), keepdims=False),
        op("multiply", "cd", "y"),
    ]
    assert after(eliminate_common_subexpressions, net, ["y"], {"x": X}) == [
        "a = exp(x)",
        "c = sum(a, axes=(0,), keepdims=False)",
        "y = multiply(c, c)",
    ]


def test_what_is_the_same_but_an_output_stays() -> None:
    net = [op("exp", "x", "a"), op("exp", "x", "b"), op("exp", "x", "c"), op("add", "bc", "y")]
    lines = after(eliminate_common_subexpressions, net, ["b", "y"], {"x": X})
    assert lines == ["a = exp(x)", "b = exp(x)", "y = add(b, a)"]


class Nameless:
    """An object whose text tells nothing."""

    def __repr__(self) -> str:
        return "nameless"


@tn.net.register_op("holder_of_value")
class HolderOfValue(tn.FunctionNode):
    """y = x, beside a constant of any type: only functions of tinynode declare types."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def forward(self, inputs: Any) -> Any:
        return inputs


DIFFERENT = {
    "objects of the same text": (
        op("holder_of_value", "x", "a", value=Nameless()),
        op("holder_of_value", "x", "b", value=Nameless()),
    ),
    "operands": (op("subtract", "xy", "a"), op("subtract", "yx", "b")),
    "types": (op("exp", "x", "a"), op("sin", "x", "b")),
    "axes": (
        op("sum", "x", "a", axes=(0,), keepdims=True),
        op("sum", "x", "b", axes=(1,), keepdims=True),
    ),
    "int and float": (
        op("pow_constant", "x", "a", exponent=2),
        op("pow_constant", "x", "b", exponent=2.0),
    ),
    "bool and int": (
        op("holder_of_value", "x", "a", value=True),
        op("holder_of_value", "x", "b", value=1),
    ),
    "signs of zero": (
        op("fill_like", "x", "a", value=0.0),
        op("fill_like", "x", "b", value=-0.0),
    ),
    "signs of a zero of NumPy": (
        op("fill_like", "x", "a", value=np.float32(0.0)),
        op("fill_like", "x", "b", value=np.float32(-0.0)),
    ),
    "types in a tuple": (
        op("holder_of_value", "x", "a", value=(True, slice(None))),
        op("holder_of_value", "x", "b", value=(1, slice(None))),
    ),
    "signs of zero in an array": (constant("a", [0.0, 1.0]), constant("b", [-0.0, 1.0])),
    "dtypes of an array": (constant("a", [0.0]), constant("b", np.zeros(1, np.float32))),
    "dtypes of an array of the same bytes": (constant("a", [0.0]), constant("b", [0])),
    "shapes of an array": (constant("a", np.ones((2, 1))), constant("b", np.ones((1, 2)))),
    "large arrays": (constant("a", np.zeros(17)), constant("b", np.zeros(17))),
    "an array in a tuple": (
        op("holder_of_value", "x", "a", value=(np.asarray([0]),)),
        op("holder_of_value", "x", "b", value=(np.asarray([1]),)),
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_is_not_shared(what: str) -> None:
    net = list(DIFFERENT[what])
    assert eliminate_common_subexpressions(net, ["a", "b"], {}) is not net
    assert [str(one) for one in eliminate_common_subexpressions(net, [], {})] == [
        str(one) for one in net
    ]


SAME = {
    "numbers": (op("fill_like", "x", "a", value=2.0), op("fill_like", "x", "b", value=2.0)),
    "NaN": (
        op("fill_like", "x", "a", value=float("nan")),
        op("fill_like", "x", "b", value=float("nan")),
    ),
    "numbers of NumPy": (
        op("fill_like", "x", "a", value=np.float32(2.0)),
        op("fill_like", "x", "b", value=np.float32(2.0)),
    ),
    "dtypes": (
        op("astype", "x", "a", dtype=np.dtype("float32")),
        op("astype", "x", "b", dtype=np.dtype("float32")),
    ),
    "tuples": (op("reshape", "x", "a", shape=(3, 2)), op("reshape", "x", "b", shape=(3, 2))),
    "small arrays": (constant("a", [1.0, 2.0]), constant("b", [1.0, 2.0])),
    "arrays of 16 elements": (constant("a", np.zeros(16)), constant("b", np.zeros(16))),
}


@pytest.mark.parametrize("what", SAME)
def test_constants_are_compared_by_value(what: str) -> None:
    assert [str(one) for one in eliminate_common_subexpressions(list(SAME[what]), [], {})] == [
        str(SAME[what][0])
    ]


def test_one_large_array_is_one_constant() -> None:
    value = np.zeros(1000)
    net = [constant("a", value), constant("b", value)]
    assert len(eliminate_common_subexpressions(net, [], {})) == 1


def masks() -> list[Operator]:
    generator = np.random.default_rng(0)
    node = DropoutMask((2, 3), np.dtype("float64"), N, 0.5, generator)
    return [operator_of(node, [], ["m"]), operator_of(node, [], ["n"])]


@pytest.mark.parametrize("one", [*dict.fromkeys(PASSES), simplify])
def test_random_operators_are_left_alone(one: Any) -> None:
    net = [*masks(), op("multiply", "xm", "a"), op("multiply", "an", "y")]
    simpler = one(net, ["y"], specs_of(net, {"x": X}, N))
    assert [str(operator) for operator in simpler] == [str(operator) for operator in net]
    assert (
        results(simpler, {"x": X}, ["y"])[0].tolist()
        != results(simpler, {"x": X}, ["y"])[0].tolist()
    )


class Noise(tn.FunctionNode):
    """y = x and a random number, drawn at each run."""

    is_random = True
    generator = np.random.default_rng(0)

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] + self.generator.random(),)


def test_random_operators_of_constants_are_left_alone() -> None:
    net = [
        constant("c", [1.0, 2.0]),
        operator_of(Noise(), ["c"], ["a"]),
        operator_of(Noise(), ["c"], ["b"]),
        op("subtract", "ab", "d"),
        op("multiply", "xd", "y"),
    ]
    simpler = simplify(net, ["y"], specs_of(net, {"x": np.ones(2)}, N))
    assert [str(one) for one in simpler] == [str(one) for one in net]


def test_several_outputs_are_shared_together() -> None:
    net = [
        op("split", "x", "ab", indices=(1,), axis=1),
        op("split", "x", "cd", indices=(1,), axis=1),
        op("multiply", "bd", "y"),
        op("multiply", "ac", "z"),
    ]
    lines = after(eliminate_common_subexpressions, net, ["y", "z"], {"x": X})
    assert lines[1:] == ["y = multiply(b, b)", "z = multiply(a, a)"]


@pytest.mark.parametrize("first", [["a", "b"], [EMPTY, "b"], ["a", EMPTY]])
@pytest.mark.parametrize("second", [["c", EMPTY], [EMPTY, "d"]])
def test_outputs_that_nobody_wants_are_never_shared(first: list[str], second: list[str]) -> None:
    net = [
        op("split", "x", first, indices=(1,), axis=1),
        op("split", "x", second, indices=(1,), axis=1),
    ]
    wanted = [name for name in (*first, *second) if name != EMPTY]
    net += [op("exp", [name], [f"y_{name}"]) for name in wanted]
    unchanged(eliminate_common_subexpressions, net, [f"y_{name}" for name in wanted], {"x": X})


def test_one_of_several_outputs_is_an_output_of_the_net() -> None:
    net = [
        op("split", "x", "ab", indices=(1,), axis=1),
        op("split", "x", "cd", indices=(1,), axis=1),
        op("multiply", "bc", "y"),
    ]
    unchanged(eliminate_common_subexpressions, net, ["d", "y"], {"x": X})


# --- constants -----------------------------------------------------------------------------------


def test_what_depends_on_constants_is_one() -> None:
    net = [
        constant("c", [[2.0, -0.0, np.nan]]),
        op("negative", "c", "a"),
        op("broadcast_to", "a", "b", shape=(2, 3)),
        op("split", "b", "de", indices=(1,), axis=0),
        op("multiply", "xd", "f"),
        op("multiply", "fe", "y"),
    ]
    lines = after(fold_constants, net, ["y"], {"x": X})
    assert [line.split(" = ")[1].split("(")[0] for line in lines] == ["constant"] * 5 + [
        "multiply"
    ] * 2


def test_a_folded_output_keeps_its_name() -> None:
    net = [constant("c", [1.0, -1.0]), op("sqrt", "c", "y"), op("add", "yx", "z")]
    with np.errstate(invalid="ignore"):
        simpler = fold_constants(net, ["y", "z"], specs_of(net, {"x": np.ones(2)}, N))
    assert simpler[1].type == "constant"
    same_bits(results(simpler, {"x": np.ones(2)}, ["y"])[0], np.asarray([1.0, np.nan]))


def test_a_scalar_is_folded_to_an_array() -> None:
    """NumPy's functions give scalars for 0-d arrays."""
    net = [constant("c", 2.0), op("exp", "c", "a"), op("multiply", "xa", "y")]
    simpler = fold_constants(net, ["y"], specs_of(net, {"x": X}, N))
    assert type(simpler[1].attrs["value"]) is np.ndarray
    after(fold_constants, net, ["y"], {"x": X})


def test_a_folded_sum_of_float16_is_added_up_in_float32() -> None:
    half = np.asarray([2048.0, 1.0, 1.0], np.float16)
    net = [constant("c", half), op("cumulative_sum", "c", "a", axis=0), op("multiply", "xa", "y")]
    x = np.ones(3, np.float16)
    simpler = fold_constants(net, ["y"], specs_of(net, {"x": x}, N))
    same_bits(simpler[1].attrs["value"], np.asarray([2048.0, 2048.0, 2050.0], np.float16))
    same_bits(results(simpler, {"x": x}, ["y"])[0], results(net, {"x": x}, ["y"])[0])


def test_large_results_are_not_kept() -> None:
    for length, folded in ((1024, True), (1025, False)):
        net = [
            constant("c", 2.0),
            op("broadcast_to", "c", "a", shape=(length,)),
            op("sum", "a", "b", axes=(0,), keepdims=False),
            op("multiply", "xb", "y"),
        ]
        lines = after(fold_constants, net, ["y"], {"x": X})
        assert lines[1].startswith("a = constant") is folded
        split = op("split", "c", "ab", indices=(512,), axis=0)
        net = [constant("c", np.ones(length)), split, op("sin", "a", "y"), op("sin", "b", "z")]
        assert (len(after(fold_constants, net, ["y", "z"], {"x": X})) == 5) is folded


def test_an_input_is_no_constant() -> None:
    unchanged(fold_constants, [constant("c", X), op("add", "xc", "y")], ["y"], {"x": X})


def test_no_constant_is_made_of_an_output_that_nobody_wants() -> None:
    net = [
        constant("c", np.arange(4.0)),
        op("split", "c", [EMPTY, "d"], indices=(2,), axis=0),
        op("multiply", "dx", "y"),
    ]
    simpler = fold_constants(net, ["y"], specs_of(net, {"x": np.ones(2)}, N))
    assert [name for one in simpler for name in one.output_names] == ["c", "d", "y"]


def test_constants_stay_on_their_device() -> None:
    other = tn.get_device("strict:device1")
    move = op("to_device", "c", "a", source=N, target=other)
    net = [constant("c", 2.0), move, op("exp", "a", "y")]
    specs: ArraySpecs = {"c": ((), np.dtype("float64")), "a": ((), None), "y": ((), None)}
    assert [str(one) for one in fold_constants(net, ["y"], specs)] == [str(one) for one in net]


# --- ones ----------------------------------------------------------------------------------------


def test_large_constants_are_not_searched_for_ones() -> None:
    for length, dropped in ((1024, True), (1025, False)):
        net = [ones("o", (length,)), op("multiply", "xo", "a"), op("exp", "a", "y")]
        assert (len(after(drop_ones, net, ["y"], {"x": np.ones(length)})) == 2) is dropped


@pytest.mark.parametrize("names", ["xo", "ox"])
def test_a_product_with_ones_is_left_out(names: str) -> None:
    net = [ones("o"), op("multiply", names, "a"), op("exp", "a", "y")]
    assert after(drop_ones, net, ["y"], {"x": X})[1:] == ["y = exp(x)"]


def test_ones_that_are_broadcast() -> None:
    net = [
        constant("o", 1.0),
        op("broadcast_to", "o", "p", shape=(2, 3)),
        op("multiply", "px", "a"),
        op("multiply", "oa", "b"),
        op("multiply", "pp", "c"),
        op("multiply", "bc", "y"),
    ]
    net.append(op("negative", "y", "z"))
    assert after(drop_ones, net, ["z"], {"x": X})[2:] == ["z = negative(x)"]


@pytest.mark.parametrize(
    "number",
    [
        constant("o", np.full((2, 3), -1.0)),
        constant("o", np.nextafter(1.0, 2.0)),
        constant("o", [1.0, 1.0, 0.0]),
        constant("o", np.nan),
        ones("o", (5, 2, 3)),
        ones("o", (0, 1, 1)),
    ],
    ids=str,
)
def test_other_numbers_and_wider_ones_stay(number: Operator) -> None:
    net = [number, op("multiply", "xo", "a"), op("exp", "a", "y")]
    unchanged(drop_ones, net, ["y"], {"x": X})


def test_ones_of_a_higher_dtype_stay() -> None:
    net = [ones("o"), op("multiply", "xo", "a"), op("exp", "a", "y")]
    unchanged(drop_ones, net, ["y"], {"x": X.astype(np.float32)})


def test_a_product_with_ones_that_is_an_output_stays() -> None:
    net = [ones("o"), op("multiply", "xo", "y"), op("exp", "y", "z")]
    unchanged(drop_ones, net, ["y", "z"], {"x": X})


def test_a_product_of_nothing_with_ones() -> None:
    net = [ones("o", (0, 3)), op("multiply", "xo", "a"), op("exp", "a", "y")]
    assert after(drop_ones, net, ["y"], {"x": np.ones((0, 3))})[1:] == ["y = exp(x)"]


# --- transposes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["tw", "vt", "tt", "xt", "tx"])
def test_a_product_transposes_by_itself(names: str) -> None:
    given = {"x": X[:, :2].copy(), "w": X.T[:2, :2].copy(), "v": X[:, 1:].copy()}
    net = [op("permute_dims", "x", "t", axes=(1, 0)), op("matmul", names, "y")]
    flags = [name == "t" for name in names]
    read = ", ".join("x" if name == "t" else name for name in names)
    expected = f"y = matmul_of_transposed({read}, transpose_x={flags[0]}, transpose_y={flags[1]})"
    inputs = {name: given[name] for name in dict.fromkeys(["x", *names]) if name in given}
    assert after(fold_transposes, net, ["y"], inputs)[1:] == [expected]


@pytest.mark.parametrize("turned", [(False, True), (True, False), (True, True)])
def test_a_product_of_transposed_matrices_takes_a_further_transpose(
    turned: tuple[bool, bool],
) -> None:
    flags = dict(zip(("transpose_x", "transpose_y"), turned, strict=True))
    net = [
        op("permute_dims", "x", "t", axes=(1, 0)),
        op("matmul_of_transposed", "tw", "y", **flags),
    ]
    given = {"x": X[:, :2].copy(), "w": X[:, 1:].copy()}
    flags["transpose_x"] = not turned[0]
    shown = ", ".join(f"{name}={flag}" for name, flag in flags.items())
    after_pass = after(fold_transposes, net, ["y"], given)[1:]
    assert after_pass == [f"y = matmul_of_transposed(x, w, {shown})"]


def test_a_transpose_that_is_an_output_stays() -> None:
    net = [op("permute_dims", "x", "t", axes=(1, 0)), op("matmul", "xt", "y")]
    lines = [str(one) for one in simplify(net, ["t", "y"], specs_of(net, {"x": X}, N))]
    assert lines[0] == str(net[0]) and lines[1].startswith("y = matmul_of_transposed(x, x")


@pytest.mark.parametrize("axes", [(0, 1), (0, 2, 1), (1, 0, 2)])
def test_other_orders_of_axes_stay(axes: tuple[int, ...]) -> None:
    x = np.arange(float(2 ** len(axes))).reshape((2,) * len(axes))
    net = [op("permute_dims", "x", "t", axes=axes), op("matmul", "tx", "y")]
    unchanged(fold_transposes, net, ["y"], {"x": x})


def test_a_stack_of_matrices_times_a_transposed_one_stays() -> None:
    net = [op("permute_dims", "w", "t", axes=(1, 0)), op("matmul", "xt", "y")]
    unchanged(fold_transposes, net, ["y"], {"x": np.ones((4, 2, 3)), "w": np.ones((5, 3))})


def test_integers_and_nothing_at_all_are_multiplied_too() -> None:
    for x in (np.arange(6).reshape(2, 3), np.ones((0, 3)), np.ones((3, 0))):
        net = [op("permute_dims", "x", "t", axes=(1, 0)), op("matmul", "tx", "y")]
        specs = specs_of(net, {"x": x}, N)
        (actual,) = results(fold_transposes(net, ["y"], specs), {"x": x}, ["y"])
        same_bits(actual, results(net, {"x": x}, ["y"])[0])


# --- broadcasts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["xb", "bx"])
def test_a_product_broadcasts_by_itself(names: str) -> None:
    net = [op("broadcast_to", "w", "b", shape=(2, 3)), op("multiply", names, "y")]
    lines = after(drop_broadcasts, net, ["y"], {"x": X, "w": X[:1].copy()})
    assert lines[1] == f"y = multiply({', '.join(names.replace('b', 'w'))})"


def test_one_of_two_broadcasts_gives_the_shape() -> None:
    net = [
        op("broadcast_to", "w", "a", shape=(2, 3)),
        op("broadcast_to", "v", "b", shape=(2, 3)),
        op("multiply", "ab", "y"),
    ]
    given = {"w": X[:1].copy(), "v": X[:, :1].copy()}
    assert after(drop_broadcasts, net, ["y"], given)[2] == "y = multiply(w, b)"


def test_the_square_of_a_broadcast_stays() -> None:
    net = [op("broadcast_to", "w", "b", shape=(2, 3)), op("multiply", "bb", "y")]
    unchanged(drop_broadcasts, net, ["y"], {"w": X[:1].copy()})


def test_a_broadcast_that_gives_the_dtype_or_the_shape_stays() -> None:
    wide = op("broadcast_to", "w", "b", shape=(2, 3))
    unchanged(
        drop_broadcasts,
        [wide, op("multiply", "xb", "y")],
        ["y"],
        {"x": X.astype("f4"), "w": X[:1].copy()},
    )
    unchanged(
        drop_broadcasts,
        [wide, op("multiply", "xb", "y")],
        ["y"],
        {"x": X[:, :1].copy(), "w": X[:1].copy()},
    )


def test_other_functions_keep_their_broadcasts() -> None:
    wide = op("broadcast_to", "w", "b", shape=(2, 3))
    for type in ("add", "maximum", "divide"):
        unchanged(drop_broadcasts, [wide, op(type, "xb", "y")], ["y"], {"x": X, "w": X[:1].copy()})


def test_a_broadcast_that_is_an_output_stays() -> None:
    net = [op("broadcast_to", "w", "b", shape=(2, 3)), op("multiply", "xb", "y")]
    inputs = {"x": X, "w": X[:1].copy()}
    lines = [str(one) for one in simplify(net, ["b", "y"], specs_of(net, inputs, N))]
    assert lines == [str(net[0]), "y = multiply(x, w)"]


# --- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "wide"),
    [((3,), (2, 3)), ((2, 1), (4, 2, 5)), ((), (7,)), ((3,), (1, 3)), ((0, 1), (0, 3))],
)
def test_a_sum_over_a_broadcast_is_a_product(shape: Any, wide: Any) -> None:
    net = [op("broadcast_to", "x", "a", shape=wide), op("sum_to", "a", "y", shape=shape)]
    x = np.resize(X, shape)
    specs = specs_of(net, {"x": x}, N)
    if x.size:
        number = float(np.prod(wide) / x.size)
        assert (
            after(cancel_sums, net, ["y"], {"x": x})[1] == f"y = times_number(x, number={number})"
        )
    np.testing.assert_allclose(
        results(cancel_sums(net, ["y"], specs), {"x": x}, ["y"])[0],
        results(net, {"x": x}, ["y"])[0],
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    ("x", "wide", "shape"),
    [
        (np.ones((1, 3)), (2, 3), (3,)),
        (np.ones((1, 3)), (2, 3), (1, 1)),
        (np.ones(1), (0,), (1,)),
        (np.ones((1, 2)), (0, 2), (1, 2)),
        (np.ones((0, 1)), (0, 3), (0, 1)),
        (np.asarray([2**60 + 1]), (3,), (1,)),
        (np.ones(1, np.int8), (1000,), (1,)),
        (np.full(1, 1e-3, np.float16), (100_000,), (1,)),
    ],
    ids=str,
)
def test_other_sums_stay(x: Any, wide: Any, shape: Any) -> None:
    """Other shapes; sums of nothing, which are 0; integers; float16, whose largest is 65504."""
    net = [op("broadcast_to", "x", "a", shape=wide), op("sum_to", "a", "y", shape=shape)]
    unchanged(cancel_sums, net, ["y"], {"x": x})


def test_a_cancelled_sum_may_be_an_output_and_its_broadcast_too() -> None:
    net = [op("broadcast_to", "x", "a", shape=(2, 3)), op("sum_to", "a", "y", shape=(3,))]
    net.append(op("exp", "y", "z"))
    lines = after(cancel_sums, net, ["a", "y", "z"], {"x": X[0].copy()})
    assert lines == [str(net[0]), "y = times_number(x, number=2.0)", "z = exp(y)"]


def test_a_large_number_of_float32() -> None:
    net = [op("broadcast_to", "x", "a", shape=(100_000,)), op("sum_to", "a", "y", shape=())]
    x = np.asarray(1e-3, np.float32)
    (y,) = results(cancel_sums(net, ["y"], specs_of(net, {"x": x}, N)), {"x": x}, ["y"])
    assert y.dtype == np.float32 and y == np.float32(1e-3) * np.float32(1e5)


# --- the plan ------------------------------------------------------------------------------------


def test_a_plan_frees_what_no_later_step_reads() -> None:
    net = [
        constant("c", 2.0),
        op("split", "x", "ab", indices=(1,), axis=1),
        op("multiply", "ac", "d"),
        op("exp", "d", "y"),
    ]
    plan = Plan(net, {"x": N}, ["y"])
    freed = [(one.operator.type, one.freed) for one in plan.steps]
    assert freed == [("split", (3,)), ("multiply", (2,)), ("exp", (4,))]


# --- all together --------------------------------------------------------------------------------


def test_what_nobody_needs_is_left_out() -> None:
    net = [op("exp", "x", "a"), op("sin", "x", "b"), op("cos", "b", "c"), op("exp", "b", "y")]
    lines = [str(one) for one in simplify(net, ["y"], specs_of(net, {"x": X}, N))]
    assert lines == ["b = sin(x)", "y = exp(b)"]


def test_nothing_is_wanted_of_a_net() -> None:
    net = [op("exp", "x", "a")]
    assert simplify(net, [], specs_of(net, {"x": X}, N)) == []
    assert simplify([], [], {}) == []
    assert simplify([], ["x"], {"x": (X.shape, X.dtype)}) == []


def test_one_pass_makes_work_for_the_next() -> None:
    net = [
        constant("c", 2.0),
        constant("d", 0.5),
        op("multiply", "cd", "o"),
        op("broadcast_to", "o", "p", shape=(2, 3)),
        op("multiply", "xp", "a"),
        op("identity", "a", "b"),
        op("permute_dims", "b", "t", axes=(1, 0)),
        op("matmul", "bt", "y"),
    ]
    lines = [str(one) for one in simplify(net, ["y"], specs_of(net, {"x": X}, N))]
    assert lines == ["y = matmul_of_transposed(x, x, transpose_x=False, transpose_y=True)"]


def test_gradients_of_a_pass_s_own_operator_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="only run"):
        passes.TimesNumber(2.0).backward((0,), (None,))


# --- what forward mode leaves behind -------------------------------------------------------------

STACK = np.asarray(np.random.default_rng(0).normal(size=(2, 3, 4)))


def turn(x: str, y: str, *axes: int) -> Operator:
    return op("permute_dims", x, y, axes=axes)


def test_permutations_that_cancel_are_left_out() -> None:
    net = [turn("x", "t", 1, 2, 0), turn("t", "b", 2, 0, 1), op("exp", "b", "y")]
    assert after(cancel_permutes, net, ["y"], {"x": STACK})[-1] == "y = exp(x)"
    net[1] = turn("t", "b", 1, 2, 0)
    lines = after(cancel_permutes, net, ["y"], {"x": STACK})
    assert lines[1:] == ["b = permute_dims(x, axes=(2, 0, 1))", "y = exp(b)"]


def test_three_permutations_are_one() -> None:
    net = [turn("x", "t", 1, 2, 0), turn("t", "b", 1, 2, 0), turn("b", "y", 0, 2, 1)]
    lines = after(cancel_permutes, net, ["y"], {"x": STACK})
    assert lines[-1] == "y = permute_dims(x, axes=(2, 1, 0))"


def test_a_cancelled_permutation_that_is_an_output_stays() -> None:
    net = [turn("x", "t", 1, 0, 2), turn("t", "y", 1, 0, 2), op("exp", "y", "z")]
    lines = after(cancel_permutes, net, ["y", "z"], {"x": STACK})
    assert lines[1:] == ["y = permute_dims(x, axes=(0, 1, 2))", "z = exp(y)"]


def test_reshapes_of_reshapes_are_one() -> None:
    net = [
        op("reshape", "x", "a", shape=(6, 4)),
        op("reshape", "a", "b", shape=(24,)),
        op("reshape", "b", "y", shape=(4, 6)),
    ]
    lines = after(merge_reshapes, net, ["y"], {"x": STACK})
    assert lines[-1] == "y = reshape(x, shape=(4, 6))"
    assert lines[1] == "b = reshape(x, shape=(24,))"
    net[1] = op("exp", "a", "b")
    unchanged(merge_reshapes, net, ["y"], {"x": STACK})


@pytest.mark.parametrize(
    "one",
    [
        op("get_item", "x", "y", index=(None, Ellipsis)),
        op("get_item", "x", "y", index=(Slice(0, 2, None), Slice(None, None, None))),
        op("get_item", "x", "y", index=(Slice(-2, 9, 1), None, Ellipsis)),
    ],
    ids=str,
)
def test_an_index_of_all_elements_is_a_reshape(one: Operator) -> None:
    (line,) = after(recognize_reshapes, [one], ["y"], {"x": X})
    assert line.startswith("y = reshape(x, shape=")


@pytest.mark.parametrize("index", [(0,), (Slice(1, None, None),), (Slice(None, None, -1),)])
def test_other_indices_stay(index: Any) -> None:
    unchanged(recognize_reshapes, [op("get_item", "x", "y", index=index)], ["y"], {"x": X})


def test_an_index_of_arrays_stays() -> None:
    rows = Operator("get_item", ["x", "i"], ["y"], {"index": (Place(1),)})
    unchanged(recognize_reshapes, [rows], ["y"], {"x": X, "i": np.asarray([1, 0])})


def test_a_backward_slice_of_one_element_and_of_nothing() -> None:
    index = (Slice(None, None, -1), Ellipsis)
    unchanged(recognize_reshapes, [op("get_item", "x", "y", index=index)], ["y"], {"x": X[:1]})
    nothing = [op("get_item", "x", "y", index=(Slice(0, 1, None),))]
    lines = after(recognize_reshapes, nothing, ["y"], {"x": X[:, :0]})
    assert lines == ["y = reshape(x, shape=(1, 0))"]


def test_a_permutation_of_axes_of_length_1_is_a_reshape() -> None:
    net = [turn("x", "y", 2, 0, 1)]
    lines = after(recognize_reshapes, net, ["y"], {"x": X[:, :, None]})
    assert lines == ["y = reshape(x, shape=(1, 2, 3))"]
    unchanged(recognize_reshapes, [turn("x", "y", 2, 1, 0)], ["y"], {"x": X[:, :, None]})


def test_a_permutation_needs_no_axes_of_length_1() -> None:
    net = [
        op("reshape", "x", "a", shape=(1, 2, 3)),
        turn("a", "b", 0, 2, 1),
        op("reshape", "b", "y", shape=(3, 2)),
        turn("b", "c", 2, 0, 1),
        op("reshape", "c", "z", shape=(2, 3)),
    ]
    lines = after(skip_ones, net, ["y", "z"], {"x": X})
    assert lines[2] == "y = permute_dims(x, axes=(1, 0))"
    assert lines[4] == "z = reshape(x, shape=(2, 3))"


def test_reshapes_that_mix_axes_stay() -> None:
    mixed = [
        op("reshape", "x", "a", shape=(1, 3, 2)),
        turn("a", "b", 0, 2, 1),
        op("reshape", "b", "y", shape=(6,)),
    ]
    unchanged(skip_ones, mixed, ["y"], {"x": X})
    thin = [
        op("reshape", "x", "a", shape=(1, 2, 3, 1)),
        turn("a", "b", 0, 2, 1, 3),
        op("reshape", "b", "y", shape=(3, 2)),
    ]
    unchanged(skip_ones, thin, ["y"], {"x": X[:, :, None]})


def guarded(g: str, wide: str = "p") -> list[Operator]:
    """y = exp(keep_zeros(p, g, d)), with a dummy gradient u of x, and h a function of u."""
    return [
        op("dummy_gradient", "x", "u"),
        op("multiply", "ux", "h"),
        op("zero_safe_multiply", ["v", "d"], "p"),
        op("sum", "p", "s", axes=(0,), keepdims=True),
        op("keep_zeros", [wide, g, "d"], "w"),
        op("exp", "w", "y"),
    ]


INPUTS = {"x": X, "d": X + 7, "v": X * 2}


@pytest.mark.parametrize("g", ["u", "h"])
def test_a_dummy_gradient_has_no_zeros_to_keep(g: str) -> None:
    assert (
        after(drop_dummies, guarded(g), ["y"], INPUTS)[-2] == "w = broadcast_to(p, shape=(2, 3))"
    )
    assert after(drop_dummies, guarded(g, "s"), ["y"], INPUTS)[-2].startswith("w = broadcast_to(s")
    net = guarded(g)
    kept = [one.type for one in simplify(net, ["y"], specs_of(net, INPUTS, N))]
    assert kept == ["zero_safe_multiply", "exp"]


def test_zeros_of_zeros_of_a_dummy_gradient() -> None:
    """A masked function of a dummy gradient depends on the dummy gradient."""
    net = [
        op("dummy_gradient", "x", "u"),
        op("multiply", "ux", "h"),
        op("keep_zeros", "huh", "m"),
        op("keep_zeros", ["v", "m", "x"], "w"),
        op("exp", "w", "y"),
    ]
    inputs = {"x": np.abs(X), "v": X}
    simpler = simplify(net, ["y"], specs_of(net, inputs, N))
    assert [str(one) for one in simpler] == ["y = exp(v)"]
    net[3] = op("keep_zeros", ["v", "x", "m"], "w")
    assert len(simplify(net, ["y"], specs_of(net, inputs, N))) > 1


def test_other_zeros_are_kept() -> None:
    unchanged(drop_dummies, guarded("v"), ["y"], INPUTS)


def other_gradient(reads: Sequence[str], writes: Sequence[str]) -> Operator:
    attrs = {"kind": "relu", "constants": (), "retained": ((), (0,)), "count": 1}
    return op("gradient_of", reads, writes, **attrs)


def test_a_plan_has_no_step_for_another_gradient() -> None:
    net = [op("exp", "x", "t"), other_gradient("xt", "u"), op("sin", "u", "y")]
    assert after(drop_other_gradients, net, ["y"], {"x": X})[1] == "u = identity(t)"
    assert after(drop_other_gradients, net, ["u", "y"], {"x": X}) == ["u = exp(x)", "y = sin(u)"]
    assert after(drop_other_gradients, net, ["t", "u", "y"], {"x": X})[1] == "u = identity(t)"
    net = [other_gradient("xx", "u"), other_gradient("xx", "v"), op("multiply", "uv", "y")]
    found = after(drop_other_gradients, net, ["u", "v", "y"], {"x": X})
    assert found[:2] == ["u = identity(x)", "v = identity(x)"]
    net = [op("exp", "x", "t"), other_gradient("xt", "u"), other_gradient("xt", "v")]
    found = after(drop_other_gradients, net, ["u", "v"], {"x": X})
    assert found == ["u = exp(x)", "v = identity(u)"]


@pytest.mark.parametrize("value", [0.5, [1.0, -2.0, 0.0]])
def test_a_product_with_finite_numbers_needs_no_guard(value: Any) -> None:
    net = [constant("c", value), op("zero_safe_multiply", "xc", "y")]
    for x in (X, SPECIAL):
        assert after(drop_guards, net, ["y"], {"x": x})[-1] == "y = multiply(x, c)"
    net[1] = op("keep_zeros", "xxc", "y")
    assert after(drop_guards, net, ["y"], {"x": X})[-1] == "y = broadcast_to(x, shape=(2, 3))"


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.complex128])
def test_constants_of_each_dtype_are_asked(dtype: Any) -> None:
    """Strict has no isfinite of booleans: a mask among the constants stopped the compilation."""
    value = array_api_strict.asarray(np.ones(3, dtype))
    mask = operator_of(Constant(value, tn.get_device("strict")), [], ["c"])
    net = [mask, op("zero_safe_multiply", "xc", "y")]
    assert drop_guards(net, ["y"], {})[-1].type == "multiply"


@pytest.mark.parametrize("value", [np.inf, [1.0, np.nan, 0.0]])
def test_other_products_keep_their_guard(value: Any) -> None:
    net = [constant("c", value), op("zero_safe_multiply", "xc", "y")]
    unchanged(drop_guards, net, ["y"], {"x": SPECIAL})
    net[1] = op("keep_zeros", "xxc", "y")
    unchanged(drop_guards, net, ["y"], {"x": SPECIAL})
    unchanged(drop_guards, [op("zero_safe_multiply", "xd", "y")], ["y"], {"x": X, "d": X})
    net = [constant("c", 2.0), op("zero_safe_multiply", "cx", "y")]
    unchanged(drop_guards, net, ["y"], {"x": SPECIAL})


@pytest.mark.parametrize(("value", "chosen"), [(True, "x"), (False, "d")])
def test_a_choice_that_is_known_is_no_choice(value: bool, chosen: str) -> None:
    inputs = {"x": X, "d": X * 2}
    net = [constant("c", np.full((2, 3), value)), op("where", "cxd", "w"), op("exp", "w", "y")]
    assert after(fold_choices, net, ["y"], inputs)[-1] == f"y = exp({chosen})"
    unchanged(fold_choices, net, ["w", "y"], inputs)
    mixed = [constant("c", [True, False, True]), *net[1:]]
    unchanged(fold_choices, mixed, ["y"], inputs)
    narrow = [constant("c", np.full((4, 2, 3), value)), *net[1:]]
    unchanged(fold_choices, narrow, ["y"], inputs)
    unchanged(fold_choices, net[1:], ["y"], {**inputs, "c": X > 0})


def test_a_stack_times_a_transposed_matrix_is_linear() -> None:
    inputs = {"x": STACK, "w": np.asarray(np.random.default_rng(1).normal(size=(5, 4)))}
    net = [turn("w", "t", 1, 0), op("matmul", "xt", "y")]
    assert after(restore_linear, net, ["y"], inputs)[-1] == "y = linear(x, w)"
    unchanged(restore_linear, net, ["y"], {**inputs, "x": STACK[0]})
    unchanged(restore_linear, net, ["y"], {**inputs, "x": STACK.astype(np.float32)})
    unchanged(restore_linear, [turn("x", "t", 0, 2, 1), op("matmul", "xt", "y")], ["y"], inputs)


# --- random nets ---------------------------------------------------------------------------------

SHAPES = [(3, 3), (1, 3), (3, 1), (3,), (), (2, 3, 3), (0, 3)]


class Net(NamedTuple):
    """A random net: operators, the shapes of its inputs, what is wanted, and a seed."""

    operators: list[Operator]
    shapes: dict[str, tuple[int, ...]]
    outputs: list[str]
    seed: int

    def inputs(self, special: bool, seed: int = 0) -> dict[str, Any]:
        """Values for its inputs; ``special`` ones have infinities, NaN and -0.0 among them."""
        rng = np.random.default_rng((self.seed, seed))
        found = {name: np.asarray(rng.normal(size=shape)) for name, shape in self.shapes.items()}
        for x in found.values() if special else ():
            x[rng.random(x.shape) < 0.2] = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0])
        return found


def fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def unary(draw: Any, name: str, shape: tuple[int, ...], y: str) -> tuple[Operator, Any]:
    """A step on one variable, and the shape that it gives."""
    kinds = ["identity", "stop_gradient", "negative", "tanh", "sin", "relu", "sigmoid", "same"]
    kinds += ["flat", "flip", "broadcast_to", "sum_to", "sum", "add_all"]
    kinds += ["permute_dims"] * 3 if len(shape) == 2 else []
    kinds += ["slice", "ones", "turn"] if shape else []
    kind = draw(st.sampled_from(kinds))
    if kind in ("same", "flat"):
        new = shape if kind == "same" else (int(np.prod(shape)),)
        return op("reshape", [name], [y], shape=new), new
    if kind == "flip":
        return op("flip", [name], [y], axes=tuple(range(len(shape)))), shape
    if kind in ("broadcast_to", "sum_to"):
        wider = [s for s in [shape, *SHAPES] if fits(shape, s)]
        narrower = [s for s in SHAPES if fits(s, shape) and s != shape]
        new = draw(st.sampled_from(wider if kind == "broadcast_to" or not narrower else narrower))
        kind = "broadcast_to" if fits(shape, new) else "sum_to"
        return op(kind, [name], [y], shape=new), new
    if kind == "sum":
        axes = tuple(range(len(shape))) if draw(st.booleans()) else tuple(range(len(shape)))[:1]
        return op("sum", [name], [y], axes=axes, keepdims=False), tuple(shape[len(axes) :])
    if kind == "permute_dims":
        return op(kind, [name], [y], axes=(1, 0)), shape[::-1]
    if kind == "ones":
        wider = (*shape, 1) if len(shape) == 1 else (1, *shape)
        new = draw(st.sampled_from([wider, tuple([n for n in shape if n != 1])]))
        return op("reshape", [name], [y], shape=new), new
    if kind == "turn":
        axes = draw(st.permutations(range(len(shape))))
        new = tuple([shape[axis] for axis in axes])
        return op("permute_dims", [name], [y], axes=tuple(axes)), new
    if kind == "slice":
        return op("get_item", [name], [y], index=(slice(0, 1),)), (min(shape[0], 1), *shape[1:])
    return op(kind, [name], [y]), shape


MOVES = ["unary"] * 4 + ["binary"] * 4 + ["again", "constant", "split"]


@st.composite
def nets(draw: Any) -> Net:
    """Up to 12 steps of what passes look for, and of views, on up to 3 inputs and constants."""
    shapes = {f"x{i}": draw(st.sampled_from(SHAPES)) for i in range(draw(st.integers(1, 3)))}
    known: dict[str, tuple[int, ...]] = dict(shapes)
    operators = []
    for number in range(draw(st.integers(1, 12))):
        y = f"v{number}"
        x = draw(st.sampled_from(list(known)))
        move = draw(
            st.sampled_from(["unary"] * 4 + ["binary"] * 4 + ["again", "constant", "split"])
        )
        if move == "constant":
            known[y] = draw(st.sampled_from(SHAPES))
            value = draw(st.sampled_from([1.0, 1.0, 1.0, 0.0, -0.0, 2.0, np.inf, np.nan]))
            operators.append(constant(y, np.full(known[y], value)))
        elif move == "again" and operators:
            old = draw(st.sampled_from(operators))
            renamed = {n: f"{y}_{i}" for i, n in enumerate(old.output_names) if n != EMPTY}
            operators.append(old.renamed(renamed))
            known.update((new, known[n]) for n, new in renamed.items())
        elif move == "split" and known[x] and known[x][-1] == 3:
            names = draw(st.sampled_from([[y, y + "b"], [y, EMPTY], [EMPTY, y]]))
            axis = len(known[x]) - 1
            operators.append(op("split", [x], names, indices=(1,), axis=axis))
            for name, length in zip(names, (1, 2), strict=True):
                if name != EMPTY:
                    known[name] = (*known[x][:-1], length)
        elif move == "binary":
            matrices = (
                [n for n in known if len(known[n]) == 2 and known[n][0] == known[x][-1]]
                if len(known[x]) >= 2
                else []
            )
            if matrices and draw(st.booleans()):
                z = draw(st.sampled_from(matrices))
                operators.append(op("matmul", [x, z], [y]))
                known[y] = (*known[x][:-1], known[z][1])
                continue
            z = draw(st.sampled_from([n for n in known if fits(known[n], known[x])]))
            kind = draw(st.sampled_from(["multiply", "multiply", "multiply", "add", "subtract"]))
            names = [x, z] if draw(st.booleans()) else [z, x]
            operators.append(op(kind, names, [y]))
            known[y] = known[x]
        else:
            one, known[y] = unary(draw, x, known[x], y)
            operators.append(one)
    written = [n for one in operators for n in one.output_names if n != EMPTY]
    outputs = draw(st.lists(st.sampled_from(written), min_size=1, max_size=4, unique=True))
    return Net(operators, shapes, outputs, draw(st.integers(0, 2**32 - 1)))


REORDERED = {"times_number", "matmul", "matmul_of_transposed"}


def compare(net: Net, simpler: list[Operator], special: bool) -> None:
    inputs = net.inputs(special, 1)
    names = [n for one in net.operators for n in one.output_names if n != EMPTY]
    everything = dict(zip(names, results(net.operators, inputs, names), strict=True))
    scale = max(
        [
            1.0,
            *(float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0)) for y in everything.values()),
        ]
    )
    exact = REORDERED.isdisjoint(one.type for one in simpler)
    for name, ours in zip(net.outputs, results(simpler, inputs, net.outputs), strict=True):
        if exact:
            same_bits(ours, everything[name])
        else:
            assert ours.dtype == everything[name].dtype
            np.testing.assert_allclose(ours, everything[name], rtol=1e-13, atol=1e-13 * scale)


@hypothesis.settings(max_examples=200)
@hypothesis.given(net=nets(), special=st.booleans())
def test_simplified_nets_compute_the_same(net: Net, special: bool) -> None:
    before = [str(one) for one in net.operators]
    simpler = simplify(net.operators, net.outputs, specs_of(net.operators, net.inputs(False), N))
    assert [str(one) for one in net.operators] == before
    assert len(simpler) <= len(net.operators)
    compare(net, simpler, special)


@pytest.mark.parametrize("one", dict.fromkeys(PASSES))
@hypothesis.settings(max_examples=25)
@hypothesis.given(net=nets(), special=st.booleans())
def test_each_pass_alone_computes_the_same(one: Any, net: Net, special: bool) -> None:
    specs = specs_of(net.operators, net.inputs(False), N)
    compare(net, one(net.operators, net.outputs, specs), special)


@hypothesis.settings(max_examples=100)
@hypothesis.given(graph=test_net_random.graphs())
def test_simplified_graphs_compute_the_same(graph: test_net_random.Graph) -> None:
    operators = test_net_random.build(graph.steps).flattened()
    shapes = dict.fromkeys(graph.inputs, (test_net_random.SIDE,) * 2)
    net = Net(operators, shapes, graph.targets, graph.seed)
    simpler = simplify(operators, graph.targets, specs_of(operators, net.inputs(False), N))
    compare(net, simpler, False)
