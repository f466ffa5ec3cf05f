"""Frozen parameters: no gradient, the same state, and every tool of training takes them."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import GraphError, StateError

F = tn.functions
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("torch", "jax")]
DEVICES = ["numpy", "fast", "strict", *OTHERS]
RNG = np.random.default_rng(3)
X = RNG.standard_normal((8, 4)).astype(np.float32)
T = RNG.standard_normal((8, 2)).astype(np.float32)


class Net(nn.Module):
    """An encoder of two layers and a head."""

    def __init__(self, **options: Any) -> None:
        self.encoder = nn.Sequential(
            nn.Linear(4, 5, **options), F.tanh, nn.Linear(5, 5, **options)
        )
        self.head = nn.Linear(5, 2, **options)

    def forward(self, x: Any) -> Any:
        return self.head(F.tanh(self.encoder(x)))


def loss_of(model: Any, x: Any = X, t: Any = T) -> Any:
    return F.mean_squared_error(model(x), t)


def frozen_names(model: nn.Module) -> list[str]:
    return [name for name, p in model.named_parameters() if not p.requires_grad]


class Counter(tn.FunctionHook):
    """Counts the functions that run forward inside of a backward pass."""

    def __init__(self) -> None:
        self.name = "counter"
        self.backward: list[str] = []
        self.inside = 0
        self.products = 0

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.backward.append(function.label)
        self.inside += 1

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.inside -= 1

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        self.products += bool(self.inside and function.label in ("MatMul", "MatMulOfTransposed"))


def test_freeze_takes_layers_names_and_patterns() -> None:
    model = Net()
    assert model.encoder.freeze() is model.encoder
    assert frozen_names(model) == [f"encoder.{n}" for n, _ in model.encoder.named_parameters()]
    assert model.unfreeze() is model and frozen_names(model) == []
    model.freeze("encoder.layers.2", "head.bias")
    assert frozen_names(model) == ["encoder.layers.2.weight", "encoder.layers.2.bias", "head.bias"]
    model.unfreeze("*")
    model.freeze("*.bias")
    assert len(frozen_names(model)) == 3 and all(n.endswith("bias") for n in frozen_names(model))
    model.unfreeze("encoder")
    assert frozen_names(model) == ["head.bias"]


def test_a_name_without_a_parameter_is_refused_and_nothing_changes() -> None:
    model = Net()
    with pytest.raises(StateError, match=r"Net.freeze: no parameter has the name 'enc'.*encoder"):
        model.freeze("head", "enc")
    with pytest.raises(StateError, match=r"Net.unfreeze: no parameter"):
        model.unfreeze("head.w")
    with pytest.raises(TypeError, match=r"Net.freeze: expected names, got .*model.layer.freeze"):
        model.freeze(model.head)  # type: ignore[arg-type]
    assert frozen_names(model) == []


@pytest.mark.parametrize("device", DEVICES)
def test_no_gradient_is_computed_for_frozen_parameters(device: str) -> None:
    if device in ("torch", "jax"):
        pytest.importorskip(device)
    with tn.using_device(device):
        model = Net(dtype="float32")
    found = []
    for names in ((), ("encoder",), ("*.weight",), ("head.weight",)):
        model.unfreeze()
        if names:
            model.freeze(*names)
        model.cleargrads()
        with Counter() as counter:
            loss_of(model).backward()
        frozen = frozen_names(model)
        assert [n for n, p in model.named_parameters() if p.grad is None] == frozen
        found.append((counter.backward.count("Linear"), counter.products))
    # no product for the weight of the head, and none for x in the first layer
    assert [linears for linears, _ in found] == [3, 1, 3, 3]
    products = [count for _, count in found]
    if products[0]:  # a device may compute the products without functions of their own
        assert products == [5, 1, 2, 4]


def test_a_graph_without_a_trained_parameter_is_not_recorded() -> None:
    model = Net()
    model.encoder.freeze()
    assert model.encoder(X).creator_node is None and model(X).creator_node is not None


def test_the_state_keeps_frozen_parameters(tmp_path: Path) -> None:
    model, other = Net(), Net()
    model.encoder.freeze()
    nn.save(tmp_path / "net.npz", model)
    other.freeze("head")
    other.load_state_dict(nn.load(tmp_path / "net.npz"))
    state = model.state_dict()
    assert list(state) == [name for name, _ in other.named_parameters()]
    assert all((array == other.state_dict()[name]).all() for name, array in state.items())
    assert frozen_names(other) == ["head.weight", "head.bias"]  # freezing is no part of the state


def decayed(cls: Callable[..., Any]) -> Callable[..., Any]:
    return lambda model: cls(model, lr=0.01, weight_decay=0.5)


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda model: nn.SGD(model, lr=0.01, momentum=0.9, weight_decay=0.5),
    "Adam": nn.Adam,
    "AdamW": decayed(nn.AdamW),
    "RMSprop": nn.RMSprop,
    "Adagrad": nn.Adagrad,
    "NAdam": nn.NAdam,
    "Lion": decayed(nn.Lion),
    "LBFGS": nn.LBFGS,
    "groups": lambda model: nn.AdamW(
        [{"parameters": model.encoder, "lr": 0.1}, {"parameters": model.head}], weight_decay=0.5
    ),
}


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_leave_a_frozen_parameter_as_it_is(name: str, device: str) -> None:
    with tn.using_device(device):
        model = Net()
    optimizer = OPTIMIZERS[name](model)

    def closure() -> Any:
        optimizer.cleargrads()
        loss = loss_of(model)
        loss.backward()
        return loss

    optimizer.step(closure)
    before, moments = model.state_dict(), optimizer.state_dict()
    model.encoder.freeze()
    optimizer.step(closure)
    after, later = model.state_dict(), optimizer.state_dict()
    for key, array in before.items():
        assert (array == after[key]).all() == key.startswith("encoder"), key
    for slot in optimizer.slots:
        if not slot.parameter.requires_grad:
            own = [key for key in moments if key.startswith(f"{slot.name}/")]
            assert own and all((moments[key] == later[key]).all() for key in own)
    optimizer.load_state_dict(later)
    model.unfreeze()
    optimizer.step(closure)
    assert not any((after[key] == array).all() for key, array in model.state_dict().items())


def test_a_stale_gradient_of_a_frozen_parameter_does_nothing() -> None:
    p = nn.Parameter(np.ones(1, np.float32))
    q = nn.Parameter(np.ones(1, np.float32))
    optimizer = nn.SGD([p, q], lr=1.0)
    (p * q).backward()
    q.requires_grad = False
    assert q.grad is None
    q.grad = np.ones(1, np.float32)
    optimizer.update()
    assert (float(p), float(q)) == (0.0, 1.0)


def test_an_update_of_frozen_parameters_alone_is_refused() -> None:
    model = Net().freeze()
    for optimizer in (nn.SGD(model), nn.LBFGS(model)):
        with pytest.raises(GraphError, match=r"every parameter is frozen.*model.unfreeze\(\)"):
            optimizer.step(lambda: tn.asarray(1.0))
    sgd = nn.SGD(model)
    step = tn.compile(lambda: sgd.update())
    with pytest.raises(GraphError, match="every parameter is frozen"):
        step()


def test_clipping_and_averages_take_frozen_parameters() -> None:
    model = Net()
    model.encoder.freeze()
    average = nn.ExponentialMovingAverage(model, rate=0.9)
    start = model.state_dict()
    optimizer = nn.SGD(model, lr=0.5)
    for _ in range(5):
        optimizer.cleargrads()
        loss_of(model).backward()
        norm = nn.clip_gradients(model, 1e-3)
        nn.clip_gradients_by_value(model, 1.0)
        optimizer.update()
        average.update()
    parts = [float(F.sum(p.grad * p.grad)) for p in model.head.parameters()]
    assert norm > 1e-3 and abs(sum(parts) ** 0.5 - 1e-3) < 1e-6
    with average.average():
        means = model.state_dict()
    for key, array in start.items():
        assert (array == means[key]).all() == key.startswith("encoder"), key
    assert nn.clip_gradients(Net().freeze(), 1.0) == 0.0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_trainer_takes_frozen_parameters(compiled: bool) -> None:
    model = Net()
    model.encoder.freeze()
    before = model.state_dict()
    loader = nn.DataLoader(nn.ArrayDataset(X, T), 4)
    trainer = nn.Trainer(
        model,
        loss_of,
        nn.AdamW(model, lr=0.01, weight_decay=0.5),
        loader,
        validation=loader,
        clip=1.0,
        average=nn.ExponentialMovingAverage(model, rate=0.5),
        compile=compiled,
    )
    trainer.run(2, quiet=True)
    model.unfreeze()
    after = model.state_dict()
    assert [key for key in before if (before[key] == after[key]).all()] == [
        key for key in before if key.startswith("encoder")
    ]
    trainer.run(1, quiet=True)
    assert not any((after[key] == array).all() for key, array in model.state_dict().items())


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_compiled_steps_notice_freezing(device: str) -> None:
    results = []
    for compiled in (False, True):
        tn.seed(0)
        with tn.using_device(device):
            model = Net()
        optimizer = nn.AdamW(model, lr=0.01)

        def step(x: Any, t: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = loss_of(model, x, t)
            optimizer.cleargrads()
            loss.backward()
            nn.clip_gradients(model, 0.5)
            optimizer.update()
            return loss

        run = tn.compile(step) if compiled else step
        data = [tn.asarray(a, device=device, requires_grad=False) for a in (X, T)]
        for action in (None, "freeze", None, "unfreeze", "freeze"):
            before = model.encoder.state_dict()
            if action:
                getattr(model.encoder, action)()
            run(*data)
            same = [(a == before[key]).all() for key, a in model.encoder.state_dict().items()]
            assert all(same) != model.encoder.layers[0].weight.requires_grad
        results.append(model.state_dict())
    for key, array in results[0].items():
        np.testing.assert_allclose(results[1][key], array, rtol=1e-5, atol=1e-6)


def test_a_compiled_function_cannot_freeze() -> None:
    model = Net()

    def f(x: Any) -> Any:
        model.head.freeze()
        return model(x)

    with pytest.raises(tn.errors.TraceError, match=r"x.requires_grad is set while a net"):
        tn.compile(f)(tn.asarray(X))


def test_a_frozen_parameter_explains_the_missing_gradient() -> None:
    model = Net()
    model.head.freeze("bias")
    loss_of(model).backward()
    assert "it is frozen: its requires_grad is False" in str(model.head.bias.explain_grad())


def test_copies_and_other_devices_keep_the_flag() -> None:
    model = nn.Linear(2, 2)
    model.freeze("bias")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert frozen_names(other) == ["bias"]
    assert frozen_names(model.to_device("strict")) == ["bias"]


def test_a_summary_counts_frozen_parameters() -> None:
    model = Net()
    assert "frozen" not in str(tn.summary(model, (8, 4)))
    model.encoder.freeze()
    found = tn.summary(model, (8, 4))
    assert found.trainable == 12 and str(found).endswith("frozen parameters: 55")


def test_layers_of_every_kind_can_be_frozen() -> None:
    """The gradient of the input is the same, with the parameters frozen."""
    x = RNG.standard_normal((2, 4, 6)).astype(np.float32)
    layers: list[Any] = [
        nn.Conv1d(4, 3, 3),
        nn.ConvTranspose1d(4, 3, 3),
        nn.BatchNorm(4),
        nn.LayerNorm(6),
        nn.RMSNorm(6),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm(4, affine=True),
        nn.LSTM(6, 3, batch_first=True),
        nn.GRU(6, 3, batch_first=True),
        nn.RNN(6, 3, batch_first=True),
        nn.TransformerBlock(6, 2, 8),
        nn.WeightNorm(nn.Linear(6, 3)),
        nn.PReLU(),
    ]
    for layer in layers:
        gradients = []
        for action in ("unfreeze", "freeze"):
            getattr(layer, action)()
            v = tn.asarray(x)
            y = layer(v)
            y = y[0] if isinstance(y, tuple) else y
            layer.cleargrads()
            F.sum(F.tanh(y)).backward()
            gradients.append(tn.to_host(v.grad))
            assert all((p.grad is None) == (action == "freeze") for p in layer.parameters())
        np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-6, err_msg=type(layer).__name__)


def test_a_loss_of_a_frozen_model_names_unfreeze() -> None:
    model = nn.Linear(2, 1).freeze()
    with pytest.raises(tn.errors.BackwardSeedError, match=r"model\.unfreeze\(\) if the param"):
        model(np.ones((1, 2), np.float32)).backward()


def test_a_name_that_fits_nothing_gets_the_name_to_write() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    for name, cure in (
        ("layers[0]", "layers.0"),
        ("bias", "*.bias"),
        ("layers[1].bias", "layers.1.bias"),
    ):
        with pytest.raises(StateError, match=re.escape(f"Write {cure!r}.")):
            model.freeze(name)
    assert model.freeze("*.bias").layers[0].bias.requires_grad is False
