"""tinynode.nn: parameters, modules, optimizers, files, data."""

from __future__ import annotations

import copy
import gc
import hashlib
import io
import math
import os
import pickle
import random as python_random
import runpy
import stat
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy
import pytest

import tinynode as tn
from tinynode import nn, random
from tinynode.devices import registry
from tinynode.errors import GraphError, OperandError, StateError
from tinynode.nn import initializers
from tinynode.nn.serializers import npz_bytes
from tinynode.nn.state import take_prefix

F = tn.functions
ROOT = Path(__file__).resolve().parents[2]
DATASETS = Path(nn.__file__).resolve().parent / "datasets"
DEVICES = ["numpy", "strict", "strict:device1"]


@pytest.fixture(autouse=True)
def _seed() -> None:
    random.seed(0)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[tn.Device]:
    found = tn.get_device(request.param)
    with tn.using_device(found):
        yield found


def parameter(values: Any, dtype: str = "float32", device: Any = None) -> nn.Parameter:
    return nn.Parameter(tn.asarray(values, dtype, device or tn.get_device()).array)


def set_grad(p: tn.Variable, values: Any) -> None:
    with tn.using_device(p.device):
        p.grad = p.device.from_host(numpy.asarray(values, dtype=tn.to_host(p.array).dtype))


def host(p: tn.Variable) -> Any:
    return tn.to_host(p.array)


# --- Parameter -----------------------------------------------------------------------------------


def test_a_parameter_is_a_leaf_that_requires_a_gradient(device: tn.Device) -> None:
    p = parameter([1.0, 2.0])
    assert isinstance(p, tn.Variable)
    assert p.requires_grad and p.creator is None and p.device is device
    assert not hasattr(p, "__dict__")
    F.sum(p * p).backward()
    numpy.testing.assert_allclose(tn.to_host(p.grad), [2.0, 4.0])
    assert type(p * p) is tn.Variable


@pytest.mark.parametrize("value", [[1.0], 1.0, None, tn.asarray([1.0])])
def test_a_parameter_wants_an_array(value: Any) -> None:
    with pytest.raises(OperandError, match="Parameter: array must be an array of a floating"):
        nn.Parameter(value)


def test_a_parameter_cannot_be_integer() -> None:
    with pytest.raises(TypeError, match="only floating dtypes can require a gradient"):
        nn.Parameter(numpy.arange(3))


def test_a_parameter_looks_like_one_and_survives_copy_and_pickle() -> None:
    p = nn.Parameter(numpy.float32([1, 2]), name="w", grad=numpy.float32([3, 4]))
    assert repr(p) == "parameter w([1., 2.])"
    assert str(p) == "parameter w([1. 2.])"
    for twin in (copy.copy(p), pickle.loads(pickle.dumps(p))):
        assert type(twin) is nn.Parameter
        assert twin.name == "w" and twin.requires_grad
        numpy.testing.assert_array_equal(twin.array, p.array)
        numpy.testing.assert_array_equal(twin.grad, p.grad)
    assert not nn.Parameter(numpy.ones(1), requires_grad=False).requires_grad


# --- Module --------------------------------------------------------------------------------------


class Everything(nn.Module):
    def __init__(self) -> None:
        self.second_letter = parameter([2.0])
        self.a = parameter([1.0])
        self.number = 3
        self.empty: nn.Parameter | None = None
        self.layers = [nn.Linear(2, 3), (nn.Linear(3, 4, bias=False), F.relu)]
        self.by_name = {"x": parameter([4.0]), "y": {"z": parameter([5.0])}}
        self.again = self.a
        self.variable = tn.asarray([1.0])
        self.myself = self


def test_parameters_are_found_in_the_order_of_assignment() -> None:
    model = Everything()
    names = [name for name, _ in model.named_parameters()]
    assert names == [
        "second_letter",
        "a",
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.0.weight",
        "by_name.x",
        "by_name.y.z",
    ]
    parameters = model.parameters()
    assert [id(p) for p in parameters] == [id(p) for _, p in model.named_parameters()]
    assert parameters[1] is model.a
    assert parameters[2] is model.layers[0].weight
    model.late = parameter([6.0])  # type: ignore[attr-defined]
    assert model.named_parameters()[-1][0] == "late"


def test_deep_models_need_no_recursion() -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    for _ in range(5000):
        model = nn.Sequential(model)
    assert len(model.parameters()) == 2


def test_a_module_without_forward_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Everything has no forward: define forward"):
        Everything()(1)


def test_call_passes_everything_to_forward() -> None:
    class Scale(nn.Module):
        def forward(self, x: Any, *, by: Any) -> Any:
            return x * by

    assert Scale()(3, by=4) == 12


def test_cleargrads() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    F.sum(model(tn.asarray([[1.0, 2.0]], requires_grad=False))).backward()
    assert all(p.grad is not None for p in model.parameters())
    model.cleargrads()
    assert all(p.grad is None for p in model.parameters())


def test_a_state_is_a_copy_both_ways(device: tn.Device) -> None:
    model, twin = nn.Linear(2, 3), nn.Linear(2, 3)
    state = model.state_dict()
    assert list(state) == ["weight", "bias"]
    assert all(type(array) is numpy.ndarray for array in state.values())
    twin.load_state_dict(state)
    numpy.testing.assert_array_equal(host(twin.weight), host(model.weight))
    assert twin.weight.device is device
    before = host(twin.weight).copy()
    state["weight"][...] = 0
    numpy.testing.assert_array_equal(host(twin.weight), before)
    numpy.testing.assert_array_equal(host(model.weight), before)


def test_a_state_may_come_from_another_device() -> None:
    model = nn.Linear(2, 1, device="numpy")
    twin = nn.Linear(2, 1, device="strict:device1")
    twin.load_state_dict({name: p.array for name, p in model.named_parameters()})
    model.load_state_dict({name: p.array for name, p in twin.named_parameters()})
    assert model.weight.device is tn.get_device("numpy")
    assert twin.weight.device is tn.get_device("strict:device1")
    numpy.testing.assert_array_equal(host(twin.weight), host(model.weight))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bias": None}, "the state lacks bias"),
        ({"extra": numpy.zeros(1)}, "the state has extra, unknown here"),
        (
            {"bias": numpy.zeros((4,), dtype="float32")},
            r"bias is float32 of shape \(3,\) here and float32 of shape \(4,\) in the state",
        ),
        (
            {"bias": numpy.zeros((3,))},
            r"bias is float32 of shape \(3,\) here and float64 of shape \(3,\) in the state",
        ),
        ({"bias": [0.0, 0.0, 0.0]}, r"bias must be an array, got list"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(
    change: dict[str, Any], message: str, device: tn.Device
) -> None:
    model = nn.Linear(2, 3)
    before = model.state_dict()
    state = {"weight": numpy.ones((3, 2), dtype="float32"), "bias": before["bias"], **change}
    state = {name: array for name, array in state.items() if array is not None}
    with pytest.raises(StateError, match=f"Linear.load_state_dict: {message}"):
        model.load_state_dict(state)
    for name, array in model.state_dict().items():
        numpy.testing.assert_array_equal(array, before[name])


def test_a_long_list_of_names_is_cut() -> None:
    model = nn.Sequential(*[nn.Linear(1, 1) for _ in range(3)])
    with pytest.raises(StateError, match=r"lacks .*weight, .*bias, .*weight and 3 more. Was it"):
        model.load_state_dict({})


@pytest.mark.parametrize("target", ["strict:device2", "numpy"])
def test_only_a_module_moves_in_place(target: str, device: tn.Device) -> None:
    model = nn.Linear(2, 3)
    F.sum(model(tn.asarray([[1.0, 2.0]], requires_grad=False))).backward()
    weight, values, grad = model.weight, host(model.weight), tn.to_host(model.weight.grad)
    assert model.to_device(target) is model
    assert model.weight is weight
    assert all(p.device is tn.get_device(target) for p in model.parameters())
    assert tn.get_device(target).owns(weight.array)
    assert weight.grad_var is not None and weight.grad_var.device is tn.get_device(target)
    numpy.testing.assert_array_equal(host(weight), values)
    numpy.testing.assert_array_equal(tn.to_host(weight.grad), grad)
    x = tn.asarray([[1.0, 2.0]], device=target, requires_grad=False)
    F.sum(model(x)).backward()
    numpy.testing.assert_array_equal(tn.to_host(weight.grad), 2 * grad)


def test_an_unknown_device_moves_nothing() -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(tn.errors.DeviceError, match="there is no backend"):
        model.to_device("nowhere")
    assert model.weight.device is tn.get_device("numpy")


def test_named_modules_come_once_with_dotted_names() -> None:
    inner = nn.Sequential(nn.Linear(3, 1))
    model = nn.Sequential(nn.Linear(2, 3), inner, inner)
    found = model.named_modules()
    assert [name for name, _ in found] == ["", "layers.0", "layers.1", "layers.1.layers.0"]
    assert [module for _, module in found] == model.modules()


# --- layers and initializers ---------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_the_formula(bias: bool, device: tn.Device) -> None:
    layer = nn.Linear(4, 3, bias)
    assert layer.weight.shape == (3, 4)
    assert (layer.bias is not None) == bias
    if layer.bias is not None:
        assert layer.bias.shape == (3,) and not host(layer.bias).any()
        layer.bias.array = device.from_host(numpy.float32([1, 2, 3]))
    x = numpy.arange(8, dtype="float32").reshape(2, 4)
    y = layer(tn.asarray(x, device=device, requires_grad=False))
    expected = x @ host(layer.weight).T + (numpy.float32([1, 2, 3]) if bias else 0)
    numpy.testing.assert_allclose(host(y), expected, rtol=1e-6)


def test_linear_takes_dtype_device_and_initializer() -> None:
    layer = nn.Linear(
        2, 2, initializer=initializers.zeros, dtype="float64", device="strict:device1"
    )
    assert not host(layer.weight).any()
    assert host(layer.weight).dtype == numpy.float64
    assert layer.bias is not None and host(layer.bias).dtype == numpy.float64
    assert {p.device for p in layer.parameters()} == {tn.get_device("strict:device1")}


@pytest.mark.parametrize(("sizes", "name"), [((0, 1), "in_size"), ((1, -2), "out_size")])
def test_sizes_are_at_least_one(sizes: tuple[int, int], name: str) -> None:
    with pytest.raises(ValueError, match=f"Linear: {name} must be at least 1"):
        nn.Linear(*sizes)


@pytest.mark.parametrize("layer", [3, nn.Linear])
def test_layers_can_be_called(layer: Any) -> None:
    with pytest.raises(TypeError, match="layer 1 must be a Module or a function, got"):
        nn.Sequential(F.relu, layer)


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [(initializers.lecun_normal, 1 / 50), (initializers.he_normal, 2 / 50)],
)
def test_initializers_have_the_variance_of_their_paper(
    initializer: Callable[..., Any], variance: float
) -> None:
    draws = initializer((400, 5, 10), dtype="float64")
    assert draws.shape == (400, 5, 10)
    # the variance of 20,000 draws has a relative deviation of 1 %
    assert draws.var() == pytest.approx(variance, rel=0.04)
    assert abs(draws.mean()) < 4 * math.sqrt(variance / 20_000)
    with pytest.raises(ValueError, match=r"a weight has the shape \(out, in, ...\), got \(3,\)"):
        initializer((3,))


@pytest.mark.parametrize("initializer", [initializers.lecun_normal, initializers.he_normal])
def test_initializers_are_the_same_on_every_device(initializer: Callable[..., Any]) -> None:
    draws = []
    for name in DEVICES:
        random.seed(5)
        array = initializer((3, 4), device=name)
        assert tn.as_variable(array).device is tn.get_device(name)
        draws.append(tn.to_host(array))
    assert (draws[0] == draws[1]).all() and (draws[0] == draws[2]).all()


# --- optimizers ----------------------------------------------------------------------------------


def adam_reference(p: Any, grads: list[Any], lr: float, b1: float, b2: float, eps: float) -> Any:
    """Algorithm 1 of Kingma and Ba (2015), line by line, in float64."""
    m, v = numpy.zeros_like(p), numpy.zeros_like(p)
    for t, g in enumerate(grads, start=1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        p = p - lr * (m / (1 - b1**t)) / (numpy.sqrt(v / (1 - b2**t)) + eps)
    return p


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-5)])
def test_adam_is_the_papers_algorithm(
    shape: tuple[int, ...], dtype: str, rtol: float, device: tn.Device
) -> None:
    draw = numpy.random.default_rng(1)
    start, grads = draw.normal(size=shape), [draw.normal(size=shape) for _ in range(7)]
    p = parameter(start, dtype)
    optimizer = nn.Adam([p], lr=0.05, betas=(0.8, 0.95), eps=1e-3)
    for g in grads:
        set_grad(p, g)
        optimizer.update()
    expected = adam_reference(start, grads, 0.05, 0.8, 0.95, 1e-3)
    numpy.testing.assert_allclose(host(p), expected, rtol=rtol)
    assert host(p).dtype == dtype and p.device is device and p.shape == shape


def test_adams_defaults_are_the_papers() -> None:
    start, grads = numpy.float64([1.0, -2.0]), [numpy.float64([0.3, 5.0])] * 3
    p = parameter(start, "float64")
    optimizer = nn.Adam([p])
    for g in grads:
        set_grad(p, g)
        optimizer.update()
    expected = adam_reference(start, grads, 0.001, 0.9, 0.999, 1e-8)
    numpy.testing.assert_allclose(p.array, expected, rtol=1e-14)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_sgd_is_the_formula(shape: tuple[int, ...], device: tn.Device) -> None:
    p = parameter(numpy.full(shape, 2.0))
    optimizer = nn.SGD([p], lr=0.5)
    set_grad(p, numpy.full(shape, 3.0))
    optimizer.update()
    numpy.testing.assert_array_equal(host(p), numpy.full(shape, 0.5))
    optimizer.lr = 0.25
    optimizer.update()
    numpy.testing.assert_array_equal(host(p), numpy.full(shape, -0.25))
    assert host(p).dtype == numpy.float32 and p.device is device


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam])
def test_numpy_numbers_do_not_change_the_dtype(make: Any) -> None:
    p = parameter([1.0])
    optimizer = make([p], lr=numpy.float64(0.1))
    set_grad(p, [1.0])
    optimizer.update()
    assert p.dtype == numpy.float32


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam])
def test_an_update_leaves_the_old_array_to_the_graph(make: Any) -> None:
    p = parameter([3.0])
    old = p.array
    y = F.sum(p * p)
    set_grad(p, [1.0])
    make([p], lr=1.0).update()
    assert p.array is not old
    numpy.testing.assert_array_equal(old, [3.0])
    p.cleargrad()
    y.backward()
    numpy.testing.assert_array_equal(p.grad, [6.0])


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam])
def test_an_update_is_no_part_of_a_graph(make: Any) -> None:
    p = parameter([3.0])
    (p * p).backward(enable_double_backprop=True)
    make([p], lr=1.0).update()
    assert p.creator is None


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam])
def test_a_missing_gradient_is_named_and_nothing_changes(make: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 3), F.relu, nn.Linear(3, 1))
    optimizer = make(model, lr=0.1)
    before = model.state_dict()
    with pytest.raises(GraphError, match=r"layers.0.weight \(shape \(3, 2\), float32, on numpy\)"):
        optimizer.update()
    F.sum(model(tn.asarray([[1.0, 2.0]], requires_grad=False))).backward()
    last = model.parameters()[-1]
    last.cleargrad()
    with pytest.raises(
        GraphError, match=r"update: parameter layers.2.bias .* has no gradient: "
    ) as e:
        optimizer.update()
    for cure in ("cleargrads()", "loss.backward()", "allow_missing=True"):
        assert cure in str(e.value)
    for name, array in model.state_dict().items():
        numpy.testing.assert_array_equal(array, before[name])
    set_grad(last, [1.0])
    optimizer.update()
    assert all((model.state_dict()[name] != before[name]).any() for name in ("layers.2.bias",))


def test_parameters_of_a_list_go_by_position_and_own_name() -> None:
    p = nn.Parameter(numpy.ones(2), name="slope")
    with pytest.raises(GraphError, match=r"parameter 0 'slope' \(shape \(2,\), float64"):
        nn.SGD([p]).update()


def test_missing_gradients_may_be_allowed() -> None:
    p, q = parameter([1.0]), parameter([1.0])
    optimizer = nn.Adam([p, q], lr=0.1, allow_missing=True)
    with pytest.raises(GraphError, match=r"parameter 0 .* has no gradient, nor has 1 other:"):
        optimizer.update()
    for _ in range(3):
        set_grad(p, [1.0])
        optimizer.update()
    numpy.testing.assert_array_equal(q.array, [1.0])
    set_grad(q, [-7.0])
    optimizer.update()
    # the first step of a parameter is lr, against the sign of the gradient, whenever it comes
    numpy.testing.assert_allclose(q.array, [1.1], rtol=1e-6)


def test_a_parameter_whose_array_was_replaced_by_another_kind() -> None:
    p, q = parameter([1.0]), parameter([1.0])
    optimizer = nn.Adam([q, p])
    set_grad(p, [1.0])
    set_grad(q, [1.0])
    p.array = numpy.float32([[1.0, 2.0]])
    with pytest.raises(GraphError, match=r"parameter 1 .* has a gradient of shape \(1,\)"):
        optimizer.update()
    set_grad(p, [[1.0, 1.0]])
    with pytest.raises(GraphError, match=r"parameter 1 .* has a m of shape \(1,\), float32"):
        optimizer.update()
    numpy.testing.assert_array_equal(q.array, [1.0])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ([], ValueError, "parameters is empty"),
        ([3], TypeError, "parameter 0 must be a Parameter, got int 3"),
        ([tn.Variable()], TypeError, "parameter 0 must be a Parameter, got an empty Variable"),
        ([tn.asarray([1])], TypeError, "requires no gradient: only leaves"),
        ([parameter([1.0]) * 2], TypeError, "was computed by a function"),
        (parameter([1.0]), TypeError, r"must be a list: write \[parameter\]"),
        (nn.Sequential(F.relu), ValueError, "parameters is empty.* nn.Parameter"),
    ],
)
def test_optimizers_take_trainable_leaves(
    parameters: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"SGD: .*{message}"):
        nn.SGD(parameters)


def test_optimizers_take_iterators_variables_and_each_parameter_once() -> None:
    x = tn.asarray([1.0])
    optimizer = nn.SGD(iter([x, x]), lr=0.5)
    x.grad = numpy.float32([1.0])
    optimizer.update()
    numpy.testing.assert_array_equal(x.array, [0.5])
    optimizer.cleargrads()
    assert x.grad is None
    assert list(nn.Adam([x, x]).state_dict()) == ["0/count", "0/m", "0/v"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -0.1}, "lr must be at least 0"),
        ({"lr": math.nan}, "lr must be at least 0"),
        ({"lr": math.inf}, "lr must be at least 0"),
        ({"betas": (1.0, 0.9)}, r"betas\[0\] must be at least 0 and less than 1, got 1.0"),
        ({"betas": (0.9, -0.1)}, r"betas\[1\] must be"),
        ({"eps": -1e-8}, "eps must be at least 0"),
    ],
)
def test_numbers_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"Adam: {message}"):
        nn.Adam([parameter([1.0])], **options)


def test_the_learning_rate_must_be_a_number_later_too() -> None:
    optimizer = nn.SGD([parameter([1.0])], lr=0.5)
    with pytest.raises(TypeError, match="SGD: lr must be a number, got str 'fast'"):
        optimizer.lr = "fast"  # type: ignore[assignment]
    assert optimizer.lr == 0.5


def test_a_frozen_parameter_is_taken_or_left_out() -> None:
    model = nn.Linear(2, 1)
    model.bias = nn.Parameter(numpy.zeros(1), requires_grad=False)
    assert list(nn.SGD(model).state_dict()) == ["weight/count", "bias/count"]
    optimizer = nn.SGD([p for p in model.parameters() if p.requires_grad])
    assert list(optimizer.state_dict()) == ["0/count"]


def test_optimizers_are_readable() -> None:
    p, q = parameter([1.0]), parameter([2.0])
    assert repr(nn.SGD([p])) == "SGD(1 parameter, lr=0.01, momentum=0.0)"
    assert repr(nn.Adam([p, q])) == "Adam(2 parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-08)"
    decayed = nn.AdamW([p], lr=0.5, weight_decay=0.25)
    assert repr(decayed) == (
        "AdamW(1 parameter, lr=0.5, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.25)"
    )
    decayed.lr = 0.125
    assert "lr=0.125" in repr(decayed)

    class Mine(nn.Optimizer):
        pass

    assert repr(Mine([p], lr=1.0)) == "Mine(1 parameter, lr=1.0)"


def test_an_optimizer_of_ones_own() -> None:
    class Lazy(nn.Optimizer):
        pass

    p = parameter([1.0])
    set_grad(p, [1.0])
    with pytest.raises(NotImplementedError, match="Lazy has no update_one: define it"):
        Lazy([p], lr=1.0).update()


def test_a_step_that_fails_changes_nothing() -> None:
    class Fails(nn.SGD):
        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            if array.shape == (2,):
                raise RuntimeError("on the second")
            return super().update_one(array, grad, moments, count)

    p, q = parameter([1.0]), parameter([1.0, 2.0])
    set_grad(p, [1.0])
    set_grad(q, [1.0, 1.0])
    with pytest.raises(RuntimeError, match="on the second"):
        Fails([p, q], lr=1.0).update()
    numpy.testing.assert_array_equal(p.array, [1.0])


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam])
def test_an_optimizer_goes_on_from_its_state(make: Any, device: tn.Device) -> None:
    grads = numpy.random.default_rng(2).normal(size=(6, 3))
    p, q = parameter([1.0, 2.0, 3.0]), parameter([1.0, 2.0, 3.0])
    whole, first, second = make([p], lr=0.1), make([q], lr=0.1), make([q], lr=0.1)
    for g in grads:
        set_grad(p, g)
        whole.update()
    for g in grads[:3]:
        set_grad(q, g)
        first.update()
    state = first.state_dict()
    second.load_state_dict(state)
    kept = {name: array.copy() for name, array in state.items()}
    for array in state.values():
        array[...] = 0  # the state was copied, both on the way out and on the way in
    for name, array in first.state_dict().items():
        numpy.testing.assert_array_equal(array, kept[name])
    for g in grads[3:]:
        set_grad(q, g)
        second.update()
    numpy.testing.assert_array_equal(host(p), host(q))


def test_an_optimizers_state_that_does_not_fit() -> None:
    p = parameter([1.0])
    optimizer = nn.Adam([p])
    good = optimizer.state_dict()
    assert list(good) == ["0/count", "0/m", "0/v"]
    for name, array, message in (
        ("0/m", numpy.zeros(2, dtype="float32"), r"0/m is float32 of shape \(1,\) here"),
        ("0/count", numpy.asarray(-1), "0/count is -1, expected 0 or more"),
        ("1/m", numpy.zeros(1), "the state has 1/m, unknown here"),
    ):
        with pytest.raises(StateError, match=f"Adam.load_state_dict: {message}"):
            optimizer.load_state_dict({**good, name: array})
    set_grad(p, [1.0])
    optimizer.update()
    numpy.testing.assert_allclose(p.array, [0.999], rtol=1e-6)


def test_the_moments_follow_a_model_that_moves() -> None:
    start, grads = [1.0, -1.0], [numpy.float64([0.5, 2.0]), numpy.float64([1.0, -1.0])]
    p = parameter(start, "float64")

    class Model(nn.Module):
        def __init__(self) -> None:
            self.p = p

    model = Model()
    optimizer = nn.Adam(model, lr=0.1)
    for g, target in zip(grads, ("strict:device1", "numpy"), strict=True):
        set_grad(p, g)
        optimizer.update()
        model.to_device(target)
    expected = adam_reference(numpy.float64(start), grads, 0.1, 0.9, 0.999, 1e-8)
    numpy.testing.assert_allclose(p.array, expected, rtol=1e-12)


class Overlay:
    """A second backend over NumPy's memory, so that an array alone does not tell its device."""

    name = "overlay"
    capabilities = frozenset({"cpu"})

    def __getattr__(self, name: str) -> Any:
        return getattr(tn.get_device("numpy").backend, name)


def test_a_parameter_stays_on_its_device_where_two_share_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.backends, "overlay", Overlay())
    monkeypatch.setitem(registry.devices, "overlay", None)  # so that it is taken out again
    del registry.devices["overlay"]
    overlay = tn.get_device("overlay")
    model = nn.Linear(2, 1)
    optimizer = nn.Adam(model)
    assert model.to_device("overlay").weight.device is overlay
    x = tn.asarray([[1.0, 2.0]], device=overlay, requires_grad=False)
    F.sum(model(x)).backward()
    optimizer.update()
    model.load_state_dict(model.state_dict())
    assert {p.device for p in model.parameters()} == {overlay}
    optimizer.cleargrads()
    F.sum(model(x)).backward()


# --- training ------------------------------------------------------------------------------------


def spiral() -> tuple[Any, Any]:
    draw = numpy.random.default_rng(3)
    labels = numpy.arange(64) % 2
    angle = numpy.linspace(0, 6, 64)
    points = numpy.stack([numpy.cos(angle + 3.1416 * labels), numpy.sin(angle + 3.1416 * labels)])
    images = (points * (0.3 + angle / 6)).T + 0.01 * draw.normal(size=(64, 2))
    return images.astype("float32"), labels


@pytest.mark.parametrize(("make", "lr"), [(nn.SGD, 0.5), (nn.Adam, 0.02)])
def test_a_model_learns(make: Any, lr: float, device: tn.Device) -> None:
    images, labels = spiral()
    x = tn.asarray(images, device=device, requires_grad=False)
    t = tn.asarray(labels, device=device)
    model = nn.Sequential(nn.Linear(2, 32), F.tanh, nn.Linear(32, 2))
    optimizer = make(model, lr=lr)
    losses = []
    for _ in range(200):
        optimizer.cleargrads()
        loss = F.softmax_cross_entropy(model(x), t)
        loss.backward()
        optimizer.update()
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]
    assert x.grad is None


def test_no_gradient_is_computed_for_input_data(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = F.Linear.backward

    def spy(self: Any, target_input_indexes: Any, grad_outputs: Any) -> Any:
        asked.append(target_input_indexes)
        return original(self, target_input_indexes, grad_outputs)

    monkeypatch.setattr(F.Linear, "backward", spy)
    model = nn.Sequential(nn.Linear(2, 3), F.relu, nn.Linear(3, 2))
    images, labels = spiral()
    x = tn.asarray(images, requires_grad=False)
    F.softmax_cross_entropy(model(x), tn.asarray(labels)).backward()
    assert asked == [(0, 1, 2), (1, 2)]


@pytest.mark.slow
def test_a_thousand_steps_leave_nothing_behind() -> None:
    """With the garbage collector off: reference counting alone frees every graph."""
    images, labels = spiral()
    model = nn.Sequential(nn.Linear(2, 16), F.relu, nn.Linear(16, 2))
    optimizer = nn.Adam(model, lr=0.01)

    def train(steps: int) -> None:
        for _ in range(steps):
            x = tn.asarray(images, requires_grad=False)
            optimizer.cleargrads()
            loss = F.softmax_cross_entropy(model(x), tn.asarray(labels))
            loss.backward()
            optimizer.update()

    def alive(kind: type) -> int:
        return sum(issubclass(type(thing), kind) for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    train(1000)  # Python keeps some freed tuples for later use: these lists are full now
    tracemalloc.start()
    try:
        nodes, variables = alive(tn.FunctionNode), alive(tn.Variable)
        before = tracemalloc.get_traced_memory()[0]
        train(1000)
        growth = tracemalloc.get_traced_memory()[0] - before
        left = alive(tn.FunctionNode) - nodes, alive(tn.Variable) - variables
    finally:
        tracemalloc.stop()
        gc.enable()
    assert left == (0, 0)
    assert growth < 50_000, f"{growth} bytes"  # 50 bytes a step: less than any object


# --- files ---------------------------------------------------------------------------------------


def test_a_model_is_saved_and_loaded(tmp_path: Path, device: tn.Device) -> None:
    model, twin = (nn.Sequential(nn.Linear(2, 3), F.relu, nn.Linear(3, 1)) for _ in range(2))
    path = tmp_path / "a model"  # the name is taken as it is
    nn.save(path, model)
    assert [p.name for p in tmp_path.iterdir()] == ["a model"]
    twin.load_state_dict(nn.load(path))
    for own, other in zip(model.parameters(), twin.parameters(), strict=True):
        numpy.testing.assert_array_equal(host(own), host(other))
    with numpy.load(path, allow_pickle=False) as archive:
        assert archive.files == list(model.state_dict())


def test_any_arrays_are_saved_and_equal_states_give_equal_files(tmp_path: Path) -> None:
    state = {
        "a/b": numpy.arange(6).reshape(2, 3)[:, ::-1],
        "scalar": numpy.asarray(2.5),
        "empty": numpy.zeros((0, 3)),
        "text": numpy.asarray("digits"),
        "strict": tn.asarray([1.0], device="strict:device1").array,
    }
    nn.save(tmp_path / "one", state)
    nn.save(str(tmp_path / "two"), dict(state))
    nn.save(tmp_path / "none", {})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    loaded = nn.load(tmp_path / "one")
    assert list(loaded) == list(state)
    for name in ("a/b", "scalar", "empty", "text"):
        numpy.testing.assert_array_equal(loaded[name], state[name])
        assert loaded[name].dtype == state[name].dtype
    assert nn.load(tmp_path / "none") == {}
    assert list(nn.load(tmp_path / "one", part="a")) == ["b"]


def test_prefixes() -> None:
    state: Any = {"model/w": 1, "model/b": 2, "models/w": 3}
    assert take_prefix("model", state) == {"w": 1, "b": 2}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (numpy.asarray([None, {}]), "a is ndarray .* Python objects cannot be saved"),
        ([1.0], "a must be an array, got list"),
        (tn.asarray([1.0]), "a must be an array, got Variable"),
    ],
)
def test_what_cannot_be_saved_leaves_no_file(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=f"save: {message}"):
        nn.save(tmp_path / "x", {"a": value})
    assert not list(tmp_path.iterdir())


class Trap:
    """Unpickling it would leave a trace."""

    sprung: ClassVar[list[str]] = []

    def __reduce__(self) -> Any:
        return self.sprung.append, ("sprung",)


def test_a_file_with_pickled_objects_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "trap.npz"
    numpy.savez(path, a=numpy.asarray([Trap()], dtype=object))
    with pytest.raises(StateError, match=r"trap.npz is not a file .* Object arrays"):
        nn.load(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(StateError, match="it is no zip archive"):
        nn.load(path)
    assert Trap.sprung == []


def zip_of(name: str, content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, content)
    return target.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        npz_bytes({"a": numpy.arange(100)})[:300],
        zip_of("a.npy", b"nonsense"),
        zip_of("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': 3}    \n"),
        zip_of("readme.txt", b"no array"),
        npz_bytes({"a": numpy.arange(100)}).replace(b"(100,)", b"(101,)"),
    ],
    ids=["empty", "text", "cut", "member", "header", "other", "crc"],
)
def test_a_file_that_is_damaged_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.npz"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"load: .*broken.npz is not a file that tinynode"):
        nn.load(path)


def test_random_damage_is_found_or_harmless(tmp_path: Path) -> None:
    state = {"a": numpy.arange(20.0), "b": numpy.ones((2, 2), dtype="float32")}
    whole = npz_bytes(state)
    draw = python_random.Random(0)
    path = tmp_path / "x.npz"
    refused = 0
    for _ in range(400):
        broken = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        path.write_bytes(broken)
        try:
            loaded = nn.load(path)
        except StateError:
            refused += 1
            continue
        for name in set(loaded) & set(state):
            numpy.testing.assert_array_equal(loaded[name], state[name])
    assert refused > 200


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match=r"none.x"):
        nn.save(tmp_path / "none" / "none.x", {})
    with pytest.raises(IsADirectoryError):
        nn.load(tmp_path)
    with pytest.raises(OSError, match="not a file that can be replaced"):
        nn.save(tmp_path, {})


def test_a_failure_while_saving_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npz"
    nn.save(path, {"a": numpy.zeros(3)})
    old = path.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def full(*arguments: Any) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space left"):
                nn.save(path, {"a": numpy.ones(3)})
        assert path.read_bytes() == old
        assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.skipif(os.name != "posix", reason="links, modes and pipes of POSIX")
def test_links_and_modes_are_kept_and_special_files_are_refused(tmp_path: Path) -> None:
    path, link, pipe = tmp_path / "x.npz", tmp_path / "link.npz", tmp_path / "pipe"
    nn.save(path, {"a": numpy.zeros(3)})
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o600)
    link.symlink_to(path)
    nn.save(link, {"a": numpy.ones(3)})
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    numpy.testing.assert_array_equal(nn.load(path)["a"], numpy.ones(3))
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a file that can be replaced"):
        nn.save(pipe, {})
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# --- data ----------------------------------------------------------------------------------------


def test_the_digits_are_complete_and_split_by_their_digests() -> None:
    data = nn.datasets.load_digits()
    assert data.train_images.shape == (1437, 64) and data.held_out_images.shape == (360, 64)
    assert data.train_labels.shape == (1437,) and data.held_out_labels.shape == (360,)
    images = numpy.concatenate([data.train_images, data.held_out_images])
    labels = numpy.concatenate([data.train_labels, data.held_out_labels])
    assert images.dtype == numpy.float32 and labels.dtype == numpy.int64
    assert images.min() == 0.0 and images.max() == 1.0
    # the numbers of each digit that the data's own description gives
    assert numpy.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]

    def digests(images: Any) -> set[str]:
        pixels = (16 * images).astype(numpy.uint8)
        return {hashlib.sha256(image.tobytes()).hexdigest() for image in pixels}

    assert max(digests(data.held_out_images)) < min(digests(data.train_images))


def test_the_digits_have_the_dtype_of_the_settings() -> None:
    with tn.using_config(dtype="float64"):
        assert nn.datasets.load_digits().train_images.dtype == numpy.float64


def test_the_digits_are_what_the_tool_makes() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn has the data that the file is made from")
    made = runpy.run_path(str(ROOT / "tools" / "make_digits.py"))["content"]()
    path = DATASETS / "digits.npz"
    assert path.read_bytes() == made


def test_the_data_say_where_they_come_from() -> None:
    text = (DATASETS / "digits.md").read_text(encoding="utf-8")
    for needed in ("Alpaydin", "Kaynak", "1998", "UCI", "CC BY 4.0", "tools/make_digits.py"):
        assert needed in text


def test_the_public_names_of_nn() -> None:
    assert nn.__all__ == [
        "Adagrad",
        "Adam",
        "AdamW",
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d",
        "ArrayDataset",
        "AvgPool1d",
        "AvgPool2d",
        "AvgPool3d",
        "BatchNorm",
        "Bilinear",
        "Buffer",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "DataLoader",
        "Dataset",
        "DecoderCache",
        "Dropout",
        "Embedding",
        "ExponentialMovingAverage",
        "Flatten",
        "GRU",
        "GRUCell",
        "GroupNorm",
        "Identity",
        "ImageFolder",
        "InstanceNorm",
        "KeyValueCache",
        "LBFGS",
        "LSTM",
        "LSTMCell",
        "LayerNorm",
        "Linear",
        "Lion",
        "LossScaler",
        "MaxPool1d",
        "MaxPool2d",
        "MaxPool3d",
        "Module",
        "ModuleDict",
        "ModuleList",
        "MultiHeadAttention",
        "NAdam",
        "Optimizer",
        "PReLU",
        "Parameter",
        "PositionalEncoding",
        "RMSNorm",
        "RMSprop",
        "RNN",
        "RNNCell",
        "RotaryEncoding",
        "SGD",
        "Sequential",
        "SpectralNorm",
        "Subset",
        "TableDataset",
        "Trainer",
        "TransformerBlock",
        "TransformerDecoderBlock",
        "Upsample",
        "WeightNorm",
        "clip_gradients",
        "clip_gradients_by_value",
        "datasets",
        "functional_call",
        "initializers",
        "load",
        "load_checkpoint",
        "load_torch_weights",
        "metrics",
        "save",
        "save_checkpoint",
        "save_torch_weights",
        "schedules",
        "sinusoidal_positions",
        "split_dataset",
        "transforms",
    ]
    assert all(getattr(nn, name).__doc__ for name in nn.__all__)
