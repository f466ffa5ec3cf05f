"""Compiled models train as eager ones do: dropout, batch normalisation, modes, double backprop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.core.hooks import thread_state
from tinynode.errors import GraphError, TraceError

F = tn.functions
DEVICES = ["numpy", "strict:device1", "fast"]


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm(16)
        self.dropout = nn.Dropout(0.5)
        self.second = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.second(self.dropout(F.relu(self.norm(self.first(x)))))


@pytest.fixture(autouse=True)
def seeded():
    """Other tests go on with the numbers that they would have drawn."""
    state = tn.random.get_state()
    tn.seed(0)
    yield
    tn.random.set_state(state)


def data():
    rng = np.random.default_rng(0)
    x = tn.asarray(rng.normal(size=(5, 8)), device=tn.get_device())
    return x, tn.asarray(rng.integers(0, 3, size=5), device=tn.get_device())


def history(compiled: bool) -> list[float]:
    """Losses, second derivatives and running statistics of a short training."""
    tn.seed(0)
    model = Net()
    optimizer = nn.Adam(model, lr=1e-2)
    x, labels = data()

    def loss(x, labels):
        return F.softmax_cross_entropy(model(x), labels)

    run = tn.compile(loss) if compiled else loss
    found = []
    for _ in range(4):
        optimizer.cleargrads()
        y = run(x, labels)
        y.backward()
        optimizer.update()
        parameters = list(model.parameters())
        gradients = tn.grad([run(x, labels)], parameters, enable_double_backprop=True)
        total = sum([F.sum(gx * gx) for gx in gradients], tn.asarray(0.0))
        seconds = tn.grad([total], parameters)
        found.append(float(y))
        found += [float(F.sum(F.abs(gx))) for gx in seconds if gx is not None]
    model.eval()
    found.append(float(run(x, labels)))
    found += [float(F.sum(model.norm.running_mean)), float(F.sum(model.norm.running_variance))]
    model.train()
    found.append(float(run(x, labels)))
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_training_is_as_in_eager_code(device):
    with tn.using_device(device), tn.using_config(dtype="float64"):
        eager, compiled = history(False), history(True)
    np.testing.assert_allclose(compiled, eager, rtol=1e-11, atol=1e-13)


def test_config_train_is_part_of_the_signature():
    dropout = nn.Dropout(0.5)
    run = tn.compile(dropout)
    x = tn.asarray(np.ones(100))
    assert not np.array_equal(run(x).array, x.array)
    with tn.using_config(train=False):
        assert np.array_equal(run(x).array, x.array)
    assert not np.array_equal(run(x).array, x.array)


def test_random_numbers_that_a_net_would_repeat_are_refused():
    run = tn.compile(lambda x: x + tn.asarray(tn.random.normal((3,))))
    with pytest.raises(TraceError, match="every run would get the same"):
        run(tn.asarray([1.0, 2.0, 3.0]))
    assert tn.random.normal((3,)).shape == (3,)


def test_a_recording_draws_nothing():
    generator = np.random.default_rng(0)
    run = tn.compile(lambda x: F.dropout(x, 0.5, generator))
    x = tn.asarray(np.ones(20))
    masks = [run(x).array for _ in range(3)]
    again = np.random.default_rng(0)
    assert [m.tolist() for m in masks] == [F.dropout(x, 0.5, again).array.tolist() for _ in masks]


def test_backward_sees_the_mask_of_its_own_forward():
    generator = np.random.default_rng(0)
    run = tn.compile(lambda x: F.dropout(x, 0.5, generator))
    x = tn.asarray(np.ones(50))
    first, second = run(x), run(x)
    for y in (first, second):
        (gx,) = tn.grad([y], [x], enable_double_backprop=True)
        assert gx is not None and np.array_equal(gx.array, y.array)


def test_an_embedding_checks_its_indices_at_each_run():
    w = tn.asarray(np.eye(3))
    run = tn.compile(lambda indices: F.embedding(indices, w))
    assert run(np.array([0, 2])).shape == (2, 3)
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(IndexError, match="embedding: indices run from"):
            run(np.array(wrong))
    assert run(np.array([1, 1])).array[0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["first", "before backward", "after", "with update"])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_after_an_error_no_cleared_gradient_is_left(
    is_recorded: bool, order: str, device: str
) -> None:
    """An update after the caught error would be a step along the gradients of the last batch."""
    w = tn.asarray(np.eye(3), device=device, requires_grad=True)
    unused = tn.asarray(np.ones(3), device=device, requires_grad=True)
    optimizer = nn.SGD([w], lr=0.1)

    def step(x: Any, t: Any) -> Any:
        if order in ("first", "with update"):
            w.cleargrad()
            unused.cleargrad()
        loss = F.softmax_cross_entropy(x @ w, t)
        if order == "before backward":
            w.cleargrad()
        loss.backward()
        if order == "after":
            w.cleargrad()
        if order == "with update":
            optimizer.update()
        return loss

    run = tn.compile(step)
    x = tn.asarray(np.ones((2, 3)), device=device, requires_grad=False)
    right, wrong = (
        tn.asarray(np.array(labels), device=device, requires_grad=False)
        for labels in ([0, 2], [0, 3])
    )
    for _ in range(2):
        (run if is_recorded else step)(x, right)
    if not is_recorded and order == "before backward":
        w.cleargrad()  # the error comes before
    unused.grad_var = tn.asarray(np.ones(3), device=device)
    before = tn.to_host(w.array).copy()
    with pytest.raises((ValueError, IndexError)):
        run(x, wrong)
    assert w.grad is None and np.array_equal(tn.to_host(w.array), before)
    assert (unused.grad is None) == (order in ("first", "with update"))
    run(x, right)
    if order not in ("after", "with update"):
        found = tn.to_host(w.grad).copy()
        step(x, right)
        np.testing.assert_allclose(found, tn.to_host(w.grad))


def test_forget_inside_a_compiled_function_is_the_function():
    run = tn.compile(lambda x: tn.forget(F.exp, x) * 2.0)
    x = tn.asarray(np.array([0.0, 1.0]))
    (gx,) = tn.grad([F.sum(run(x))], [x])
    assert gx is not None and np.allclose(gx.array, 2 * np.exp([0.0, 1.0]))


def test_a_write_before_the_first_read_is_noticed():
    w, buffer = tn.asarray(np.ones(2)), constant(1.0, 1.0)
    for written, message in ((w, "was given a new array"), (buffer, "no recorded function")):

        def run(x, written=written):
            written.array = np.zeros(2)
            return x * written

        with pytest.raises(TraceError, match=message):
            tn.compile(run)(constant(1.0, 1.0))
        assert written.array.tolist() == [1.0, 1.0]
    run = tn.compile(lambda x: (w.cleargrad(), x * w)[1])
    for _ in range(2):
        w.grad = np.ones(2)
        run(tn.asarray(np.ones(2)))
        assert w.grad is None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [nn.SGD, nn.Adam, nn.AdamW])
def test_a_whole_training_step(device, make):
    with tn.using_device(device), tn.using_config(dtype="float64"):
        x, labels = data()
        x = x.detach()
        found = []
        for compiled in (False, True):
            tn.seed(0)
            model = Net()
            optimizer = make(model, lr=0.1)

            def step(x, labels, model=model, optimizer=optimizer):
                optimizer.cleargrads()
                loss = F.softmax_cross_entropy(model(x), labels)
                loss.backward()
                optimizer.update()
                return loss

            run = tn.compile(step) if compiled else step
            losses = []
            for i in range(6):
                optimizer.lr = 0.1 / (1 + i)  # read anew at each run
                losses.append(float(run(x, labels)))
            gradients = [float(F.sum(F.abs(p.grad_var))) for p in model.parameters()]
            found.append([*losses, *gradients, *map(float, map(F.sum, model.parameters()))])
        np.testing.assert_allclose(found[1], found[0], rtol=1e-11, atol=1e-13)


def test_what_a_compiled_step_cannot_do():
    w = nn.Parameter(np.ones(2))
    optimizer = nn.SGD([w], lr=0.1)
    x = tn.asarray(np.ones(2)).detach()

    def without_clearing(x):
        F.sum(w * x).backward()

    def without_backward(x):
        optimizer.cleargrads()
        optimizer.update()

    def reading_afterwards(x):
        optimizer.cleargrads()
        F.sum(w * x).backward()
        optimizer.update()
        return w * x

    for function, message in (
        (without_clearing, r"Clear it in the function, before backward"),
        (without_backward, "gradient of .* is not computed in the function"),
        (reading_afterwards, r"is read after the optimizer's update\(\)"),
    ):
        with pytest.raises(TraceError, match=message):
            tn.compile(function)(x)
        assert w.array.tolist() == [1.0, 1.0] and w.grad is None
        assert not thread_state.hooks


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_explain_shows_nets_and_plans(device):
    with tn.using_device(device):
        x = tn.asarray(np.ones((200, 200), np.float32))
        run = tn.compile(lambda x: F.sum(F.softmax(F.tanh(x) * F.sigmoid(x))))
        text = run.explain(x)
        assert run.explain(x) == text
    assert "<lambda>(x):" in text and "<lambda>_grad(" in text
    assert "t0 = tanh(x)" in text and "run, keeping what a backward reads:" in text
    if device == "fast":
        assert "calls, " in text and "bytes of memory that the plan keeps" in text
    else:
        assert "each operator's forward in turn" in text


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_constant_result_is_fresh_at_each_call(device):
    with tn.using_device(device):
        run = tn.compile(lambda x: (x * 2.0, tn.Variable(np.zeros(3))))
        x = tn.asarray(np.ones(2))
        for _ in range(3):
            zeros = run(x)[1]
            assert zeros.array.tolist() == [0.0, 0.0, 0.0]
            zeros.array[...] = 7.0


def parameter(*values: float) -> nn.Parameter:
    return nn.Parameter(np.asarray(values))


def constant(*values: float) -> tn.Variable:
    return tn.Variable(np.asarray(values), requires_grad=False)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_running_statistics_that_are_written_twice_in_a_call(device):
    with tn.using_device(device), tn.using_config(dtype="float64"):
        a = tn.asarray(np.arange(8.0).reshape(4, 2))
        found = []
        for compiled in (False, True):
            norm = nn.BatchNorm(2)

            def both(x, norm=norm):
                y = norm(x) + norm(x * 10.0)
                return y, norm.running_mean * 1.0

            run = tn.compile(both) if compiled else both
            for _ in range(3):
                _, mean = run(a)
            found.append([norm.running_mean.array, norm.running_variance.array, mean.array])
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_a_parameter_that_is_written_and_read_again_is_refused():
    w = parameter(1.0, 2.0)

    def inner_loop(x):
        loss = F.sum(w * w * x)
        (g,) = tn.grad([loss], [w])
        with tn.no_backprop_mode():
            w.array = (w - g * 0.1).raw
        return F.sum(w * x)

    with pytest.raises(TraceError, match="was given a new array, and is read again"):
        tn.compile(inner_loop)(constant(1.0, 1.0))
    assert w.array.tolist() == [1.0, 2.0]


def test_a_gradient_after_the_update_is_refused():
    w = parameter(1.0, 2.0)
    optimizer = nn.SGD([w], lr=0.1)
    x, y = constant(1.0, 1.0), constant(10.0, 10.0)

    def backward_again(x, y):
        optimizer.cleargrads()
        first, second = F.sum(w * x), F.sum(w * y)
        first.backward()
        optimizer.update()
        second.backward()

    def update_again(x, y):
        optimizer.cleargrads()
        F.sum(w * x).backward()
        optimizer.update()
        optimizer.update()

    with pytest.raises(TraceError, match="computed anew after the optimizer's update"):
        tn.compile(backward_again)(x, y)
    with pytest.raises(TraceError, match="updated already"):
        tn.compile(update_again)(x, y)
    assert w.array.tolist() == [1.0, 2.0] and w.grad is None


def test_gradients_may_be_cleared_after_the_update():
    w = parameter(1.0, 2.0)
    optimizer = nn.SGD([w], lr=0.1)

    def step(x):
        F.sum(w * x).backward()
        optimizer.update()
        optimizer.cleargrads()

    run = tn.compile(step)
    for _ in range(3):
        run(constant(1.0, 2.0))
        assert w.grad is None
    np.testing.assert_allclose(w.array, [0.7, 1.4])


def test_parameters_without_a_gradient_may_be_missing():
    w, unused, v = parameter(1.0), parameter(5.0), parameter(2.0)
    optimizer = nn.SGD([w, unused, v], lr=0.1, allow_missing=True)

    def step(x):
        optimizer.cleargrads()
        F.sum((w + v) * x).backward()
        optimizer.update()

    run = tn.compile(step)
    run(constant(1.0))
    run(constant(1.0))
    np.testing.assert_allclose([p.array[0] for p in (w, unused, v)], [0.8, 5.0, 1.8])


@pytest.mark.parametrize(("make", "name"), [(nn.SGD, "lr"), (nn.SGD, "momentum"), (nn.Adam, "lr")])
def test_settings_of_an_optimizer_are_set_outside(make, name):
    optimizer = make([parameter(1.0)])

    def step(x):
        setattr(optimizer, name, 0.5)
        return x * 2.0

    with pytest.raises(TraceError, match=f"{name} is set while a net is recorded"):
        tn.compile(step)(constant(1.0))
    setattr(optimizer, name, 0.5)


@pytest.mark.parametrize("caught", [Exception, ValueError, RuntimeError])
def test_an_error_that_the_function_catches_is_raised_all_the_same(caught):
    def guarded(x):
        try:
            return x * float(F.sum(x))
        except caught:
            return x

    for _ in range(2):
        with pytest.raises(TraceError, match="asks for the value"):
            tn.compile(guarded)(constant(1.0, 2.0))


def test_a_method_that_asks_whether_it_is_in_training():
    class Model(nn.Module):
        def encode(self, x):
            return x * (2.0 if self.training else 1.0)

    model = Model()
    run = tn.compile(model.encode)
    x = constant(1.0)
    assert run(x).array.tolist() == [2.0]
    model.eval()
    assert run(x).array.tolist() == [1.0]
    model.train()
    assert run(x).array.tolist() == [2.0]


def test_the_loss_of_a_step_with_an_update_stands_outside_of_the_graph():
    w = parameter(1.0, 2.0)
    optimizer = nn.SGD([w], lr=0.1)

    def step(x):
        optimizer.cleargrads()
        loss = F.sum(w * x)
        loss.backward()
        optimizer.update()
        return loss

    loss = tn.compile(step)(constant(1.0, 1.0))
    assert float(loss) == 3.0 and not loss.requires_grad


@pytest.mark.parametrize("device", ["numpy", "strict:device1", "fast"])
def test_gradients_are_clipped_inside(device):
    found = []
    for is_compiled in (False, True):
        with tn.using_device(device):
            w, b = parameter(1.0, 2.0), parameter(0.5)
            optimizer = nn.SGD([w, b], lr=0.5, momentum=0.5)

            def step(x, w=w, b=b, optimizer=optimizer):
                optimizer.cleargrads()
                F.sum(w * x + b).backward()
                norm = nn.clip_gradients([w, b], 2.0)
                nn.clip_gradients_by_value([w, b], 1.25)
                optimizer.update()
                return norm

            run = tn.compile(step) if is_compiled else step
            norms = [float(run(constant(*x))) for x in ((3.0, 1.0), (0.1, 0.2), (9.0, 9.0))]
            found.append((norms, tn.to_host(w.array), tn.to_host(w.grad), tn.to_host(b.array)))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-12)
    for one, other in zip(found[1][1:], found[0][1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    if is_compiled:
        before = tn.to_host(w.array)
        with tn.using_device(device), pytest.raises(ValueError, match="norm of the gradients is"):
            run(constant(np.nan, 1.0))
        np.testing.assert_array_equal(tn.to_host(w.array), before)


def test_clipping_in_a_net_needs_a_gradient():
    w = parameter(1.0, 2.0)

    def step(x):
        w.cleargrad()
        nn.clip_gradients([w], 1.0)

    with pytest.raises(GraphError, match="no parameter has a gradient"):
        tn.compile(step)(constant(1.0, 1.0))
