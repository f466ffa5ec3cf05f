"""Stand-ins: large arrays without memory, while a function is recorded."""

from __future__ import annotations

import gc
import sys
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tests.net.test_compile_table import ROWS, Way, check_operation
from tinynode.errors import NoValuesError
from tinynode.functions import linalg
from tinynode.net import making, plan, shape_runner

F = tn.functions
SIDE = 200


@pytest.fixture(params=["numpy", "fast"], autouse=True)
def device(request: Any) -> Any:
    with tn.using_device(request.param), tn.using_config(dtype="float64"):
        yield tn.get_device()


def matrix(seed: int = 0, requires_grad: bool = True) -> Any:
    host = np.random.default_rng(seed).normal(size=(SIDE, SIDE))
    return tn.asarray(host, requires_grad=requires_grad)


class Rows(tn.FunctionNode):
    """y = x, where the rows of x add up to 1."""

    runs = 0

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        Rows.runs += 1
        if abs(x.sum(axis=1) - 1).max() > 1e-9:
            raise ValueError("the rows do not add up to 1")
        return (x * 1.0,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return grad_outputs


def rows(x: Any) -> Any:
    return Rows().apply((x,))[0]


def assert_as_eager(function: Any, *arguments: Any) -> None:
    compiled = tn.compile(function)
    for _ in range(3):
        found = []
        for one in (function, compiled):
            for x in arguments:
                x.cleargrad()
            y = one(*arguments)
            y.backward()
            found.append((y.array, *[x.grad for x in arguments]))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_matrix_that_must_not_be_singular_gets_its_values() -> None:
    eye = tn.asarray(np.eye(SIDE), requires_grad=False)
    assert_as_eager(lambda x: F.sum(linalg.inv(F.tanh(x) * 0.01 + eye) * x), matrix())


def test_a_function_of_the_user_gets_values() -> None:
    assert_as_eager(lambda x: F.sum(rows(F.softmax(x * 2.0, axis=1)) * F.sin(x)), matrix())


def test_values_are_computed_once() -> None:
    def function(x: Any) -> Any:
        y = F.softmax(x * 2.0, axis=1)
        for _ in range(5):
            y = rows(F.exp(F.log(y)))
        return F.sum(y * x)

    Rows.runs = 0
    with tn.no_backprop_mode():
        tn.trace(function, matrix(requires_grad=False))
    assert Rows.runs == 5


def test_an_error_about_values_ends_at_the_line_of_the_user() -> None:
    def function(x: Any) -> Any:
        y = F.tanh(x)
        return F.sum(rows(y))  # here

    with pytest.raises(ValueError, match="do not add up") as caught:
        tn.compile(function)(matrix())
    names = [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert "function" in names and "rows" in names


def test_captured_parameters_and_numbers_are_sources_of_values() -> None:
    w = tn.nn.Parameter(np.random.default_rng(5).normal(size=(SIDE, SIDE)))
    scale = np.full((SIDE, SIDE), 2.0)

    def function(x: Any) -> Any:
        return F.sum(rows(F.softmax((x + w) * scale, axis=1)) * w)

    assert_as_eager(function, matrix())


def test_random_masks_are_drawn_as_without_a_recording() -> None:
    found = []
    for is_compiled in (False, True):
        tn.random.seed(3)
        function: Any = lambda x: F.sum(F.dropout(F.tanh(x), 0.5) * x)  # noqa: E731
        run = tn.compile(function) if is_compiled else function
        found.append([float(run(matrix())) for _ in range(3)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_bad_labels_are_refused_at_the_recording() -> None:
    labels = np.zeros(SIDE, np.int64)
    labels[7] = SIDE + 1
    with pytest.raises((ValueError, IndexError)) as eager:
        F.softmax_cross_entropy(F.tanh(matrix()), labels)
    with pytest.raises(type(eager.value)) as compiled:
        tn.compile(lambda x: F.softmax_cross_entropy(F.tanh(x), labels))(matrix())
    assert str(compiled.value).partition("\n")[0] == str(eager.value).partition("\n")[0]


def test_results_of_a_recording_have_steps_of_0() -> None:
    seen = []

    class Watching(tn.FunctionHook):
        name = "watching"

        def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
            seen.append((type(function).__name__, outputs[0].raw))

    def function(x: Any) -> Any:
        with Watching():
            y = F.sin(F.tanh(x) @ x)
            return F.sum(y, axis=0)

    x = matrix(requires_grad=False)
    tn.trace(function, x)
    assert [name for name, _ in seen] == ["Tanh", "MatMul", "Sin", "Sum"]
    for _, array in seen:
        assert shape_runner.is_stand_in(array) and shape_runner.is_stand_in(array[3:])
        assert not any(array.strides) and array.dtype == np.float64
        np.testing.assert_array_equal(array, np.ones(array.shape))
    assert [array.shape for _, array in seen] == [(SIDE, SIDE)] * 3 + [(SIDE,)]


def test_small_arrays_have_values() -> None:
    side = int((shape_runner.LEAST_BYTES / 8) ** 0.5) - 1
    small = np.ones((side, side))
    run = shape_runner.ShapeRunner().run
    device = tn.get_device()
    (y,) = run(F.Tanh(), (small,), device, device)
    np.testing.assert_array_equal(y, np.tanh(small))
    assert y.strides == small.strides


def test_without_a_source_of_values_the_need_is_an_error() -> None:
    runner, device = shape_runner.ShapeRunner(), tn.get_device()
    (y,) = runner.run(F.Tanh(), (matrix().array,), device, device)
    with pytest.raises(NoValuesError):
        runner.run(Rows(), (y,), device, device)


class Noting(Rows):
    """y = x; notes an element."""

    def forward(self, inputs: Any) -> Any:
        noted.append(inputs[0][3, 5])
        return (inputs[0] + 0.0,)


noted: list[Any] = []


class Linear(tn.FunctionNode):
    """y = x + 1, under a name of the library."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] + 1.0,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return grad_outputs


class Tanh(Linear):
    """y = x + 1 with an added row, under a name of the library."""

    def forward(self, inputs: Any) -> Any:
        return (np.concatenate([inputs[0] + 1.0, inputs[0][:1]]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (g,) = grad_outputs
        return (g[:-1] * 1.0,)


@pytest.mark.parametrize("own", [Linear, Tanh])
def test_a_function_of_the_user_may_have_a_name_of_the_library(own: Any) -> None:
    assert_as_eager(lambda x: F.sum(own().apply((x,))[0] * 2.0), matrix())


# --- products ------------------------------------------------------------------------------------

FEW = 6
PRODUCTS: dict[str, Any] = {
    "linear": F.linear,
    "matmul": lambda x, w: x @ w,
    "matmul of a vector": lambda x, w: x[0] @ w,
    "stacked": lambda x, w: F.reshape(x, (2, 3, SIDE)) @ w,
    "transposed": lambda x, w: x @ w.T,
    "large result": lambda x, w: F.exp(x.T @ x * 0.1) * w,
}


def few_rows() -> Any:
    host = np.random.default_rng(2).normal(size=(FEW, SIDE))
    return tn.asarray(host, requires_grad=True)


@pytest.mark.parametrize(
    ("node", "has_few_rows"),
    [
        (F.Linear(), True),
        (F.MatMul(), True),
        (F.MatMulOfTransposed(False, True), True),
        (F.MatMulOfTransposed(True, False), False),
    ],
)
def test_a_recording_needs_no_sums_of_a_large_product(node: Any, has_few_rows: bool) -> None:
    x, run, device = few_rows().array, shape_runner.ShapeRunner().run, tn.get_device()
    (y,) = run(node, (x, matrix().array if has_few_rows else x), device, device)
    assert y.shape == ((FEW, SIDE) if has_few_rows else (SIDE, SIDE)) and y.dtype == np.float64
    assert shape_runner.is_stand_in(y)


def test_a_small_product_has_values() -> None:
    x, run, device = few_rows().array, shape_runner.ShapeRunner().run, tn.get_device()
    (y,) = run(F.MatMulOfTransposed(False, True), (x, x), device, device)
    np.testing.assert_allclose(y, x @ x.T)


@pytest.mark.parametrize("name", PRODUCTS)
def test_compiled_products_are_as_in_eager_code(name: str) -> None:
    assert_as_eager(lambda x, w: F.sum(F.sin(PRODUCTS[name](x, w))), few_rows(), matrix())


def test_the_values_of_a_product_are_there_for_a_function_of_the_user() -> None:
    assert_as_eager(
        lambda x, w: F.sum(rows(F.softmax(x @ w, axis=1)) * F.cos(x)), few_rows(), matrix()
    )


def test_an_inverse_of_a_product_gets_values() -> None:
    def function(x: Any, w: Any) -> Any:  # the product of the stand-ins would be singular
        return F.sum(linalg.inv((x @ w) @ x.T + np.eye(FEW) * 300.0))

    assert_as_eager(function, few_rows(), matrix())


MATRICES: dict[str, Any] = {
    "det": lambda x: linalg.det(x) * 1e-3,
    "slogdet": lambda x: linalg.slogdet(x)[1],
    "inv": lambda x: F.sum(linalg.inv(x)),
    "cholesky": lambda x: F.sum(linalg.cholesky(x)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_gradients_of_functions_of_a_matrix_see_values(name: str) -> None:
    draws = np.random.default_rng(4)
    tall = tn.asarray(draws.normal(size=(8000, 5)) / 90.0, requires_grad=True)
    wide = tn.asarray(np.linalg.qr(draws.normal(size=(SIDE, SIDE)))[0], requires_grad=True)
    assert_as_eager(lambda x: MATRICES[name](x.T @ x), tall)
    assert_as_eager(lambda x: MATRICES[name](x @ x.T + F.tanh(x.T @ x) * 0.5), wide)


def test_the_gradient_of_a_singular_determinant_sees_values() -> None:
    stack = np.random.default_rng(4).normal(size=(8000, 3, 3))
    stack[5, 1] = stack[5, 0] * 2.0
    stack[5, :, 2] = 0.0
    x = tn.asarray(stack, requires_grad=True)
    assert_as_eager(lambda x: F.sum(linalg.det(x)), x)
    assert_as_eager(lambda x: F.sum(linalg.det(x * 1.0)), x)


def test_a_recorded_determinant_decides_when_it_runs() -> None:
    x = tn.asarray(np.random.default_rng(4).normal(size=(8000, 5)), requires_grad=True)
    compiled = tn.compile(lambda x: linalg.det(x.T @ x))
    compiled(x).backward()
    text = compiled.explain(x)
    assert "cofactors(" in text and "inv(" not in text and "take(" not in text


def test_numbers_of_stand_ins_give_no_warnings() -> None:
    x, w = np.full((FEW, SIDE), -0.001), np.full((SIDE, SIDE), 0.001)
    x[0, 0], w[0, 0] = 3.0, 3.0
    x[0, 1:], w[1:, 0] = -1.0, 1.0  # the product is negative, the first elements give 9

    def function(x: Any, w: Any) -> Any:
        return F.sum(F.log(1.0 - x @ w))

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert_as_eager(function, tn.asarray(x, requires_grad=True), tn.asarray(w))
    assert [str(one.message) for one in found] == []


# --- every function ------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", sorted(ROWS)[::8])
def test_functions_recorded_without_values_equal_eager(
    operation: str, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shape_runner, "LEAST_BYTES", 1)
    check_operation(operation, Way(str(device)), monkeypatch, 3)


@pytest.mark.slow
@pytest.mark.parametrize("operation", sorted(ROWS))
def test_all_functions_recorded_without_values_equal_eager(
    operation: str, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shape_runner, "LEAST_BYTES", 1)
    check_operation(operation, Way(str(device)), monkeypatch, 10)


# --- the specs of a recording --------------------------------------------------------------------


class Model(tn.nn.Module):
    def __init__(self, optimizer: Any) -> None:
        super().__init__()
        self.w = tn.nn.Parameter(np.random.default_rng(5).normal(size=(SIDE, SIDE)))
        self.b = tn.nn.Parameter(np.zeros(SIDE))
        self.optimizer = optimizer(self)

    def step(self, x: Any) -> Any:
        self.cleargrads()
        y = F.tanh(F.linear(x, self.w, self.b))
        loss = F.mean(F.square(y - y.detach() * 0.5 - self.w[0]))
        loss.backward()
        self.optimizer.update()
        return loss


class Halving(tn.nn.Optimizer):
    """An optimizer of the user: p' = p / 2 - g."""

    def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
        return array / 2 - grad, {}


def halving(model: Any) -> Any:
    return Halving(model, lr=0.1)


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda model: tn.nn.SGD(model, lr=0.1),
    "momentum": lambda model: tn.nn.SGD(model, lr=0.1, momentum=0.9),
    "Adam": lambda model: tn.nn.Adam(model, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_recording_of_a_step_knows_all_shapes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_run_shapes", None)  # not called
    x = few_rows().detach()
    eager, recorded = Model(OPTIMIZERS[name]), Model(OPTIMIZERS[name])
    step = tn.compile(recorded.step)
    for _ in range(3):
        np.testing.assert_allclose(step(x).array, eager.step(x).array, rtol=1e-9)
    np.testing.assert_allclose(recorded.w.array, eager.w.array, rtol=1e-9)


def test_an_update_of_the_user_is_run_for_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, x = [], few_rows().detach()
    run_shapes = plan._run_shapes

    def noting(*given: Any) -> bool:
        calls.append(1)
        return run_shapes(*given)

    monkeypatch.setattr(plan, "_run_shapes", noting)
    eager, recorded = Model(halving), Model(halving)
    step = tn.compile(recorded.step)
    for _ in range(3):
        np.testing.assert_allclose(step(x).array, eager.step(x).array, rtol=1e-9)
    np.testing.assert_allclose(recorded.w.array, eager.w.array, rtol=1e-9)
    assert calls == [1]


def test_a_function_of_the_user_sees_values_also_if_it_raises_nothing() -> None:
    noted.clear()
    x = matrix(requires_grad=False)
    tn.trace(lambda x: F.sum(Noting().apply((F.tanh(x),))[0]), x)
    assert noted == [np.tanh(x.array[3, 5])]


# --- the time of a recording ---------------------------------------------------------------------


def chain(x: Any, length: int) -> Any:
    for _ in range(length):
        x = x * 0.999 + 0.001
    return x


def events_of(length: int) -> int:
    """The calls of functions for recording, gradient net and plans of a chain."""
    compiled, count = tn.compile(chain), 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    x = tn.asarray(np.ones(3), requires_grad=True)
    with tn.using_config(compiler="none"):
        sys.setprofile(note)
        try:
            for _ in range(2):
                F.sum(compiled(x, length)).backward()
        finally:
            sys.setprofile(None)
    return count


def test_the_time_of_a_recording_is_linear() -> None:
    events_of(10)
    few, many = events_of(100), events_of(400)
    assert many < 4.1 * few
    assert many / 800 < 1290  # calls for each operator


def test_the_collector_pauses_and_goes_on() -> None:
    assert gc.isenabled()
    with making.paused_collector():
        with making.paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with making.paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_recording_that_fails_lets_the_collector_go_on() -> None:
    with pytest.raises(tn.TinynodeError):
        tn.compile(lambda x: x if F.sum(x) > 0 else -x)(matrix())
    assert gc.isenabled()
