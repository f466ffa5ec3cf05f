"""The learner's package mynode, by the reference: each stage works, and is a small tinynode.

The stages of steps 13 and 15 pass the package's table of operations, for the rows of their
operations. Public names, parameters and attributes are those of the package, with the same
meaning. So neither package can drift from the other.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import op_cases
import pytest
from op_cases import CASES, Case
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

import tinynode as tn
from tinynode import functions as fn
from tinynode_course import exercises, mynode
from tinynode_course.mynode import Files

BUILDERS = [step.key for step in mynode.steps_that_build()]


def load(files: Files) -> Any:
    """The files as a package, apart from ``sys.modules``."""
    with tempfile.TemporaryDirectory() as folder:
        mynode.write_files(files, Path(folder) / mynode.NAME)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            return importlib.import_module(mynode.NAME)
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.split(".")[0] == mynode.NAME]:
                del sys.modules[name]


@functools.cache
def engine(key: str) -> Any:
    """The stage of a step."""
    return load(mynode.reference(key))


def stages(first: str, last: str = "99") -> pytest.MarkDecorator:
    """The test runs with each stage from a step on."""
    keys = [key for key in BUILDERS if first <= key <= last]
    return pytest.mark.parametrize("key", keys)


def chain(key: str, *names: str) -> tuple[Any, Any]:
    """A leaf at 0.6, and the result of operations one after the other."""
    package = engine(key)
    x = y = package.Variable(np.array(0.6))
    for name in names:
        y = getattr(package, name)(y)
    return x, y


# --- each stage works ----------------------------------------------------------------------------


@stages("01")
def test_a_stage_needs_numpy_and_the_standard_library_only(key: str) -> None:
    known = {*sys.stdlib_module_names, "numpy", mynode.NAME}
    for path, text in mynode.reference(key).items():
        names = {line.split()[1].split(".")[0] for line in mynode.imports(text)}
        assert names <= known, path


@stages("02")
def test_stubs_can_be_imported(key: str, tmp_path: Path) -> None:
    """A learner who has just started a step can still import the package."""
    package = tmp_path / mynode.NAME
    mynode.write_files(mynode.before(key), package)
    exercises.add_stubs(next(s for s in mynode.builders() if s.key == key), package)
    load(mynode.read_files(package))


@pytest.mark.slow
def test_taken_steps_can_be_imported() -> None:
    """Definitions that are taken one after the other stand before their users."""
    files: Files = {}
    for key in BUILDERS:
        for path in mynode.changed(key):
            files[path], _ = mynode.taken(files.get(path, ""), key, path)
    assert load(files).Variable(np.array(1.0)).array == 1.0


def test_step_1_remembers() -> None:
    x, z = chain("01", "square", "negative")
    assert z.array == -0.36
    y = z.creator_node.inputs[0]
    assert y.creator_node.inputs[0] is x
    assert z.creator_node.outputs == (z,)
    assert x.creator_node is None


def test_step_2_backward_of_each_operation() -> None:
    for name, derivative in (("square", 1.2), ("negative", -1.0), ("exp", np.exp(0.6))):
        _, y = chain("02", name)
        (gx,) = y.creator_node.backward((0,), (np.array(-2.0),))
        assert gx == pytest.approx(-2.0 * derivative)


def test_step_3_and_the_package_measure_the_same() -> None:
    package = engine("03")
    check = getattr(package, "gradient_check", None) or gradient_check("03")
    for dtype in ("float64", "float32"):
        x, gy = np.array([0.5, -1.0], dtype), np.array([2.0, -3.0], dtype)

        def f(x: Any = x) -> Any:
            return (np.sin(x),)

        (ours,) = check.numerical_grad(f, (x,), (gy,), eps=1e-2)
        (theirs,) = tn.gradient_check.numerical_grad(f, (x,), (gy,), eps=1e-2)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if dtype == "float32" else 1e-12)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(x, np.array([0.5, -1.0], dtype))


def gradient_check(key: str) -> Any:
    """The module with the checks of a stage; the package need not import it."""
    files = mynode.reference(key)
    text = files["__init__.py"] + "from mynode import gradient_check\n"
    return load(files | {"__init__.py": text}).gradient_check


@stages("04")
def test_long_chain(key: str) -> None:
    x, y = chain(key, *["negative"] * 2_001)
    y.backward()
    assert x.grad == -1.0


@pytest.mark.slow
def test_very_long_chain() -> None:
    for key in ("04", "15"):
        x, y = chain(key, *["negative"] * 100_001)
        y.backward()
        assert x.grad == -1.0


@stages("05")
def test_branches(key: str) -> None:
    package = engine(key)
    x, w = package.Variable(np.array([3.0, 0.5])), package.Variable(np.array([1.0, 2.0]))
    y = x * x + 2.0 * w + x + x * 3.0
    y.grad = np.ones(2)
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * x.array + 4)
    np.testing.assert_allclose(w.grad, [2.0, 2.0])


@stages("06")
def test_order(key: str) -> None:
    package = engine(key)
    for exchanged in (False, True):
        x = package.Variable(np.array(3.0))
        a = package.square(x)
        b = package.square(a)
        (a + b if exchanged else b + a).backward()
        assert x.grad == 114.0


def test_step_5_does_not_have_the_order_yet() -> None:
    package = engine("05")
    found = []
    for exchanged in (False, True):
        x = package.Variable(np.array(3.0))
        a = package.square(x)
        b = package.square(a)
        (a + b if exchanged else b + a).backward()
        found.append(float(x.grad))
    assert found != [114.0, 114.0]


@stages("11")
def test_graphs_go_without_the_collector(key: str) -> None:
    package = engine(key)
    gc.disable()
    try:
        x = package.Variable(np.ones(3))
        y = package.square(x * x)
        parts = [weakref.ref(part) for part in (y.array, y.node, y.creator_node)]
        y.grad = np.ones(3)
        y.backward()
        del y
        assert [part() for part in parts] == [None] * 3
    finally:
        gc.enable()


# --- a small tinynode: the table of operations ---------------------------------------------------

STEP_13 = (
    *("add", "broadcast_to", "divide", "exp", "mean", "multiply", "negative", "reshape", "sin"),
    *("square", "subtract", "sum", "sum_to", "tanh"),
)
OPERATIONS = {"13": STEP_13, "15": (*STEP_13, "matmul")}


def beyond_the_stage(key: str, case: Case) -> str:
    """Why a row asks for more than the stage can do; "" if it does not."""
    shapes = [one.shape for one in case.inputs]
    arrays = [one.raw for one in case.inputs]
    if any(arrays) and (len(arrays) == 1 or case.operation == "matmul"):
        return "arrays among the inputs"
    if len({one.dtype for one in case.inputs}) > 1:
        return "mixed dtypes"
    if "numpy-" in case.id:
        return "NumPy's scalars have the weight of arrays"
    if case.operation == "matmul" and any(len(shape) != 2 for shape in shapes):
        return "vectors, and stacks of matrices"
    if "weights" in case.id or case.id.endswith(("-method", "-with-own-transpose")):
        return "an argument or a method that mynode does not have"
    if case.id == "sum_to-integers":
        return "NumPy's sum of int32 is int64"
    return ""


def rows(key: str, operation: str) -> list[Case]:
    """The rows of the table that a stage must pass."""
    found = [case for case in CASES if case.operation == operation]
    return [case for case in found if not beyond_the_stage(key, case)]


class Adapter:
    """A stage in the place of ``tinynode.functions``, for the rows of the table."""

    def __init__(self, module: Any, patch: pytest.MonkeyPatch) -> None:
        self.module = module
        for table in op_cases.MODULES:
            patch.setattr(table, "fn", module)  # rows that are lambdas look functions up there

    def outputs(self, case: Case, hosts: list[Any]) -> tuple[list[Any], Any]:
        device = tn.get_device("numpy")
        xs = []
        for one, host in zip(case.inputs, hosts, strict=True):
            x = place(one, host, device)
            wanted = is_differentiable(one, host)
            xs.append(x if one.raw else self.module.Variable(x, requires_grad=wanted))
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

    variables = [(x, one) for x, one in zip(xs, case.inputs, strict=True) if not one.raw]
    for x, one in variables:
        assert (x.grad is not None) == one.grad
        assert x.grad is None or (x.grad.shape, x.grad.dtype) == (x.array.shape, x.array.dtype)
    analytic = inner([xs[i].grad for i in directions], list(directions.values()))
    numeric = central_difference(projected, 1e-5)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6, atol=1e-8)


def check_rows(adapter: Adapter, cases: list[Case]) -> None:
    for case in cases:
        try:
            check_forward(adapter, case)
            if case.order:
                check_first_gradient(adapter, case)
        except Exception as error:
            raise AssertionError(f"{case.id}: {error}") from error


@pytest.mark.parametrize(
    ("key", "operation"), [(key, name) for key, names in OPERATIONS.items() for name in names]
)
def test_rows_of_the_table_of_operations(
    monkeypatch: pytest.MonkeyPatch, key: str, operation: str
) -> None:
    cases = rows(key, operation)
    assert len(cases) >= 7
    assert operation in ("negative", "exp") or any(case.order for case in cases)
    check_rows(Adapter(engine(key), monkeypatch), cases)


def test_the_rows_are_enough() -> None:
    """Rows are left out for a reason, and only a few."""
    left_out = [c for c in CASES if c.operation in OPERATIONS["15"] and beyond_the_stage("15", c)]
    assert len(left_out) < 45
    assert sum(len(rows("15", operation)) for operation in OPERATIONS["15"]) > 200


# --- a small tinynode: names and parameters ------------------------------------------------------


def in_the_package(name: str) -> Any:
    places = (tn, fn, tn.errors)
    return next(getattr(place, name) for place in places if hasattr(place, name))


def assert_same_parameters(ours: Any, theirs: Any) -> None:
    """The package takes each call that mynode takes, with the same meaning of each argument."""
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
        by_name = parameter.kind is parameter.KEYWORD_ONLY  # the package may take it by position
        assert by_name or parameter.kind is named[parameter.name].kind, parameter.name
        if parameter.default is not parameter.empty:
            assert parameter.default == named[parameter.name].default, parameter.name
    for parameter in package:
        rest = parameter.kind is parameter.VAR_KEYWORD
        optional = rest or parameter.default is not parameter.empty
        assert optional or parameter.name in {one.name for one in own}, parameter.name


def own_names(key: str) -> dict[str, Any]:
    """The public names of a stage."""
    return {
        name: value
        for name, value in vars(engine(key)).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }


@stages("13")
def test_public_names_are_those_of_the_package(key: str) -> None:
    names = own_names(key)
    assert set(OPERATIONS["15" if key >= "15" else "13"]) < set(names)
    assert {"Variable", "VariableNode", "FunctionNode", "no_backprop_mode", "config"} < set(names)
    for name, ours in names.items():
        theirs = in_the_package(name)
        assert inspect.isclass(ours) == inspect.isclass(theirs), name
        if inspect.isfunction(ours):
            assert_same_parameters(ours, theirs)
    settings = [name for name in vars(type(names["config"])) if not name.startswith("_")]
    assert settings and all(hasattr(tn.config, setting) for setting in settings)


@stages("13", "15")
def test_methods_have_the_parameters_of_the_package(key: str) -> None:
    package = engine(key)
    classes = {name: getattr(package, name) for name in ("Variable", "VariableNode")}
    classes |= {"FunctionNode": package.FunctionNode}
    classes |= {"Multiply": package.functions.arithmetic.Multiply}
    classes |= {"Tanh": package.functions.trigonometric.Tanh}
    for name, ours in classes.items():
        theirs = in_the_package(name)
        for method, value in vars(ours).items():
            if inspect.isfunction(value) and (name, method) != ("FunctionNode", "connect"):
                assert_same_parameters(value, getattr(theirs, method))
            elif isinstance(value, property):
                assert hasattr(theirs, method), (name, method)


def test_attributes_are_those_of_the_package() -> None:
    found = []
    for variables, functions in ((engine("15"), engine("15")), (tn, fn)):
        x = variables.Variable(np.array(2.0))
        y = functions.multiply(x, x)
        found.append((x, x.node, y.creator_node))
    for ours, theirs in zip(*found, strict=True):
        for name in vars(ours):
            assert name.startswith("_") or hasattr(theirs, name), (type(ours).__name__, name)


# --- a small tinynode: the same program, the same numbers ----------------------------------------


class Package:
    """The names of mynode, from the package."""

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
    inner = tn.exp(x)
    c = tn.square(inner) * x
    c.unchain_backward()
    yield inner.creator_node is None, c.creator_node is None
    yield c.array


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
    for y in (x + w, x - w, x * w, -x, tn.square(x), tn.exp(x), tn.sin(x)):
        function = y.creator_node
        kept = function.get_retained_inputs(), function.get_retained_outputs()
        yield [float(getattr(v, "array", v)) for v in kept[0]]
        yield [float(getattr(v, "array", v)) for v in kept[1]]
    function = tn.tanh(x).creator_node  # the package keeps x, since 1 - y^2 cancels far from 0
    yield len(function.get_retained_inputs()) + len(function.get_retained_outputs())


def broadcasting(tn: Any) -> Iterator[Any]:
    x, w = tn.Variable(np.ones((3, 1))), tn.Variable(np.arange(4.0))
    y = tn.mean(x / (1.0 + w) - w * x, axis=1)
    yield y.shape, y.ndim, y.size
    tn.sum(tn.square(y)).backward()
    yield x.grad
    yield w.grad
    z = tn.reshape(w, (2, 2)) @ tn.Variable(np.array([[1.0, 2.0], [3.0, 4.0]]))
    w.cleargrad()
    tn.sum(z * z).backward()
    yield z.array
    yield w.grad
    with pytest.raises(tn.InvalidType) as refused:
        z @ x
    yield refused.value.actual, str(refused.value).count("float64")


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


@stages("13")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_program_on_mynode_and_on_the_package(
    key: str, program: Callable[..., Any]
) -> None:
    assert_the_same(program, engine(key))


@stages("15")
def test_a_program_with_broadcasting(key: str) -> None:
    assert_the_same(broadcasting, engine(key))


# --- these tests can fail ------------------------------------------------------------------------

BACKPROP, VARIABLE, NODE = "core/backprop.py", "core/variable.py", "core/variable_node.py"
FUNCTION, ARITHMETIC, SHAPES = (
    "core/function_node.py",
    "functions/arithmetic.py",
    "functions/shapes.py",
)
TRIGONOMETRIC, STATISTICAL = "functions/trigonometric.py", "functions/statistical.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "right", "wrong"),
    [
        (ARITHMETIC, "gx = gz * y", "gx = gz * x"),
        (ARITHMETIC, "self.unbroadcast(gz, -gz)", "self.unbroadcast(gz, gz)"),
        (ARITHMETIC, "self.unbroadcast(gx, -gx * x / y)", "self.unbroadcast(gx, -gx)"),
        (ARITHMETIC, "unbroadcast(gy, y.shape)", "gy"),
        (ARITHMETIC, "np.result_type(x.array, y)", "float"),
        (SHAPES, "g.sum(axis=repeated, keepdims=True)", "g"),
        (SHAPES, "gy.reshape(self.inputs[0].shape)", "gy"),
        (STATISTICAL, "gy.reshape(kept)", "gy"),
        (STATISTICAL, "/ n", "* n"),
        (TRIGONOMETRIC, "(1.0 - y * y)", "(1.0 - y)"),
        (TRIGONOMETRIC, "np.cos(x)", "np.sin(x)"),
        (
            TRIGONOMETRIC,
            "self.retain_outputs((0,))",
            "self.retain_outputs((0,)), self.retain_inputs((0,))",
        ),
        (
            "core/operators.py",
            "return mynode.subtract(other, self)",
            "return mynode.subtract(self, other)",
        ),
        (VARIABLE, "        self.node.unchain()\n", "        pass\n"),
        (NODE, "            waiting += node.creator_node.inputs\n", ""),
        (BACKPROP, "gx if node not in gradients else gradients[node] + gx", "gx"),
        (BACKPROP, "x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
        (
            BACKPROP,
            "enumerate(function.inputs) if node.requires_grad",
            "enumerate(function.inputs)",
        ),
        (BACKPROP, "y.grad = None  # used up", "pass"),
        (
            BACKPROP,
            "(-function.rank, len(seen), function)",
            "(function.rank, len(seen), function)",
        ),
        (FUNCTION, "wanted and y.dtype.kind", "y.dtype.kind"),
        (FUNCTION, "wanted = config.enable_backprop and any(", "wanted = any("),
        (FUNCTION, "y.node.rank = self.rank + 1", "y.node.rank = self.rank"),
        ("configuration.py", "config.enable_backprop = before", "pass"),
        (NODE, "self._variable = weakref.ref(variable)", "self._variable = lambda: variable"),
        ("type_check.py", "self.value == value", "True"),
    ],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, path: str, right: str, wrong: str
) -> None:
    package = load(mynode.reference("15") | mynode.mistake("15", path, right, wrong))
    adapter = Adapter(package, monkeypatch)
    found = (AssertionError, TypeError, AttributeError, ValueError, pytest.fail.Exception)
    with pytest.raises(found):
        for program in (*PROGRAMS, broadcasting):
            assert_the_same(program, package)
        for operation in OPERATIONS["15"]:
            check_rows(adapter, rows("15", operation))
