"""Synchronised batch normalisation on one process; ``mpi_program.py`` has several ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import mpi_program
import numpy as np
import pytest

import tinynode as tn
from tinynode import distributed, nn
from tinynode.errors import StateError


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
def test_one_process_gives_batch_norm(device: str) -> None:
    mpi_program.check_sync_batch_norm(device)
    mpi_program.check_sync_batch_norm(device, compiled=True)


def test_errors_and_training_on_one_process() -> None:
    mpi_program.check_few_examples()
    mpi_program.check_training_with_sync_batch_norm()
    mpi_program.check_trainer_with_sync_batch_norm()
    layer = distributed.SyncBatchNorm(2)
    with pytest.raises(ValueError, match=r"channels=2, got shape \(4, 3\)"):
        layer(np.ones((4, 3), "float32"))
    with pytest.raises(ValueError, match="have 1 values"):
        tn.compile(layer)(tn.asarray(np.ones((1, 2), "float32")))


def test_evaluation_uses_the_running_statistics() -> None:
    layer = distributed.SyncBatchNorm(2, eps=0.0).eval()
    layer.running_mean.array = np.asarray([1.0, 2.0], "float32")
    layer.running_variance.array = np.asarray([4.0, 9.0], "float32")
    y = layer(np.asarray([[5.0, 5.0]], "float32"))
    np.testing.assert_allclose(y.array, [[2.0, 1.0]], rtol=1e-6)
    assert repr(layer) == "SyncBatchNorm(2, eps=0.0, momentum=0.1)"


def test_float16_is_added_up_in_float32() -> None:
    layer = distributed.SyncBatchNorm(2, dtype="float16")
    x = np.random.default_rng(0).normal(size=(50, 2)) * 300
    y = layer(x.astype("float16"))
    assert y.dtype == np.float16 and layer.running_variance.dtype == np.float16
    np.testing.assert_allclose(y.array, (x - x.mean(0)) / x.std(0), atol=3e-3)
    expected = 0.9 + 0.1 * x.var(0, ddof=1)
    np.testing.assert_allclose(layer.running_variance.array, expected, rtol=1e-2)


def test_a_recomputed_segment_updates_the_statistics_once() -> None:
    layers = nn.BatchNorm(2), distributed.SyncBatchNorm(2)
    x = np.random.default_rng(0).normal(size=(5, 2)).astype("float32")
    for layer in layers:
        y = tn.checkpoint(layer, tn.asarray(x, requires_grad=True))
        tn.functions.sum(y * y * y).backward()
    for name, array in layers[0].state_dict().items():
        np.testing.assert_allclose(layers[1].state_dict()[name], array, rtol=1e-6)


class Pair(NamedTuple):
    first: Any
    second: Any


class Tree(nn.Module):
    """BatchNorm in each kind of container, once shared."""

    def __init__(self) -> None:
        shared = nn.BatchNorm(2, eps=1e-3, momentum=0.25)
        self.shared, self.again = shared, shared
        self.layers = [nn.Linear(2, 2), nn.BatchNorm(2)]
        self.named = {"norm": nn.BatchNorm(2)}
        self.pair = Pair(nn.BatchNorm(2), nn.Linear(2, 2))
        self.plain = (nn.BatchNorm(2),)
        self.compiled = tn.compile(nn.BatchNorm(2))
        self.deep = nn.Sequential(nn.Sequential(nn.BatchNorm(2)), nn.LayerNorm(2))
        self.same = nn.Linear(2, 2), nn.LayerNorm(2)
        self.itself = [self]


def test_convert_replaces_each_batch_norm() -> None:
    model = Tree().eval()
    before, same = dict(model.named_parameters()), model.same
    names = list(model.state_dict())
    comm = distributed.Communicator()
    assert distributed.convert_batch_norm(model, comm) is model
    found = [one for one in model.modules() if isinstance(one, nn.BatchNorm)]
    assert len(found) == 7 and {type(one) for one in found} == {distributed.SyncBatchNorm}
    assert all(one.communicator is comm and not one.training for one in found)
    assert model.shared is model.again and isinstance(model.pair, Pair) and model.same is same
    assert (model.shared.eps, model.shared.momentum) == (1e-3, 0.25)
    assert list(model.state_dict()) == names
    assert all(p is before[name] for name, p in model.named_parameters())
    first = model.shared
    assert distributed.convert_batch_norm(model) is model and model.shared is first


def test_convert_a_single_layer_and_refusals() -> None:
    layer = nn.BatchNorm(3)
    new = distributed.convert_batch_norm(layer)
    assert isinstance(new, distributed.SyncBatchNorm) and new.gamma is layer.gamma
    assert new.running_mean is layer.running_mean

    class Own(nn.BatchNorm):
        def forward(self, x: Any) -> Any:
            return super().forward(x) + 1.0

    with pytest.raises(TypeError, match=r"Own has a forward of its own"):
        distributed.convert_batch_norm([Own(2)])
    with pytest.raises(TypeError, match="model must be a Module"):
        distributed.convert_batch_norm(3)
    compiled = tn.compile(nn.BatchNorm(2))
    compiled(tn.asarray(np.ones((3, 2), "float32")))
    with pytest.raises(StateError, match="Convert the model before its first call"):
        distributed.convert_batch_norm(nn.Sequential(compiled))
