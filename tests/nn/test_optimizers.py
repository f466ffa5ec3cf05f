"""Optimizers against plain formulas and PyTorch; groups, the two names of the update, L-BFGS."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import GraphError, StateError
from tinynode.nn import updates
from tinynode.nn.updates import AdamUpdate, nadam_numbers

F = tn.functions
STEPS = 100


# --- each formula, in plain NumPy ----------------------------------------------------------------


def sgd(p: Any, g: Any, s: dict[str, Any], t: int, lr: float, o: dict[str, Any]) -> Any:
    g = g + o.get("weight_decay", 0.0) * p
    s["v"] = o.get("momentum", 0.0) * s.get("v", 0.0) + g
    return p - lr * (g + o["momentum"] * s["v"] if o.get("nesterov") else s["v"])


def rmsprop(p: Any, g: Any, s: dict[str, Any], t: int, lr: float, o: dict[str, Any]) -> Any:
    g = g + o.get("weight_decay", 0.0) * p
    alpha = o.get("alpha", 0.99)
    s["v"] = alpha * s.get("v", 0.0) + (1 - alpha) * g**2
    s["a"] = alpha * s.get("a", 0.0) + (1 - alpha) * g
    step = g / (np.sqrt(s["v"] - s["a"] ** 2 if o.get("centered") else s["v"]) + 1e-8)
    s["b"] = o.get("momentum", 0.0) * s.get("b", 0.0) + step
    return p - lr * s["b"]


def adagrad(p: Any, g: Any, s: dict[str, Any], t: int, lr: float, o: dict[str, Any]) -> Any:
    g = g + o.get("weight_decay", 0.0) * p
    s["s"] = s.get("s", o.get("initial_accumulator_value", 0.0)) + g**2
    return p - lr / (1 + (t - 1) * o.get("lr_decay", 0.0)) * g / (np.sqrt(s["s"]) + 1e-10)


def nadam(p: Any, g: Any, s: dict[str, Any], t: int, lr: float, o: dict[str, Any]) -> Any:
    g = g + o.get("weight_decay", 0.0) * p
    mu, after = [0.9 * (1 - 0.5 * 0.96 ** (k * 0.004)) for k in (t, t + 1)]
    s["product"] = s.get("product", 1.0) * mu
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0.0) + 0.001 * g**2
    mean = after * s["m"] / (1 - s["product"] * after) + (1 - mu) * g / (1 - s["product"])
    return p - lr * mean / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


def lion(p: Any, g: Any, s: dict[str, Any], t: int, lr: float, o: dict[str, Any]) -> Any:
    m = s.get("m", 0.0)
    s["m"] = 0.99 * m + 0.01 * g
    return p - lr * (np.sign(0.9 * m + 0.1 * g) + o.get("weight_decay", 0.0) * p)


def adam(p: Any, g: Any, s: dict[str, Any], t: int, lr: float, o: dict[str, Any]) -> Any:
    p = p - lr * o.get("weight_decay", 0.0) * p
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0.0) + 0.001 * g**2
    return p - lr * (s["m"] / (1 - 0.9**t)) / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


CASES: dict[str, tuple[Any, Callable[..., Any], dict[str, Any]]] = {
    "sgd": (nn.SGD, sgd, {"lr": 0.05}),
    "sgd-decay": (nn.SGD, sgd, {"lr": 0.05, "weight_decay": 0.1}),
    "sgd-momentum-decay": (nn.SGD, sgd, {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.1}),
    "nesterov": (nn.SGD, sgd, {"lr": 0.05, "momentum": 0.8, "nesterov": True}),
    "adam": (nn.Adam, adam, {"lr": 0.05}),
    "adamw": (nn.AdamW, adam, {"lr": 0.05, "weight_decay": 0.1}),
    "rmsprop": (nn.RMSprop, rmsprop, {}),
    "rmsprop-all": (
        nn.RMSprop,
        rmsprop,
        {"lr": 0.003, "alpha": 0.9, "momentum": 0.7, "centered": True, "weight_decay": 0.1},
    ),
    "rmsprop-momentum": (nn.RMSprop, rmsprop, {"momentum": 0.5}),
    "adagrad": (nn.Adagrad, adagrad, {}),
    "adagrad-all": (
        nn.Adagrad,
        adagrad,
        {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ),
    "nadam": (nn.NAdam, nadam, {}),
    "nadam-decay": (nn.NAdam, nadam, {"lr": 0.005, "weight_decay": 0.1}),
    "lion": (nn.Lion, lion, {"lr": 0.01, "weight_decay": 0.1}),
}

DATA = np.random.default_rng(0).normal(size=(6, 3))
START = np.random.default_rng(1).normal(size=(3,)), np.asarray(0.25)


def by_formula(
    formula: Callable[..., Any], make: Any, options: dict[str, Any], steps: int
) -> list[Any]:
    """The parameters after each step, of the loss mean((tanh(x w) + b)^2)."""
    lr = options.get("lr", make([nn.Parameter(np.zeros(1))]).lr)
    w, b = START
    states: list[dict[str, Any]] = [{}, {}]
    found = []
    for t in range(1, steps + 1):
        h = np.tanh(DATA @ w)
        d = 2 * (h + b) / 6
        grads = (d * (1 - h**2)) @ DATA, np.sum(d)
        w, b = [
            formula(p, g, s, t, lr, options) for p, g, s in zip((w, b), grads, states, strict=True)
        ]
        found.append((w, b))
    return found


class Training:
    def __init__(self, make: Any, options: dict[str, Any], dtype: str = "float64") -> None:
        self.x = tn.asarray(DATA.astype(dtype), requires_grad=False)
        self.parameters = [
            nn.Parameter(tn.asarray(host.astype(dtype)).array, name=name)
            for name, host in zip("wb", START, strict=True)
        ]
        self.optimizer = make(self.parameters, **options)

    def loss(self) -> Any:
        w, b = self.parameters
        return F.mean((F.tanh(self.x @ w) + b) ** 2)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def hosts(self) -> list[Any]:
        return [tn.to_host(p.array).copy() for p in self.parameters]


RUNS = [
    pytest.param(device, is_compiled, id=f"{device}-{'compiled' if is_compiled else 'eager'}")
    for device in ("numpy", "fast", "strict:device1")
    for is_compiled in (False, True)
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("device", "is_compiled"), RUNS)
def test_a_hundred_steps_are_the_formulas(name: str, device: str, is_compiled: bool) -> None:
    make, formula, options = CASES[name]
    with tn.using_device(device):
        training = Training(make, options)
        step = tn.compile(training.step) if is_compiled else training.step
        steps = STEPS if device == "numpy" and not is_compiled else 20
        for t, (w, b) in enumerate(by_formula(formula, make, options, steps)):
            step()
            if t % 10 in (0, 9):
                for host, wanted in zip(training.hosts(), (w, b), strict=True):
                    np.testing.assert_allclose(host, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
@pytest.mark.parametrize("name", [name for name in CASES if name != "lion"])
def test_a_hundred_steps_agree_with_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, _, options = CASES[name]
    options = {"lr": make([nn.Parameter(np.zeros(1))]).lr, **options}
    training = Training(make, options)
    parameters = [torch.tensor(host, requires_grad=True) for host in START]
    theirs = getattr(torch.optim, make.__name__)(parameters, foreach=False, **options)
    if make not in (nn.SGD, nn.Adagrad):  # PyTorch's SGD has lr 0.001; the others' are its own
        assert type(theirs)(parameters).defaults["lr"] == make(training.parameters).lr
    x = torch.tensor(DATA)
    for _ in range(STEPS):
        training.step()
        theirs.zero_grad()
        loss = ((torch.tanh(x @ parameters[0]) + parameters[1]) ** 2).mean()
        loss.backward()
        theirs.step()
        for host, tensor in zip(training.hosts(), parameters, strict=True):
            np.testing.assert_allclose(host, tensor.detach().numpy(), rtol=1e-8, atol=1e-10)


def test_the_numbers_of_nadam_are_right_after_many_steps() -> None:
    mu, after, product = nadam_numbers(0.9, 0.004, 100_000)
    assert mu == pytest.approx(0.9) and after == pytest.approx(0.9) and product < 1e-300


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_state_in_mid_run_goes_on_bitwise(name: str, is_compiled: bool) -> None:
    make, _, options = CASES[name]
    whole, first, second = [Training(make, options, "float32") for _ in range(3)]
    steps = [tn.compile(t.step) if is_compiled else t.step for t in (whole, first, second)]
    for _ in range(6):
        steps[0]()
    for _ in range(3):
        steps[1]()
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    for p, host in zip(second.parameters, first.hosts(), strict=True):
        p.array = host
    for _ in range(3):
        steps[2]()
    for one, other in zip(second.hosts(), whole.hosts(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", CASES)
def test_an_error_in_the_second_parameter_changes_nothing(name: str) -> None:
    make, _, options = CASES[name]
    training = Training(make, options, "float32")
    training.step()
    before, state = training.hosts(), training.optimizer.state_dict()
    training.parameters[1].grad = np.asarray(3e38, np.float32)
    training.optimizer.lr = 3e38
    with np.errstate(over="raise"):
        try:
            training.optimizer.update()
        except FloatingPointError:
            for one, other in zip(training.hosts(), before, strict=True):
                np.testing.assert_array_equal(one, other)
            for key, array in training.optimizer.state_dict().items():
                np.testing.assert_array_equal(array, state[key])


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (nn.SGD, {"weight_decay": -1.0}, "SGD: weight_decay must be at least 0"),
        (nn.SGD, {"nesterov": True}, "SGD: nesterov needs a momentum above 0"),
        (nn.RMSprop, {"alpha": 1.0}, "RMSprop: alpha must be at least 0 and less than 1"),
        (nn.RMSprop, {"momentum": 1.0}, "RMSprop: momentum must be"),
        (nn.Adagrad, {"lr_decay": -1.0}, "Adagrad: lr_decay must be"),
        (nn.NAdam, {"momentum_decay": -1.0}, "NAdam: momentum_decay must be"),
        (nn.Lion, {"betas": (0.9, 1.0)}, r"Lion: betas\[1\] must be"),
        (nn.AdamW, {"betas": 0.9}, "AdamW: betas must be two numbers"),
        (nn.LBFGS, {"line_search_fn": "armijo"}, 'must be "strong_wolfe" or None'),
        (nn.LBFGS, {"max_iter": 0}, "LBFGS: max_iter must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make([nn.Parameter(np.ones(2))], **options)


def test_the_text_of_an_optimizer_leaves_out_settings_that_are_off() -> None:
    p = nn.Parameter(np.ones(2))
    assert repr(nn.RMSprop([p])) == "RMSprop(1 parameter, lr=0.01, alpha=0.99, eps=1e-08)"
    text = repr(nn.SGD([p], momentum=0.5, nesterov=True))
    assert text == "SGD(1 parameter, lr=0.01, momentum=0.5, nesterov=True)"


def test_the_momentum_of_rmsprop_may_change() -> None:
    training = Training(nn.RMSprop, {})
    training.step()
    training.optimizer.momentum = 0.5
    training.step()
    assert "0/b" in training.optimizer.state_dict()
    training.optimizer.momentum = 0.0
    training.step()
    assert "0/b" not in training.optimizer.state_dict()


# --- step and update_one -------------------------------------------------------------------------


def test_step_is_update_and_takes_a_closure() -> None:
    one, two, three = [Training(nn.Adam, {"lr": 0.1}) for _ in range(3)]

    def closure() -> Any:
        three.optimizer.cleargrads()
        loss = three.loss()
        loss.backward()
        return loss

    for _ in range(3):
        two.optimizer.cleargrads()
        two.loss().backward()
        assert two.optimizer.update() is None
        one.step()
        wanted = float(three.loss())
        assert float(three.optimizer.step(closure)) == wanted
    for a, b, c in zip(one.hosts(), two.hosts(), three.hosts(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    one.optimizer.zero_grad()
    assert all(p.grad is None for p in one.parameters)
    with pytest.raises(TypeError, match=r"Adam.step: expected no argument or a closure, got 2"):
        one.optimizer.step(1, 2)


def twice(array: Any, grad: Any, moments: Any, count: int) -> Any:
    return array * 2.0, moments


class OwnRule(nn.Adam):
    @property
    def rule(self) -> Any:
        return twice


@pytest.mark.parametrize("kind", [nn.Adam, OwnRule])
def test_a_rule_of_an_instance_or_a_subclass_replaces_the_formula(kind: Any) -> None:
    training = Training(kind, {"lr": 0.1})
    if kind is nn.Adam:
        training.optimizer.update_one = twice  # type: ignore[method-assign]
    training.step()
    for one, start in zip(training.hosts(), START, strict=True):
        np.testing.assert_array_equal(one, start * np.float32(2.0))


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("base", [nn.Optimizer, nn.SGD, nn.Adam])
def test_a_subclass_with_the_former_name_of_the_method(base: Any, is_compiled: bool) -> None:
    with pytest.warns(DeprecationWarning, match=r"Old.step\(.* name the method update_one"):

        class Old(base):
            def step(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
                if base is nn.Optimizer:
                    return array - self.lr * grad, moments
                return super().step(array, np.asarray(2 * grad), moments, count)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        old = Training(Old, {"lr": 0.1})

        def step() -> None:
            old.optimizer.cleargrads()
            old.loss().backward()
            old.optimizer.update()

        run = tn.compile(step) if is_compiled else step
        wanted = [np.asarray(host) for host in START]
        run()
    old.optimizer.cleargrads()
    new = Training(nn.SGD if base is nn.Optimizer else base, {"lr": 0.1})
    new.loss().backward()
    for p in new.parameters:
        p.grad = np.asarray(p.grad * (1.0 if base is nn.Optimizer else 2.0))
    new.optimizer.update()
    for one, other, start in zip(old.hosts(), new.hosts(), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
        assert (one != start).all()


# --- groups --------------------------------------------------------------------------------------


def two_groups(parameters: Any, key: str = "parameters", **options: Any) -> Any:
    w, b = parameters
    return nn.AdamW([{key: [w], "lr": 0.01, "betas": (0.5, 0.6)}, {key: [b]}], lr=0.1, **options)


@pytest.mark.parametrize("key", ["parameters", "params"])
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_groups_are_optimizers_with_their_own_settings(
    device: str, is_compiled: bool, key: str
) -> None:
    with tn.using_device(device):
        grouped = Training(lambda ps: two_groups(ps, key), {})
        apart = Training(lambda ps: nn.AdamW(ps[1:], lr=0.1), {})
        other = nn.AdamW(apart.parameters[:1], lr=0.01, betas=(0.5, 0.6))
        step = tn.compile(grouped.step) if is_compiled else grouped.step
        for number in range(6):
            grouped.optimizer.lr = 0.1 / (1 + number)
            apart.optimizer.lr, other.lr = 0.1 / (1 + number), 0.01 / (1 + number)
            step()
            other.cleargrads()
            apart.optimizer.cleargrads()
            apart.loss().backward()
            other.update()
            apart.optimizer.update()
        for one, wanted in zip(grouped.hosts(), apart.hosts(), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-12)
    assert "2 parameters in 2 groups" in repr(grouped.optimizer)
    factors = [group.lr_factor for group in grouped.optimizer.groups]
    assert factors == pytest.approx([0.1, 1.0])


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
def test_groups_agree_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    ours = Training(two_groups, {})
    parameters = [torch.tensor(host, requires_grad=True) for host in START]
    groups = [{"params": parameters[:1], "lr": 0.01, "betas": (0.5, 0.6)}]
    theirs = torch.optim.AdamW([*groups, {"params": parameters[1:]}], lr=0.1)
    for _ in range(20):
        ours.step()
        theirs.zero_grad()
        ((torch.tanh(torch.tensor(DATA) @ parameters[0]) + parameters[1]) ** 2).mean().backward()
        theirs.step()
    for host, tensor in zip(ours.hosts(), parameters, strict=True):
        np.testing.assert_allclose(host, tensor.detach().numpy(), rtol=1e-9)


def test_a_state_of_groups_has_the_names_of_one_list() -> None:
    grouped, flat = Training(two_groups, {}), Training(nn.AdamW, {})
    grouped.step()
    assert list(grouped.optimizer.state_dict()) == list(flat.optimizer.state_dict())
    flat.optimizer.load_state_dict(grouped.optimizer.state_dict())
    again = Training(two_groups, {})
    again.optimizer.load_state_dict(flat.optimizer.state_dict())
    for one, other in zip(
        again.optimizer.state_dict().values(), grouped.optimizer.state_dict().values(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_groups_of_modules_have_numbered_names() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = nn.SGD([{"parameters": model[0], "momentum": 0.5}, {"parameters": model[1]}])
    names = list(optimizer.state_dict())
    assert names[:3] == ["0.weight/count", "0.weight/v", "0.bias/count"]
    assert names[-1] == "1.bias/count" and len(set(names)) == 6


def test_a_group_without_gradients_is_skipped_if_allowed() -> None:
    for is_compiled in (False, True):
        training = Training(lambda ps: two_groups(ps, allow_missing=True), {})
        w, b = training.parameters

        def step(training: Any = training, b: Any = b) -> None:
            training.optimizer.cleargrads()
            F.sum(b * b).backward()
            training.optimizer.update()

        (tn.compile(step) if is_compiled else step)()
        np.testing.assert_array_equal(tn.to_host(w.array), START[0])
        assert tn.to_host(b.array) != START[1]
        w.grad = b.grad = None
        with pytest.raises(GraphError, match="has no gradient"):
            training.optimizer.update()


def test_an_error_in_the_second_group_changes_neither() -> None:
    class Failing(nn.SGD):
        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            if not array.shape:
                raise KeyboardInterrupt
            return super().update_one(array, grad, moments, count)

    training = Training(lambda ps: Failing([{"params": ps[:1]}, {"params": ps[1:]}]), {})
    with pytest.raises(KeyboardInterrupt):
        training.step()
    for one, start in zip(training.hosts(), START, strict=True):
        np.testing.assert_array_equal(one, start)
    assert int(training.optimizer.state_dict()["0/count"]) == 0


P, Q = nn.Parameter(np.ones(2)), nn.Parameter(np.ones(2))


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ([{"lr": 0.1}], {}, 'SGD: group 0 must have "parameters"'),
        ([{"params": [P], "beta": 1}], {}, "group 0 has the unknown setting 'beta'. .* are lr, "),
        ([{"params": [P]}, {"params": [P, Q]}], {}, "group 1 has the parameter .* group 0 has"),
        ([{"params": [P]}, Q], {}, "SGD: group 1 must be a dictionary"),
        ([{"params": []}], {}, "SGD: group 0: parameters is empty"),
        ([{"params": [P], "lr": -1.0}], {}, "SGD: lr must be at least 0"),
        ([{"params": [P], "lr": 0.1}], {"lr": 0.0}, "the lr of the constructor is 0"),
        ([{"params": [P], "weight_decay": -0.1}], {}, "SGD: weight_decay must be"),
        ([{"params": [P], "momentum": 2.0}], {}, "SGD: momentum must be"),
    ],
)
def test_wrong_groups_are_refused(groups: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        nn.SGD(groups, **options)


# --- L-BFGS --------------------------------------------------------------------------------------


def rosenbrock(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def minimise(optimizer: Any, x: Any, steps: int) -> list[float]:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = rosenbrock(x)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(steps)]


@pytest.mark.parametrize("device", ["numpy", "fast", "strict:device1"])
def test_lbfgs_finds_the_minimum_of_the_rosenbrock_function(device: str) -> None:
    with tn.using_device(device):
        x = nn.Parameter(tn.asarray(np.asarray([-1.5, 2.0])).array)
        minimise(nn.LBFGS([x], tolerance_change=1e-14, line_search_fn="strong_wolfe"), x, 3)
        np.testing.assert_allclose(tn.to_host(x.array), [1.0, 1.0], rtol=1e-6)


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe", "max_iter": 3},
        {"line_search_fn": "strong_wolfe", "max_iter": 2, "history_size": 2},
        {"lr": 0.1, "max_iter": 4, "history_size": 3},
        {"lr": 0.05, "max_iter": 20, "max_eval": 3},
    ],
)
def test_lbfgs_takes_the_steps_of_pytorch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    start = np.asarray([-0.5, 0.8])
    x = nn.Parameter(start.copy())
    y = torch.tensor(start, requires_grad=True)
    losses = minimise(nn.LBFGS([x], **options), x, 8)
    wanted = minimise(torch.optim.LBFGS([y], **options), y, 8)
    np.testing.assert_allclose(losses, wanted, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(x.array, y.detach().numpy(), rtol=1e-6)


def test_lbfgs_goes_on_from_its_state_bitwise() -> None:
    start = np.asarray([-1.5, 2.0])
    options: dict[str, Any] = {"max_iter": 3, "line_search_fn": "strong_wolfe", "history_size": 4}
    x, y = nn.Parameter(start.copy()), nn.Parameter(start.copy())
    whole = nn.LBFGS([x], **options)
    minimise(whole, x, 6)
    first, second = nn.LBFGS([y], **options), nn.LBFGS([y], **options)
    second.load_state_dict(first.state_dict())  # before the first step
    minimise(first, y, 3)
    second.load_state_dict(first.state_dict())
    minimise(second, y, 3)
    np.testing.assert_array_equal(x.array, y.array)
    with pytest.raises(StateError, match="memory/steps"):
        nn.LBFGS([y], history_size=3).load_state_dict(first.state_dict())


def test_an_error_in_the_closure_of_lbfgs_changes_nothing() -> None:
    x = nn.Parameter(np.asarray([-1.5, 2.0]))
    optimizer = nn.LBFGS([x])
    minimise(optimizer, x, 1)
    before, state, calls = x.array.copy(), optimizer.state_dict(), []

    def closure() -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        optimizer.cleargrads()
        loss = rosenbrock(x)
        loss.backward()
        return loss

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(closure)
    np.testing.assert_array_equal(x.array, before)
    for name, array in optimizer.state_dict().items():
        np.testing.assert_array_equal(array, state[name])


def test_what_lbfgs_refuses() -> None:
    x, y = nn.Parameter(np.ones(2)), nn.Parameter(np.ones(2, np.float32))
    with pytest.raises(TypeError, match=r"LBFGS.update: expected a closure"):
        nn.LBFGS([x]).step()
    with pytest.raises(GraphError, match=r"parameter 0 .* has no gradient: the closure"):
        nn.LBFGS([x]).step(lambda: F.sum(x))
    with pytest.raises(ValueError, match="LBFGS takes no groups"):
        nn.LBFGS([{"params": [x]}])
    with pytest.raises(ValueError, match="on one device and of one dtype, got numpy float32, nu"):
        nn.LBFGS([x, y])
    assert math.isclose(nn.LBFGS([x]).lr, 1.0)


# --- many small parameters -----------------------------------------------------------------------

KINDS: list[tuple[Any, dict[str, Any]]] = [
    (nn.SGD, {}),
    (nn.SGD, {"momentum": 0.9}),
    (nn.SGD, {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    (nn.Adam, {}),
    (nn.AdamW, {}),
    (nn.RMSprop, {"momentum": 0.5, "centered": True}),
    (nn.Adagrad, {"weight_decay": 0.1}),
    (nn.NAdam, {}),
    (nn.Lion, {"weight_decay": 0.1}),
]
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (3,), (10,), (2, 3), (4, 1, 5), (7,), (31, 2)]


def small_parameters() -> list[nn.Parameter]:
    """Parameters of three dtypes, one in Fortran's order, one above the size of joined ones."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.normal(size=shape).astype(dtype)
        for shape in SHAPES
        for dtype in (np.float16, np.float32, np.float64)
    ]
    arrays += [
        np.asfortranarray(rng.normal(size=(3, 4))),
        rng.normal(size=updates.JOINED_SIZE + 1),
    ]
    return [nn.Parameter(array) for array in arrays]


def after_updates(kind: Any, options: dict[str, Any]) -> tuple[list[nn.Parameter], Any]:
    """The parameters and the optimizer after four updates; some lack a gradient at first."""
    parameters = small_parameters()
    optimizer = kind(parameters, lr=0.01, allow_missing=True, **options)
    for number in range(4):
        for i, p in enumerate(parameters):
            p.grad = None if number == 0 and i % 10 == 0 else np.cos(p.array + number)
        optimizer.update()
    return parameters, optimizer


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_joined_updates_have_the_same_bits(
    kind: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined, optimizer = after_updates(kind, options)
    monkeypatch.setattr(updates, "JOINED_COUNT", 1000)
    alone, other = after_updates(kind, options)
    for p, q in zip(joined, alone, strict=True):
        assert p.dtype == q.dtype and p.shape == q.shape
        assert p.array.tobytes() == q.array.tobytes() and p.array.flags.owndata
        assert p.array.strides == q.array.strides
    states = optimizer.state_dict(), other.state_dict()
    assert {k: v.tobytes() for k, v in states[0].items()} == {
        k: v.tobytes() for k, v in states[1].items()
    }


@pytest.mark.parametrize(("count", "calls"), [(updates.JOINED_COUNT - 1, 7), (20, 1)])
def test_small_parameters_are_joined(
    count: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noted(function: AdamUpdate, inputs: Any) -> Any:
        sizes.append(inputs[0].size)
        return step(function, inputs)

    step = AdamUpdate.step
    monkeypatch.setattr(AdamUpdate, "step", noted)
    parameters = [nn.Parameter(np.ones(5)) for _ in range(count)]
    for p in parameters:
        p.grad = np.ones(5)
    nn.Adam(parameters).update()
    assert len(sizes) == calls and sum(sizes) == 5 * count


def test_a_formula_of_ones_own_is_not_joined() -> None:
    """The norm of a parameter is not the norm of all."""

    class NormedUpdate(AdamUpdate):
        def step(self, inputs: Any) -> Any:
            p, g, m, v, lr, _ = inputs
            return p - lr * g / np.sqrt((g * g).sum()), m, v

    class Normed(nn.Adam):
        def formula(self) -> Any:
            return NormedUpdate(self.betas, self.eps)

    parameters = [nn.Parameter(np.zeros(4)) for _ in range(updates.JOINED_COUNT)]
    for p in parameters:
        p.grad = np.full(4, 3.0)
    Normed(parameters, lr=1.0).update()
    for p in parameters:
        assert p.tolist() == [-0.5] * 4
