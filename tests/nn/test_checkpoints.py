"""Checkpoints: a resumed run is the unbroken run; all or nothing; files of other formats."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import StateError
from tinynode.functions import relu, softmax_cross_entropy

FORMATS = [".npz", ".safetensors"]


class Halving:
    """A schedule: halves the learning rate after every third step."""

    def __init__(self, optimizer: nn.Optimizer) -> None:
        self.optimizer = optimizer
        self.steps = 0
        self.history: list[float] = []

    def step(self) -> None:
        self.steps += 1
        self.history.append(self.optimizer.lr)
        if self.steps % 3 == 0:
            self.optimizer.lr = self.optimizer.lr / 2

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "history": list(self.history)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps, self.history = state["steps"], list(state["history"])


class Run:
    """A run with dropout, a shuffling loader with a random transform, Adam and a schedule."""

    def __init__(self, seed: int) -> None:
        tn.seed(seed)
        rng = np.random.default_rng(0)
        x = rng.standard_normal((23, 4)).astype(np.float32)
        dataset = nn.ArrayDataset(x, np.arange(23) % 3)
        self.model = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm(8), relu, nn.Dropout(0.5), nn.Linear(8, 3)
        )
        self.optimizer = nn.Adam(self.model, lr=0.1 + seed, betas=(0.9, 0.99))
        self.schedule = Halving(self.optimizer)
        self.loader = nn.DataLoader(dataset, 5, shuffle=True, transform=self.noisy)
        self.batches = iter(self.loader)
        self.losses: list[float] = []

    @staticmethod
    def noisy(sample: Any, generator: Any) -> Any:
        x, label = sample
        return x + generator.standard_normal(4).astype(np.float32), label

    def train(self, steps: int) -> list[float]:
        """The losses of some steps, across the ends of epochs."""
        losses = []
        for _ in range(steps):
            batch = next(self.batches, None)
            if batch is None:
                self.batches = iter(self.loader)
                batch = next(self.batches)
            x, labels = batch
            loss = softmax_cross_entropy(self.model(x), labels)
            self.optimizer.cleargrads()
            loss.backward()
            self.optimizer.update()
            self.schedule.step()
            losses.append(float(loss))
        return losses

    def parts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "loader": self.loader,
        }

    def everything(self) -> list[Any]:
        arrays = [self.model.state_dict(), self.optimizer.state_dict()]
        found = [(name, a.tobytes()) for state in arrays for name, a in state.items()]
        rest = (self.schedule.state_dict(), self.loader.state_dict(), repr(self.optimizer))
        return [found, *rest, tn.random.get_state().tolist()]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_resumed_run_is_the_unbroken_run(suffix: str, tmp_path: Path) -> None:
    if suffix == ".safetensors":
        pytest.importorskip("safetensors")
    path = tmp_path / f"run{suffix}"
    unbroken = Run(0)
    unbroken.train(7)  # into the middle of the second epoch
    metrics = {"loss": np.float32(0.5), "best": [1, 2.5, None, "x", True], "curve": np.arange(3)}
    nn.save_checkpoint(path, **unbroken.parts(), epoch=1, metrics=metrics)
    saved = unbroken.everything()
    losses = unbroken.train(9)
    resumed = Run(1)
    values = nn.load_checkpoint(path, **resumed.parts())
    assert resumed.everything() == saved
    resumed.batches = iter(resumed.loader)
    assert resumed.train(9) == losses
    assert resumed.everything() == unbroken.everything()
    assert values["epoch"] == 1 and values["metrics"]["curve"].tolist() == [0, 1, 2]
    assert {**values["metrics"], "curve": 0} == {
        "loss": 0.5,
        "best": [1, 2.5, None, "x", True],
        "curve": 0,
    }


def test_equal_runs_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        nn.save_checkpoint(tmp_path / name, **Run(0).parts(), epoch=1)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_the_arrays_of_a_part_load_alone(tmp_path: Path) -> None:
    run = Run(0)
    nn.save_checkpoint(tmp_path / "run.npz", **run.parts())
    other = Run(1)
    other.model.load_state_dict(nn.load(tmp_path / "run.npz", part="model"))
    assert other.everything()[0][:8] == run.everything()[0][:8]
    other.optimizer.load_state_dict(nn.load(tmp_path / "run.npz", part="optimizer"))
    assert nn.load_checkpoint(tmp_path / "run.npz", **{**run.parts(), "schedule": None}) == {}


def test_sgd_gets_its_momentum_and_moments(tmp_path: Path) -> None:
    first = nn.SGD([nn.Parameter(np.ones(2))], lr=0.5, momentum=0.9)
    first._slots[0].parameter.grad = np.ones(2)
    first.update()
    nn.save_checkpoint(tmp_path / "x.npz", optimizer=first)
    second = nn.SGD([nn.Parameter(np.ones(2))])
    nn.load_checkpoint(tmp_path / "x.npz", optimizer=second)
    assert (second.lr, second.momentum) == (0.5, 0.9)
    assert second.state_dict()["0/v"].tolist() == [1.0, 1.0]


def grouped(*rates: float) -> nn.SGD:
    """An optimizer with a group of parameters for each learning rate."""
    groups = [{"parameters": [nn.Parameter(np.ones(2))], "lr": rate} for rate in rates]
    return nn.SGD(groups, lr=rates[0])


def test_groups_of_parameters_get_their_settings(tmp_path: Path) -> None:
    first, second = grouped(0.5, 0.25), grouped(1.0, 1.0)
    first.groups[1].momentum = 0.9
    nn.save_checkpoint(tmp_path / "x.npz", optimizer=first)
    nn.load_checkpoint(tmp_path / "x.npz", optimizer=second)
    for one, other in zip(first.groups, second.groups, strict=True):
        assert (one.lr, one.momentum, one.lr_factor) == (other.lr, other.momentum, other.lr_factor)
    with pytest.raises(StateError, match="optimizer has 3 groups of parameters here, and 2"):
        nn.load_checkpoint(tmp_path / "x.npz", optimizer=grouped(1.0, 1.0, 1.0))


class Broken(Halving):
    """Loads a part of the state, then fails."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        if state["steps"] == 7:
            raise RuntimeError("no history")


def test_a_failed_load_changes_nothing(tmp_path: Path) -> None:
    run = Run(0)
    run.train(7)
    nn.save_checkpoint(tmp_path / "run.npz", **run.parts())
    other = Run(1)
    other.schedule = Broken(other.optimizer)
    before = other.everything()
    with pytest.raises(StateError, match=r"^load_checkpoint: schedule: no history"):
        nn.load_checkpoint(tmp_path / "run.npz", **other.parts())
    assert other.everything() == before


def changed_model() -> Run:
    run = Run(1)
    run.model = nn.Sequential(
        nn.Linear(4, 9), nn.BatchNorm(9), relu, nn.Dropout(0.5), nn.Linear(9, 3)
    )
    return run


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": changed_model().model}, r"model: Sequential.* layers.0.weight is .*\(9, 4\)"),
        ({"ema": Run(1).model}, r"has no ema; the file has model, optimizer, schedule, loader"),
        ({"epoch": Run(1).model}, "holds epoch as a plain value"),
        ({"model": 3}, "model must be an object with state_dict"),
        (
            {"optimizer": nn.SGD(Run(1).model)},
            r"optimizer is SGD\(lr, momentum, .*\) here, and Adam",
        ),
        ({"optimizer": nn.AdamW(Run(1).model)}, "optimizer is AdamW"),
    ],
)
def test_a_wrong_object_is_named(change: Any, message: str, tmp_path: Path) -> None:
    nn.save_checkpoint(tmp_path / "run.npz", **Run(0).parts(), epoch=2)
    other = Run(1)
    before = other.everything()
    with pytest.raises(StateError, match=f"^load_checkpoint: .*{message}"):
        nn.load_checkpoint(tmp_path / "run.npz", **{**other.parts(), **change})
    assert other.everything() == before


def test_a_forgotten_object_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    nn.save_checkpoint(path, **Run(0).parts())
    with pytest.raises(
        StateError, match=r"also holds optimizer, schedule, loader. Give optimizer"
    ):
        nn.load_checkpoint(path, model=Run(1).model)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"loss": tn.Variable(np.ones(()))}, r"loss must be .* Give float\(...\) of a loss"),
        ({"metrics": {"f": print}}, "metrics/f must be"),
        ({"metrics": {3: 1}}, "the keys of a dict must be text"),
        ({"metrics": {"@array": 1}}, "the keys of a dict must be text"),
        ({"m": {"a/b": np.ones(1), "a": {"b": np.ones(1)}}}, "two arrays have the name m/a/b"),
        ({"random": 3}, "random is the name of tinynode's random state"),
        ({"x": np.array([None])}, "x is .*Python objects cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named(parts: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=rf"^save_checkpoint: .*{message}"):
        nn.save_checkpoint(tmp_path / "x.npz", **parts)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [1, 0.5, "text", None, [1], {"a": 1}])
def test_save_names_save_checkpoint_for_plain_values(value: Any, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"^save: epoch must be an array, .* nn.save_checkpoint"):
        nn.save(tmp_path / "x.npz", {"epoch": value})


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1, "objects": 3}', '{"format": 1, "objects": {"m": {}}}']
)
def test_another_file_is_no_checkpoint(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    nn.save(path, {"checkpoint.json": np.frombuffer(text.encode() or b" ", np.uint8)})
    with pytest.raises(StateError, match=r"x.npz is no file of save_checkpoint"):
        nn.load_checkpoint(path)
    nn.save(path, Run(0).model)
    with pytest.raises(StateError, match=r"is no file of save_checkpoint"):
        nn.load_checkpoint(path)


def test_another_format_and_a_lost_array_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    nn.save_checkpoint(path, model=Run(0).model)
    state = nn.load(path)
    del state["model/layers.0.weight"]
    nn.save(path, state)
    with pytest.raises(StateError, match=r"the file lacks the array model/layers.0.weight"):
        nn.load_checkpoint(path, model=Run(0).model)
    text = bytes(state["checkpoint.json"]).replace(b'"format": 1', b'"format": 9')
    nn.save(path, {**state, "checkpoint.json": np.frombuffer(text, np.uint8)})
    with pytest.raises(StateError, match=r"has the format 9"):
        nn.load_checkpoint(path, model=Run(0).model)


# --- safetensors ---------------------------------------------------------------------------------


def test_a_model_goes_through_safetensors(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "m.safetensors"
    model = Run(0).model
    state = {**model.state_dict(), "flags": np.array([True, False]), "scalar": np.array(3)}
    nn.save(path, state)
    theirs, ours = library.load_file(path), nn.load(path)
    assert set(theirs) == set(ours) == set(state)
    for name, array in state.items():
        for found in (theirs[name], ours[name]):
            assert found.dtype == array.dtype and found.shape == array.shape
            assert found.tobytes() == array.tobytes()
    nn.save(path, model)
    Run(1).model.load_state_dict(nn.load(path))
    with pytest.raises(StateError, match=r"'z' is complex64; a .safetensors file holds"):
        nn.save(path, {"z": np.ones(1, np.complex64)})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"is no .safetensors file, or it is damaged"):
        nn.load(path)


def test_bfloat16_comes_as_float32(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    bits = np.array([[0x3F80, 0xC040]], "<u2")  # 1.0 and -3.0
    path = tmp_path / "b.safetensors"
    for dtype in ("BF16", "F8_E4M3"):
        shape = [1, 2] if dtype == "BF16" else [1, 4]
        text = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, 4]}}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + bits.tobytes())
        if dtype == "BF16":
            assert nn.load(path)["x"].tolist() == [[1.0, -3.0]]
    with pytest.raises(StateError, match="x has the dtype F8_E4M3, unknown to NumPy"):
        nn.load(path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("safetensors"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    path = tmp_path / "m.safetensors"
    with pytest.raises(ImportError, match=r"^save: .*pip install 'tinynode\[safetensors\]'"):
        nn.save(path, Run(0).model)
    path.write_bytes(b"")
    with pytest.raises(ImportError, match=r"^load: .*pip install 'tinynode\[safetensors\]'"):
        nn.load(path)
