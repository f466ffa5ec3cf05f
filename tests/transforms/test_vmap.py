"""vmap as users meet it: arguments, results, errors, closures, writes, hooks, nesting, nets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.devices import fallback_uses, hidden_axes
from tinynode.errors import DeviceMixError, GraphError, TraceError, VmapError
from tinynode.functions.cross_entropies import PutLabels

F = tn.functions
DEVICES = ["numpy", "fast", "strict"]


def normal(*shape: int, seed: int = 0, device: str = "numpy") -> Any:
    host = np.random.default_rng(seed).normal(size=shape)
    return tn.asarray(host, device=device)


def host(x: Any) -> Any:
    return tn.to_host(x.array)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Any:
    yield
    assert (hidden_axes.stack, hidden_axes.trials, hidden_axes.checks) == ([], 0, 0)
    assert not tn.is_debug()


# --- values and gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_a_function_of_one_example_runs_on_all(device: str) -> None:
    x, w = normal(5, 3, device=device), normal(3, 4, seed=1, device=device)
    y = tn.vmap(lambda row: F.sum(F.tanh(row @ w)))(x)
    assert y.device is x.device
    np.testing.assert_allclose(host(y), np.tanh(host(x) @ host(w)).sum(axis=1))


@pytest.mark.parametrize("device", DEVICES)
def test_closures_get_the_sum_of_the_gradients(device: str) -> None:
    x, w = normal(5, 3, device=device), normal(3, 4, seed=1, device=device)
    y = tn.vmap(lambda row: F.sum(F.tanh(row @ w)))(x)
    F.sum(y * y).backward()
    found = host(x.grad_var), host(w.grad_var)
    x.cleargrad()
    w.cleargrad()
    y = F.sum(F.tanh(x @ w), axis=1)
    F.sum(y * y).backward()
    np.testing.assert_allclose(found[0], host(x.grad_var))
    np.testing.assert_allclose(found[1], host(w.grad_var))


@pytest.mark.parametrize("device", DEVICES)
def test_backward_inside_adds_up_over_the_examples(device: str) -> None:
    x, w = normal(4, 3, device=device), normal(3, seed=1, device=device)

    def train(row: Any) -> Any:
        y = F.sum(F.tanh(row * w))
        y.backward()
        return y

    tn.vmap(train)(x)
    expected = (host(x) * (1 - np.tanh(host(x) * host(w)) ** 2)).sum(axis=0)
    np.testing.assert_allclose(host(w.grad_var), expected)


def loss(w: Any, x: Any) -> Any:
    return F.sum(F.tanh(x @ w) ** 2)


def gradient_of_loss(w: Any, x: Any) -> Any:
    return tn.value_and_grad(loss)(w, x)[1]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_per_example_gradients(device: str, compiled: bool) -> None:
    x, w = normal(5, 3, device=device), normal(3, 4, seed=1, device=device)
    each = tn.vmap(gradient_of_loss, in_axes=(None, 0))
    found = (tn.compile(each) if compiled else each)(w, x)
    expected = [host(gradient_of_loss(w, x[i, ...].detach())) for i in range(5)]
    np.testing.assert_allclose(host(found), np.stack(expected))


def test_per_example_gradients_of_a_closure() -> None:
    x, w = normal(5, 3), normal(3, 4, seed=1)
    each = tn.vmap(lambda row: gradient_of_loss(w, row))(x)
    expected = [gradient_of_loss(w, x[i].detach()).array for i in range(5)]
    np.testing.assert_allclose(each.array, np.stack(expected))


def test_second_order_through_vmap() -> None:
    x = normal(4, 3)

    def total(x: Any) -> Any:
        return F.sum(tn.vmap(lambda row: F.sum(F.tanh(row) * row[0]))(x))

    def by_hand(x: Any) -> Any:
        return F.sum(F.tanh(x) * x[:, :1])

    v = normal(4, 3, seed=2)
    np.testing.assert_allclose(host(tn.hvp(total, x, v)), host(tn.hvp(by_hand, x, v)))


def test_a_model_runs_on_one_example() -> None:
    tn.seed(0)
    model = tn.nn.Sequential(tn.nn.Linear(3, 5), F.tanh, tn.nn.Linear(5, 1))
    x = normal(4, 3).astype("float32").detach()
    y = tn.vmap(lambda row: model(row[None])[0])(x)
    np.testing.assert_allclose(y.array, model(x).array, rtol=1e-6)


# --- arguments and results -----------------------------------------------------------------------


def test_axes_of_arguments_and_results() -> None:
    x = normal(3, 5, 2)
    y = tn.vmap(lambda part: part * 2, in_axes=1, out_axes=-1)(x)
    assert y.shape == (3, 2, 5)
    np.testing.assert_array_equal(y.array, np.moveaxis(x.array * 2, 1, -1))
    y = tn.vmap(lambda part: part, in_axes=-1, out_axes=1)(x)
    np.testing.assert_array_equal(y.array, np.moveaxis(x.array, -1, 1))


def test_nested_arguments_and_results() -> None:
    x, z, shared = normal(4, 3), normal(3, 4, seed=1), normal(2, seed=2)

    def f(parts: dict[str, Any], factor: float, *, offset: Any) -> dict[str, Any]:
        a, (b, c) = parts["a"], parts["b"]
        return {"sum": F.sum(a * b) * factor + offset, "both": (c, a)}

    in_axes = ({"a": 0, "b": (1, None)}, None)
    offset = normal(4, seed=3)
    found = tn.vmap(f, in_axes=in_axes, out_axes={"sum": 0, "both": (None, 0)})(
        {"a": x, "b": (z, shared)}, 2.0, offset=offset
    )
    expected = (x.array * z.array.T).sum(axis=1) * 2 + offset.array
    np.testing.assert_allclose(found["sum"].array, expected)
    np.testing.assert_array_equal(found["both"][0].array, shared.array)
    np.testing.assert_array_equal(found["both"][1].array, x.array)


def test_arrays_are_arguments_without_a_gradient() -> None:
    x = normal(4, 3).array
    y = tn.vmap(lambda row: row * np.arange(3.0))(x)
    np.testing.assert_array_equal(y.array, x * np.arange(3.0))
    assert not y.requires_grad


@pytest.mark.parametrize("n", [0, 1])
def test_no_example_and_one(n: int) -> None:
    x, w = normal(n, 3), normal(3, 2, seed=1)
    y = tn.vmap(lambda row: F.tanh(row @ w))(x)
    assert y.shape == (n, 2)
    F.sum(y).backward()
    assert x.grad is not None and x.grad.shape == (n, 3)
    assert w.grad is not None and w.grad.shape == (3, 2)


def test_a_result_that_all_share() -> None:
    w = normal(3)
    y = tn.vmap(lambda row: w * 2)(normal(4, 3))
    np.testing.assert_array_equal(y.array, np.tile(w.array * 2, (4, 1)))
    y.array[0] = 0.0  # the rows do not share memory
    assert y.array[1, 0] != 0.0
    y = tn.vmap(lambda row: w * 2, out_axes=None)(normal(4, 3))
    F.sum(y).backward()
    np.testing.assert_array_equal(w.grad, [2.0, 2.0, 2.0])


def test_integers_of_each_example_are_indices() -> None:
    w, i = normal(5), tn.asarray(np.asarray([3, 0, 3]))
    y = tn.vmap(lambda k: w[k] * 2)(i)
    np.testing.assert_array_equal(y.array, w.array[[3, 0, 3]] * 2)
    F.sum(y).backward()
    np.testing.assert_array_equal(w.grad, [2.0, 0.0, 0.0, 4.0, 0.0])


MISUSES: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "nothing mapped": (lambda x: x, {"in_axes": None}, ValueError, "no argument has examples"),
    "no such axis": (lambda x: x, {"in_axes": 2}, ValueError, r"argument 0.*\(4, 3\)"),
    "too many axes": (lambda x: x, {"in_axes": (0, 0)}, ValueError, "2 entries.*1 positional"),
    "a wrong entry": (lambda x: x, {"in_axes": ("a",)}, ValueError, "integer or None"),
    "out axis": (lambda x: x, {"out_axes": 3}, ValueError, "out_axes=3"),
    "not shared": (lambda x: x, {"out_axes": None}, VmapError, "differs between the examples"),
    "no Variable": (lambda x: "a", {}, TypeError, "the result of f must be a Variable"),
    "a list with text": (lambda x: [x, "a"], {}, TypeError, r"the result\[1\]"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_named(name: str) -> None:
    f, options, error, text = MISUSES[name]
    with pytest.raises(error, match=text):
        tn.vmap(f, **options)(normal(4, 3))


def test_numbers_of_examples_and_devices_must_agree() -> None:
    with pytest.raises(ValueError, match="argument 0 has 4, argument 1 has 5"):
        tn.vmap(lambda x, y: x)(normal(4, 3), normal(5, 3))
    with pytest.raises(DeviceMixError, match="argument 0 on numpy, argument 1 on fast"):
        tn.vmap(lambda x, y: x)(normal(4, 3), normal(4, 3, device="fast"))
    with pytest.raises(DeviceMixError, match="fast"):
        other = normal(3, device="fast")
        tn.vmap(lambda x: x + other)(normal(4, 3))
    with pytest.raises(ValueError, match="there is no such axis"):
        tn.vmap(lambda x: x)(tn.asarray(1.0))
    with pytest.raises(TypeError, match="f must be a function"):
        tn.vmap(normal(3))  # type: ignore[arg-type]


# --- values of single examples -------------------------------------------------------------------


def by_branch(x: Any) -> Any:
    return x if x[0] > 0 else -x


READS: dict[str, Any] = {
    "if": by_branch,
    "float": lambda x: x * float(x[0]),
    "item": lambda x: x * x[0].item(),
    "a device": lambda x: x.to_device("fast"),
    "NumPy": lambda x: F.sum(x) * np.asarray(x.array).sum(),
}


@pytest.mark.parametrize("name", READS)
def test_a_value_of_one_example_is_refused(name: str) -> None:
    with pytest.raises(VmapError, match=r"where\(|before vmap|namespace"):
        tn.vmap(READS[name])(normal(4, 3))


def test_a_value_that_all_examples_have_may_be_read() -> None:
    x = tn.asarray(np.abs(normal(4, 3).array))
    y = tn.vmap(by_branch)(x)
    np.testing.assert_array_equal(y.array, x.array)


def test_a_gradient_for_a_closure_inside_is_refused() -> None:
    w = normal(3)
    with pytest.raises(VmapError, match="sum over all examples"):
        tn.vmap(lambda x: tn.grad([F.sum(x * w)], [w])[0])(normal(4, 3))


def test_texts_show_all_examples() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.extend([repr(x), str(x.summary()), repr(x.array)])
        return x

    x = normal(4, 3)
    tn.vmap(f)(x)
    assert "".join(seen[0].split()) == "".join(repr(x).split())
    assert "(3,)" in seen[1] and "vmap(numpy)" in seen[1]
    assert seen[2] == "BatchedArray(4 x (3,), float64)"


# --- writes --------------------------------------------------------------------------------------


def test_writes_inside() -> None:
    x = normal(4, 3)

    def f(row: Any) -> Any:
        y = row * 1
        y[0] = 5.0
        y += 1
        y[1:] *= 2
        y[y < 0] = 0.0
        return y

    expected = x.array.copy()
    expected[:, 0] = 5.0
    expected += 1
    expected[:, 1:] *= 2
    expected[expected < 0] = 0.0
    np.testing.assert_allclose(tn.vmap(f)(x).array, expected)
    np.testing.assert_allclose(tn.compile(tn.vmap(f))(x).array, expected)


def test_an_array_made_inside_takes_values_of_examples() -> None:
    def f(row: Any) -> Any:
        y = tn.asarray(np.zeros(2), requires_grad=False)
        y[1] = F.sum(row)
        return y

    x = normal(4, 3)
    y = tn.vmap(f)(x)
    np.testing.assert_allclose(y.array[:, 1], x.array.sum(axis=1))
    F.sum(y).backward()
    np.testing.assert_array_equal(x.grad, np.ones((4, 3)))


def test_a_variable_from_outside_cannot_take_values_of_examples() -> None:
    w = normal(3)
    z = w * 1
    before = z.array

    def write(row: Any) -> Any:
        z[0] = row[0]
        return row

    with pytest.raises(VmapError, match="from outside of f"):
        tn.vmap(write)(normal(4, 3))
    assert z.array is before and str(z.device) == "numpy"
    F.sum(z * z).backward()
    np.testing.assert_allclose(w.grad, 2 * w.array)

    def add(row: Any) -> Any:
        nonlocal z
        z += row
        raise KeyError("half-way")

    with pytest.raises(KeyError):
        tn.vmap(add)(normal(4, 3))
    assert z.array is before and str(z.device) == "numpy"
    plain = tn.asarray(np.zeros(3), requires_grad=False)  # without a node

    def fill(row: Any) -> Any:
        plain[0] = row[0]
        return row

    with pytest.raises(VmapError, match="from outside of f"):
        tn.vmap(fill)(normal(4, 3))
    assert str(plain.device) == "numpy" and not plain.requires_grad
    np.testing.assert_array_equal((plain * 2).array, np.zeros(3))
    with pytest.raises(GraphError, match="leaf"):
        tn.vmap(lambda row: w.__setitem__(0, row[0]))(normal(4, 3))


@pytest.mark.parametrize("compiled", [False, True])
def test_running_statistics_cannot_follow_examples(compiled: bool) -> None:
    """The layer stays as it was, and the error says what to do."""
    layer = tn.nn.BatchNorm(3, dtype="float64")
    f = tn.compile(tn.vmap(layer)) if compiled else tn.vmap(layer)
    for call in (f, tn.vmap(lambda x: tn.checkpoint(layer, x))):
        with pytest.raises(VmapError, match=r"BatchNorm .* on the whole batch outside of vmap"):
            call(normal(4, 5, 3))
        np.testing.assert_array_equal(layer.running_mean.array, np.zeros(3))
        assert layer.running_variance.device is tn.get_device("numpy")
    layer(normal(5, 3))
    layer.eval()
    assert f(normal(4, 5, 3)).shape == (4, 5, 3)


def test_a_variable_from_outside_takes_no_array_of_examples() -> None:
    outside = tn.asarray(np.zeros(3), requires_grad=False)

    def assign(x: Any) -> Any:
        inside = tn.asarray(np.zeros(3), requires_grad=False)
        inside.array = x.array
        return inside * 1

    np.testing.assert_array_equal(tn.vmap(assign)(normal(4, 3)).array, normal(4, 3).array)

    def write(x: Any) -> Any:
        outside.array = x.array
        return x

    with pytest.raises(VmapError, match=r"Variable of shape \(3,\), float64.* from outside of f"):
        tn.vmap(write)(normal(4, 3))
    np.testing.assert_array_equal((outside + 1).array, np.ones(3))

    def count(x: Any) -> Any:
        outside.array = outside.array + 1  # one value for all examples
        return x

    tn.vmap(count)(normal(4, 3))
    np.testing.assert_array_equal(outside.array, np.ones(3))


def test_a_net_refuses_a_gradient_for_a_closure_inside() -> None:
    w = normal(3)

    def loss(x: Any) -> Any:
        y = F.sum((w * x) ** 2)
        y.backward()
        return y

    tn.vmap(loss)(normal(4, 3))
    before = w.grad.copy()
    with pytest.raises(TraceError, match=r"backward\(\) on the results of vmap"):
        tn.compile(tn.vmap(loss))(normal(4, 3))
    np.testing.assert_array_equal(w.grad, before)


# --- random numbers ------------------------------------------------------------------------------


def test_dropout_draws_for_each_example() -> None:
    generator = np.random.default_rng(0)
    ones = tn.asarray(np.ones((6, 40)))
    y = tn.vmap(lambda x: F.dropout(x, 0.5, generator=generator))(ones)
    assert len({row.tobytes() for row in y.array}) == 6
    assert set(np.unique(y.array)) == {0.0, 2.0}


def test_other_draws_are_refused() -> None:
    with pytest.raises(VmapError, match=r"keys = tn.random.split\(key, n\), and draw with key="):
        tn.vmap(lambda x: x + tn.random.normal((3,)))(normal(4, 3))


# --- nesting, nets, hooks, debug mode, threads ---------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_nesting(compiled: bool) -> None:
    a, b, w = normal(4, 3), normal(5, 3, seed=1), normal(3, seed=2)

    def outer(a: Any, b: Any) -> Any:
        return tn.vmap(lambda x: tn.vmap(lambda y: F.sum(x * y * w))(b))(a)

    found = (tn.compile(outer) if compiled else outer)(a, b)
    np.testing.assert_allclose(found.array, (a.array * w.array) @ b.array.T)
    F.sum(found).backward()
    np.testing.assert_allclose(w.grad, a.array.sum(axis=0) * b.array.sum(axis=0))
    np.testing.assert_allclose(a.grad, np.tile(w.array * b.array.sum(axis=0), (4, 1)))


def test_a_net_has_plain_operators_on_whole_batches() -> None:
    x, w = normal(5, 3), normal(3, 4, seed=1)
    net = tn.trace(tn.vmap(lambda row: F.tanh(row @ w)), x).net
    types = {operator.type for operator in net.flattened()}
    assert (
        {"matmul", "tanh"} <= types <= {"matmul", "tanh", "reshape", "get_item", "stop_gradient"}
    )


def test_a_net_keeps_detach_and_no_backprop_mode() -> None:
    x = normal(4, 3)

    def f(row: Any) -> Any:
        with tn.no_backprop_mode():
            scale = F.sum(row * row)
        return row.detach() * row + scale

    for g in (tn.vmap(f), tn.compile(tn.vmap(f))):
        x.cleargrad()
        F.sum(g(x)).backward()
        np.testing.assert_allclose(x.grad, x.array)


@pytest.mark.parametrize("f", [F.sigmoid, F.relu, F.gelu, F.softmax, F.linalg.vector_norm])
@pytest.mark.parametrize("derivative", [tn.gradient, tn.jacrev, tn.jacfwd, tn.hessian])
@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_net_has_the_derivatives_of_the_functions(derivative: Any, f: Any, device: str) -> None:
    """At 0 the derivatives of a function's forward are others: relu(x) = max(x, 0) has 1/2."""
    x = tn.asarray(np.array([[0.0, 1.0], [0.0, 0.0]]), device=device)

    def total(x: Any) -> Any:
        return F.sum(tn.vmap(f)(x) * 3.0)

    with np.errstate(all="ignore"):  # a norm has no second derivative at 0: it is NaN
        expected = host(derivative(total)(x))
        found = host(tn.compile(derivative(total))(x)), host(derivative(tn.compile(total))(x))
    for one in found:
        np.testing.assert_allclose(one, expected, atol=1e-15)


def test_logistic_regression_starts_from_zero_weights() -> None:
    x, w = normal(6, 3), tn.asarray(np.zeros(3))
    labels = np.array([0, 1, 1, 0, 1, 0])

    def loss(w: Any) -> Any:
        def one(row: Any, label: Any) -> Any:
            return F.sigmoid_cross_entropy(row @ w, label)

        return F.sum(tn.vmap(one)(x, labels))

    expected = x.array.T @ (0.5 - labels)
    for found in (tn.gradient(loss)(w), tn.compile(tn.gradient(loss))(w)):
        np.testing.assert_allclose(found.array, expected)


def test_derivatives_of_the_functions_in_nested_vmaps() -> None:
    x = tn.asarray(np.array([[[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]))
    slope = tn.Variable(np.array([0.25]))

    def total(x: Any, slope: Any) -> Any:
        def one(row: Any) -> Any:
            return F.softmax(F.prelu(row, slope)) * F.relu(row)

        return F.sum(tn.vmap(tn.vmap(one))(x) * tn.asarray([1.0, 2.0]))

    both = (0, 1)
    expected = tn.gradient(total, both)(x, slope)
    for g in (tn.compile(tn.gradient(total, both)), tn.gradient(tn.compile(total), both)):
        for found, wanted in zip(g(x, slope), expected, strict=True):
            np.testing.assert_allclose(found.array, wanted.array, atol=1e-15)
    expected = tn.hvp(total, (x, slope), (x, slope))
    found = tn.compile(lambda x, slope: tn.hvp(total, (x, slope), (x, slope)))(x, slope)
    for one, wanted in zip(found[-1], expected[-1], strict=True):
        np.testing.assert_allclose(one.array, wanted.array, atol=1e-15)


class Cube(tn.FunctionNode):
    """A function by NumPy alone, whose backward is not that of its formula."""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (np.power(np.asarray(inputs[0]), 3),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * x * 7,)


def test_a_function_without_a_rule_runs_one_example_after_another() -> None:
    x = normal(4, 3)
    for g in (tn.vmap, lambda f: tn.compile(tn.vmap(f))):
        x.cleargrad()
        y = g(lambda row: Cube().apply((row,))[0])(x)
        np.testing.assert_allclose(y.array, x.array**3)
        F.sum(y).backward()
        np.testing.assert_allclose(x.grad, 7 * x.array)
    assert "Cube" in str(tn.show.fallbacks())


@pytest.mark.parametrize(
    "index",
    [
        [0, 1],
        np.array([0]),
        np.array([2, 0]),
        (np.array([1, 0]), slice(None), np.array([0, 2])),
        (slice(None), np.array([1, 0]), np.array([2, 0])),
        (0, slice(None), np.array([2, 0])),
        (np.array([[2], [0]]), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("compiled", [False, True])
def test_writes_at_arrays_that_all_examples_share(index: Any, compiled: bool) -> None:
    x = tn.Variable(np.arange(54.0).reshape(2, 3, 3, 3))

    def write(x: tn.Variable) -> tn.Variable:
        return F.set_item(x * 1.0, index, x[index] * 10.0)

    def write_one(x: tn.Variable) -> tn.Variable:
        y = x * 1.0
        y[index] = 9.0
        return y

    for f in (write, write_one):
        each = tn.vmap(f)
        got = (tn.compile(each) if compiled else each)(x)
        np.testing.assert_array_equal(got.array, [f(x[i]).array for i in range(2)])


class Square(tn.FunctionNode):
    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (2 * x * grad_outputs[0],)


ONE_NUMBER: tuple[Callable[[Any], Any], ...] = (
    lambda a: Square().apply((a,))[0] * a,
    lambda a: F.relu(a) ** 3,
    lambda a: F.log(a) * a,
    lambda a: (a / 5) ** 3,
    lambda a: F.where(a > 1.0, a**3, F.sqrt(a)),
    lambda a: F.max(F.stack([a * a, F.exp(a)])),
    lambda a: F.std(F.stack([a, a * a, 1.0 / a])),
)


@pytest.mark.parametrize("f", ONE_NUMBER)
@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_gradients_of_vmap_inside_of_compile(f: Any, device: str) -> None:
    """The net has the derivative of each example, also where backward has no graph."""
    with tn.using_device(device):
        x = tn.Variable(np.array([0.5, 2.0]))
        ways = (
            lambda x: F.sum(F.cos(tn.vmap(f)(x))),
            lambda x: F.sum(F.cos(tn.vmap(tn.gradient(f))(x))),
            lambda x: F.sum(F.cos(tn.vmap(tn.jacfwd(tn.jacfwd(f)))(x))),
            lambda x: F.sum(F.cos(F.sum(tn.jacfwd(tn.vmap(f))(x), axis=0))),
        )
        for way in ways:
            g = tn.gradient(way)
            expected = g(x).array
            assert np.abs(expected).min() > 0
            compiled = tn.compile(g)
            for _ in range(3):
                np.testing.assert_allclose(compiled(x).array, expected, rtol=1e-9)


@pytest.mark.parametrize("f", ONE_NUMBER)
def test_backward_of_vmap_inside_of_compile(f: Any) -> None:
    x = tn.Variable(np.array([0.5, 2.0]))
    slope = tn.gradient(f, enable_double_backprop=True)
    for one in (f, slope):

        def step(one: Any = one) -> None:
            x.cleargrad()
            F.sum(F.cos(tn.vmap(one)(x))).backward()

        step()
        expected = x.grad
        assert np.abs(expected).min() > 0
        compiled = tn.compile(step)
        for _ in range(3):
            x.cleargrad()
            compiled()
            np.testing.assert_allclose(x.grad, expected, rtol=1e-9)


@pytest.mark.parametrize("f", ONE_NUMBER)
def test_nested_derivatives_inside_of_compile(f: Any) -> None:
    x = tn.Variable(np.array([0.5, 2.0]))
    third = tn.jacfwd(tn.jacfwd(tn.gradient(lambda x: F.sum(tn.vmap(f)(x)))))
    for g in (tn.vmap(tn.hessian(f)), third):
        np.testing.assert_allclose(tn.compile(g)(x).array, g(x).array, rtol=1e-9, atol=1e-12)


def test_a_compiled_step_with_losses_of_examples() -> None:
    x = tn.asarray(np.eye(3), requires_grad=False)
    t = np.array([0, 1, 2])

    def trained(wrap: Any) -> Any:
        w = tn.nn.Parameter(np.arange(9.0).reshape(3, 3) / 10)
        optimizer = tn.nn.SGD([w], lr=1.0)

        def step(x: tn.Variable, t: Any) -> tn.Variable:
            optimizer.cleargrads()
            losses = tn.vmap(lambda x, t: F.softmax_cross_entropy((x @ w)[None], t[None]))(x, t)
            loss = F.mean(losses)
            loss.backward()
            optimizer.update()
            return loss

        step = wrap(step)
        return [float(step(x, t)) for _ in range(4)], w.array

    losses, w = trained(tn.compile)
    right, right_w = trained(lambda step: step)
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(losses, right)
    np.testing.assert_allclose(w, right_w)


def test_a_compiled_function_and_a_checkpoint_run_inside() -> None:
    x = normal(4, 3)
    compiled = tn.compile(lambda a: F.tanh(a) * a)
    for g in (compiled, lambda a: tn.checkpoint(lambda b: F.tanh(b) * b, a)):
        x.cleargrad()
        y = tn.vmap(g)(x)
        np.testing.assert_allclose(y.array, np.tanh(x.array) * x.array)
        F.sum(y).backward()
        t = np.tanh(x.array)
        np.testing.assert_allclose(x.grad, t + x.array * (1 - t * t))


@pytest.mark.parametrize("method", ["function", "module"])
def test_a_compiled_function_with_parameters_runs_inside(method: str) -> None:
    tn.seed(0)
    model = tn.nn.Linear(3, 2, dtype="float64")
    compiled = tn.compile(model if method == "module" else lambda a: model(a) * model.bias)
    plain = model if method == "module" else lambda a: model(a) * model.bias
    x = normal(4, 1, 3)
    for g in (compiled, plain):
        model.cleargrads()
        x.cleargrad()
        for _ in range(3):
            y = tn.vmap(g)(x)
        F.sum(y * y).backward()
        found = [y.array, x.grad, model.weight.grad, model.bias.grad]
        if g is compiled:
            by_net = found
    for a, b in zip(by_net, found, strict=True):
        np.testing.assert_allclose(a, b)


def test_hooks_see_the_functions_of_one_example() -> None:
    labels: list[str] = []

    class Listener(tn.FunctionHook):
        name = "Listener"

        def forward_postprocess(self, function: Any, in_data: Any) -> None:
            labels.append(function.label)

    with Listener():
        tn.vmap(lambda x: F.sin(x))(normal(4, 3))
    assert labels == ["IntoBatch", "Sin", "OutOfBatch"]


def test_debug_mode_inside() -> None:
    x = normal(4, 3)
    with tn.using_config(debug=True):
        y = tn.vmap(lambda row: F.sum(F.exp(row)))(x)
        F.sum(y).backward()
    np.testing.assert_allclose(x.grad, np.exp(x.array))
    x.cleargrad()
    is_quiet = np.errstate(invalid="ignore")
    with is_quiet, tn.using_config(debug=True), pytest.raises(tn.errors.NaNError, match="Log"):
        tn.vmap(lambda row: F.sum(F.log(row)))(x)


def test_an_exception_half_way_leaves_nothing_behind() -> None:
    def fails(row: Any) -> Any:
        F.sum(row)
        raise KeyError("half-way")

    x = normal(4, 3)
    for g in (tn.vmap(fails), tn.compile(tn.vmap(fails)), tn.vmap(tn.vmap(fails))):
        with pytest.raises(KeyError):
            g(x)
    np.testing.assert_array_equal(tn.vmap(lambda row: row * 2)(x).array, x.array * 2)


def test_threads_have_hidden_axes_of_their_own() -> None:
    x, w = normal(8, 3), normal(3, seed=1)
    found: list[Any] = [None] * 6
    barrier = threading.Barrier(6)

    def work(i: int) -> None:
        barrier.wait()
        for _ in range(20):
            found[i] = tn.vmap(lambda row: F.tanh(row * w) * (i + 1))(x[: i + 1].detach()).array

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, array in enumerate(found):
        np.testing.assert_allclose(array, np.tanh(x.array[: i + 1] * w.array) * (i + 1))


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    from tests.backends.test_other_backends import load

    load(library)
    x, w = normal(5, 3, device=library), normal(3, 4, seed=1, device=library)
    found = tn.vmap(gradient_of_loss, in_axes=(None, 0))(w, x)
    assert str(found.device) == library
    plain = tn.vmap(gradient_of_loss, in_axes=(None, 0))(normal(3, 4, seed=1), normal(5, 3))
    np.testing.assert_allclose(host(found), host(plain), rtol=1e-6)


def test_contributions_with_and_without_examples_add_up() -> None:
    """The gradient of x has a part of each example's seed, and a part that all examples share."""
    x = normal(3)
    y, z = x * x, F.sin(x)
    shared = normal(3, seed=1)
    seeds = normal(4, 3, seed=2)
    found = tn.vmap(lambda gy: tn.grad([y, z], [x], [gy, shared])[0])(seeds)
    expected = seeds.array * 2 * x.array + shared.array * np.cos(x.array)
    np.testing.assert_allclose(found.array, expected)
    found = tn.vmap(lambda gy: tn.grad([z, y], [x], [shared, gy])[0])(seeds)
    np.testing.assert_allclose(found.array, expected)


def test_pictures_films_and_the_doctor_take_a_vmapped_function() -> None:
    x = normal(4, 3)
    with tn.show.record() as film:
        y = F.sum(tn.vmap(lambda row: F.sum(F.relu(row)))(x))
        y.backward()
    assert len(film) > 6  # the steps of five functions, forward and backward
    assert "IntoBatch" in str(tn.show.text(y))
    assert "no findings" in str(tn.diagnose(y))


def test_jacobians_of_functions_with_vmap_inside() -> None:
    x = normal(4, 3)

    def f(x: Any) -> Any:
        return tn.vmap(lambda row: F.sum(F.sin(row)) ** 2)(x)

    sums = np.sin(x.array).sum(axis=1)
    expected = np.zeros((4, 4, 3))
    for i in range(4):
        expected[i, i] = 2 * sums[i] * np.cos(x.array[i])
    np.testing.assert_allclose(tn.jacrev(f)(x).array, expected)
    np.testing.assert_allclose(tn.jacfwd(f)(x).array, expected)
    np.testing.assert_allclose(tn.compile(tn.jacfwd(f))(x).array, expected)
    hessian = tn.jacfwd(tn.jacrev(lambda x: F.sum(f(x))))(x).array
    again = tn.jacrev(tn.jacrev(lambda x: F.sum(f(x))))(x).array
    np.testing.assert_allclose(hessian, again)
    cosines = np.cos(x.array[0])
    block = 2 * np.outer(cosines, cosines) - 2 * sums[0] * np.diag(np.sin(x.array[0]))
    np.testing.assert_allclose(hessian[0, :, 0, :], block)


def test_a_shared_gradient_counts_for_each_example() -> None:
    w, c = normal(3), normal(3, seed=1)

    def train(row: Any, c: Any) -> Any:
        y = F.sum(w * c)  # the same in each example, and each example calls backward
        y.backward()
        return y

    tn.vmap(train, in_axes=(0, None))(normal(4, 3), c)
    np.testing.assert_allclose(w.grad, 4 * c.array)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_net_counts_a_shared_gradient_once_for_each_example(device: str) -> None:
    """The Hessian of a cross entropy does not take the values of the labels, which differ."""
    x, v = normal(4, 3, device=device), normal(4, 3, seed=1, device=device)
    labels = tn.asarray(np.array([[0, 1, 2, 1], [1, 1, 0, 2]]), device=device)

    def loss(x: Any) -> Any:
        each = tn.vmap(lambda t, x: F.softmax_cross_entropy(x, t), in_axes=(0, None))
        return F.sum(each(labels, x))

    def slope(x: Any) -> Any:
        return F.sum(tn.gradient(loss)(x) * v)

    for derivative in (tn.hessian(loss), tn.gradient(slope)):
        expected = host(derivative(x))
        np.testing.assert_allclose(host(tn.compile(derivative)(x)), expected, rtol=1e-12)


@pytest.mark.parametrize("f", [F.elu, F.silu, F.hard_silu, F.leaky_relu, F.selu, F.gelu])
def test_compiled_jacobians_share_what_a_function_retained(f: Any) -> None:
    """The inputs of a gradient function have equal shapes, also where examples share one."""
    x = normal(4, 3)
    jacobian = tn.jacfwd(f)
    np.testing.assert_allclose(tn.compile(jacobian)(x).array, jacobian(x).array, rtol=1e-12)
    u = normal(4, 3, seed=1)

    def of_examples(x: Any) -> Any:
        return F.sum(tn.vmap(lambda u, x: tn.vjp(f, x)[1](u)[0], in_axes=(0, None))(u, x[0]) ** 2)

    again = tn.gradient(of_examples)
    np.testing.assert_allclose(tn.compile(again)(x).array, again(x).array, rtol=1e-12)


# --- arrays from outside -------------------------------------------------------------------------

MATRIX = np.random.default_rng(2).normal(size=(4, 4))
MASK = MATRIX > 0
ROWS = np.array([0, 2, 1, 1])
LABELS = np.array([1, 0, 3, 2])


def written(key: Any, value: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * 1
        y[key] = value
        return y

    return f


def added(x: Any) -> Any:
    y = x * 1
    y += MATRIX
    return y


WITH_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + MATRIX,
    "radd": lambda x: MATRIX + x,
    "divide": lambda x: MATRIX[0] / x,
    "matmul": lambda x: MATRIX @ x @ MATRIX,
    "compare": lambda x: x < MATRIX,
    "where": lambda x: F.where(MASK, x, 0.0),
    "where-arrays": lambda x: F.where(x > 0, MATRIX, MATRIX[0]),
    "linear": lambda x: F.linear(x, MATRIX, MATRIX[0]),
    "labels": lambda x: F.softmax_cross_entropy(x, LABELS),
    "target": lambda x: F.mean_squared_error(x, MATRIX),
    "stack": lambda x: F.stack([MATRIX, x]),
    "einsum": lambda x: F.einsum("ij,jk->ik", MATRIX, x),
    "take": lambda x: F.take(x, ROWS, axis=1),
    "index": lambda x: x[ROWS],
    "index-pairs": lambda x: x[ROWS, LABELS],
    "index-mask": lambda x: x[MASK],
    "embedding": lambda x: F.embedding(LABELS, x),
    "write-row": written(0, MATRIX[0]),
    "write-rows": written(ROWS[:2], MATRIX[:2]),
    "write-pairs": written((ROWS[:2], LABELS[:2]), MATRIX[0, :2]),
    "write-mask": written(MASK, 0.0),
    "write-rows-of-a-mask": written(MASK[0], MATRIX[:1]),
    "add-in-place": added,
    "numpy": lambda x: np.multiply(MATRIX, x),
    "namespace": lambda x: x.__array_namespace__().where(MASK, x, MATRIX),
}


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_arrays_of_numpy_are_shared_by_all_examples(name: str, device: str) -> None:
    f, x = WITH_ARRAYS[name], normal(2, 3, 4, 4, device=device)
    expected = np.stack([[host(f(x[i, j])) for j in range(3)] for i in range(2)])
    each = tn.vmap(f)
    for way in (tn.vmap(each), tn.vmap(tn.compile(each)), tn.compile(tn.vmap(each))):
        y = way(x)
        assert y.device is x.device
        np.testing.assert_allclose(host(y), expected, rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_number_is_written_at_a_mask_of_all_examples(device: str, compiled: bool) -> None:
    x, mask = normal(3, 4, 4, device=device), tn.get_device(device).from_host(MASK)
    f = tn.vmap(written(mask, 0.0))
    y = (tn.compile(f) if compiled else f)(x)
    np.testing.assert_array_equal(host(y), np.where(MASK, 0.0, host(x)))


def test_arrays_among_the_arguments_lie_beside_the_variables() -> None:
    """On ``fast``, whose memory is NumPy's."""
    x, labels = normal(3, 4, device="fast"), np.array([1, 0, 3])

    def loss(x: Any, t: Any) -> Any:
        return F.softmax_cross_entropy(x[None], t[None])

    expected = [host(loss(x[i], labels[i : i + 1][0])) for i in range(3)]
    for f in (tn.vmap(loss), tn.compile(tn.vmap(loss))):
        np.testing.assert_allclose(host(f(x, labels)), expected)
        assert f(x, labels).device is x.device
    np.testing.assert_allclose(host(tn.vmap(lambda t, x: loss(x, t))(labels, x)), expected)
    np.testing.assert_allclose(host(tn.compile(loss)(x[0], labels[:1][0])), expected[0])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_to_start_from_is_shared_by_all_examples(compiled: bool) -> None:
    x, u = normal(4, 3), normal(3, seed=1)

    def slope(row: Any) -> Any:
        row = row * 1
        return tn.grad([F.tanh(row)], [row], [u])[0]

    with tn.force_backprop_mode():
        y = (tn.compile(tn.vmap(slope)) if compiled else tn.vmap(slope))(x)
    np.testing.assert_allclose(y.array, (1 - np.tanh(x.array) ** 2) * u.array, rtol=1e-12)


def test_index_arrays_behind_a_slice() -> None:
    table = normal(2, 5, 3)
    i = tn.asarray(np.random.default_rng(0).integers(-5, 5, size=(4, 6)))
    y = tn.vmap(lambda i: table[:, i])(i)
    np.testing.assert_array_equal(y.array, np.stack([table.array[:, k] for k in i.array]))
    y = tn.vmap(lambda i: table[:, i, 1])(i)
    np.testing.assert_array_equal(y.array, np.stack([table.array[:, k, 1] for k in i.array]))
    y = tn.vmap(lambda part, k: part[:, k, None, :2], in_axes=(None, 0))(table, i)
    expected = np.stack([table.array[:, k, None, :2] for k in i.array])
    np.testing.assert_array_equal(y.array, expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_no_examples_at_index_arrays(compiled: bool) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[ROWS[:2], LABELS[:2]] = 5.0
        return F.sum(y[ROWS, LABELS] ** 2) + F.softmax_cross_entropy(x, LABELS)

    for each in (tn.vmap(f), tn.vmap(tn.gradient(f))):
        way = tn.compile(each) if compiled else each
        assert way(normal(0, 4, 4)).shape[0] == 0
        assert way(normal(2, 4, 4)).shape[0] == 2


@pytest.mark.parametrize("shared", [False, True])
def test_linearize_of_a_vmap_and_inside_of_one(shared: bool) -> None:
    """The values at the point are those of examples: the map keeps the graph."""
    x, v = normal(4, 3), normal(4, 3, seed=1)

    def f(x: Any) -> Any:
        w = x[0]
        return tn.vmap(lambda row: F.tanh(row * w) if shared else F.tanh(row))(x)

    y, linear = tn.linearize(f, x)
    value, tangent = tn.jvp(f, (x,), (v,))
    np.testing.assert_array_equal(y.array, value.array)
    np.testing.assert_allclose(linear(v).array, tangent.array, rtol=1e-14)
    inside = tn.vmap(lambda row, v: tn.linearize(F.tanh, row)[1](v))(x, v)
    np.testing.assert_allclose(inside.array, (1 - np.tanh(x.array) ** 2) * v.array, rtol=1e-14)


class FromTheEnd(tn.FunctionNode):
    """A function whose axes are counted from the end."""

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        xp = x.__array_namespace__()
        total = xp.sum(xp.flip(x, axis=-1), axis=-2, keepdims=True)
        return (xp.cumulative_sum(total, axis=-1) + xp.argmax(x, axis=-1, keepdims=True),)


def test_axes_counted_from_the_end() -> None:
    x = normal(4, 2, 3)
    y = tn.vmap(lambda x: FromTheEnd().apply((x,))[0])(x)
    for i in range(4):
        one = FromTheEnd().apply((x[i].detach(),))[0]
        np.testing.assert_allclose(y.array[i], one.array)
    assert "FromTheEnd" not in str(tn.show.fallbacks())


class Bytes(tn.FunctionNode):
    """A function that asks for more than the standard has: of the array, and of the namespace."""

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        return (x * (x.nbytes / x.nbytes) + 0 * x.__array_namespace__().cbrt(x),)


def test_what_the_standard_lacks_runs_one_example_after_another() -> None:
    x = normal(4, 3)
    y = tn.vmap(lambda row: Bytes().apply((row,))[0])(x)
    np.testing.assert_allclose(y.array, x.array)
    assert "no rule for nbytes" in str(tn.show.fallbacks())

    class Broken(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (self.nowhere,)  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="nowhere"):
        tn.vmap(lambda row: Broken().apply((row,))[0])(x)


CROSS_ENTROPIES: list[dict[str, Any]] = [
    {},
    {"reduction": "sum"},
    {"reduction": "none"},
    {"class_weight": np.array([0.5, 1.0, 2.0, 0.0, 1.0])},
    {"class_weight": np.array([0.5, 1.0, 2.0, 0.0, 1.0]), "label_smoothing": 0.1},
    {"reduction": "none", "label_smoothing": 0.2},
]


@pytest.mark.parametrize("loss", [F.softmax_cross_entropy, F.nll, F.hinge])
def test_examples_may_ignore_different_rows(loss: Any) -> None:
    """Some examples have an ignored label, and others have none: no example runs alone."""
    x = normal(3, 4, 5)
    labels = tn.asarray(np.array([[0, 1, 2, 4], [0, -1, 2, -1], [-1, -1, -1, -1]]))
    fallback_uses.clear()
    ours = tn.vmap(tn.value_and_grad(loss))(x, labels)
    assert not fallback_uses
    for i in range(3):
        one = tn.value_and_grad(loss)(x[i], labels[i])
        for a, b in zip(ours, one, strict=True):
            np.testing.assert_allclose(host(a)[i], host(b), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("settings", CROSS_ENTROPIES, ids=str)
def test_cross_entropy_of_examples(settings: dict[str, Any], device: str) -> None:
    """Value, gradient and Hessian along a direction, of one row and of three, in each example."""
    rows = normal(3, 3, 5, device=device), np.array([[0, 1, 2], [0, -1, 4], [-1, -1, -1]])
    for x, t in (rows, (rows[0][:, :1], rows[1][:, 1:2])):
        v = normal(*x.shape, seed=1, device=device)
        labels = tn.asarray(t, device=device)

        def loss(x: Any, t: Any) -> Any:
            return F.sum(F.softmax_cross_entropy(x, t, **settings))

        def answers(x: Any, t: Any, v: Any) -> Any:
            slope, along = tn.jvp(lambda x: tn.gradient(loss)(x, t), (x,), (v,))
            return loss(x, t), slope, along

        each = [answers(x[i], labels[i], v[i]) for i in range(len(t))]
        for mode in (tn.vmap(answers), tn.compile(tn.vmap(answers))):
            for _ in range(2):  # a plan is made by the second run
                for ours, right in zip(mode(x, labels, v), zip(*each, strict=True), strict=True):
                    expected = np.stack([host(y) for y in right])
                    np.testing.assert_allclose(host(ours), expected, rtol=1e-12, atol=1e-14)


def test_a_label_of_an_example_that_is_no_class() -> None:
    x, labels = normal(2, 3, 5), tn.asarray(np.array([[0, 1, 2], [0, 5, 1]]))
    for each in (tn.vmap(F.softmax_cross_entropy), tn.compile(tn.vmap(F.softmax_cross_entropy))):
        with pytest.raises(ValueError, match=r"labels must lie in 0 to 4 .* got 5"):
            each(x, labels)


def test_class_weights_of_each_example_are_slower_and_right() -> None:
    x, w = normal(3, 2, 5), tn.asarray(np.abs(normal(3, 5, seed=1).array))
    labels = tn.asarray(np.array([[0, 1], [2, 3], [4, 0]]))

    def loss(x: Any, t: Any, w: Any) -> Any:
        return F.softmax_cross_entropy(x, t, class_weight=w)

    for each in (tn.vmap(loss), tn.compile(tn.vmap(loss))):
        ours = host(each(x, labels, w))
        expected = [float(loss(x[i], labels[i], w[i])) for i in range(3)]
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_forward_mode_of_a_compiled_vmap_with_labels_from_outside() -> None:
    """The passes of the Jacobian run in a vmap without a graph, and share what is outside."""
    labels = tn.asarray(np.array([0, 1, 2, 0, 2]))

    def put(g: Any) -> Any:
        return PutLabels(-1, 3).apply((g, labels))[0]

    def whole(g: Any) -> Any:
        return tn.vmap(put)(tn.functions.reshape(g, (1, 5)))[0]

    g = np.arange(5.0)
    expected = tn.jacfwd(put)(g).array
    for way in (whole, tn.compile(whole)):
        np.testing.assert_array_equal(tn.jacfwd(way)(g).array, expected)
        with tn.no_grad():
            np.testing.assert_array_equal(tn.jacfwd(way)(tn.Variable(g)).array, expected)


DECOMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "svd": lambda a: F.sum(F.linalg.svd(a, full_matrices=False).S ** 3),
    "svdvals": lambda a: F.sum(F.linalg.svdvals(a)),
    "pinv": lambda a: F.sum(F.linalg.pinv(a)),
    "eigh": lambda a: F.sum(F.linalg.eigh(a).eigenvalues ** 3),
    "eigvalsh": lambda a: F.max(F.linalg.eigvalsh(a)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_a_matrix_with_nan_spoils_its_own_example_only(name: str, device: str) -> None:
    f = DECOMPOSITIONS[name]
    matrices = host(normal(4, 3, 3))
    matrices = matrices + np.swapaxes(matrices, 1, 2)
    matrices[1, 2, 0], matrices[2, 1, 1] = np.nan, np.inf
    x = tn.asarray(matrices, device=device)
    with np.errstate(all="ignore"):  # BLAS may flag NaN in a product, as for AVX-512
        value, gradient = tn.vmap(tn.value_and_grad(f))(x)
        stacks = tn.vmap(tn.vmap(f))(F.stack([x, x[::-1]]))
        compiled = tn.compile(tn.vmap(f))(x)
        eager = tn.vmap(f)(x)
    for i in (0, 3):
        expected = tn.value_and_grad(f)(x[i])
        np.testing.assert_allclose(host(value)[i], host(expected[0]), rtol=1e-10)
        np.testing.assert_allclose(host(gradient)[i], host(expected[1]), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(host(stacks)[:, i], host(value)[[i, 3 - i]], rtol=1e-10)
    assert np.isnan(host(value)[1:3]).all() and np.isnan(host(stacks)[:, 1:3]).all()
    np.testing.assert_allclose(host(compiled), host(eager), rtol=1e-10)


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_a_stack_with_nan_in_each_matrix_is_refused(name: str) -> None:
    x = tn.asarray(np.full((2, 3, 3), np.nan))
    for f in (DECOMPOSITIONS[name], tn.vmap(DECOMPOSITIONS[name])):
        with pytest.raises(np.linalg.LinAlgError, match=r"Look for NaN"):
            f(x)
