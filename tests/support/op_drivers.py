"""The drivers: the checks of each row of ``op_cases``, on any device.

Each check takes a row and the name of a device, and raises AssertionError. Derivatives are proven
by finite differences on the reference backend. Other backends are compared with the reference:
values, first and second gradients. Finite differences are written here once more, apart from
``tinynode.gradient_check``, so that both check each other.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from op_cases import CASES, Case, Input

import tinynode as tn
from tinynode.devices import Device, find_device
from tinynode.errors import dtype_name

REFERENCE = "numpy"

Hosts = list[Any]
"""NumPy arrays: the values of a row's inputs, of outputs, or of gradients."""


def runs_on(case: Case, device_name: str) -> bool:
    """Whether a row can be run on a device: array_api_strict refuses some on purpose."""
    return not (case.not_on_strict and device_name.startswith("strict"))


# --- from a row to Variables ---------------------------------------------------------------------


def draw_inputs(case: Case, dtype: str, seed: int = 0) -> Hosts:
    """The values of the inputs. Floats are the same at float32 and at float64."""
    rng = np.random.default_rng([zlib.crc32(case.id.encode()), seed])
    hosts = []
    for one in case.inputs:
        values = np.asarray(one.make(rng, one.shape))
        if values.dtype == np.float64:
            values = values.astype(np.float32)
        hosts.append(values.astype(one.dtype or dtype))
    return hosts


def place(one: Input, host: Any, device: Device) -> Any:
    """An array on the device, laid out in memory as the row asks."""
    every = (slice(None, None, -1),) * host.ndim
    if one.layout == "strided":
        wide = np.zeros([2 * n for n in host.shape], host.dtype)
        every = (slice(None, None, 2),) * host.ndim
        wide[every] = host
        return device.from_host(wide)[every]
    if one.layout == "reversed":
        return device.from_host(np.ascontiguousarray(host[every]))[every]
    if one.layout == "transposed":
        axes = tuple(reversed(range(host.ndim)))
        return device.xp.permute_dims(device.from_host(np.ascontiguousarray(host.T)), axes)
    return device.from_host(host.copy())


def is_differentiable(one: Input, host: Any) -> bool:
    return one.grad and not one.raw and host.dtype.kind == "f"


def make_inputs(case: Case, hosts: Hosts, device: Device) -> list[Any]:
    """The inputs as the row asks for them: Variables, or arrays."""
    xs = []
    for one, host in zip(case.inputs, hosts, strict=True):
        array = place(one, host, device)
        requires = is_differentiable(one, host)
        xs.append(array if one.raw else tn.Variable(array, requires_grad=requires))
    return xs


def call(case: Case, xs: list[Any]) -> tuple[tn.Variable, ...]:
    """The outputs, always as a tuple."""
    ys = case.function(*xs, **case.constants)
    return tuple(ys) if isinstance(ys, tuple | list) else (ys,)


def call_reference(case: Case, hosts: Hosts, smooth: bool = False) -> Hosts:
    reference = case.smooth if smooth and case.smooth is not None else case.reference
    ys = reference(*hosts, **case.constants)
    return [np.asarray(y) for y in (ys if isinstance(ys, tuple | list) else (ys,))]


def differentiable(xs: list[Any]) -> list[tn.Variable]:
    return [x for x in xs if isinstance(x, tn.Variable) and x.requires_grad]


def draw_like(variables: list[Any], seed: int) -> list[tn.Variable]:
    """A random Variable beside each: of its shape, dtype and device; it requires a gradient."""
    rng = np.random.default_rng(seed)
    drawn = []
    for variable in variables:
        host = rng.normal(size=variable.shape).astype(np.float32)
        array = variable.device.from_host(host.astype(dtype_name(variable.dtype)))
        drawn.append(tn.Variable(array))
    return drawn


class Derivatives:
    """A row, its first gradients, and the gradients of those; everything as Variables.

    With gx the gradient along gy, the second order differentiates (x, gy) -> gx along v.

    Attributes:
        device: where everything lies.
        xs, ys: the inputs that require a gradient, and the floating outputs.
        gys, gxs: random gradients of the outputs, and those of the inputs; None where zero.
        vs: a random gradient for each gx that is not None.
        sources, ggs: (*xs, *gys), and the second-order gradients of these.
    """

    def __init__(self, case: Case, hosts: Hosts, device: Device, gys: Any = None) -> None:
        self.device = device
        inputs = make_inputs(case, hosts, device)
        self.xs = differentiable(inputs)
        self.ys = [y for y in call(case, inputs) if y.requires_grad]
        self.gys = draw_like(self.ys, 1) if gys is None else gys
        self.gxs = tn.grad(self.ys, self.xs, self.gys, enable_double_backprop=case.order >= 2)
        self.sources = [*self.xs, *self.gys]
        self.vs: list[tn.Variable] = []
        self.ggs: list[tn.Variable | None] = [None] * len(self.sources)

    def differentiate_again(self) -> None:
        known = [gx for gx in self.gxs if gx is not None]
        self.vs = draw_like(known, 2)
        self.ggs = tn.grad(known, self.sources, self.vs)


def assert_equal(a: Any, b: Any) -> None:
    """Equal shapes and values, NaN included; NumPy's own assertion is slow, and explains."""
    if not np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc"):
        np.testing.assert_array_equal(a, b)
        raise AssertionError(f"shapes {a.shape} and {b.shape}")  # it took a scalar for an array


def host_of(variable: tn.Variable | None, like: tn.Variable) -> Any:
    """The values at float64; None stands for zeros."""
    if variable is None:
        return np.zeros(like.shape)
    return tn.to_host(variable.array).astype(np.float64)


def derive(case: Case, device_name: str, dtype: str | None = None) -> Derivatives:
    hosts = draw_inputs(case, dtype or case.dtypes[0])
    return Derivatives(case, hosts, tn.get_device(device_name))


# --- the values ----------------------------------------------------------------------------------


def check_forward(case: Case, device_name: str) -> None:
    """The outputs are those of the reference, in value, dtype and shape, on the inputs' device."""
    device = tn.get_device(device_name)
    for dtype in case.dtypes:
        hosts = draw_inputs(case, dtype)
        ys = call(case, make_inputs(case, hosts, device))
        expected = call_reference(case, hosts)
        assert len(ys) == len(expected)
        for y, reference in zip(ys, expected, strict=True):
            assert isinstance(y, tn.Variable)
            assert y.device.owns(y.array)
            assert case.operation == "to_device" or y.device is device
            assert y.shape == reference.shape
            assert dtype_name(y.dtype) == reference.dtype.name
            tolerance = 1e-5 if "float32" in (dtype, reference.dtype.name) else 1e-12
            host = tn.to_host(y.array)
            np.testing.assert_allclose(host, reference, rtol=tolerance, atol=tolerance)


def central_difference(f: Callable[[float], float], eps: float) -> float:
    """The derivative at 0 of f, a function of the step along a direction."""
    return (f(eps) - f(-eps)) / (2 * eps)


def inner(arrays: Hosts, others: Hosts) -> float:
    return float(sum(np.sum(a * b) for a, b in zip(arrays, others, strict=True)))


def draw_directions(case: Case, hosts: Hosts) -> dict[int, Any]:
    """A random direction for each input that requires a gradient, by position."""
    rng = np.random.default_rng(3)
    directions = {}
    for i, (one, host) in enumerate(zip(case.inputs, hosts, strict=True)):
        if is_differentiable(one, host):
            directions[i] = rng.normal(size=host.shape)
    return directions


def move(hosts: Hosts, directions: dict[int, Any], step: float, dtype: Any = None) -> Hosts:
    """The inputs a step along the directions; those that are moved may be cast."""
    moved = list(hosts)
    for i, direction in directions.items():
        moved[i] = np.asarray(hosts[i] + step * direction, dtype or hosts[i].dtype)
    return moved


def check_gradients(case: Case, device_name: str) -> None:
    """Along a random direction, gradients agree with central differences, at both orders.

    The first gradients agree with differences of the reference, the second ones with differences
    of the first ones.
    """
    device = tn.get_device(device_name)
    hosts = draw_inputs(case, case.dtypes[0])
    found = Derivatives(case, hosts, device)
    directions = draw_directions(case, hosts)
    check_first_gradient(case, hosts, found, directions)
    if case.order >= 2:
        found.differentiate_again()
        check_second_gradient(case, hosts, found, directions)


def check_first_gradient(
    case: Case, hosts: Hosts, found: Derivatives, directions: dict[int, Any]
) -> None:
    gys = [host_of(gy, gy) for gy in found.gys]

    def projected(step: float) -> float:
        moved = move(hosts, directions, step, np.float64)
        return inner(call_reference(case, moved, smooth=True), gys)

    gxs = [host_of(gx, x) for gx, x in zip(found.gxs, found.xs, strict=True)]
    analytic = inner(gxs, list(directions.values()))
    rtol, atol = (1e-5, 1e-5) if case.single else (1e-6, 1e-8)
    numeric = central_difference(projected, 1e-5)
    np.testing.assert_allclose(analytic, numeric, rtol, atol, err_msg="first gradient")


def check_second_gradient(
    case: Case, hosts: Hosts, found: Derivatives, directions: dict[int, Any]
) -> None:
    """For (x, gy) -> gx: central differences of the gradients themselves."""
    ggys = draw_like(found.gys, 4)
    vs = [host_of(v, v) for v in found.vs]

    def projected(step: float) -> float:
        gys = []
        for gy, ggy in zip(found.gys, ggys, strict=True):
            host = tn.to_host(gy.array) + step * tn.to_host(ggy.array)
            host = np.asarray(host, dtype_name(gy.dtype))
            gys.append(tn.Variable(gy.device.from_host(host)))
        gxs = Derivatives(case, move(hosts, directions, step), found.device, gys).gxs
        return inner([host_of(gx, gx) for gx in gxs if gx is not None], vs)

    along = [*directions.values(), *(host_of(ggy, ggy) for ggy in ggys)]
    ggs = [host_of(gg, x) for gg, x in zip(found.ggs, found.sources, strict=True)]
    # a float32 step rounds by 6e-8, so it needs longer steps, which follow the curve less closely
    eps, rtol, atol = (3e-2, 1e-2, 1e-3) if case.single else (1e-5, 1e-4, 1e-6)
    numeric = central_difference(projected, eps)
    np.testing.assert_allclose(inner(ggs, along), numeric, rtol, atol, err_msg="second gradient")


# --- their form ----------------------------------------------------------------------------------


def check_dtypes(case: Case, device_name: str) -> None:
    """The form of gradients of both orders at each dtype; float32 gives what float64 gives."""
    by_dtype = {}
    for dtype in case.dtypes:
        found = derive(case, device_name, dtype)
        if case.order >= 2:
            found.differentiate_again()
        is_exact = case.operation not in BY_STEPS_IF_RECORDED
        check_types(found, 0.0 if is_exact else 100 * float(np.finfo(dtype).eps))
        by_dtype[dtype] = found
    if set(case.dtypes) == {"float64", "float32"}:
        narrow, wide = by_dtype["float32"], by_dtype["float64"]
        pairs = [*zip(narrow.gxs, wide.gxs, wide.xs, strict=True)]
        pairs += zip(narrow.ggs, wide.ggs, wide.sources, strict=True)
        for ours, expected, like in pairs:
            a, b = host_of(ours, like), host_of(expected, like)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg="float32")


BY_STEPS_IF_RECORDED = ("LSTMSteps", "GRUSteps")
"""Functions whose gradients with a graph are computed step by step: the last bits differ."""


def check_types(found: Derivatives, bound: float) -> None:
    """Each gradient has its variable's dtype, shape and device, at both orders; and ``backward``
    leaves in ``grad`` what ``grad()`` returns, up to a bound.
    """
    pairs = [*zip(found.gxs, found.xs, strict=True)]
    pairs += zip(found.ggs, found.sources, strict=True)
    for gradient, x in pairs:
        if gradient is None:
            continue
        assert isinstance(gradient, tn.Variable)
        assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)
        assert gradient.device is x.device
        assert find_device(gradient.array) is x.device
    created = [y for y in found.ys if y.creator_node is not None]  # not where y is x itself
    gys = [gy for y, gy in zip(found.ys, found.gys, strict=True) if y in set(created)]
    tn.backward(created, gys)
    for gx, x in zip(found.gxs, found.xs, strict=True):
        if created:
            assert (x.grad is None) == (gx is None)
            left, returned = host_of(x.grad_var, x), host_of(gx, x)
            if bound == 0.0:
                assert_equal(left, returned)
            else:
                np.testing.assert_allclose(left, returned, rtol=bound, atol=bound)


def check_no_gradient(case: Case, device_name: str) -> None:
    """A function without a gradient gives outputs that lead back to no input."""
    device = tn.get_device(device_name)
    for dtype in case.dtypes:
        inputs = make_inputs(case, draw_inputs(case, dtype), device)
        ys = call(case, inputs)
        floating = [y for y in ys if "float" in dtype_name(y.dtype)]
        assert not any(y.requires_grad for y in ys if y not in set(floating))
        xs = [x for x in inputs if isinstance(x, tn.Variable)]
        assert tn.grad(floating, xs) == [None] * len(xs) if floating else True


class RecordingHook(tn.FunctionHook):
    """Writes down which function was seen by which callback."""

    name = "RecordingHook"

    def __init__(self) -> None:
        self.seen: dict[str, list[tn.FunctionNode]] = {
            "forward_pre": [],
            "forward_post": [],
            "backward_pre": [],
            "backward_post": [],
        }
        self.arrays: list[Any] = []

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        self.seen["forward_pre"].append(function)
        self.arrays += in_data

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        self.seen["forward_post"].append(function)

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.seen["backward_pre"].append(function)
        assert len(in_data) == len(function.inputs) and len(out_grad) == len(function.outputs)
        self.arrays += [array for array in (*in_data, *out_grad) if array is not None]

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.seen["backward_post"].append(function)


def graph_of(ys: tuple[tn.Variable, ...]) -> set[tn.FunctionNode]:
    """All functions that gradients of the outputs can reach."""
    functions: set[tn.FunctionNode] = set()
    waiting = [y.creator_node for y in ys]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in functions:
            functions.add(function)
            waiting += [node.creator_node for node in function.inputs if node.requires_grad]
    return functions


def check_hooks(case: Case, device_name: str) -> None:
    """Forward hooks see every function of the graph once, backward hooks those swept through."""
    device = tn.get_device(device_name)
    inputs = make_inputs(case, draw_inputs(case, case.dtypes[0]), device)
    with RecordingHook() as forward:
        ys = call(case, inputs)
    graph = graph_of(ys)
    applied = forward.seen["forward_pre"]
    assert applied == forward.seen["forward_post"]
    assert len(set(applied)) == len(applied)
    assert graph <= set(applied)
    assert not forward.seen["backward_pre"]
    assert applied or all(y is inputs[0] for y in ys)
    created = [y for y in ys if y.requires_grad and y.creator_node is not None]
    with RecordingHook() as backward:
        tn.backward(created, draw_like(created, 1))
    swept = backward.seen["backward_pre"]
    assert swept == backward.seen["backward_post"]
    assert len(set(swept)) == len(swept)
    assert set(swept) <= graph
    assert set(swept) >= {y.creator_node for y in created}
    if case.order >= 1:
        assert set(swept) == graph_of(tuple(created))
    # functions inside a backward are seen by forward hooks, and are not mistaken for new steps
    assert not set(backward.seen["forward_pre"]) & graph
    assert all(find_device(array) is not None for array in forward.arrays + backward.arrays)


# --- pure steps ----------------------------------------------------------------------------------


class Recorder(tn.FunctionHook):
    """Every application and every step back, with copies of the arrays as they were then."""

    name = "Recorder"

    def __init__(self) -> None:
        self.applications: list[tuple[tn.FunctionNode, list[Any], list[Any]]] = []
        self.steps: list[tuple[tn.FunctionNode, Any, Any, Any]] = []
        self.copies: list[tuple[Any, Any]] = []
        self.classes: set[type] = set()

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        self.copies += [(array, tn.to_host(array).copy()) for array in in_data]

    def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
        self.classes.add(type(function))
        if function.is_random:
            return  # it draws anew at each run
        arrays, results = [x.array for x in inputs], [y.array for y in outputs]
        self.applications.append((function, arrays, results))
        self.copies += [(array, tn.to_host(array).copy()) for array in results]

    def after_backward(self, function: Any, targets: Any, grad_outputs: Any, results: Any) -> None:
        self.steps.append((function, targets, grad_outputs, results))


def record(case: Case, device_name: str, seed: int) -> Recorder:
    """Run a row forward, backward, and backward again, under a recorder."""
    hosts = draw_inputs(case, case.dtypes[0], seed)
    recorder = Recorder()
    with recorder:
        found = Derivatives(case, hosts, tn.get_device(device_name))
        if case.order >= 2:
            found.differentiate_again()
    return recorder


def record_without_graph(case: Case, device_name: str, seed: int) -> Recorder:
    """Run a row forward, and backward without a graph, under a recorder.

    Some functions have a quicker way to their gradients where nobody asks for a graph.
    """
    hosts = draw_inputs(case, case.dtypes[0], seed)
    recorder = Recorder()
    with recorder:
        found = Derivatives(case, hosts, tn.get_device(device_name))
        tn.grad(found.ys, found.xs, found.gys)
    return recorder


_OF_THE_GRAPH = {name for name in dir(tn.FunctionNode) if not name.startswith("__")} - {
    "output_device"
}


def constants_of(node: tn.FunctionNode) -> dict[str, Any]:
    """What the constructor set: everything that apply and retaining did not."""
    return {name: value for name, value in vars(node).items() if name not in _OF_THE_GRAPH}


def assert_constant(value: Any) -> None:
    """A hashable Python constant, with no array and no Variable in it."""
    hash(value)
    assert not isinstance(value, tn.Variable | tn.VariableNode | tn.FunctionNode)
    assert find_device(value) is None
    if isinstance(value, tuple):
        for item in value:
            assert_constant(item)


def rebuild(node: tn.FunctionNode) -> tn.FunctionNode:
    """A fresh node from the type and the constants of another."""
    fresh = type(node).__new__(type(node))
    vars(fresh).update(constants_of(node))
    return fresh


def assert_same_arrays(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert_equal(tn.to_host(a), tn.to_host(b))


def check_pure_steps(case: Case, device_name: str) -> None:
    """Nodes recorded on some inputs, rebuilt, do on other inputs what nodes made for these do.

    Forward and backward both; so nothing but constants passes from one to the other by ``self``.
    """
    recorded, other = record(case, device_name, 0), record(case, device_name, 1)
    check_untouched(case, recorded, tn.get_device(device_name))
    assert [type(f) for f, *_ in recorded.applications] == [
        type(f) for f, *_ in other.applications
    ]
    rebuilt: dict[tn.FunctionNode, tn.FunctionNode] = {}
    for (node, *_), (its_like, arrays, results) in zip(
        recorded.applications, other.applications, strict=True
    ):
        constants = constants_of(node)
        for value in constants.values():
            assert_constant(value)
        assert constants == constants_of(its_like)
        fresh = rebuild(node)
        nodes = its_like.inputs or [None] * len(arrays)
        inputs = [
            tn.Variable(array, requires_grad=node is not None and node.requires_grad)
            for array, node in zip(arrays, nodes, strict=True)
        ]
        assert_same_arrays([y.array for y in fresh.apply(inputs)], results)
        rebuilt[its_like] = fresh
    for its_like, targets, grad_outputs, results in other.steps:
        found = rebuilt[its_like].backward(targets, grad_outputs)
        if len(found) != len(results):
            found = [found[i] for i in targets]
        assert [g is None for g in found] == [g is None for g in results]
        assert_same_arrays(
            [g.array for g in found if g is not None], [g.array for g in results if g is not None]
        )


def check_arrays_untouched(case: Case, device_name: str) -> None:
    """Nothing that a function took or gave is written to later: inputs, outputs, retained arrays;
    and all of it lies on the device, so no other library did the work.
    """
    device = tn.get_device(device_name)
    check_untouched(case, record(case, device_name, 0), device)
    check_untouched(case, record_without_graph(case, device_name, 0), device)


def check_untouched(case: Case, recorder: Recorder, device: Device) -> None:
    for array, copy in recorder.copies:
        assert_equal(tn.to_host(array), copy)
        assert case.operation == "to_device" or find_device(array) is device


# --- all checks of rows --------------------------------------------------------------------------


@functools.lru_cache(maxsize=500)
def on_the_reference(row: str, dtype: str) -> Derivatives:
    """A row of the table, by its id, with its derivatives on the reference backend."""
    case = ROWS[row]
    with tn.using_device(REFERENCE):
        expected = derive(case, REFERENCE, dtype)
        if case.order >= 2:
            expected.differentiate_again()
    return expected


ROWS = {case.id: case for case in CASES}


def check_as_on_the_reference(case: Case, device_name: str) -> None:
    """Values, first and second gradients are those of the reference backend, at each dtype."""
    device = tn.get_device(device_name)
    for dtype in case.dtypes:
        expected = on_the_reference(case.id, dtype)
        found = derive(case, device_name, dtype)
        if case.order >= 2:
            found.differentiate_again()
        assert len(found.ys) == len(expected.ys)
        sources = zip(found.sources, expected.sources, strict=True)
        for x, reference in [*zip(found.ys, expected.ys, strict=True), *sources]:
            assert (x.shape, dtype_name(x.dtype)) == (reference.shape, dtype_name(reference.dtype))
        pairs = list(zip(found.ys, expected.ys, found.ys, strict=True))
        pairs += zip(found.gxs, expected.gxs, found.xs, strict=True)
        pairs += zip(found.ggs, expected.ggs, found.sources, strict=True)
        rtol, atol = (1e-4, 1e-5) if dtype == "float32" or case.single else (1e-9, 1e-10)
        for gradient, reference, x in pairs:
            if gradient is not None:
                assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)
                assert case.operation == "to_device" or gradient.device is device
            a, b = host_of(gradient, x), host_of(reference, x)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


Check: TypeAlias = Callable[[Case, str], None]


def checks_of(case: Case, device_name: str) -> list[Check]:
    """The checks for a row on a device: all on the reference, elsewhere the comparison."""
    if device_name == REFERENCE:
        return every_check_of(case)
    return [check_forward, check_as_on_the_reference]


def every_check_of(case: Case) -> list[Check]:
    """The checks that prove a row on a device by itself, derivatives included."""
    checks = [check_forward, check_pure_steps, check_hooks]
    if case.order == 0:
        return [*checks, check_no_gradient]
    return [*checks, check_gradients, check_dtypes]


def by_operation(cases: list[Case]) -> dict[str, list[Case]]:
    """The rows of each operation, in the order of the table."""
    rows: dict[str, list[Case]] = {}
    for case in cases:
        rows.setdefault(case.operation, []).append(case)
    return rows


@contextmanager
def naming(row: str) -> Iterator[None]:
    """Name the row in a failure of the ``with`` block."""
    try:
        yield
    except Exception as error:
        error.add_note(f"row {row}")
        raise


def run_checks(case: Case, device_name: str, left_out: Sequence[Check] = ()) -> None:
    """The checks of a row; a failure names the row, the check and the device."""
    for check in checks_of(case, device_name):
        if check in left_out:
            continue
        with naming(f"{case.id}: {check.__name__} on {device_name}"):
            check(case, device_name)
