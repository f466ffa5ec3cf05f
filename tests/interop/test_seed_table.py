"""docs/from-chainer.md: every row of its table has a test here, and every test has a row."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_tables import restored_tables

import tinynode as tn
from tinynode import functions, gradient_check
from tinynode.core.hooks import thread_state
from tinynode.devices import fallback_uses
from tinynode.errors import GraphError, HookError, InvalidType, OutputError
from tinynode.hooks import TimerHook
from tinynode.type_check import expect

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-chainer.md"
ROWS: dict[str, Callable[[], None]] = {}

Arrays = tuple[Any, ...]


def row(*names: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Says which rows of the table a function tests."""

    def register(test: Callable[[], None]) -> Callable[[], None]:
        for name in names:
            assert name not in ROWS, f"two tests for {name}"
            ROWS[name] = test
        return test

    return register


def names_on_the_page() -> list[str]:
    table = PAGE.read_text(encoding="utf-8").partition('<div class="names"')[2]
    lines = table.splitlines()
    return [line.split("`")[1] for line in lines if line.startswith("| `")]


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    names = names_on_the_page()
    assert len(names) > 60
    assert len(names) == len(set(names))
    assert set(names) == set(ROWS)


@pytest.mark.parametrize("name", names_on_the_page())
def test_row(name: str) -> None:
    ROWS[name]()


# --- what the tests are made of ----------------------------------------------------------------


def variable(*values: float, **options: Any) -> tn.Variable:
    return tn.Variable(np.array(values), **options)


def scalar(value: float) -> tn.Variable:
    return tn.Variable(np.array(value))


class Cube(tn.FunctionNode):
    """y = x^3, with its input retained."""

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (3 * x * x * grad_outputs[0],)


class Exponential(tn.FunctionNode):
    """y = e^x, with its output retained."""

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_outputs((0,))
        return (np.exp(inputs[0]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (y,) = self.get_retained_outputs()
        return (y * grad_outputs[0],)


class OldSquare(tn.Function):
    """y = x^2 in the old style."""

    def forward(self, inputs: Arrays) -> Arrays:
        return (inputs[0] ** 2,)

    def backward(self, inputs: Any, grad_outputs: Any) -> Any:
        return (2 * inputs[0] * grad_outputs[0],)


class RecordingHook(tn.FunctionHook):
    """Writes down every callback."""

    name = "recording"

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def added(self, function: Any) -> None:
        self.calls.append(("added", function))

    def deleted(self, function: Any) -> None:
        self.calls.append(("deleted", function))

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        self.calls.append(("forward_preprocess", function, in_data))

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        self.calls.append(("forward_postprocess", function, in_data))

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.calls.append(("backward_preprocess", function, in_data, out_grad))

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.calls.append(("backward_postprocess", function, in_data, out_grad))

    def events(self, function: Any) -> list[str]:
        return [call[0] for call in self.calls if call[1] is function]


class PretendArray(np.ndarray):
    """NumPy's memory under another type, for a backend that pretends to be something else."""


class PretendBackend:
    """A backend over PretendArray: with the capability "gpu", and a fast path if asked for."""

    name = "pretend"

    def __init__(self, fast: bool) -> None:
        self.capabilities = frozenset({"gpu"})
        self.fast = fast

    def devices(self) -> tuple[str, ...]:
        return ("0",)

    def namespace(self) -> Any:
        return np

    def owns(self, array: object) -> bool:
        return isinstance(array, PretendArray)

    def index_of(self, array: Any) -> str:
        return "0"

    def from_host(self, array: Any, index: str) -> Any:
        return array.view(PretendArray)

    def to_host(self, array: Any) -> Any:
        return array.view(np.ndarray)

    def synchronize(self, index: str) -> None:
        pass

    def lift(self, value: object) -> Any:
        return None

    def forward(self, node: Any, arrays: Arrays) -> Any:
        return node.forward_fast(arrays) if self.fast else node.forward(arrays)


def apply_on_pretend(node: tn.FunctionNode, value: Any, fast: bool) -> tn.Variable:
    """Apply a node on the pretend backend, which is forgotten afterwards."""
    with restored_tables():
        tn.register_backend(PretendBackend(fast))
        with tn.using_device("pretend"):
            return node.apply((tn.asarray(value, device="pretend"),))[0]


# --- FunctionNode ------------------------------------------------------------------------------


@row("FunctionNode.apply")
def apply() -> None:
    x = variable(1.0, 2.0)
    outputs = Cube().apply((x,))
    assert type(outputs) is tuple and len(outputs) == 1
    (y,) = outputs
    assert isinstance(y, tn.Variable)
    assert y.array.tolist() == [1.0, 8.0]
    assert y.creator_node.inputs == (x.node,)
    add = functions.Add()
    (z,) = add.apply((np.ones(2), x))
    z.grad = np.ones(2)
    z.backward()
    assert [node.requires_grad for node in add.inputs or ()] == [False, True]
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]


@row("FunctionNode.forward")
def forward() -> None:
    class Both(tn.FunctionNode):
        def forward_cpu(self, inputs: Arrays) -> Arrays:
            return (inputs[0] + 1,)

    class NoTuple(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Any:
            return inputs[0]

    assert Both().apply((variable(1.0),))[0].array.tolist() == [2.0]
    with pytest.raises(OutputError, match=r"must be a tuple \(NoTuple\)"):
        NoTuple().apply((variable(1.0),))


class WhereAmI(tn.FunctionNode):
    """y = x + 1 by forward_cpu, x + 2 by forward_gpu."""

    def forward_cpu(self, inputs: Arrays) -> Arrays:
        return (inputs[0] + 1,)

    def forward_gpu(self, inputs: Arrays) -> Arrays:
        return (inputs[0] + 2,)


@row("FunctionNode.forward_cpu")
def forward_cpu() -> None:
    assert WhereAmI().apply((variable(1.0),))[0].array.tolist() == [2.0]
    with pytest.raises(NotImplementedError, match="forward_cpu"):
        tn.FunctionNode().apply((variable(1.0),))


@row("FunctionNode.forward_gpu")
def forward_gpu() -> None:
    y = apply_on_pretend(WhereAmI(), [1.0], fast=False)
    assert type(y.array) is PretendArray
    assert y.array.tolist() == [3.0]


@row("FunctionNode.forward_chainerx")
def forward_fast() -> None:
    class Fast(WhereAmI):
        def forward_fast(self, inputs: Arrays) -> Any:
            return (inputs[0] + 3,) if inputs[0].ndim == 1 else tn.Fallback("only for vectors")

    fallback_uses.clear()
    assert WhereAmI().forward_fast(()) is tn.Fallback
    assert apply_on_pretend(Fast(), [1.0], fast=True).array.tolist() == [4.0]
    assert fallback_uses == {}
    assert apply_on_pretend(Fast(), [[1.0]], fast=True).array.tolist() == [[3.0]]
    ((_, *key),) = fallback_uses
    assert key == ["Fast", "only for vectors"]


@row("FunctionNode.backward")
def backward() -> None:
    seen = []

    class Product(tn.FunctionNode):
        full = True

        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_inputs((0, 1, 2))
            return (inputs[0] * inputs[1] * inputs[2],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            seen.append((target_input_indexes, grad_outputs))
            x, y, z = self.get_retained_inputs()
            (g,) = grad_outputs
            every = (g * y * z, g * x * z, g * x * y)
            return every if self.full else tuple(every[i] for i in target_input_indexes)

    for full in (True, False):
        x, y, z = scalar(2.0), tn.Variable(np.array(3.0), requires_grad=False), scalar(5.0)
        node = Product()
        node.full = full
        node.apply((x, y, z))[0].backward()
        targets, (gradient,) = seen[-1]
        assert targets == (0, 2)
        assert isinstance(gradient, tn.Variable) and gradient.array == 1.0
        assert (x.grad, y.grad, z.grad) == (15.0, None, 6.0)
    assert tn.FunctionNode().backward((0, 2), ()) == (None, None)


@row("FunctionNode.backward_accumulate")
def backward_accumulate() -> None:
    given = []

    class Doubled(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            return (inputs[0] * 2,)

        def backward_accumulate(self, targets: Any, grad_outputs: Any, grad_inputs: Any) -> Any:
            given.append((targets, [None if g is None else float(g) for g in grad_inputs]))
            gx = grad_outputs[0] * 2
            return (gx if grad_inputs[0] is None else gx + grad_inputs[0],)

    x = scalar(1.0)
    h = x * 1
    y = h * 5 + Doubled().apply((h,))[0]  # of equal rank, so the product's backward runs first
    y.backward()
    assert given == [((0,), [5.0])]
    assert x.grad == 7.0
    assert Cube.backward_accumulate is tn.FunctionNode.backward_accumulate
    x.cleargrad()
    node = Cube()
    node.apply((x,))
    (total,) = node.backward_accumulate((0,), (scalar(1.0),), (scalar(10.0),))
    assert float(total) == 13.0


@row("FunctionNode.check_type_forward")
def check_type_forward() -> None:
    class Checked(Cube):
        def check_type_forward(self, in_types: Any) -> None:
            expect(in_types.size() == 1, in_types[0].ndim == 1)

    assert Checked().apply((variable(2.0),))[0].array.tolist() == [8.0]
    with pytest.raises(InvalidType, match=r"(?s)Checked.*in_types\[0\].ndim == 1.*2 != 1"):
        Checked().apply((tn.Variable(np.ones((2, 2))),))


@row("FunctionNode.retain_inputs")
def retain_inputs() -> None:
    class Picky(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_inputs((0,))
            self.retain_inputs((2, 1))
            return (inputs[0] + inputs[1] + inputs[2],)

    xs = [variable(float(i)) for i in range(3)]
    node = Picky()
    (y,) = node.apply(xs)
    assert [x.node.data is x.array for x in xs] == [False, True, True]
    assert [float(x.array[0]) for x in node.get_retained_inputs()] == [2.0, 1.0]
    assert y.node.data is None
    (z,) = functions.Identity().apply((xs[0],))
    assert xs[0].node.data is None and z.creator_node.get_retained_inputs() == ()


@row("FunctionNode.retain_outputs")
def retain_outputs() -> None:
    x = variable(0.0, 1.0)
    (y,) = Exponential().apply((x,))
    assert y.node.data is y.array
    assert x.node.data is None
    array, node = y.array, y.creator_node
    del y
    assert node.get_retained_outputs()[0].array is array


@row("FunctionNode.get_retained_inputs")
def get_retained_inputs() -> None:
    x = variable(1.0, 2.0)
    node = Cube()
    (y,) = node.apply((x,))
    assert node.get_retained_inputs() == (x,)
    array, x_node = x.array, x.node
    del x
    (fresh,) = node.get_retained_inputs()
    assert fresh.node is x_node and fresh.array is array
    y.unchain_backward()
    assert node.get_retained_inputs() == ()


@row("FunctionNode.get_retained_outputs")
def get_retained_outputs() -> None:
    class Two(tn.FunctionNode):
        """e^x and 2 e^x, both from the first output, which the user may drop."""

        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_outputs((0,))
            y = np.exp(inputs[0])
            return y, 2 * y

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (y,) = self.get_retained_outputs()
            first, second = grad_outputs
            gx = tn.asarray(0.0, dtype="float64", requires_grad=False)
            for factor, gradient in ((1, first), (2, second)):
                gx = gx if gradient is None else gx + factor * y * gradient
            return (gx,)

    x = scalar(1.0)
    kept, other = Two().apply((x,))
    assert kept.creator_node.get_retained_outputs() == (kept,)
    node = kept.creator_node
    del kept  # and with it the output's node
    (first,) = node.get_retained_outputs()
    assert first.creator_node is node and node.outputs[0]() is first.node
    del first
    (gx,) = tn.grad([other], [x], enable_double_backprop=True)
    assert gx is not None
    (ggx,) = tn.grad([gx], [x])
    assert ggx is not None
    assert float(gx) == pytest.approx(2 * np.e)
    assert float(ggx) == pytest.approx(2 * np.e)


@row("FunctionNode.add_hook")
def add_hook() -> None:
    hook, node = RecordingHook(), Cube()
    node.add_hook(hook)
    node.add_hook(RecordingHook(), "second")
    assert hook.calls == [("added", node)]
    with pytest.raises(HookError, match="recording already exists"):
        node.add_hook(RecordingHook())
    with pytest.raises(TypeError, match="FunctionHook"):
        node.add_hook("recording")  # type: ignore[arg-type]
    node.apply((variable(1.0),))
    Cube().apply((variable(1.0),))
    assert [call[0] for call in hook.calls] == [
        "added",
        "forward_preprocess",
        "forward_postprocess",
    ]


@row("FunctionNode.delete_hook")
def delete_hook() -> None:
    hook, node = RecordingHook(), Cube()
    node.add_hook(hook, "mine")
    node.delete_hook("mine")
    assert hook.events(node) == ["added", "deleted"]
    node.apply((variable(1.0),))
    assert hook.events(node) == ["added", "deleted"]
    with pytest.raises(HookError, match="mine does not exist"):
        node.delete_hook("mine")


@row("FunctionNode.local_function_hooks")
def local_function_hooks() -> None:
    node, first, second = Cube(), RecordingHook(), RecordingHook()
    assert dict(node.local_function_hooks) == {}
    node.add_hook(first, "z")
    node.add_hook(second, "a")
    assert list(node.local_function_hooks.items()) == [("z", first), ("a", second)]
    assert dict(Cube().local_function_hooks) == {}


@row("FunctionNode.inputs")
def inputs() -> None:
    x, y = variable(1.0), variable(2.0)
    node = functions.Add()
    assert node.inputs is None
    (z,) = node.apply((x, y))
    assert node.inputs == (x.node, y.node)
    kept = weakref.ref(x.node)
    del x
    assert kept() is z.creator_node.inputs[0]
    with tn.no_backprop_mode():
        (z,) = (other := functions.Add()).apply((y, y))
    assert other.inputs is None and z.creator_node is None


@row("FunctionNode.outputs")
def outputs() -> None:
    node = Cube()
    assert node.outputs is None
    (y,) = node.apply((variable(1.0),))
    assert node.outputs is not None and node.outputs[0]() is y.node
    collecting = gc.isenabled()
    gc.disable()  # reference counting alone has to do it
    try:
        del y
        assert node.outputs[0]() is None
    finally:
        if collecting:
            gc.enable()


@row("FunctionNode.rank")
def rank() -> None:
    x = variable(1.0)
    deep = functions.exp(functions.exp(x))
    y = deep + x
    assert x.rank == 0
    assert [deep.creator_node.rank, deep.rank] == [1, 2]
    assert [y.creator_node.rank, y.rank] == [2, 3]


@row("FunctionNode.stack")
def stack() -> None:
    assert Cube().apply((variable(1.0),))[0].creator_node.stack is None
    with tn.using_config(debug=True):
        (y,) = Cube().apply((variable(1.0),))
    frame = y.creator_node.stack[-1]
    assert Path(frame.filename) == Path(__file__) and frame.name == "stack"


@row("FunctionNode.label")
def label() -> None:
    class Named(Cube):
        @property
        def label(self) -> str:
            return "x ** 3"

        def forward(self, inputs: Arrays) -> Any:
            return inputs[0]

    assert Cube().label == "Cube"
    with pytest.raises(OutputError, match=r"\(x \*\* 3\)"):
        Named().apply((variable(1.0),))


@row("FunctionNode.output_data")
def output_data() -> None:
    class Several(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_outputs((1,))
            return inputs[0] + 1, inputs[0] + 2

    node = Several()
    _, second = node.apply((variable(1.0),))
    assert node.output_data[0] is None and node.output_data[1] is second.array
    with pytest.raises(GraphError, match="retain_outputs"):
        _ = Cube().apply((variable(1.0),))[0].creator_node.output_data


@row("FunctionNode.is_elementwise")
def is_elementwise() -> None:
    class Two(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            return inputs[0] + 1, inputs[0].sum(axis=0)

    class Promised(Two):
        is_elementwise = True

    assert tn.FunctionNode().is_elementwise is False
    x = tn.Variable(np.ones((2, 2)))
    assert [y.shape for y in Two().apply((x,))] == [(2, 2), (2,)]
    with pytest.raises(GraphError, match=r"Promised.*one shape.*\(2, 2\), \(2,\)"):
        Promised().apply((x,))


@row("FunctionNode.lazy_grad_sum")
def lazy_grad_sum() -> None:
    class Additions(tn.FunctionHook):
        labels: list[str]

        def forward_preprocess(self, function: Any, in_data: Any) -> None:
            self.labels.append(function.label)

    gradients, labels = {}, {}
    for lazy in (False, True):
        with tn.using_config(lazy_grad_sum=lazy):
            x = scalar(3.0)
            h = x * 1
            y = h * 2 + h * 5 + h * 7
            assert y.creator_node.lazy_grad_sum is lazy
            hook = Additions()
            hook.labels = []
            with hook:
                y.backward(enable_double_backprop=True)
            gradients[lazy], labels[lazy] = x.grad, hook.labels
    assert gradients == {False: 14.0, True: 14.0}
    assert labels[False].count("Add") == 2 and "AddAll" not in labels[False]
    assert labels[True].count("AddAll") == 1 and "Add" not in labels[True]
    assert tn.FunctionNode().lazy_grad_sum is False


@row("FunctionNode.chainerx_device")
def device_in_place_of_chainerx_device() -> None:
    assert not hasattr(tn.FunctionNode(), "chainerx_device")
    x = variable(1.0)
    assert x.device is x.node.device is tn.get_device("numpy")
    assert functions.Identity().output_device is None
    node = functions.ToDevice(tn.get_device("numpy"), tn.get_device("numpy"))
    assert node.output_device is tn.get_device("numpy")
    assert node.apply((x,))[0].device is node.output_device


@row("FunctionNode.input_layouts", "FunctionNode.output_layouts")
def layouts_are_left_out() -> None:
    node = Cube()
    node.apply((variable(1.0),))
    assert not hasattr(node, "input_layouts") and not hasattr(node, "output_layouts")


@row("FunctionNode.__eq__", "FunctionNode.__ne__")
def equality_is_identity() -> None:
    f, g = Cube(), Cube()
    assert (f == f, f == g, f != f, f != g) == (True, False, False, True)
    assert {f: 1, g: 2}[f] == 1


@row("FunctionNode.__lt__", "FunctionNode.__le__", "FunctionNode.__gt__", "FunctionNode.__ge__")
def functions_have_no_order() -> None:
    f, g = Cube(), Cube()
    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(tn.FunctionNode, name) is getattr(object, name)
        assert getattr(f, name)(g) is NotImplemented
    with pytest.raises(TypeError):
        _ = f < g  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = f >= g  # type: ignore[operator]


# --- VariableNode ------------------------------------------------------------------------------


@row("Variable.node")
def node() -> None:
    x = variable(1.0)
    f = functions.Identity()
    (y,) = f.apply((x,))
    assert x.node is x.node
    assert y.node.creator_node is f and f.inputs == (x.node,)
    with tn.no_backprop_mode():
        z = functions.identity(x)
    assert z._node is None  # nobody has asked for it yet


@row("VariableNode")
def variable_node() -> None:
    x = variable(1.0, 2.0, name="x")
    n = tn.VariableNode(x)
    assert (n.shape, n.dtype, n.name, n.device) == ((2,), np.float64, "x", x.device)
    assert n.get_variable() is x
    alive = weakref.ref(x)
    del x
    assert alive() is None
    assert n.shape == (2,)


@row("VariableNode.dtype", "VariableNode.shape", "VariableNode.name")
def what_a_node_remembers() -> None:
    x = tn.Variable(np.ones((2, 3), np.float32), name="x")
    n = x.node
    x.name = "renamed"
    assert (n.shape, n.dtype, n.name) == ((2, 3), np.float32, "renamed")
    x.array = np.ones(5)
    assert (x.node.shape, x.node.dtype, x.node.name) == ((5,), np.float64, "renamed")
    del x
    assert (n.shape, n.dtype, n.name) == ((2, 3), np.float32, "renamed")


@row("VariableNode.label")
def node_label() -> None:
    assert tn.Variable(np.ones((2, 3), np.float32)).node.label == "(2, 3), float32"
    assert scalar(1.0).node.label == "float64"


@row("VariableNode.rank")
def node_rank() -> None:
    x = variable(1.0)
    y = functions.exp(functions.exp(x))
    assert (x.node.rank, y.node.rank) == (0, 2)
    assert y.node.rank == y.creator_node.rank + 1


@row("VariableNode.requires_grad")
def node_requires_grad() -> None:
    x, c = variable(2.0), variable(3.0, requires_grad=False)
    assert x.node.requires_grad and not c.node.requires_grad
    assert not tn.Variable(np.array([1, 2])).node.requires_grad
    functions.sum(x * c).backward()
    assert x.grad is not None and c.grad is None


@row("VariableNode.data")
def node_data() -> None:
    x = variable(1.0)
    y = functions.identity(x)
    assert x.node.data is None and y.node.data is None
    z = functions.sin(y)
    assert y.node.data is y.array and z.node.data is None


@row("VariableNode.grad", "VariableNode.grad_var")
def node_grad() -> None:
    x = scalar(3.0)
    n = x.node
    assert n.grad is None and n.grad_var is None
    y = x * x
    y.backward()
    assert n.grad == 6.0 and n.grad is x.grad and n.grad_var is x.grad_var
    for name in ("grad", "grad_var"):
        with pytest.raises(AttributeError):
            setattr(n, name, None)
    del x
    assert n.grad is None and n.grad_var is None


@row("VariableNode.creator_node")
def creator_node() -> None:
    x = scalar(2.0)
    y = OldSquare()(x)
    assert x.node.creator_node is None
    creator = y.node.creator_node
    assert isinstance(creator, tn.FunctionNode) and creator.inputs == (x.node,)
    y.node.creator_node = None
    assert y.node.creator_node is None
    y.node.creator_node = creator
    y.backward()
    assert x.grad == 4.0
    creator.rank = 8
    y.node.creator_node = creator
    assert y.rank == 9


@row("VariableNode.creator")
def creator() -> None:
    f = OldSquare()
    y = f(scalar(2.0))
    assert y.node.creator is f and y.node.creator_node is f.node
    z = functions.exp(y)
    assert z.node.creator is z.node.creator_node
    z.node.creator = f
    assert z.node.creator_node is f.node
    z.node.creator = None
    assert z.node.creator is None


@row("VariableNode.set_creator", "VariableNode.set_creator_node")
def set_creator() -> None:
    old = OldSquare()
    y = old(scalar(2.0))
    new = functions.exp(y).creator_node
    new.rank = 4
    n = variable(1.0).node
    for setter in (n.set_creator, n.set_creator_node):
        setter(new)
        assert n.creator is new and n.rank == 5
        setter(old)
        assert n.creator is old and n.creator_node is old.node


@row("VariableNode.get_variable")
def get_variable() -> None:
    x = variable(1.0, name="x")
    n = x.node
    assert n.get_variable() is x
    y = functions.sin(x)
    array = x.array
    del x
    fresh = n.get_variable()
    assert fresh.node is n and fresh.array is array and fresh.name == "x" and fresh.requires_grad
    assert n.get_variable() is fresh
    y_node = functions.identity(y).node
    assert y_node.get_variable().array is None


@row("VariableNode.retain_data")
def retain_data() -> None:
    x = variable(1.0)
    n = x.node
    n.retain_data()
    assert n.data is x.array
    n.data = None
    del x
    with pytest.raises(GraphError, match="already released"):
        n.retain_data()


@row("VariableNode.unchain")
def node_unchain() -> None:
    x = scalar(2.0)
    h = x * x
    y = h * 3
    h.node.unchain()
    assert h.node.creator_node is None and h.node.rank == 1
    y.backward()
    assert x.grad is None and h.grad == 3.0


# --- old style, and the guideline ----------------------------------------------------------------


@row("Function")
def old_style() -> None:
    x = scalar(3.0)
    y = OldSquare()(x)
    assert isinstance(y, tn.Variable) and float(y) == 9.0
    assert isinstance(y.creator_node, tn.FunctionAdapter)
    y.backward(enable_double_backprop=True)
    gx = x.grad_var
    assert gx is not None and float(gx) == 6.0
    x.cleargrad()
    with pytest.raises(GraphError, match='twice-differentiate an old style Function "OldSquare"'):
        gx.backward()


@row("Function.forward")
def old_forward() -> None:
    x = scalar(3.0)
    y = OldSquare()(x)
    assert x.node.data is x.array  # retained without asking for it
    assert y.creator_node.get_retained_inputs() == (x,)


@row("Function.backward")
def old_backward() -> None:
    seen = []

    class Product(tn.Function):
        def forward(self, inputs: Arrays) -> Arrays:
            return (inputs[0] * inputs[1],)

        def backward(self, inputs: Any, grad_outputs: Any) -> Any:
            seen.append((*inputs, *grad_outputs))
            return inputs[1] * grad_outputs[0], None

    x, y = scalar(2.0), scalar(5.0)
    Product()(x, y).backward()
    assert [type(array) for array in seen[0]] == [np.ndarray] * 3
    assert x.grad == 5.0 and y.grad is None


@row("Function.retain_inputs")
def old_retain_inputs() -> None:
    seen = []

    class Double(tn.Function):
        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_inputs(())
            return (inputs[0] * 2,)

        def backward(self, inputs: Any, grad_outputs: Any) -> Any:
            seen.append(inputs)
            return (grad_outputs[0] * 2,)

    x = scalar(2.0)
    Double()(x).backward()
    assert x.grad == 2.0 and seen == [(None,)] and x.node.data is None


@row("my_func")
def lower_case_function() -> None:
    def cube(x: tn.Variable) -> tn.Variable:
        return Cube().apply((x,))[0]

    x = scalar(2.0)
    y = cube(x)
    y.backward()
    assert float(y) == 8.0 and x.grad == 12.0
    assert isinstance(functions.exp(x).creator_node, functions.Exp)
    assert isinstance(functions.identity(x).creator_node, functions.Identity)


class Sine(tn.FunctionNode):
    """y = sin x, with a gradient that is a function of its own."""

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0,))
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return SineGrad().apply((x, grad_outputs[0]))


class SineGrad(tn.FunctionNode):
    """gx = gy cos x."""

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs((0, 1))
        x, gy = inputs
        return (gy * np.cos(x),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        x, gy = self.get_retained_inputs()
        (ggx,) = grad_outputs
        return -ggx * gy * functions.sin(x), ggx * functions.cos(x)


@row("MyFuncGrad")
def a_gradient_of_its_own() -> None:
    x = scalar(0.5)
    y = Sine().apply((x,))[0]
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    assert gx is not None and isinstance(gx.creator_node, SineGrad)
    (ggx,) = tn.grad([gx], [x])
    assert ggx is not None
    assert float(gx) == pytest.approx(np.cos(0.5))
    assert float(ggx) == pytest.approx(-np.sin(0.5))


class WrongCube(Cube):
    """y = x^3 with a gradient that lacks its factor 3."""

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (x * x * grad_outputs[0],)


@row("check_backward")
def check_backward() -> None:
    x, gy = np.array([0.5, 1.5, -2.0]), np.array([1.0, -1.0, 0.5])
    gradient_check.check_backward(lambda x: Cube().apply((x,))[0], x, gy)
    with pytest.raises(AssertionError):
        gradient_check.check_backward(lambda x: WrongCube().apply((x,))[0], x, gy)


@row("check_double_backward")
def check_double_backward() -> None:
    class Detached(Cube):
        """The right first gradient, cut off from x: no second one."""

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (x,) = self.get_retained_inputs()
            return (3 * x.detach() * x.detach() * grad_outputs[0],)

    x, gy, ggx = np.array([0.5, 1.5]), np.array([1.0, -1.0]), np.array([2.0, 0.5])
    check = gradient_check.check_double_backward
    check(lambda x: Cube().apply((x,))[0], x, gy, ggx)
    check(lambda x: Sine().apply((x,))[0], x, gy, ggx)
    check(lambda x: functions.Identity().apply((x,))[0], x, gy, ggx)  # a linear function
    with pytest.raises(AssertionError):
        check(lambda x: Detached().apply((x,))[0], x, gy, ggx)


# --- hooks ---------------------------------------------------------------------------------------


@row("FunctionHook")
def function_hook() -> None:
    hook, seen_by_thread = RecordingHook(), []
    with hook as entered:
        assert entered is hook
        y = functions.exp(variable(1.0))
        thread = threading.Thread(
            target=lambda: seen_by_thread.append((functions.sin(y), list(thread_state.hooks)))
        )
        thread.start()
        thread.join()
    functions.cos(y)
    labels = [call[1].label for call in hook.calls if call[0] == "forward_preprocess"]
    assert labels == ["Exp"]
    assert seen_by_thread[0][1] == []


@row("FunctionHook.name")
def hook_name() -> None:
    assert tn.FunctionHook.name == "FunctionHook"
    with RecordingHook():
        assert list(thread_state.hooks) == ["recording"]
        with pytest.raises(HookError, match="hook recording already exists"), RecordingHook():
            pass
    other = RecordingHook()
    other.name = "other"
    with RecordingHook(), other:
        assert list(thread_state.hooks) == ["recording", "other"]


@row("FunctionHook.added")
def hook_added() -> None:
    hook, f = RecordingHook(), Cube()
    with hook:
        assert hook.calls == [("added", None)]
    f.add_hook(hook)
    assert hook.calls[-1] == ("added", f)


@row("FunctionHook.deleted")
def hook_deleted() -> None:
    hook, f = RecordingHook(), Cube()
    with pytest.raises(ZeroDivisionError), hook:
        raise ZeroDivisionError
    assert hook.calls == [("added", None), ("deleted", None)]
    assert not thread_state.hooks
    f.add_hook(hook)
    f.delete_hook("recording")
    assert hook.calls[-1] == ("deleted", f)


@row("FunctionHook.forward_preprocess", "FunctionHook.forward_postprocess")
def hook_forward() -> None:
    class Failing(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            raise ZeroDivisionError

    x = variable(1.0)
    f, failing, hook = Cube(), Failing(), RecordingHook()
    with hook:
        f.apply((x,))
        with pytest.raises(ZeroDivisionError):
            failing.apply((x,))
    assert hook.events(f) == ["forward_preprocess", "forward_postprocess"]
    assert hook.events(failing) == ["forward_preprocess"]
    for call in hook.calls[1:3]:
        assert type(call[2]) is tuple and call[2][0] is x.array


@row("FunctionHook.backward_preprocess", "FunctionHook.backward_postprocess")
def hook_backward() -> None:
    class First(tn.FunctionNode):
        """x * y for a constant y: it retains only y."""

        def forward(self, inputs: Arrays) -> Arrays:
            self.retain_inputs((1,))
            return (inputs[0] * inputs[1],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (y,) = self.get_retained_inputs()
            if float(y) == 0.0:
                raise ZeroDivisionError
            return grad_outputs[0] * y, None

    for factor, events in ((2.0, ["pre", "post"]), (0.0, ["pre"])):
        x, y = scalar(1.0), tn.Variable(np.array(factor), requires_grad=False)
        hook, f = RecordingHook(), First()
        (z,) = f.apply((x, y))
        with hook:
            if factor:
                z.backward()
            else:
                with pytest.raises(ZeroDivisionError):
                    z.backward()
        assert hook.events(f) == [f"backward_{event}process" for event in events]
        for call in [call for call in hook.calls if call[1] is f]:
            assert call[2] == (None, y.array) and call[3] == (1.0,)


@row("TimerHook.total_time")
def timer_hook() -> None:
    class Outer(tn.FunctionNode):
        """Applies another function inside its own forward."""

        def forward(self, inputs: Arrays) -> Arrays:
            return (Cube().apply((tn.Variable(inputs[0]),))[0].array,)

    timer = TimerHook()
    x = variable(1.0)
    with timer:
        Outer().apply((x,))
    measured = timer.total_time()
    Cube().apply((x,))
    assert timer.total_time() == measured > 0
    seconds = dict(timer.call_history)
    assert set(seconds) == {"Outer", "Cube"}
    assert measured == pytest.approx(seconds["Outer"])
    assert seconds["Cube"] < seconds["Outer"]
