"""Nets by hand: operators, the registry, scopes, and backward nets with their seven traps."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import NetError, snake_case
from tinynode.net import (
    NetOp,
    Operator,
    OpInfoMap,
    Scope,
    append_backward,
    backward,
    build_grad_op,
    get_op_info,
    register_op,
)
from tinynode.net.operator import EMPTY
from tinynode.net.registry import type_name

X = np.asarray([[1.0, 2.0], [3.0, 4.0]])
W = np.asarray([[0.5, -1.0], [0.25, 2.0]])
SUM = {"axes": (0, 1), "keepdims": False}


def text(lines: str) -> str:
    """A stored program, without the indentation that it has in this file."""
    kept = lines.strip("\n").split("\n")
    indent = len(kept[0]) - len(kept[0].lstrip())
    return "\n".join(line[indent:] for line in kept).rstrip()


def run(net: NetOp, **arrays: Any) -> Scope:
    scope = Scope(arrays)
    net.run(scope)
    return scope


def value(scope: Scope, name: str) -> Any:
    return scope.find(name).array


def assert_close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-13)


# --- operators -----------------------------------------------------------------------------------


def test_an_operator_runs_in_a_scope() -> None:
    operator = Operator("matmul", ["x", "w"], ["y"])
    scope = Scope({"x": X, "w": W})
    operator.run(scope)
    assert_close(value(scope, "y"), X @ W)
    assert scope.find("y").creator_node is None
    assert operator.input_names == ["x", "w"] and operator.output_names == ["y"]
    assert operator.inputs == {"x0": ["x"], "x1": ["w"]} and operator.outputs == {"y0": ["y"]}
    assert str(operator) == "y = matmul(x, w)"
    assert repr(operator) == "<Operator y = matmul(x, w)>"


def test_attributes_are_those_of_the_constructor() -> None:
    operator = Operator("sum", ["x"], ["y"], {"axes": (0,), "keepdims": True})
    assert operator.attrs == {"axes": (0,), "keepdims": True}
    assert str(operator) == "y = sum(x, axes=(0,), keepdims=True)"
    scope = Scope({"x": X})
    operator.run(scope)
    operator.run(scope)  # as often as one likes: each run is a fresh FunctionNode
    assert_close(value(scope, "y"), [[4.0, 6.0]])
    assert operator.attrs == {"axes": (0,), "keepdims": True}


def test_large_constants_are_short_in_print() -> None:
    device = tn.get_device("numpy")
    small = {"value": np.asarray(2.0), "output_device": device}
    large = {"value": np.zeros((2, 3)), "output_device": device}
    assert str(Operator.with_constants("constant", [], ["c"], small)) == (
        "c = constant(output_device=numpy, value=array(2.))"
    )
    assert str(Operator.with_constants("constant", [], ["c"], large)) == (
        "c = constant(output_device=numpy, value=ndarray of shape (2, 3), float64)"
    )
    assert str(Operator("astype", ["x"], ["y"], {"dtype": np.float32})) == (
        "y = astype(x, dtype=float32)"
    )


@pytest.mark.slow
def test_a_number_of_pytorch_is_shown_as_a_number() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    attrs = {"value": torch.tensor(2.0), "output_device": tn.get_device("torch")}
    constant = Operator.with_constants("constant", [], ["c"], attrs)
    assert str(constant) == "c = constant(output_device=torch, value=tensor(2.))"


def test_operators_and_nets_copy_what_they_are_given() -> None:
    attrs, slots = {"shape": (2,)}, Operator("exp", ["x"], ["y"]).inputs
    names, writes = {slot: list(found) for slot, found in slots.items()}, {"w": "y"}
    operator, constant = (
        Operator("exp", names, ["y"]),
        Operator.with_constants("reshape", ["x"], ["y"], attrs),
    )
    net = NetOp([operator], "net", writes)
    for given in (attrs, writes):
        given.clear()
    for found in names.values():
        found.append("z")
    assert operator.input_names == ["x"] and net.writes == {"w": "y"}
    assert constant.attrs == {"shape": (2,)}


def test_renamed_leaves_the_operator_as_it_was() -> None:
    operator = Operator("multiply", ["x", "x"], ["y"])
    assert str(operator.renamed({"x": "a", "z": "b"})) == "y = multiply(a, a)"
    assert str(operator) == "y = multiply(x, x)"


@pytest.mark.parametrize("attrs", [{"axis": 0}, {}, {"axes": (0,), "keepdims": True, "more": 1}])
def test_wrong_attributes_are_an_error(attrs: dict[str, Any]) -> None:
    with pytest.raises(NetError, match=r"operator 'sum': Sum cannot be made with attrs="):
        Operator("sum", ["x"], ["y"], attrs)


def test_names_in_a_text_are_an_error() -> None:
    with pytest.raises(NetError, match="names must come in a list or by slot, got 'x'"):
        Operator("exp", "x", ["y"])
    with pytest.raises(NetError, match="names must come in a list or by slot, got 'y'"):
        Operator("exp", ["x"], "y")


def test_unknown_types_are_an_error_with_a_hint() -> None:
    with pytest.raises(NetError, match=r"'matmull' cannot be found; did you mean 'matmul'\?"):
        Operator("matmull", ["x", "w"], ["y"])
    with pytest.raises(NetError, match=r"'qqq' cannot be found; A FunctionNode class becomes"):
        get_op_info("qqq")


def test_an_empty_output_is_not_written() -> None:
    net = NetOp([Operator("split", ["x"], [EMPTY, "b"], {"indices": (1,), "axis": 0})])
    scope = run(net, x=X)
    assert EMPTY not in scope and net.output_names == ["b"]
    assert_close(value(scope, "b"), X[1:])


# --- the registry --------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Any:
    """What a test registers is taken out again."""
    get_op_info("add")
    before = dict(OpInfoMap)
    yield
    OpInfoMap.clear()
    OpInfoMap.update(before)


def scale_class() -> type[tn.FunctionNode]:
    class ScaleForNets(tn.FunctionNode):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * self.factor,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return (grad_outputs[0] * self.factor,)

    return ScaleForNets


@pytest.mark.usefixtures("registry")
def test_a_class_registers_under_its_own_name() -> None:
    node_class = scale_class()
    assert register_op()(node_class) is node_class
    info = get_op_info("scale_for_nets")
    assert info == ("scale_for_nets", node_class, (), ())
    assert type_name(node_class) == "scale_for_nets"
    register_op()(node_class)  # once more is no mistake


@pytest.mark.usefixtures("registry")
def test_a_class_registers_with_a_name_and_slots() -> None:
    register_op("scaled", inputs=("source",), outputs=("result",))(scale_class())
    operator = Operator("scaled", ["x"], ["y"], {"factor": 3.0})
    assert operator.inputs == {"source": ["x"]} and operator.outputs == {"result": ["y"]}
    again = Operator("scaled", {"source": ["x"]}, {"result": ["y"]}, {"factor": 3.0})
    assert again.inputs == operator.inputs
    scope = run(NetOp([again]), x=X)
    assert_close(value(scope, "y"), 3 * X)
    gradient = build_grad_op(operator, scope)
    assert gradient.input_names == ["y@GRAD"] and "x@GRAD" in gradient.output_names
    scope.set("y@GRAD", W)
    gradient.run(scope)
    assert_close(value(scope, "x@GRAD"), 3 * W)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (["x", "w"], ["y"], r"scaled: expected 1 names for \('source',\), got \['x', 'w'\]"),
        ([], ["y"], r"scaled: expected 1 names for \('source',\), got \[\]"),
        ({"x": ["x"]}, ["y"], r"the slots must be \('source',\), in that order; got \('x',\)"),
        (["x"], {"source": ["y"]}, r"the slots must be \('result',\), in that order"),
    ],
)
def test_wrong_slots_are_an_error(inputs: Any, outputs: Any, message: str) -> None:
    register_op("scaled", inputs=("source",), outputs=("result",))(scale_class())
    with pytest.raises(NetError, match=message):
        Operator("scaled", inputs, outputs, {"factor": 3.0})


@pytest.mark.usefixtures("registry")
def test_duplicates_are_an_error_and_change_nothing() -> None:
    first, second = scale_class(), scale_class()
    register_op("scaled")(first)
    with pytest.raises(NetError, match=r"the type 'scaled' is taken by .*ScaleForNets"):
        register_op("scaled")(second)
    assert get_op_info("scaled").node_class is first
    with pytest.raises(NetError, match="'other' has the slot 'x' twice"):
        register_op("other", inputs=("x", "x"))(second)
    with pytest.raises(NetError, match="'other' has the slot 'y' twice"):
        register_op("other", outputs=("y", "y"))(second)
    with pytest.raises(NetError, match="taken by Exp"):
        register_op("exp")(second)
    assert "other" not in OpInfoMap


@pytest.mark.parametrize("thing", [3, fn.exp, int, tn.Variable])
def test_only_function_nodes_register(thing: Any) -> None:
    with pytest.raises(TypeError, match="register_op: expected a FunctionNode class, got"):
        register_op("thing")(thing)
    assert "thing" not in OpInfoMap


@pytest.mark.usefixtures("registry")
def test_a_class_that_nobody_registered_is_when_it_is_met() -> None:
    first, second = scale_class(), scale_class()

    def f(x: tn.Variable) -> tn.Variable:
        y = first(2.0).apply((x,))[0]
        return second(3.0).apply((y,))[0]

    net = tn.trace(f, tn.Variable(X)).net
    kinds = [operator.type for operator in net.flattened()]
    assert kinds[0] == "scale_for_nets" and kinds[1] != kinds[0]
    assert "ScaleForNets" in kinds[1]
    assert_close(value(run(net, x=X), "t1"), 6 * X)


FIRST_OF_ALL = """
import tinynode as tn

class Mine(tn.FunctionNode):
    def forward(self, inputs):
        return inputs

try:
    tn.net.register_op("add")(Mine)
except tn.errors.NetError as error:
    print(error)
print(tn.net.get_op_info("add").node_class.__name__)
"""


def test_the_first_class_of_a_program_takes_no_name_of_the_library() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_OF_ALL], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert "'add' is taken by Add" in lines[0] and lines[1] == "Add"


def test_the_whole_library_is_registered() -> None:
    get_op_info("add")
    registered = {info.node_class for info in OpInfoMap.values()}
    for module in (fn, fn.linalg):
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, type) and issubclass(thing, tn.FunctionNode):
                assert thing in registered, name
    assert all(name == info.name for name, info in OpInfoMap.items())


def test_the_library_registers_at_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinynode.net.registry._has_library", False)
    before = dict(OpInfoMap)
    library = {n: i for n, i in before.items() if i.node_class.__module__.startswith(fn.__name__)}
    OpInfoMap.clear()
    try:
        get_op_info("add")
        assert OpInfoMap == library
    finally:
        OpInfoMap.clear()
        OpInfoMap.update(before)


def test_snake_case() -> None:
    assert [snake_case(n) for n in ("LogSoftmax", "Conv2d", "ReLU", "X")] == [
        "log_softmax",
        "conv2d",
        "re_lu",
        "x",
    ]


# --- nets ----------------------------------------------------------------------------------------


def layer(number: int, x: str, w: str) -> NetOp:
    """tanh(x w) as a net."""
    return NetOp(
        [
            Operator("matmul", [x, w], [f"h{number}"]),
            Operator("tanh", [f"h{number}"], [f"a{number}"]),
        ],
        f"layer{number}",
    )


def test_a_net_is_an_operator_made_of_operators() -> None:
    net = NetOp([layer(1, "x", "w"), layer(2, "a1", "w")], "net")
    assert net.input_names == ["x", "w"]
    assert net.output_names == ["h1", "a1", "h2", "a2"]
    assert [operator.type for operator in net.flattened()] == ["matmul", "tanh"] * 2
    assert repr(net) == "<NetOp net: 2 operators>"
    scope = run(net, x=X, w=W)
    assert_close(value(scope, "a2"), np.tanh(np.tanh(X @ W) @ W))
    assert str(net) == text("""
        net(x, w):
            layer1(x, w):
                h1 = matmul(x, w)
                a1 = tanh(h1)
            layer2(a1, w):
                h2 = matmul(a1, w)
                a2 = tanh(h2)
    """)


def test_a_renamed_net_shares_nothing() -> None:
    net = NetOp([layer(1, "x", "w")])
    other = net.renamed({"x": "z", "a1": "out"})
    other.append(Operator("exp", ["out"], ["more"]))
    assert other.input_names == ["z", "w"] and other.output_names == ["h1", "out", "more"]
    assert net.input_names == ["x", "w"] and net.output_names == ["h1", "a1"]
    with pytest.raises(NetError, match="'a1', which was written before"):
        net.renamed({"h1": "a1"})


def test_an_empty_net_does_nothing() -> None:
    net = NetOp()
    scope = run(net, x=X)
    assert list(scope) == ["x"] and net.input_names == net.output_names == net.flattened() == []
    assert str(net) == "net():"
    assert backward(net, scope).operators == []


def test_trap_g_a_variable_is_written_once() -> None:
    """The seventh trap: a forward variable that is overwritten."""
    net = NetOp([Operator("exp", ["x"], ["y"])], "f")
    for operator in (
        Operator("sin", ["x"], ["y"]),
        NetOp([Operator("sin", ["x"], ["y"])], "inner"),
    ):
        with pytest.raises(NetError, match=r"f: \w+ writes 'y', which was written before"):
            net.append(operator)
    with pytest.raises(NetError, match="f: sin writes 'x', which was read before"):
        net.append(Operator("sin", ["y"], ["x"]))
    with pytest.raises(NetError, match="f: sin writes 'z', which was read before"):
        net.append(Operator("sin", ["z"], ["z"]))
    with pytest.raises(NetError, match="f: split writes 'a', which was written before"):
        net.append(Operator("split", ["x"], ["a", "a"], {"indices": (1,), "axis": 0}))
    assert str(net) == "f(x):\n    y = exp(x)"
    assert net.input_names == ["x"] and net.output_names == ["y"]
    net.append(Operator("sin", ["y"], ["z"]))


# --- scopes --------------------------------------------------------------------------------------


def test_a_scope_asks_its_parent() -> None:
    parent = Scope({"x": X, "w": W})
    scope = Scope({"x": 2 * X}, parent)
    assert_close(value(scope, "x"), 2 * X)
    assert_close(value(scope, "w"), W)
    assert "w" in scope and "y" not in scope
    assert list(scope) == ["x", "w"] and repr(scope) == "Scope(x, w)"
    NetOp([Operator("matmul", ["x", "w"], ["y"])]).run(scope)
    assert "y" in scope and "y" not in parent
    assert_close(value(parent, "x"), X)


def test_what_is_not_in_a_scope_is_an_error() -> None:
    scope = Scope({"weight": W}, Scope({"bias": X}))
    with pytest.raises(
        NetError, match=r"no variable 'weights' in the scope. Did you mean 'weight'"
    ):
        scope.find("weights")
    with pytest.raises(NetError, match=r"exp: there is no variable 'q' in the scope.$"):
        Operator("exp", ["q"], ["y"]).run(scope)
    with pytest.raises(NetError, match="Did you mean 'bias'"):
        scope.find("biass")
    with pytest.raises(NetError, match="there is no variable 'x'"):
        backward(NetOp([Operator("exp", ["x"], ["y"])]), scope)


def test_a_scope_takes_variables_and_arrays() -> None:
    x = tn.Variable(X)
    scope = Scope({"x": x})
    scope.set("y", X)
    assert scope.find("x") is x and scope.find("y").array is X
    with pytest.raises(TypeError):
        scope.set("z", object())
    assert "z" not in scope


# --- gradient operators --------------------------------------------------------------------------


def test_a_function_with_a_gradient_node_has_one_gradient_operator() -> None:
    scope = Scope({"x": X})
    gradient = build_grad_op(Operator("gelu", ["x"], ["y"]), scope)
    assert isinstance(gradient, Operator) and gradient.type == "gelu_grad"
    assert str(gradient) == "x@GRAD = gelu_grad(x, y@GRAD)"


def test_the_gradient_operator_reads_what_backward_uses() -> None:
    scope = Scope({"x": X, "w": W})
    assert str(build_grad_op(Operator("exp", ["x"], ["y"]), scope)) == (
        "x@GRAD = multiply(y@GRAD, y)"
    )
    assert str(build_grad_op(Operator("matmul", ["x", "w"], ["y"]), scope, ["x"])) == (
        "w@GRAD = matmul_of_transposed(x, y@GRAD, transpose_x=True, transpose_y=False)"
    )
    assert build_grad_op(Operator("exp", ["x"], ["y"]), scope, ["x"]).output_names == []


def test_what_is_not_floating_has_no_gradient() -> None:
    scope = Scope({"x": X, "i": np.asarray([1, 0])})
    cast = Operator("astype", ["x"], ["y"], {"dtype": np.int64})
    assert build_grad_op(cast, scope).output_names == []
    assert build_grad_op(Operator("exp", ["i"], ["y"]), Scope({"i": X})).output_names == ["i@GRAD"]
    net = NetOp([cast, Operator("equal", ["x", "x"], ["z"]), Operator("exp", ["x"], ["v"])])
    net.run(scope)
    assert str(backward(net, scope)) == text("""
        net_grad(v@GRAD, v):
            x@GRAD = multiply(v@GRAD, v)
    """)
    taken = Operator("take_rows", ["x", "i"], ["y"])
    assert build_grad_op(taken, Scope({"x": X, "i": np.asarray([1, 0])})).output_names[-1] == (
        "x@GRAD"
    )


# --- backward nets: stored text ------------------------------------------------------------------


def test_the_backward_net_of_a_square() -> None:
    net = NetOp([Operator("multiply", ["x", "x"], ["y"])], "square")
    assert str(net) == text("""
        square(x):
            y = multiply(x, x)
    """)
    assert str(backward(net, run(net, x=X))) == text("""
        square_grad(y@GRAD, x):
            multiply_grad(y@GRAD, x):
                x@GRAD@RENAME@0 = multiply(y@GRAD, x)
                x@GRAD@RENAME@1 = multiply(y@GRAD, x)
            x@GRAD = add(x@GRAD@RENAME@0, x@GRAD@RENAME@1)
    """)


def test_the_backward_net_of_a_layer() -> None:
    net = NetOp([layer(1, "x", "w"), Operator("sum", ["a1"], ["y"], SUM)], "f")
    assert str(net) == text("""
        f(x, w):
            layer1(x, w):
                h1 = matmul(x, w)
                a1 = tanh(h1)
            y = sum(a1, axes=(0, 1), keepdims=False)
    """)
    assert str(backward(net, run(net, x=X, w=W))) == text("""
        f_grad(y@GRAD, h1, w, x):
            a1@GRAD = broadcast_to(y@GRAD, shape=(2, 2))
            layer1_grad(h1, a1@GRAD, w, x):
                h1@GRAD = tanh_grad(h1, a1@GRAD)
                matmul_grad(h1@GRAD, w, x):
                    x@GRAD = matmul_of_transposed(h1@GRAD, w, transpose_x=False, transpose_y=True)
                    w@GRAD = matmul_of_transposed(x, h1@GRAD, transpose_x=True, transpose_y=False)
    """)


def fan() -> NetOp:
    """d = e^x + sin x + x e^x + x: x is read four times, a = e^x twice."""
    return NetOp(
        [
            Operator("exp", ["x"], ["a"]),
            Operator("sin", ["x"], ["b"]),
            Operator("multiply", ["x", "a"], ["c"]),
            Operator("add_all", ["a", "b", "c", "x"], ["d"]),
        ],
        "fan",
    )


def test_the_backward_net_of_a_fan() -> None:
    net = fan()
    assert str(net) == text("""
        fan(x):
            a = exp(x)
            b = sin(x)
            c = multiply(x, a)
            d = add_all(a, b, c, x)
    """)
    assert str(backward(net, run(net, x=X))) == text("""
        fan_grad(d@GRAD, a, x):
            add_all_grad(d@GRAD):
                a@GRAD@RENAME@0 = identity(d@GRAD)
                b@GRAD = identity(d@GRAD)
                c@GRAD = identity(d@GRAD)
                x@GRAD@RENAME@0 = identity(d@GRAD)
            multiply_grad(c@GRAD, a, x):
                x@GRAD@RENAME@1 = multiply(c@GRAD, a)
                a@GRAD@RENAME@1 = multiply(c@GRAD, x)
            sin_grad(x, b@GRAD):
                t2 = cos(x)
                x@GRAD@RENAME@2 = multiply(b@GRAD, t2)
            a@GRAD = add(a@GRAD@RENAME@0, a@GRAD@RENAME@1)
            x@GRAD@RENAME@3 = multiply(a@GRAD, a)
            x@GRAD = add_all(x@GRAD@RENAME@0, x@GRAD@RENAME@1, x@GRAD@RENAME@2, x@GRAD@RENAME@3)
    """)


# --- backward nets: the traps --------------------------------------------------------------------


def gradients(net: NetOp, scope: Scope, seeds: dict[str, Any], **arguments: Any) -> NetOp:
    """Build and run a backward net; the gradients are in the scope."""
    result = backward(net, scope, **arguments)
    for name, array in seeds.items():
        scope.set(f"{name}@GRAD", array)
    result.run(scope)
    return result


def test_trap_a_one_variable_in_two_slots_of_an_operator() -> None:
    net = NetOp([Operator("multiply", ["x", "x"], ["y"])])
    scope = run(net, x=X)
    gradients(net, scope, {"y": W})
    assert_close(value(scope, "x@GRAD"), 2 * X * W)
    scope = run(net := NetOp([Operator("matmul", ["x", "x"], ["y"])]), x=X)
    gradients(net, scope, {"y": W})
    assert_close(value(scope, "x@GRAD"), W @ X.T + X.T @ W)


def test_trap_b_a_variable_that_is_read_often() -> None:
    scope = run(fan(), x=X)
    gradients(fan(), scope, {"d": W})
    assert_close(value(scope, "x@GRAD"), W * (2 * np.exp(X) + np.cos(X) + X * np.exp(X) + 1))


def test_trap_c_nets_in_nets_share_a_weight() -> None:
    inner = NetOp([Operator("matmul", ["a1", "w"], ["b"])], "inner")
    outer = NetOp([layer(1, "x", "w"), inner, Operator("multiply", ["b", "w"], ["c"])], "outer")
    net = NetOp([outer, Operator("add", ["c", "w"], ["y"])])
    scope = run(net, x=X, w=W)
    result = gradients(net, scope, {"y": X})
    x, w = tn.Variable(X), tn.Variable(W)
    y = fn.tanh(x @ w) @ w * w + w
    for name, gx in zip(["x@GRAD", "w@GRAD"], tn.grad([y], [x, w], [tn.Variable(X)]), strict=True):
        assert_close(value(scope, name), gx.array)
    kinds = [operator.type for operator in result.operators]
    assert kinds == ["add_grad", "outer_grad", "add_all"]
    nested = result.operators[1]
    assert isinstance(nested, NetOp)
    kinds = [operator.type for operator in nested.operators]
    assert kinds == ["multiply_grad", "inner_grad", "layer1_grad"]


@register_op("quotient_for_nets", inputs=("x",), outputs=("y", "z"))
class Quotient(tn.FunctionNode):
    """y = x, z = log x; backward says which gradients came."""

    seen: list[Any] = []  # noqa: RUF012 - of all instances

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        self.retain_inputs((0,))
        return x * 1, np.log(x)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        gy, gz = grad_outputs
        self.seen.append([gy is not None, gz is not None])
        (x,) = self.get_retained_inputs()
        parts = [gy] if gy is not None else []
        if gz is not None:
            parts.append(gz / x)
        return (parts[0] if len(parts) == 1 else parts[0] + parts[1],)


def test_trap_d_an_output_that_nobody_uses() -> None:
    net = NetOp(
        [
            Operator("quotient_for_nets", ["x"], ["y", "z"]),
            Operator("exp", ["y"], ["v"]),
        ]
    )
    scope = run(net, x=X)
    Quotient.seen.clear()
    gradients(net, scope, {"v": W}, targets=["v"])
    assert Quotient.seen == [[True, False]]
    assert_close(value(scope, "x@GRAD"), W * np.exp(X))
    scope = run(net, x=X)
    Quotient.seen.clear()
    result = gradients(net, scope, {"v": W}, targets=["v"], zero_fill=True)
    assert Quotient.seen == [[True, True]]
    fills = [operator for operator in result.flattened() if operator.type == "fill_like"]
    assert [str(operator) for operator in fills] == ["z@ZERO = fill_like(z, value=0.0)"]
    assert not np.any(value(scope, "z@ZERO"))
    assert_close(value(scope, "x@GRAD"), W * np.exp(X))
    assert np.all(np.isfinite(value(scope, "x@GRAD")))
    # an operator without a gradient needs no zeros; append_backward never fills
    for inputs, targets in ((["x"], ["y"]), (["y"], ["v"])):
        found = backward(net, run(net, x=X), inputs=inputs, targets=targets, zero_fill=True)
        assert ("fill_like" in [one.type for one in found.flattened()]) == (inputs == ["x"])
    append_backward(net, run(net, x=X), ["v"], ["x"])
    assert net.output_names[-1] == "x@GRAD" and "z@ZERO" not in net.output_names


def test_zero_fill_leaves_empty_names_alone() -> None:
    net = NetOp([Operator("quotient_for_nets", ["x"], ["y", EMPTY])])
    scope = run(net, x=X)
    Quotient.seen.clear()
    gradients(net, scope, {"y": W}, zero_fill=True)
    assert Quotient.seen == [[True, False]]
    assert_close(value(scope, "x@GRAD"), W)


def test_trap_e_a_frozen_weight_lets_the_gradient_pass() -> None:
    net = NetOp([layer(1, "x", "w"), layer(2, "a1", "v")])
    scope = run(net, x=X, w=W, v=X)
    result = gradients(net, scope, {"a2": X}, no_grad_set=["v"])
    x, w = tn.Variable(X), tn.Variable(W)
    y = fn.tanh(fn.tanh(x @ w) @ tn.Variable(X, requires_grad=False))
    for name, gx in zip(["x@GRAD", "w@GRAD"], tn.grad([y], [x, w], [tn.Variable(X)]), strict=True):
        assert_close(value(scope, name), gx.array)
    assert "v@GRAD" not in result.output_names
    products = [one for one in result.flattened() if one.type == "matmul_of_transposed"]
    assert len(products) == 3  # the frozen weight's is not computed


def test_no_gradient_goes_through_a_variable_of_the_no_grad_set() -> None:
    scope = run(fan(), x=X)
    gradients(fan(), scope, {"d": W}, no_grad_set=["a"])
    assert_close(value(scope, "x@GRAD"), W * (np.cos(X) + np.exp(X) + 1))
    result = backward(fan(), run(fan(), x=X), no_grad_set=["a"], targets=["a", "d"])
    assert not any(name.startswith("a@GRAD") for name in result.output_names)
    scope = run(fan(), x=X)
    gradients(fan(), scope, {"a": W, "d": W}, no_grad_set=["a"], targets=["a", "d"])
    assert_close(value(scope, "x@GRAD"), W * (np.cos(X) + np.exp(X) + 1))
    result = backward(fan(), run(fan(), x=X), no_grad_set=["x"])
    assert result.operators == []


@register_op("weighted_sum_for_nets")
class WeightedSum(tn.FunctionNode):
    """z = 3 (x + y); one and the same Variable is both gradients."""

    def forward(self, inputs: Any) -> Any:
        return (3 * (inputs[0] + inputs[1]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        gx = grad_outputs[0] * 3
        return gx, gx


def test_one_variable_that_is_two_gradients() -> None:
    net = NetOp([Operator("weighted_sum_for_nets", ["x", "w"], ["y"])])
    scope = run(net, x=X, w=W)
    gradients(net, scope, {"y": W})
    assert_close(value(scope, "x@GRAD"), 3 * W)
    assert_close(value(scope, "w@GRAD"), 3 * W)


def test_trap_f_two_targets() -> None:
    net = NetOp([Operator("exp", ["x"], ["a"]), Operator("multiply", ["a", "x"], ["b"])])
    scope = run(net, x=X)
    gradients(net, scope, {"a": W, "b": X}, targets=["a", "b"])
    assert_close(value(scope, "x@GRAD"), W * np.exp(X) + X * (np.exp(X) + X * np.exp(X)))
    scope = run(net, x=X)
    gradients(net, scope, {"a": W}, targets=["a"])
    assert_close(value(scope, "x@GRAD"), W * np.exp(X))


def test_a_target_that_is_an_input_of_another_keeps_the_given_gradient() -> None:
    """The given ``a@GRAD`` is one part of the whole: it is read, never written."""
    net = NetOp([Operator("exp", ["x"], ["a"]), Operator("sin", ["a"], ["b"])])
    result = backward(net, run(net, x=X), targets=["a", "b"])
    assert "a@GRAD" in result.input_names and "a@GRAD" not in result.output_names


def test_targets_that_are_not_written_are_an_error() -> None:
    scope = run(fan(), x=X)
    with pytest.raises(
        NetError, match=r"backward: target 'x' is not written by the net; it writes"
    ):
        backward(fan(), scope, targets=["x"])
    with pytest.raises(NetError, match="target 'q' is not written"):
        append_backward(fan(), scope, ["q"], ["x"])


def test_only_the_inputs_that_are_asked_for() -> None:
    net = layer(1, "x", "w")
    result = backward(net, run(net, x=X, w=W), inputs=["w"])
    assert "w@GRAD" in result.output_names and "x@GRAD" not in result.output_names
    result = backward(net, run(net, x=X, w=W), inputs=["h1"])
    assert "h1@GRAD" in result.output_names and "w@GRAD" not in result.output_names


def test_a_backward_net_has_a_backward_net() -> None:
    net = NetOp([Operator("exp", ["x"], ["a"]), Operator("multiply", ["a", "x"], ["y"])])
    scope = run(net, x=X)
    assert append_backward(net, scope, ["y"], ["x"]) == {"x": "x@GRAD"}
    net.run(scope := Scope({"x": X}))
    second = append_backward(net, scope, ["x@GRAD"], ["x"])["x"]
    assert second is not None and second != "x@GRAD"
    fresh = run(net, x=W)
    assert_close(value(fresh, "x@GRAD"), np.exp(W) * (1 + W))
    assert_close(value(fresh, second), np.exp(W) * (2 + W))


# --- append_backward -----------------------------------------------------------------------------


def test_append_backward_gives_the_names_of_the_gradients() -> None:
    net = NetOp([layer(1, "x", "w"), Operator("sum", ["a1"], ["loss"], SUM)], "f")
    scope = run(net, x=X, w=W)
    scope.set("v", X)
    names = append_backward(net, scope, ["loss"], ["x", "w", "v"])
    assert names == {"x": "x@GRAD", "w": "w@GRAD", "v": None}
    fresh = run(net, x=2 * X, w=W)
    x, w = tn.Variable(2 * X), tn.Variable(W)
    fn.sum(fn.tanh(x @ w)).backward()
    assert_close(value(fresh, "x@GRAD"), x.grad)
    assert_close(value(fresh, "w@GRAD"), w.grad)


def test_append_backward_twice() -> None:
    net = NetOp([Operator(f, ["x"], [f"y_{f}"]) for f in ("exp", "sin", "square")])
    scope = run(net, x=X)
    first = append_backward(net, scope, ["y_exp"], ["x"])
    net.run(scope := Scope({"x": X}))
    second = append_backward(net, scope, ["y_sin"], ["x"])
    assert first["x"] == "x@GRAD" and second["x"] not in (None, "x@GRAD")
    fresh = run(net, x=X)
    assert_close(value(fresh, "x@GRAD"), np.exp(X))
    assert_close(value(fresh, str(second["x"])), np.cos(X))
    third = append_backward(net, fresh, ["y_square", "y_exp"], ["x"])
    assert_close(value(run(net, x=X), str(third["x"])), np.exp(X) + 2 * X)
    with pytest.raises(NetError, match="y_exp@GRAD, from which it starts, is a variable of the"):
        backward(net, run(net, x=X), targets=["y_exp"])


def test_append_backward_with_a_frozen_parameter() -> None:
    net = layer(1, "x", "w")
    names = append_backward(net, run(net, x=X, w=W), ["a1"], ["x", "w"], no_grad_set=["w"])
    assert names == {"x": "x@GRAD"}
