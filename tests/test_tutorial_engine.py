"""The engine that steps 1 to 9 build: it works as typed, and it is a small tinynode.

What a learner types is the code cells with the tag "engine". Those of a step, joined, are a module
that works alone. That of step 9 passes the package's op table, for the functions that it has, and
each of its names exists in the package with the same meaning: so neither can drift from the other.
"""

from __future__ import annotations

import gc
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import op_cases
import op_cases_arrays
import pytest
from op_drivers import (
    call_reference,
    central_difference,
    draw_directions,
    draw_inputs,
    inner,
    is_differentiable,
    move,
    place,
)
from op_table import CASES, Case

import tinynode as tn
from tinynode import functions as fn
from tinynode.learn import cells

pytestmark = pytest.mark.slow

TUTORIALS = Path(__file__).resolve().parent.parent / "tutorials"
STEPS = range(1, 10)


def step_file(step: int) -> Path:
    (path,) = TUTORIALS.glob(f"step{step:02d}_*.py")
    return path


def engine_source(step: int) -> str:
    """What a learner has typed at the end of a step."""
    return cells.engine(cells.read(step_file(step)))


def module_of(source: str, name: str) -> Any:
    module = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), vars(module))
    return module


def engine(step: int) -> Any:
    """The engine of a step, as a fresh module."""
    return module_of(engine_source(step), f"engine{step:02d}")


def chain(step: int, *names: str) -> tuple[Any, Any]:
    """A leaf at 0.6, and the output of the engine's functions applied one after the other."""
    module = engine(step)
    x = y = module.Variable(np.array(0.6))
    for name in names:
        y = getattr(module, name)(y)
    return x, y


# --- what is typed works -------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_the_engine_needs_nothing_but_numpy_and_the_standard_library(step: int) -> None:
    before = set(vars(module_of("", "empty")))
    module = engine(step)
    imported = {
        value.__name__
        for name, value in vars(module).items()
        if name not in before and inspect.ismodule(value)
    }
    assert imported <= {"contextlib", "gc", "heapq", "numpy", "types", "weakref"}


def test_step_1_remembers() -> None:
    x, z = chain(1, "square", "negative")
    assert z.array == -0.36
    y = z.creator_node.inputs[0]
    assert y.creator_node.inputs[0] is x
    assert z.creator_node.outputs == (z,)
    assert x.creator_node is None


def test_step_2_backward_of_each_operation() -> None:
    for name, derivative in (("square", 1.2), ("negative", -1.0), ("exp", np.exp(0.6))):
        _, y = chain(2, name)
        (gx,) = y.creator_node.backward((0,), (np.array(-2.0),))
        assert gx == pytest.approx(-2.0 * derivative)


def test_step_3_measures_slopes() -> None:
    module = engine(3)
    x = np.array([0.5, -1.0])

    def f() -> Any:
        return (module.sin(module.Variable(x)).array,)

    (gx,) = module.numerical_grad(f, (x,), (np.array([2.0, -3.0]),), 1e-5)
    np.testing.assert_allclose(gx, np.cos(x) * [2.0, -3.0], rtol=1e-8)
    np.testing.assert_array_equal(x, [0.5, -1.0])


def test_step_3_and_the_package_measure_the_same() -> None:
    for dtype in ("float64", "float32"):
        x, gy = np.array([0.5, -1.0], dtype), np.array([2.0, -3.0], dtype)

        def f(x: Any = x) -> Any:
            return (np.sin(x),)

        (ours,) = engine(3).numerical_grad(f, (x,), (gy,), eps=1e-2)
        (theirs,) = tn.gradient_check.numerical_grad(f, (x,), (gy,), eps=1e-2)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if dtype == "float32" else 1e-12)
        assert ours.dtype == theirs.dtype


def test_step_4_long_chain() -> None:
    x, y = chain(4, *["negative"] * 100_001)
    y.backward()
    assert x.grad == -1.0


@pytest.mark.parametrize("step", range(5, 10))
def test_branches(step: int) -> None:
    module = engine(step)
    x, w = module.Variable(np.array([3.0, 0.5])), module.Variable(np.array([1.0, 2.0]))
    y = x * x + 2.0 * w + x + x * 3.0
    y.grad = np.ones(2)
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * x.array + 4)
    np.testing.assert_allclose(w.grad, [2.0, 2.0])


@pytest.mark.parametrize("step", range(6, 10))
def test_order(step: int) -> None:
    module = engine(step)
    for exchanged in (False, True):
        x = module.Variable(np.array(3.0))
        a = module.square(x)
        b = module.square(a)
        (a + b if exchanged else b + a).backward()
        assert x.grad == 114.0


def test_step_6_naive_order_is_wrong_on_one_of_the_two() -> None:
    module = engine(6)
    x = module.Variable(np.array(3.0))
    a = module.square(x)
    module.naive_backward(module.square(a) + a)
    assert x.grad == 6.0


@pytest.mark.parametrize("step", range(7, 10))
def test_graphs_go_without_the_collector(step: int) -> None:
    module = engine(step)
    gc.disable()
    try:
        x = module.Variable(np.ones(3))
        y = module.square(x * x)
        parts = [weakref.ref(part) for part in (y.array, y.node, y.creator_node)]
        y.grad = np.ones(3)
        y.backward()
        del y
        assert [part() for part in parts] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize("step", range(7, 10))
def test_deep_graphs(step: int) -> None:
    module = engine(step)
    x = y = module.Variable(np.array(1.0))
    for _ in range(20_000):
        y = y + 0.0
    y.backward()
    assert x.grad == 1.0


# --- it is a small tinynode: the op table --------------------------------------------------------

OPERATIONS = ("add", "exp", "multiply", "negative", "sin", "square", "subtract", "tanh")


def beyond_the_engine(case: Case) -> str:
    """Why a row asks for more than the engine can do; "" if it does not."""
    if len({one.shape for one in case.inputs}) > 1:
        return "broadcasting"
    if any(one.raw for one in case.inputs):
        return "arrays among the inputs"
    if len({one.dtype for one in case.inputs}) > 1:
        return "mixed dtypes"
    if "numpy-" in case.id:
        return "NumPy's scalars have the weight of arrays"
    return ""


ROWS = [case for case in CASES if case.operation in OPERATIONS]
OWN = [case for case in ROWS if not beyond_the_engine(case)]


class Adapter:
    """The engine in the place of ``tinynode.functions``, for the rows of the table."""

    def __init__(self, module: Any, patch: pytest.MonkeyPatch) -> None:
        self.module = module
        for table in (op_cases, op_cases_arrays):
            patch.setattr(table, "fn", module)  # rows that are lambdas look it up there

    def outputs(self, case: Case, hosts: list[Any]) -> tuple[list[Any], Any]:
        device = tn.get_device("numpy")
        xs = [
            self.module.Variable(
                place(one, host, device), requires_grad=is_differentiable(one, host)
            )
            for one, host in zip(case.inputs, hosts, strict=True)
        ]
        function = case.function
        if function is getattr(fn, case.operation):
            function = getattr(self.module, case.operation)
        return xs, function(*xs, **case.constants)


def check_forward(adapter: Adapter, case: Case) -> None:
    for dtype in case.dtypes:
        hosts = draw_inputs(case, dtype)
        _, y = adapter.outputs(case, hosts)
        (expected,) = call_reference(case, hosts)
        assert isinstance(y, adapter.module.Variable)
        assert (y.array.shape, y.array.dtype) == (expected.shape, expected.dtype)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(y.array, expected, rtol=tolerance, atol=tolerance)


def check_first_gradient(adapter: Adapter, case: Case) -> None:
    hosts = draw_inputs(case, case.dtypes[0])
    xs, y = adapter.outputs(case, hosts)
    y.grad = gy = np.random.default_rng(1).normal(size=y.array.shape)
    y.backward()
    directions = draw_directions(case, hosts)

    def projected(step: float) -> float:
        return inner(call_reference(case, move(hosts, directions, step)), [gy])

    for x, one in zip(xs, case.inputs, strict=True):
        assert (x.grad is not None) == one.grad
        assert x.grad is None or (x.grad.shape, x.grad.dtype) == (x.array.shape, x.array.dtype)
    analytic = inner([xs[i].grad for i in directions], list(directions.values()))
    numeric = central_difference(projected, 1e-5)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6, atol=1e-8)


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Adapter:
    return Adapter(engine(9), monkeypatch)


def test_the_rows_are_enough() -> None:
    assert {case.operation for case in OWN} == set(OPERATIONS)
    for operation in OPERATIONS:
        assert sum(case.operation == operation for case in OWN) >= 7
    gradients = [case for case in OWN if case.order]
    assert len(gradients) > 60


@pytest.mark.parametrize("case", OWN, ids=[case.id for case in OWN])
def test_row_of_the_op_table(adapter: Adapter, case: Case) -> None:
    check_forward(adapter, case)
    if case.order:
        check_first_gradient(adapter, case)


# --- it is a small tinynode: names and parameters ------------------------------------------------


def in_the_package(name: str) -> Any:
    return getattr(tn, name) if hasattr(tn, name) else getattr(fn, name)


def assert_same_parameters(ours: Any, theirs: Any) -> None:
    """A call that the engine takes, the package takes, with the same meaning of each argument."""
    own, package = (list(inspect.signature(f).parameters.values()) for f in (ours, theirs))
    named = {parameter.name: parameter for parameter in package}
    order = [
        parameter.name
        for parameter in package
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    positional = [one.name for one in own if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == order[: len(positional)]
    for parameter in own:
        assert parameter.kind is named[parameter.name].kind, parameter.name
        if parameter.default is not parameter.empty:
            assert parameter.default == named[parameter.name].default, parameter.name
    for parameter in package:
        rest = parameter.kind is parameter.VAR_KEYWORD
        optional = rest or parameter.default is not parameter.empty
        assert optional or parameter.name in {one.name for one in own}, parameter.name


def own_names() -> dict[str, Any]:
    """The public names that the engine of step 9 defines."""
    return {
        name: value
        for name, value in vars(engine(9)).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }


def test_public_names_are_those_of_the_package() -> None:
    names = own_names()
    assert set(OPERATIONS) < set(names)
    assert {"Variable", "VariableNode", "FunctionNode", "no_backprop_mode", "config"} < set(names)
    for name, ours in names.items():
        theirs = in_the_package(name)
        assert inspect.isclass(ours) == inspect.isclass(theirs)
        if inspect.isfunction(ours):
            assert_same_parameters(ours, theirs)
    for setting in vars(names["config"]):
        assert hasattr(tn.config, setting)


@pytest.mark.parametrize("name", ["Variable", "VariableNode", "FunctionNode", "Multiply", "Tanh"])
def test_methods_have_the_parameters_of_the_package(name: str) -> None:
    ours, theirs = own_names()[name], in_the_package(name)
    methods = 0
    for method, value in vars(ours).items():
        if inspect.isfunction(value):
            methods += 1
            assert_same_parameters(value, getattr(theirs, method))
        elif isinstance(value, property) or not method.startswith("__"):
            assert hasattr(theirs, method) or method in theirs.__slots__, method
    assert methods


def test_attributes_are_those_of_the_package() -> None:
    found = []
    for module in (engine(9), None):
        x = (module or tn).Variable(np.array(2.0))
        y = (module or fn).multiply(x, x)
        found.append((x, x.node, y.creator_node))
    for ours, theirs in zip(*found, strict=True):
        for name in vars(ours):
            if name != "_variable":  # there, as here, the weak reference to the Variable
                assert hasattr(theirs, name), (type(ours).__name__, name)


# --- it is a small tinynode: the same program, the same numbers ----------------------------------


class Package:
    """The names of the engine, from the package."""

    def __getattr__(self, name: str) -> Any:
        return in_the_package(name)


def again_and_cleargrad(tn: Any) -> Iterator[Any]:
    x = tn.Variable(np.array(3.0))
    y = tn.square(x) * x
    for _ in range(3):
        y.backward()
        yield x.grad
        yield y.grad is None
    x.cleargrad()
    yield x.grad is None
    y.backward()
    yield x.grad


def own_seed_is_used_up(tn: Any) -> Iterator[Any]:
    x = tn.Variable(np.array([1.0, 2.0]))
    y = tn.exp(x)
    with pytest.raises(ValueError, match=r"set y\.grad "):
        y.backward()
    y.grad = np.array([10.0, 1.0])
    y.backward()
    yield x.grad
    yield y.grad is None


def inner_gradients_stay_away(tn: Any) -> Iterator[Any]:
    x = tn.Variable(np.array(3.0))
    a = tn.square(x)
    tn.sin(a).backward()
    yield a.grad is None
    yield x.grad


def requires_grad(tn: Any) -> Iterator[Any]:
    x, w = tn.Variable(np.array(2.0)), tn.Variable(np.array(5.0), requires_grad=False)
    y = x * w - w
    yield y.requires_grad, (w * w).requires_grad, (w * w).creator_node is None
    yield tn.Variable(np.array([1, 2])).requires_grad
    y.backward()
    yield x.grad
    yield w.grad is None
    yield [node.requires_grad for node in y.creator_node.inputs]


def no_backprop(tn: Any) -> Iterator[Any]:
    x = tn.Variable(np.array(2.0))
    with tn.no_backprop_mode():
        y = x * x
        yield tn.config.enable_backprop
    yield y.creator_node is None, y.requires_grad, y.rank
    yield tn.config.enable_backprop
    with pytest.raises(ValueError, match=r"y.backward\(\)"):
        y.backward()
    with pytest.raises(ZeroDivisionError), tn.no_backprop_mode():
        raise ZeroDivisionError
    yield tn.config.enable_backprop


def unchain(tn: Any) -> Iterator[Any]:
    x = tn.Variable(np.array(0.5))
    a = tn.tanh(x)
    b = tn.square(a)
    a.unchain()
    b.backward()
    yield x.grad is None
    yield a.grad
    yield a.creator_node is None, a.rank, b.rank


def order(tn: Any) -> Iterator[Any]:
    for exchanged in (False, True):
        x = tn.Variable(np.array(3.0))
        a = tn.square(x)
        b = tn.square(a)
        (a + b if exchanged else b + a).backward()
        yield x.grad


def ranks_and_edges(tn: Any) -> Iterator[Any]:
    x, w = tn.Variable(np.array(0.5), name="x"), tn.Variable(np.array(2.0))
    a = tn.exp(x) + w
    y = -(w - a)
    yield x.rank, a.rank, y.rank, y.creator_node.rank
    yield a.creator_node.inputs[1] is w.node
    yield a.creator_node.outputs[0]() is a.node
    yield x.node.name, x.node.get_variable_or_none() is x
    node = a.node
    del a
    yield node.get_variable_or_none() is None
    y.backward()
    yield x.grad
    yield w.grad


def retained(tn: Any) -> Iterator[Any]:
    x, w = tn.Variable(np.array(0.5)), tn.Variable(np.array(2.0))
    for y in (x + w, x - w, x * w, -x, tn.square(x), tn.exp(x), tn.sin(x), tn.tanh(x)):
        function = y.creator_node
        kept = function.get_retained_inputs(), function.get_retained_outputs()
        yield [float(getattr(v, "array", v)) for v in kept[0]]
        yield [float(getattr(v, "array", v)) for v in kept[1]]


def float32_stays(tn: Any) -> Iterator[Any]:
    x = tn.Variable(np.array([0.5, 1.5], np.float32))
    y = 2.0 * tn.sin(x) * x - x + 1
    y.grad = np.ones(2, np.float32)
    y.backward()
    yield y.array
    yield x.grad
    yield y.array.dtype, x.grad.dtype


PROGRAMS = (
    again_and_cleargrad,
    own_seed_is_used_up,
    inner_gradients_stay_away,
    requires_grad,
    no_backprop,
    unchain,
    order,
    ranks_and_edges,
    retained,
    float32_stays,
)


def assert_the_same(program: Callable[..., Any], module: Any) -> None:
    ours, theirs = list(program(module)), list(program(Package()))
    assert len(ours) == len(theirs) > 1
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, np.ndarray | np.generic):
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-13)
        else:
            assert a == b


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_program_on_the_engine_and_on_the_package(program: Callable[..., Any]) -> None:
    assert_the_same(program, engine(9))


# --- these tests can fail ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("gx = gz * y", "gx = gz * x"),
        ("return grad_outputs[0], -grad_outputs[0]", "return grad_outputs[0], grad_outputs[0]"),
        ("(1.0 - y * y)", "(1.0 - y)"),
        ("np.cos(x)", "np.sin(x)"),
        ("return subtract(other, self)", "return subtract(self, other)"),
        ("np.result_type(x.array, y)", "float"),
        ("if node not in gradients else gradients[node] + gx", ""),
        ("x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
        ("enumerate(function.inputs) if node.requires_grad", "enumerate(function.inputs)"),
        ("wanted and y.dtype.kind", "y.dtype.kind"),
        ("self.grad = None  # it is used up", ""),
        ("if wanted and config.enable_backprop", "if wanted"),
        ("config.enable_backprop = before", "pass"),
        ("y.node.rank = self.rank + 1", "y.node.rank = self.rank"),
        ("(-function.rank, len(seen), function)", "(function.rank, len(seen), function)"),
        ("self.retain_outputs((0,))", "self.retain_outputs((0,)), self.retain_inputs((0,))"),
        ("self._variable = weakref.ref(variable)", "self._variable = lambda: variable"),
        ("self.node.unchain()", "pass"),
    ],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    source = engine_source(9)
    assert right in source
    module = module_of(source.replace(right, wrong), "engine09")
    adapter = Adapter(module, monkeypatch)
    found = (AssertionError, TypeError, AttributeError, pytest.fail.Exception)
    with pytest.raises(found):
        for case in OWN:
            check_forward(adapter, case)
            if case.order:
                check_first_gradient(adapter, case)
        for program in PROGRAMS:
            assert_the_same(program, module)
