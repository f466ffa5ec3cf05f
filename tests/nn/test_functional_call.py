"""A model as a function: other values in place of the parameters, and the model unchanged."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import DeviceMixError, StateError, TraceError, VmapError

F = tn.functions
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("torch", "jax")]
DEVICES = ["numpy", "fast", "strict", *OTHERS]
RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 3)).astype(np.float32)
T = RNG.standard_normal((6, 2)).astype(np.float32)


class Tied(nn.Module):
    """One weight in two places, a tuple of layers, and a function that holds a parameter."""

    def __init__(self, **options: Any) -> None:
        self.first = nn.Linear(3, 3, **options)
        self.pair = (nn.Linear(3, 3, **options), nn.Linear(3, 2, **options))
        self.pair[0].weight = self.first.weight
        scale = nn.Parameter(self.first.weight.array[:1, 0] * 0 + 2, name="scale")
        self.scale = scale
        self.function = lambda x: x * scale

    def forward(self, x: Any) -> Any:
        y = F.tanh(self.pair[0](F.tanh(self.first(x))))
        return self.function(self.pair[1](y))


def make(device: str = "numpy", kind: Callable[..., Any] = Tied) -> Any:
    if device in ("torch", "jax"):
        pytest.importorskip(device)
    tn.seed(0)
    with tn.using_device(device):
        return kind()


def other_values(model: Any, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        name: tn.asarray(
            rng.standard_normal(p.shape).astype(np.float32), device=p.device, requires_grad=True
        )
        for name, p in model.named_parameters()
    }


def state_of(model: Any) -> list[tuple[Any, ...]]:
    """What a call must leave as it was."""
    variables = [*model.parameters(), *[b for _, b in model.named_buffers()]]
    return [
        (
            *(id(v), id(v.raw), id(v.node), id(v.node.get_variable()), id(v.grad_var)),
            *(v.device, v.requires_grad),
        )
        for v in variables
    ]


def outputs_of_a_copy(model: Any, values: dict[str, Any], x: Any) -> Any:
    """The outputs and gradients of a second model that has the values as its own."""
    other = make(str(model.parameters()[0].device), type(model))
    state = {name: tn.to_host(v) for name, v in values.items()}
    other.load_state_dict({**other.state_dict(), **state})
    y = other(x)
    F.sum(y * y).backward()
    return tn.to_host(y.array), {n: tn.to_host(p.grad) for n, p in other.named_parameters()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("compiled", [False, True])
def test_outputs_and_gradients_are_those_of_a_model_with_the_values(
    device: str, compiled: bool
) -> None:
    model = make(device)
    values, x = other_values(model), tn.asarray(X, device=device, requires_grad=False)
    expected, gradients = outputs_of_a_copy(model, values, x)
    before, own = state_of(model), tn.to_host(model(x).array)

    def f(values: Any, x: Any) -> Any:
        return nn.functional_call(model, values, x)

    run = tn.compile(f) if compiled else f
    for _ in range(2):
        for v in values.values():
            v.cleargrad()
        y = run(values, x)
        F.sum(y * y).backward()
        np.testing.assert_allclose(tn.to_host(y.array), expected, rtol=1e-5, atol=1e-6)
        for name, v in values.items():
            np.testing.assert_allclose(
                tn.to_host(v.grad), gradients[name], rtol=1e-4, atol=1e-5, err_msg=name
            )
    assert state_of(model) == before
    np.testing.assert_array_equal(tn.to_host(model(x).array), own)


@pytest.mark.parametrize("compiled", [False, True])
def test_some_values_and_arrays(compiled: bool) -> None:
    """The model has its own values for the other names; their gradients reach its parameters."""
    model = make()
    weight = np.ones((2, 3), np.float32)

    def f(x: Any) -> Any:
        return nn.functional_call(model, {"pair.1.weight": weight}, x)

    y = (tn.compile(f) if compiled else f)(tn.asarray(X, requires_grad=False))
    F.sum(y).backward()
    assert model.pair[1].weight.grad is None and model.pair[1].bias.grad is not None
    hidden = F.tanh(model.pair[0](F.tanh(model.first(X))))
    expected = (F.matmul(hidden, weight.T) + model.pair[1].bias) * 2
    np.testing.assert_allclose(y.array, expected.array, rtol=1e-5)


def test_the_parameters_of_the_model_themselves() -> None:
    model = make()
    own = dict(model.named_parameters())
    before = state_of(model)
    F.sum(nn.functional_call(model, own, X)).backward()
    found = {name: p.grad for name, p in own.items()}
    model.cleargrads()
    F.sum(model(X)).backward()
    for name, p in own.items():
        np.testing.assert_allclose(found[name], p.grad)
    model.cleargrads()
    assert state_of(model) == before
    swapped = {"first.bias": model.pair[0].bias, "pair.0.bias": model.first.bias}
    model.first.bias.array = np.ones(3, np.float32)
    one, other = nn.functional_call(model, swapped, X), model(X)
    assert not np.allclose(one.array, other.array) and model.first.bias.array.sum() == 3


def test_nothing_changes_after_an_error_and_in_nested_calls() -> None:
    class Failing(Tied):
        def forward(self, x: Any) -> Any:
            if x is None:
                raise KeyError("stop")
            inner = {"scale": np.float32([3.0])}
            return super().forward(x) - nn.functional_call(plain, inner, x)

    model = plain = make()
    model = make(kind=Failing)
    before, values = state_of(model), other_values(model)
    with pytest.raises(KeyError, match="stop"):
        nn.functional_call(model, values, None)
    assert state_of(model) == before
    inner_values = {"scale": np.float32([3.0])}

    def twice(x: Any) -> Any:
        return nn.functional_call(plain, inner_values, x)

    class Around(nn.Module):
        """The same model inside of a call of its own."""

        def __init__(self) -> None:
            self.model = plain

        def forward(self, x: Any) -> Any:
            return self.model(x), twice(x), self.model(x)

    start = state_of(plain)
    first, inner, last = nn.functional_call(Around(), {"model.scale": np.float32([5.0])}, X)
    np.testing.assert_allclose(first.array, last.array)
    np.testing.assert_allclose(inner.array * 5, first.array * 3, rtol=1e-5)
    assert state_of(plain) == start


def test_parameters_are_found_inside_of_forward() -> None:
    class Penalised(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return F.add_all(*[F.sum(p * p) for p in self.parameters()])

    model = Penalised()
    values = {"layer.weight": np.full((2, 3), 2, np.float32), "layer.bias": np.zeros(2, "f4")}
    assert float(nn.functional_call(model, values, X)) == 24.0


def test_compiled_layers_inside_and_compiled_models() -> None:
    model = make(kind=lambda: nn.Sequential(tn.compile(nn.Linear(3, 4)), F.tanh, nn.Linear(4, 2)))
    values = other_values(model)
    host = {name: v.array for name, v in values.items()}
    hidden = np.tanh(X @ host["layers.0.weight"].T + host["layers.0.bias"])
    expected = hidden @ host["layers.2.weight"].T + host["layers.2.bias"]
    for one in (model, tn.compile(model)):
        one(X)
        for _ in range(2):
            y = nn.functional_call(one, values, tn.asarray(X, requires_grad=False))
            np.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-5)
            F.sum(y).backward()
            assert all(v.grad is not None for v in values.values())
            assert all(p.grad is None for p in model.parameters())


# --- transforms ----------------------------------------------------------------------------------


def loss(model: Any, values: Any, x: Any, t: Any) -> Any:
    return F.mean_squared_error(nn.functional_call(model, values, x), t)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_second_order(compiled: bool) -> None:
    """MAML: the gradient through a gradient step, against numerical differences."""
    model = nn.Sequential(nn.Linear(3, 4, dtype="float64"), F.tanh, nn.Linear(4, 2, dtype="f8"))
    x, t = X.astype(np.float64), T.astype(np.float64)

    def after_a_step(values: Any, x: Any, t: Any) -> Any:
        g = tn.gradient(lambda p: loss(model, p, x, t))(values)
        moved = {name: v - 0.5 * g[name] for name, v in values.items()}
        return loss(model, moved, x, t)

    values = dict(model.named_parameters())
    outer = tn.gradient(after_a_step)
    found = (tn.compile(outer) if compiled else outer)(values, tn.asarray(x), tn.asarray(t))
    assert list(found) == list(values)
    for name, v in values.items():
        eps, index = 1e-6, (0,) * v.ndim
        ends = []
        for sign in (1, -1):
            host = v.array.copy()
            host[index] += sign * eps
            ends.append(float(after_a_step({**values, name: host}, x, t)))
        difference = (ends[0] - ends[1]) / (2 * eps)
        assert abs(difference - float(found[name].array[index])) < 1e-8, name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("compiled", [False, True])
def test_an_ensemble_is_a_vmap_over_stacked_parameters(device: str, compiled: bool) -> None:
    model = make(device)
    members = [other_values(model, seed) for seed in range(4)]
    stacked = {
        name: tn.asarray(np.stack([tn.to_host(m[name]) for m in members]), device=device)
        for name in members[0]
    }
    x, t = (tn.asarray(a, device=device, requires_grad=False) for a in (X, T))
    before = state_of(model)
    outputs = tn.vmap(lambda p, x: nn.functional_call(model, p, x), in_axes=(0, None))
    slopes = tn.vmap(tn.gradient(lambda p, x, t: loss(model, p, x, t)), in_axes=(0, None, None))
    if compiled:
        outputs, slopes = tn.compile(outputs), tn.compile(slopes)
    for _ in range(2):
        y, g = outputs(stacked, x), slopes(stacked, x, t)
        for i, member in enumerate(members):
            one = nn.functional_call(model, member, x)
            np.testing.assert_allclose(
                tn.to_host(y.array)[i], tn.to_host(one.array), rtol=1e-4, atol=1e-5
            )
            of_one = tn.gradient(lambda p: loss(model, p, x, t))(member)
            for name, gx in of_one.items():
                np.testing.assert_allclose(
                    tn.to_host(g[name].array)[i], tn.to_host(gx.array), rtol=1e-3, atol=1e-4
                )
    assert state_of(model) == before
    F.sum(outputs(stacked, x)).backward()
    assert all(v.grad is not None and v.grad.shape == v.shape for v in stacked.values())


def test_per_example_gradients_and_jacobians_of_parameters() -> None:
    model = make()
    values = dict(model.named_parameters())
    each = tn.vmap(tn.gradient(lambda p, x, t: loss(model, p, x, t)), in_axes=(None, 0, 0))
    found = each(values, X[:, None], T[:, None])
    whole = tn.gradient(lambda p: loss(model, p, X, T))(values)
    for name, gx in found.items():
        np.testing.assert_allclose(gx.array.mean(0), whole[name].array, rtol=1e-4, atol=1e-6)
    J = tn.jacfwd(lambda p: F.sum(nn.functional_call(model, p, X), axis=0))(values)
    K = tn.jacrev(lambda p: F.sum(nn.functional_call(model, p, X), axis=0))(values)
    for name in values:
        np.testing.assert_allclose(J[name].array, K[name].array, rtol=1e-4, atol=1e-5)


def test_a_vmap_inside_of_the_model_and_around_it() -> None:
    class PerExample(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return tn.vmap(lambda x: F.tanh(self.layer(x[None]))[0])(x)

    model = PerExample()
    stacked = {n: np.stack([p.array, 2 * p.array]) for n, p in model.named_parameters()}
    y = tn.vmap(lambda p: nn.functional_call(model, p, X))(stacked)
    np.testing.assert_allclose(y.array[0], model(X).array, rtol=1e-5)

    def inner(p: Any) -> Any:
        return nn.functional_call(model, {"layer.bias": np.zeros(2, "f4")}, X)

    class Around(nn.Module):
        def __init__(self) -> None:
            self.model = model

        def forward(self) -> Any:
            return inner(None) + self.model(X)

    z = tn.vmap(lambda p: nn.functional_call(Around(), {"model.layer.bias": p}))(
        stacked["layer.bias"]
    )
    np.testing.assert_allclose(z.array[0] - inner(None).array, model(X).array, rtol=1e-4)


@pytest.mark.parametrize("inside", [False, True])
def test_checkpoint_inside_and_outside(inside: bool) -> None:
    class Recomputed(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return tn.checkpoint(self.layer, x) if inside else self.layer(x)

    model = Recomputed()
    values = other_values(model)
    x = tn.asarray(X)
    if inside:
        y = nn.functional_call(model, values, x)
    else:
        y = tn.checkpoint(lambda x: nn.functional_call(model, values, x), x)
    F.sum(y * y).backward()
    expected = tn.gradient(lambda p: F.sum(F.linear(X, p["layer.weight"], p["layer.bias"]) ** 2))(
        values
    )
    for name, v in values.items():
        np.testing.assert_allclose(v.grad, expected[name].array, rtol=1e-4)
    assert all(p.grad is None for p in model.parameters())


def test_a_step_compiled_with_values_from_outside() -> None:
    """The values are captured Variables of the compiled function, and stay up to date."""
    model = make()
    values = other_values(model)
    f = tn.compile(lambda x: nn.functional_call(model, values, x))
    x = tn.asarray(X, requires_grad=False)
    f(x)
    values["scale"].array = values["scale"].array * 2
    np.testing.assert_allclose(
        f(x).array, nn.functional_call(model, values, x).array, rtol=1e-5, atol=1e-6
    )
    F.sum(f(x)).backward()
    assert all(v.grad is not None for v in values.values())


# --- buffers -------------------------------------------------------------------------------------


def normed() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 2))


def buffers_of(model: Any) -> dict[str, Any]:
    return {
        name: tn.asarray(tn.to_host(b).copy(), device=b.device, requires_grad=False)
        for name, b in model.named_buffers()
    }


def test_writes_to_given_buffers_go_to_the_given_variables() -> None:
    model, other = make(kind=normed), make(kind=normed)
    given, before = buffers_of(model), state_of(model)
    y = nn.functional_call(model, given, X)
    np.testing.assert_allclose(y.array, other(X).array)
    assert state_of(model) == before
    for name, b in other.named_buffers():
        np.testing.assert_allclose(given[name].array, b.array)
        assert not np.allclose(given[name].array, dict(model.named_buffers())[name].array)
    assert all(not v.requires_grad for v in given.values())
    # arrays, Variables with a gradient, and buffers that are not given: the writes are lost
    hosts = {name: v.array.copy() for name, v in given.items()}
    leaves = {name: tn.asarray(v.array) for name, v in given.items()}
    for values in (hosts, leaves, {}):
        nn.functional_call(model, values, X)
        assert state_of(model) == before
    for name, v in given.items():
        np.testing.assert_array_equal(hosts[name], v.array)
        np.testing.assert_array_equal(leaves[name].array, v.array)


def test_an_error_writes_to_no_given_buffer() -> None:
    model = nn.Sequential(nn.BatchNorm(3), nn.Linear(4, 2))
    given = buffers_of(model)
    with pytest.raises(ValueError, match="Linear"):
        nn.functional_call(model, given, X)
    for name, b in model.named_buffers():
        np.testing.assert_array_equal(given[name].array, b.array)


def test_given_buffers_count_in_evaluation() -> None:
    model = make(kind=normed).eval()
    given = {"layers.1.running_mean": np.ones(4, np.float32)}
    y = nn.functional_call(model, given, X)
    model.layers[1].running_mean.array = np.ones(4, np.float32)
    np.testing.assert_allclose(y.array, model(X).array)


def test_the_whole_state_is_an_argument() -> None:
    """The gradient for a buffer is zeros."""
    model = make(kind=normed)
    state = model.state_dict()
    g = tn.gradient(lambda s: F.sum(nn.functional_call(model, s, X) ** 2))(state)
    assert list(g) == list(state)
    assert not g["layers.1.running_mean"].array.any() and g["layers.0.weight"].array.any()


@pytest.mark.parametrize("compiled", [False, True])
def test_an_ensemble_with_running_statistics(compiled: bool) -> None:
    """Each member has statistics of its own: f writes to them, and returns them."""
    model = make(kind=normed)
    before = state_of(model)
    stacked = {n: np.stack([a, 1 + a]) for n, a in model.state_dict().items()}
    names = [name for name, _ in model.named_buffers()]

    def step(state: Any, x: Any) -> Any:
        buffers = {name: F.identity(state[name]) for name in names}
        y = nn.functional_call(model, {**state, **buffers}, x)
        return y, buffers

    f = tn.vmap(step, in_axes=(0, None))
    y, buffers = (tn.compile(f) if compiled else f)(stacked, tn.asarray(X, requires_grad=False))
    assert state_of(model) == before
    for i in range(2):
        other = make(kind=normed)
        other.load_state_dict({name: a[i] for name, a in stacked.items()})
        np.testing.assert_allclose(y.array[i], other(X).array, rtol=1e-4, atol=1e-5)
        for name, b in other.named_buffers():
            np.testing.assert_allclose(buffers[name].array[i], b.array, rtol=1e-4, atol=1e-5)
    # without buffers among the values, the writes are lost, and the model is unchanged
    parameters = {n: stacked[n] for n, _ in model.named_parameters()}
    tn.vmap(lambda p: nn.functional_call(model, p, X))(parameters)
    assert state_of(model) == before


def test_a_vmapped_write_to_a_shared_buffer_from_outside_is_refused() -> None:
    model = make(kind=normed)
    given, before = buffers_of(model), state_of(model)
    hosts = {name: v.array.copy() for name, v in given.items()}
    with pytest.raises(VmapError, match="wrote a value of an example to a Variable"):
        tn.vmap(lambda x: nn.functional_call(model, given, x))(np.stack([X, X + 1]))
    assert state_of(model) == before
    for name, v in given.items():
        np.testing.assert_array_equal(v.array, hosts[name])
        assert v.device is tn.get_device("numpy")


def test_buffers_in_a_compiled_function() -> None:
    model = make(kind=normed)
    other = make(kind=normed)
    given, before = buffers_of(model), state_of(model)
    f = tn.compile(lambda x: nn.functional_call(model, given, x))
    x = tn.asarray(X, requires_grad=False)
    for _ in range(3):
        np.testing.assert_allclose(f(x).array, other(x).array, rtol=1e-5, atol=1e-6)
    for name, b in other.named_buffers():
        np.testing.assert_allclose(given[name].array, b.array, rtol=1e-5)
    assert state_of(model) == before

    def step(buffers: Any, x: Any) -> Any:
        new = {name: F.identity(b) for name, b in buffers.items()}
        return nn.functional_call(model, new, x), new

    found = buffers_of(model)
    for _ in range(3):
        _, found = tn.compile(step)(found, x)
    for name, b in other.named_buffers():
        np.testing.assert_allclose(found[name].array, b.array, rtol=1e-5)
    with pytest.raises(TraceError, match=r"was written to.*functions.identity"):
        tn.compile(lambda b, x: nn.functional_call(model, b, x))(found, x)
    assert state_of(model) == before


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"first.wieght": X}, StateError, r"no parameter or buffer 'first.wieght'. Did you mean"),
        ({3: X}, StateError, r"no parameter or buffer 3. The names begin with \['first.weight'"),
        ({"pair.0.weight": X}, StateError, "a parameter with several names has the first one"),
        ({"scale": X}, StateError, r"scale must have the shape \(1,\), got \(6, 3\)"),
        ({"scale": np.ones(1)}, StateError, r"scale must have the dtype float32, got float64"),
        ({"scale": "x"}, TypeError, r"parameters\['scale'\] must be a Variable or an array"),
        ([X], TypeError, r"must be a dict of values by name, got a list.*dict\(model.named_"),
    ],
)
def test_wrong_values_are_refused(values: Any, error: type[Exception], message: str) -> None:
    model = make()
    before = state_of(model)
    with pytest.raises(error, match=f"functional_call: .*{message}"):
        nn.functional_call(model, values, X)
    assert state_of(model) == before


def test_a_value_on_another_device_and_other_models_are_refused() -> None:
    model = make("strict")
    given = {"scale": tn.asarray(np.ones(1, np.float32), device="fast")}
    with pytest.raises(DeviceMixError, match=r"scale is on strict.* in the model, got .* fast"):
        nn.functional_call(model, given, X)
    with pytest.raises(TypeError, match="functional_call: model must be a Module, got function"):
        nn.functional_call(make, {}, X)


def test_keywords_reach_the_model() -> None:
    class Named(nn.Module):
        def forward(self, model: Any, parameters: Any = 1) -> Any:
            return model, parameters

    assert nn.functional_call(Named(), {}, 2, parameters=3) == (2, 3)
    assert nn.functional_call(Named(), {}, model=4) == (4, 1)


def test_threads_take_turns() -> None:
    model = make()
    values = [other_values(model, seed) for seed in range(4)]
    expected = [nn.functional_call(model, v, X).array for v in values]
    wrong = []

    def work(i: int) -> None:
        for _ in range(30):
            y = nn.functional_call(model, values[i], X)
            if not np.array_equal(y.array, expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_cycle_keeps_the_values() -> None:
    model = make()
    values = other_values(model)
    nn.functional_call(model, values, X)
    gc.collect()
    gc.disable()
    try:
        count = len(gc.get_objects())
        for _ in range(20):
            nn.functional_call(model, other_values(model), X)
        assert len(gc.get_objects()) - count < 100
    finally:
        gc.enable()
