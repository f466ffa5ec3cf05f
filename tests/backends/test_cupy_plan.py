"""Compiled nets on tinynode_cupy without a GPU: chains of elementwise operators are one kernel.

No GPU takes part: the kernels' bodies are compiled for the host, see ``fake_cupy.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import fake_cupy
import numpy as np
import op_drivers
import pytest
from op_cases import CASES

import tinynode as tn
from tests.net.test_compile_table import check
from tinynode import functions as fn
from tinynode import nn
from tinynode.devices import Device
from tinynode.errors import TraceError
from tinynode.functions.arithmetic import ZeroSafeMultiply
from tinynode.functions.comparison import ExtremeGrad
from tinynode.functions.logistic import Sigmoid
from tinynode.functions.trigonometric import TanhGrad
from tinynode.net.operator import Operator
from tinynode.net.passes import TimesNumber
from tinynode.net.registry import type_name

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        fake_cupy.COMPILER is None, reason="no C++ compiler: the kernels cannot be compiled"
    ),
]

ELEMENTWISE = {
    "ExtremeGrad",
    "KeepZeros",
    "ReLUGrad",
    "abs",
    "add",
    "add_all",
    "cos",
    "divide",
    "exp",
    "log",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "reciprocal",
    "relu",
    "sigmoid",
    "sin",
    "sqrt",
    "square",
    "subtract",
    "tanh",
    "zero_safe_multiply",
}
CHOSEN = [case for i, case in enumerate(CASES) if case.operation in ELEMENTWISE or i % 100 == 0]
ROWS = op_drivers.by_operation(CHOSEN)


@pytest.fixture(scope="module")
def backend() -> Iterator[ModuleType]:
    with fake_cupy.installed() as module:
        yield module


@pytest.fixture
def device(backend: ModuleType) -> Iterator[Device]:
    with tn.using_device("cupy:0"):
        yield tn.get_device("cupy:0")


def array(device: Device, *shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    return device.from_host(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def plan_text(function: Any, *args: Any) -> str:
    """The part of ``explain`` on the plan of the forward net."""
    text = tn.compile(function).explain(*args)
    return str(text[text.index("  run") :]).split("_grad(")[0]


def assert_same(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(tn.to_host(ours.array), tn.to_host(theirs.array), rtol=1e-12)


def chains(text: str) -> list[str]:
    return re.findall(r"= (tinynode_chain_\w+)\(", text)


# --- compiled equals eager -----------------------------------------------------------------------


@pytest.mark.parametrize("operation", ROWS)
def test_rows_compiled_equal_eager(operation: str, device: Device) -> None:
    for case in ROWS[operation]:
        with op_drivers.naming(case.id):
            try:
                check(case, device)
            except TraceError:
                assert case.operation in ("get_item", "set_item", "Positions", "to_device")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_training_net_equals_eager(dtype: str, device: Device) -> None:
    """Outputs, and the gradients of all parameters, at the third call, on other values."""
    with tn.using_config("dtype", dtype):
        model = nn.Sequential(nn.Linear(6, 16), fn.relu, nn.Linear(16, 16), fn.tanh)
    head = nn.Parameter(array(device, 16, 3, dtype=dtype))

    def loss(x: Any, t: Any) -> Any:
        y = fn.sigmoid(fn.matmul(model(x), head)) * 0.5 + fn.maximum(t, 0.1)
        return fn.mean((y - t) ** 2 / (1.0 + fn.square(t)))

    compiled = tn.compile(loss)
    found = []
    for function in (compiled, compiled, compiled, loss):
        for seed in (len(found), 7):
            x, t = (
                tn.Variable(array(device, 5, n, seed=seed, dtype=dtype), requires_grad=False)
                for n in (6, 3)
            )
            value = function(x, t)
            gradients = tn.grad([value], [*model.parameters(), head])
        found.append([tn.to_host(one.array) for one in (value, *gradients)])
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for ours, theirs in zip(found[2], found[3], strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)


def test_second_derivatives_equal_eager(device: Device) -> None:
    def function(x: Any) -> Any:
        return fn.sum(fn.tanh(x * x) / (1.0 + fn.exp(-x)) + fn.sin(x) * fn.sqrt(fn.abs(x)))

    def hessian_vector(f: Any) -> Any:
        x = tn.Variable(array(device, 4, 3))
        (gx,) = tn.grad([f(x)], [x], enable_double_backprop=True)
        return tn.to_host(tn.grad([fn.sum(gx * gx)], [x])[0].array)

    compiled = tn.compile(function)
    hessian_vector(compiled)
    np.testing.assert_allclose(hessian_vector(compiled), hessian_vector(function), rtol=1e-12)


HARD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-300, 800.0, -800.0, 2.5, -1.0])
ONE_OPERATOR: list[tuple[type, dict[str, Any]]] = [
    (fn.Abs, {}),
    (fn.Add, {}),
    (fn.Cos, {}),
    (fn.Divide, {}),
    (fn.Exp, {}),
    (fn.Log, {}),
    (fn.Maximum, {}),
    (fn.Minimum, {}),
    (fn.Multiply, {}),
    (fn.Negative, {}),
    (fn.ReLU, {}),
    (fn.ReLUGrad, {}),
    (fn.Reciprocal, {}),
    (fn.Sin, {}),
    (fn.Sqrt, {}),
    (fn.Square, {}),
    (fn.Subtract, {}),
    (fn.Tanh, {}),
    (TanhGrad, {}),
    (ExtremeGrad, {}),
    (Sigmoid, {}),
    (TimesNumber, {"number": -0.1}),
    (ZeroSafeMultiply, {}),
    (fn.KeepZeros, {}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("node_class", ONE_OPERATOR, ids=lambda pair: pair[0].__name__)
def test_expressions_on_all_pairs_of_hard_values(
    node_class: tuple[type, dict[str, Any]], dtype: str, backend: ModuleType, device: Device
) -> None:
    """NaN, infinities, zeros of both signs: what the portable forward gives."""
    kind, attrs = node_class
    node = kind(**attrs)
    with np.errstate(all="ignore"):
        x, y = np.meshgrid(HARD.astype(dtype), HARD.astype(dtype))
        inputs = {4: [x, y, np.maximum(x, y), y.T.copy()], 3: [x, y, x], 2: [x, y], 1: [x]}
        number = max(map(int, re.findall(r"\{(\d)\}", plan_of(backend).EXPRESSIONS[kind]))) + 1
        arrays = tuple([device.from_host(one) for one in inputs[number]])
        names = [f"v{i}" for i in range(number)]
        operator = Operator(type_name(kind), names, ["result"], attrs)
        chain = plan_of(backend).Chain([operator], ["result"])
        (ours,) = chain.make_node().forward(arrays)
        (theirs,) = node.forward(arrays)
    assert ours.dtype == dtype
    rtol = 1e-14 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(tn.to_host(ours), tn.to_host(theirs), rtol=rtol, atol=0)


def plan_of(backend: ModuleType) -> Any:
    """The module of the plans; it lives as long as the stand-in is installed."""
    import tinynode_cupy.plan

    assert tinynode_cupy.plan.make_plan is backend.make_plan
    return tinynode_cupy.plan


def test_every_expression_is_tried(backend: ModuleType) -> None:
    assert {kind for kind, _ in ONE_OPERATOR} == set(plan_of(backend).EXPRESSIONS)


# --- what becomes one kernel ---------------------------------------------------------------------


def test_a_chain_is_one_kernel(device: Device) -> None:
    """Also with a bias that broadcasts, and a number; the source is shown."""

    def function(x: Any, b: Any) -> Any:
        return fn.tanh(x + b) * fn.sigmoid(x) - 2.0

    text = plan_text(function, tn.Variable(array(device, 4, 3)), tn.Variable(array(device, 3)))
    assert chains(text) == ["tinynode_chain_add_tanh_sigmoid_multiply_subtract"]
    assert "operators in turn: 0" in text
    assert "const T t1 = tanh(t0);  // tanh" in text


def test_only_what_others_need_is_written(device: Device) -> None:
    x = tn.Variable(array(device, 4, 3), requires_grad=False)
    text = plan_text(lambda x: (fn.exp(fn.sin(x)), fn.sum(fn.exp(fn.sin(x)) + 1.0)), x)
    assert chains(text) == ["tinynode_chain_sin_exp_add"]
    assert re.findall(r"y\d = t\d;", text) == ["y0 = t1;", "y1 = t2;"]


def test_a_chain_goes_on_behind_what_only_reads_it(device: Device) -> None:
    def function(x: Any) -> Any:
        y = fn.exp(x)
        total = fn.sum(y)
        return total, fn.sin(y)

    text = plan_text(function, tn.Variable(array(device, 4, 3), requires_grad=False))
    assert chains(text) == ["tinynode_chain_exp_sin"]
    assert text.index("tinynode_chain") < text.index("= sum(")


def test_a_chain_ends_where_something_else_is_needed(device: Device) -> None:
    def function(x: Any) -> Any:
        y = fn.exp(x) + 1.0
        return fn.sin(y) / fn.sum(y, axis=0)

    text = plan_text(function, tn.Variable(array(device, 4, 3), requires_grad=False))
    assert chains(text) == ["tinynode_chain_exp_add_sin"]
    assert text.index("tinynode_chain") < text.index("= sum(") < text.index("= divide(")


def test_two_shapes_are_two_chains(device: Device) -> None:
    def function(x: Any, b: Any) -> Any:
        return fn.tanh(x + fn.exp(fn.sin(b)))

    x, b = tn.Variable(array(device, 4, 3)), tn.Variable(array(device, 3))
    assert chains(plan_text(function, x, b)) == [
        "tinynode_chain_sin_exp",
        "tinynode_chain_add_tanh",
    ]


def test_a_chain_waits_for_another_that_began_later(device: Device) -> None:
    def function(x: Any, b: Any) -> Any:
        return fn.exp(x) + fn.exp(fn.sin(b))

    compiled = tn.compile(function)
    x, b = tn.Variable(array(device, 4, 3)), tn.Variable(array(device, 3))
    names = chains(plan_text(function, x, b))
    assert names == ["tinynode_chain_sin_exp", "tinynode_chain_exp_add"]
    compiled(x, b)
    assert_same(compiled(x, b), function(x, b))


def test_the_gradient_of_relu_does_not_look_at_values(device: Device) -> None:
    x = tn.Variable(array(device, 4, 3))
    text = tn.compile(fn.relu).explain(x)
    assert chains(text) == ["tinynode_chain_relu", "tinynode_chain_relu_grad"]


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(lambda x: x + x + x, "int64"), (lambda x: fn.exp(x).sum(), "float64")],
    ids=["integers", "a single operator"],
)
def test_what_stays_with_cupys_own_kernels(
    function: Callable[[Any], Any], dtype: str, device: Device
) -> None:
    x = tn.Variable(array(device, 4, 3, dtype=dtype), requires_grad=False)
    text = plan_text(function, x)
    assert "kernels of chains: 0; operators in turn: 2" in text


def test_mixed_dtypes_are_not_one_chain(device: Device) -> None:
    def function(x: Any) -> Any:
        return fn.exp(fn.sin(fn.astype(fn.exp(fn.sin(x)), np.float64)))

    x = tn.Variable(array(device, 4, 3, dtype="float32"), requires_grad=False)
    text = plan_text(function, x)
    assert chains(text) == ["tinynode_chain_sin_exp"] * 2
    assert text.index("tinynode_chain") < text.index("= astype(") < text.rindex("tinynode_chain")


def test_kernels_have_a_limited_number_of_arrays(device: Device, backend: ModuleType) -> None:
    """The argument lists of CUDA are limited; what is too long is cut."""

    def function(*xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = fn.tanh(total) * x
        return total

    xs = [tn.Variable(array(device, 3, seed=i), requires_grad=False) for i in range(60)]
    compiled = tn.compile(function)
    text = compiled.explain(*xs)
    lines = re.findall(r"(.*) = tinynode_chain\w+\((.*)\)", text)
    sizes = [len(a.split(",")) + len(b.split(",")) for a, b in lines]
    assert len(sizes) == 3 and max(sizes) == plan_of(backend).MOST_ARRAYS
    assert_same(compiled(*xs), function(*xs))


def test_kernels_have_a_limited_number_of_operators(device: Device, backend: ModuleType) -> None:
    def function(x: Any) -> Any:
        for _ in range(50):
            x = fn.sin(x) + x
        return x

    x = tn.Variable(array(device, 3), requires_grad=False)
    text = plan_text(function, x)
    assert text.count("// ") == 100 and len(chains(text)) == 2
    assert_same(tn.compile(function)(x), function(x))


def test_nets_with_the_same_chain_share_a_kernel(device: Device, backend: ModuleType) -> None:
    x = tn.Variable(array(device, 3), requires_grad=False)
    for function in (lambda a: fn.cos(fn.exp(a)), lambda b: fn.reshape(fn.cos(fn.exp(b)), (3, 1))):
        compiled = tn.compile(function)
        compiled(x)
        before = plan_of(backend).kernel_of.cache_info()
        compiled(x)
    after = plan_of(backend).kernel_of.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def test_results_are_fresh_at_each_call(device: Device) -> None:
    compiled = tn.compile(lambda x: fn.exp(fn.sin(x)))
    x = tn.Variable(array(device, 3), requires_grad=False)
    first, second, third = (compiled(x).array for _ in range(3))
    assert not np.shares_memory(second, third) and not np.shares_memory(first, second)


def test_arrays_without_elements_and_without_axes(device: Device) -> None:
    compiled = tn.compile(lambda x: fn.exp(fn.sin(x)) * 2.0)
    for shape in ((), (0, 3)):
        x = tn.Variable(array(device, *shape), requires_grad=False)
        for _ in range(2):
            y = compiled(x)
        assert y.shape == shape
        np.testing.assert_allclose(
            tn.to_host(y.array), np.exp(np.sin(tn.to_host(x.array))) * 2, rtol=1e-14
        )


def test_strides_do_not_matter(device: Device) -> None:
    x = tn.Variable(array(device, 3, 4).T, requires_grad=False)
    compiled = tn.compile(lambda x: fn.exp(fn.sin(x)))
    for _ in range(2):
        y = compiled(x)
    np.testing.assert_allclose(
        tn.to_host(y.array), np.exp(np.sin(tn.to_host(x.array))), rtol=1e-14
    )


def test_it_runs_on_the_device_of_its_inputs(backend: ModuleType) -> None:
    """Where another one is current, a kernel's inputs and results are on their own."""
    compiled = tn.compile(lambda x: fn.exp(fn.sin(x)))
    with tn.using_device("cupy:1"):
        device = tn.get_device("cupy:1")
        x = tn.Variable(array(device, 3), requires_grad=False)
        for _ in range(2):
            y = compiled(x)
    assert y.array.device.id == 1 and fake_cupy.state.current == 0


def test_products_and_sums_are_not_contracted(backend: ModuleType) -> None:
    """So each operation rounds as in eager code."""
    source = plan_of(backend).ElementwiseSource("name", "T x0", "T y0", "y0 = x0;")
    assert plan_of(backend).kernel_of(source).options == ("--fmad=false",)


# --- training steps ------------------------------------------------------------------------------

MAKERS = {
    "sgd": lambda ps: nn.SGD(ps, lr=0.1),
    "momentum": lambda ps: nn.SGD(ps, lr=0.1, momentum=0.9),
    "adam": lambda ps: nn.Adam(ps, lr=0.1, betas=(0.8, 0.95), eps=1e-3),
    "adamw": lambda ps: nn.AdamW(ps, lr=0.1, weight_decay=0.2),
}


def training(device: Device, make: Any, dtype: str) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Two parameters, their optimizer, and a step."""
    w = nn.Parameter(array(device, 3, 2, dtype=dtype), name="w")
    b = nn.Parameter(array(device, 2, seed=1, dtype=dtype), name="b")
    optimizer = make([w, b])

    def step(x: Any) -> Any:
        optimizer.cleargrads()
        loss = fn.sum(fn.tanh(x @ w + b))
        loss.backward()
        optimizer.update()
        return loss

    return (w, b), optimizer, step


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_training_step_updates_by_kernels(name: str, dtype: str, device: Device) -> None:
    x = tn.asarray(array(device, 4, 3, seed=2, dtype=dtype)).detach()
    found = []
    for compiled in (False, True):
        parameters, optimizer, step = training(device, MAKERS[name], dtype)
        run = tn.compile(step) if compiled else step
        for number in range(4):
            optimizer.lr = 0.1 / (1 + number)
            run(x)
        state = optimizer.state_dict()
        found.append([*(tn.to_host(p.array) for p in parameters), *map(state.get, sorted(state))])
    for one, other in zip(*found, strict=True):
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)
    text = run.explain(x)  # type: ignore[attr-defined]
    assert text.count("= update_kernel(") == 2
    assert text.count("= adam_numbers(") == ("adam" in name)
