"""``nn.Trainer``: the loop, validation, early stopping, checkpoints and logs."""

from __future__ import annotations

import csv
import math
import signal
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.nn import training_log

F = tn.functions

X = np.random.default_rng(0).standard_normal((10, 3)).astype("float32")
Y = X @ np.float32([[1.0], [-2.0], [0.5]]) + 0.25


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test works in an empty folder, and leaves the random generator as it was."""
    monkeypatch.chdir(tmp_path)
    before = tn.random.get_state()
    yield tmp_path
    tn.random.set_state(before)


def squared_error(model: nn.Module, x: Any, y: Any) -> tn.Variable:
    return F.mean_squared_error(model(x), y)


def make(*, seed: int = 0, batch_size: int = 4, **options: Any) -> nn.Trainer:
    """A linear model with dropout on ten examples: an epoch of three steps."""
    tn.seed(seed)
    model = nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 1))
    options = {"optimizer": nn.SGD(model, lr=0.1, momentum=0.5)} | options
    options.setdefault("train", nn.DataLoader(nn.ArrayDataset(X, Y), batch_size, shuffle=True))
    held_out = nn.DataLoader(nn.ArrayDataset(X[:5], Y[:5]), 2)
    return nn.Trainer(model, squared_error, validation=held_out, **options)


def parameters(trainer: nn.Trainer) -> list[Any]:
    return [p.array for p in trainer.model.parameters()]


def assert_same(one: nn.Trainer, other: nn.Trainer) -> None:
    for a, b in zip(parameters(one), parameters(other), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.history == other.history


def ctrl_c_in_step(trainer: nn.Trainer, step: int) -> None:
    loss = trainer.loss

    def interrupted(model: nn.Module, *batch: Any) -> tn.Variable:
        if tn.config.enable_backprop and trainer.steps + 1 == step:
            signal.raise_signal(signal.SIGINT)
        return loss(model, *batch)

    trainer.loss = interrupted


# --- the loop --------------------------------------------------------------------------------


def test_an_epoch_is_the_loop_of_a_textbook() -> None:
    trainer = make()
    history = trainer.run(2, quiet=True)
    tn.seed(0)
    model = nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 1))
    optimizer = nn.SGD(model, lr=0.1, momentum=0.5)
    loader = nn.DataLoader(nn.ArrayDataset(X, Y), 4, shuffle=True)
    for epoch in range(2):
        total = 0.0
        for x, y in loader:
            loss = squared_error(model, x, y)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            total += float(loss) * len(x)
        assert history[epoch]["loss"] == pytest.approx(total / 10)
    for mine, p in zip(parameters(trainer), model.parameters(), strict=True):
        np.testing.assert_array_equal(mine, p.array)
    with tn.using_config(train=False):
        expected = float(squared_error(model, X[:5], Y[:5]))
    assert history[1]["validation loss"] == pytest.approx(expected, rel=1e-5)
    assert (trainer.epoch, trainer.position, trainer.steps) == (2, 0, 6)
    assert "2 epochs of 3 batches" in repr(trainer)


def test_metrics_are_means_over_the_validation_examples() -> None:
    seen = []

    def first(model: nn.Module, x: Any, y: Any) -> float:
        seen.append((tn.config.train, tn.config.enable_backprop, len(x)))
        return float(F.mean(y))

    trainer = make(metrics={"first": first})
    assert trainer.run(1, quiet=True)[0]["first"] == pytest.approx(float(Y[:5].mean()), rel=1e-5)
    assert seen == [(False, False, 2), (False, False, 2), (False, False, 1)]
    assert set(trainer.evaluate([(tn.asarray(X), tn.asarray(Y))])) == {"loss", "first"}


def test_a_batch_that_is_no_tuple_is_a_single_argument() -> None:
    model = nn.Linear(3, 1)
    arrays = nn.DataLoader(X, 4)
    dicts = nn.DataLoader([{"x": x, "y": y} for x, y in zip(X, Y, strict=True)], 4)

    def size(model: nn.Module, x: Any) -> tn.Variable:
        return F.mean(model(x) ** 2)

    def fit(model: nn.Module, batch: Any) -> tn.Variable:
        return squared_error(model, batch["x"], batch["y"])

    for loss, loader in ((size, arrays), (fit, dicts)):
        trainer = nn.Trainer(model, loss, nn.SGD(model, lr=0.0), loader)
        x, y = (tn.asarray(X), tn.asarray(Y))
        expected = loss(model, x if loss is size else {"x": x, "y": y})
        assert trainer.run(1, quiet=True)[0]["loss"] == pytest.approx(float(expected), rel=1e-5)


def test_accumulated_batches_give_the_gradient_of_one_large_batch() -> None:
    batches = [(tn.asarray(X[i : i + 2]), tn.asarray(Y[i : i + 2])) for i in range(0, 6, 2)]
    whole = [(tn.asarray(X[:6]), tn.asarray(Y[:6]))]
    results = []
    for train, accumulate in ((batches, 3), (batches, 5), (whole, 1)):
        trainer = make(train=train, accumulate=accumulate)
        with tn.using_config(train=False):
            trainer.run(2, quiet=True)
        assert trainer.steps == 2
        results.append(parameters(trainer))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_gradients_are_clipped_and_compiled_losses_give_the_same() -> None:
    trainer = make(clip=1e-3)
    before = parameters(trainer)
    trainer.run(1, quiet=True)
    moved = [a - b for a, b in zip(parameters(trainer), before, strict=True)]
    assert 0 < math.hypot(*(float(np.linalg.norm(m)) for m in moved)) < 1e-3
    eager, compiled = make(), make(compile=True)
    for one in (eager, compiled):
        tn.seed(7)
        one.run(2, quiet=True)
    for a, b in zip(parameters(eager), parameters(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_schedule_steps_after_each_update_and_its_rate_is_in_the_row() -> None:
    trainer = make()
    schedule = nn.schedules.ExponentialSchedule(trainer.optimizer, 0.5)
    trainer.schedule = schedule
    rows = trainer.run(2, quiet=True)
    assert [row["lr"] for row in rows] == [0.1 / 8, 0.1 / 64]


def test_a_plateau_schedule_steps_after_each_epoch() -> None:
    trainer = make()
    trainer.schedule = nn.schedules.PlateauSchedule(trainer.optimizer, patience=0)
    seen = []
    trainer.schedule.step = seen.append
    rows = trainer.run(2, quiet=True)
    assert seen == [row["validation loss"] for row in rows]


def test_validation_measures_the_average() -> None:
    trainer = make()
    trainer.average = nn.ExponentialMovingAverage(trainer.model, 0.9)
    row = trainer.run(2, quiet=True)[-1]
    own = parameters(trainer)
    with trainer.averaged(), tn.using_config(train=False):
        assert row["validation loss"] == pytest.approx(
            float(squared_error(trainer.model, X[:5], Y[:5])), rel=1e-5
        )
        assert not np.array_equal(parameters(trainer)[0], own[0])
    np.testing.assert_array_equal(parameters(trainer)[0], own[0])


def test_a_nan_stops_before_the_update_and_names_the_batch() -> None:
    data = X.copy()
    data[9] = np.nan
    trainer = make(train=[(tn.asarray(data[i : i + 5]), tn.asarray(Y[i : i + 5])) for i in (0, 5)])
    with pytest.raises(tn.TinynodeError, match=r"loss is nan in epoch 1, batch 2.*tn\.diagnose"):
        trainer.run(1, quiet=True)
    assert all(np.isfinite(p).all() for p in parameters(trainer)) and trainer.steps == 1
    assert math.isnan(float(trainer.loss(trainer.model, *trainer.batch)))


# --- early stopping --------------------------------------------------------------------------


def test_early_stopping_keeps_the_best_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    values = iter([0.5, 0.7, 0.6, 0.2, 0.1, 0.3])
    snapshots = []

    def score(model: nn.Module, x: Any, y: Any) -> float:
        snapshots.append(model.parameters()[0].array)
        return next(values)

    trainer = make(metrics={"score": score}, monitor="score", patience=2, maximize=True)
    trainer.validation = [(tn.asarray(X), tn.asarray(Y))]
    assert len(trainer.run(10)) == 4 and trainer.stopped == "early"
    np.testing.assert_array_equal(parameters(trainer)[0], snapshots[1])
    assert "stopped early: score 0.7000 of epoch 2" in capsys.readouterr().out
    assert len(trainer.run(3, quiet=True)) == 6, "the next run waits for two epochs again"
    assert trainer.stopped == "early"


# --- checkpoints and Ctrl-C ------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["loader", "list"])
def test_a_resumed_run_is_the_unbroken_one(
    step: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(log: str = "log.jsonl") -> nn.Trainer:
        options: dict[str, Any] = {"patience": 5}
        if kind == "list":
            parts = [slice(0, 4), slice(4, 8), slice(8, 10)]
            options["train"] = [(tn.asarray(X[part]), tn.asarray(Y[part])) for part in parts]
        return make(checkpoint="run.npz", log=log, **options)

    whole = start("whole.jsonl")
    whole.run(3, quiet=True)
    log = Path("whole.jsonl").read_text()
    part = start()
    ctrl_c_in_step(part, step)
    part.run(3)
    place = "after epoch 1" if step == 3 else f"in epoch {1 + step // 3}"
    *_, said, cure = capsys.readouterr().out.splitlines()
    assert said == f"interrupted {place}: saved to run.npz"
    left = 3 - step // 3
    assert cure == f"go on with: trainer.resume('run.npz'); trainer.run({left})"
    tn.seed(5)
    rest = start()
    rest.resume("run.npz")
    rest.run(left, quiet=True)
    assert_same(whole, rest)
    assert Path("log.jsonl").read_text() == log


def test_a_run_goes_on_in_the_same_program() -> None:
    whole = make()
    whole.run(2, quiet=True)
    part = make()
    ctrl_c_in_step(part, 2)
    part.run(1, quiet=True)
    assert part.stopped == "interrupted" and part.position == 2
    part.run(2, quiet=True)
    assert part.stopped == ""
    assert_same(whole, part)


def test_ctrl_c_without_a_checkpoint_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trainer = make()
    ctrl_c_in_step(trainer, 1)
    trainer.run(2)
    assert capsys.readouterr().out.splitlines()[-1] == "go on with: trainer.run(2)"


def test_a_file_of_another_run_changes_nothing() -> None:
    make(patience=3).save("other.npz")
    trainer = make()
    trainer.run(1, quiet=True)
    before = parameters(trainer)
    with pytest.raises(tn.TinynodeError, match="also holds stopping"):
        trainer.resume("other.npz")
    trainer.save("own.npz")
    longer = make(batch_size=1)
    longer.run(0, quiet=True)
    longer.position = 7
    longer.save("longer.npz")
    with pytest.raises(tn.TinynodeError, match="position cannot be 7"):
        trainer.resume("longer.npz")
    np.testing.assert_array_equal(parameters(trainer)[0], before[0])
    for damage in ({"epoch": 3}, {"epoch": -1}, {"steps": "x"}):
        with pytest.raises(tn.TinynodeError, match="it is damaged"):
            trainer.load_state_dict(trainer.state_dict() | damage)
    with pytest.raises(tn.TinynodeError, match="the state has the names"):
        trainer.load_state_dict({})


# --- the table and the log -------------------------------------------------------------------


def test_the_table_has_a_row_for_each_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    trainer = make()
    trainer.run(1)
    trainer.run(1)
    names, *rows = capsys.readouterr().out.splitlines()
    assert names.split() == ["epoch", "loss", "validation", "loss"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert len({len(line) for line in (names, *rows)}) == 1


def test_a_csv_log_is_appended_and_replaced_only_by_request() -> None:
    Path("log.csv").write_text("old\n1\n")
    with pytest.raises(
        FileExistsError, match=r"'log\.csv' has rows of another run.*overwrite=True"
    ):
        make(log="log.csv").run(1, quiet=True)
    assert Path("log.csv").read_text() == "old\n1\n"
    trainer = make(log=Path("log.csv"), overwrite=True)
    for _ in range(2):
        trainer.run(1, quiet=True)
    with open("log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: float(v) for name, v in row.items()} for row in rows] == trainer.history


class Writer:
    """The part of a SummaryWriter that is used."""

    made: list[Any] = []  # noqa: RUF012

    def __init__(self, folder: str, purge_step: int) -> None:
        self.points: list[Any] = []
        self.made.append((folder, purge_step, self.points))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.points.append((name, step))

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Nothing is open."""


def test_a_folder_is_written_for_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("tensorboardX")
    library.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", library)
    trainer = make(log="runs")
    trainer.run(2, quiet=True)
    trainer.save("run.npz")
    trainer.resume("run.npz")
    trainer.run(1, quiet=True)
    names = ["loss", "validation loss"]
    first = [(name, epoch) for epoch in (1, 2) for name in names]
    assert Writer.made == [("runs", 1, first), ("runs", 3, [(name, 3) for name in names])]


def test_no_library_for_tensorboard_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in training_log.WRITERS:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"Install tensorboardX.*log='run.csv'"):
        make(log="runs")


# --- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"optimizer": F.relu}, TypeError, "optimizer must be of the class Optimizer, got"),
        ({"train": iter([])}, TypeError, "train must be batches with len"),
        ({"metrics": {"loss": squared_error}}, ValueError, "'loss' is taken"),
        ({"monitor": "accuracy", "patience": 1}, ValueError, "must be one of 'loss', 'validation"),
        ({"patience": 0}, ValueError, "patience must be at least 1"),
        ({"accumulate": 0}, ValueError, "accumulate must be at least 1"),
        ({"log": 3}, TypeError, "log must be a path, got"),
        ({"log": "run.json"}, ValueError, "log must end in .csv or .jsonl, or be a folder"),
    ],
)
def test_wrong_arguments_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**options)


def test_measures_need_batches() -> None:
    model = nn.Linear(3, 1)
    batches = [(tn.asarray(X), tn.asarray(Y))]
    optimizer = nn.SGD(model)
    with pytest.raises(ValueError, match="metrics are measured on validation"):
        nn.Trainer(model, squared_error, optimizer, batches, metrics={"m": squared_error})
    trainer = nn.Trainer(model, squared_error, optimizer, batches)
    with pytest.raises(ValueError, match="give batches"):
        trainer.evaluate()
    assert set(trainer.run(1, quiet=True)[0]) == {"epoch", "loss"}


def test_a_metric_is_a_function() -> None:
    with pytest.raises(TypeError, match=r"metric 'acc' must be a function .*Accuracy"):
        make(metrics={"acc": nn.metrics.Accuracy()})


# --- errors in a step ----------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2, 4, 9])
@pytest.mark.parametrize("kind", ["list", "loader"])
@pytest.mark.parametrize("failing", [1, 4, 6])
def test_the_run_after_an_error_goes_on_with_the_failed_step(
    accumulate: int, kind: str, failing: int
) -> None:
    """A loader began a new epoch in the middle of the epoch; a list skipped a part of a group."""
    x = np.arange(12, dtype="float32")[:, None] / 10

    def start(bad_call: int) -> nn.Trainer:
        tn.seed(0)
        model, calls = nn.Linear(1, 1), iter(range(1, 1000))

        def loss(model: nn.Module, a: tn.Variable) -> tn.Variable:
            if next(calls) == bad_call:
                raise ValueError("no such file")
            return tn.functions.mean(model(a) ** 2)

        train: Any = [(x[i : i + 2],) for i in range(0, 12, 2)]
        if kind == "loader":
            train = nn.DataLoader(nn.ArrayDataset(x), 2, shuffle=True, seed=3, prefetch=1)
        return nn.Trainer(model, loss, nn.SGD(model), train, accumulate=accumulate)

    whole, broken = start(0), start(failing)
    whole.run(2, quiet=True)
    with pytest.raises(ValueError, match="no such file"):
        broken.run(2, quiet=True)
    assert broken.position == (failing - 1) // accumulate * accumulate
    assert not broken.history
    broken.run(2, quiet=True)
    assert broken.history == whole.history and broken.steps == whole.steps
    for one, other in zip(broken.model.parameters(), whole.model.parameters(), strict=True):
        np.testing.assert_array_equal(one.array, other.array)


@pytest.mark.parametrize("kind", ["list", "loader"])
@pytest.mark.parametrize("saves", [False, True])
def test_the_run_after_an_error_in_the_validation_measures_first(
    kind: str, saves: bool, tmp_path: Path
) -> None:
    """The epoch counted without a row, and no later checkpoint could be resumed."""
    x, file = np.arange(8, dtype="float32")[:, None] / 10, tmp_path / "run.npz"

    def start(bad_call: int) -> nn.Trainer:
        tn.seed(0)
        model, calls = nn.Linear(1, 1), iter(range(1, 1000))

        def metric(model: nn.Module, a: tn.Variable) -> float:
            if next(calls) == bad_call:
                raise ValueError("a bug of the metric")
            return 1.0

        def loss(model: nn.Module, a: tn.Variable) -> tn.Variable:
            return tn.functions.mean(model(a) ** 2)

        train: Any = [(x[i : i + 2],) for i in range(0, 8, 2)]
        if kind == "loader":
            train = nn.DataLoader(nn.ArrayDataset(x), 2, shuffle=True, seed=3)
        return nn.Trainer(
            model, loss, nn.SGD(model), train, validation=[(x,)], metrics={"one": metric}
        )

    whole, broken = start(0), start(2)
    whole.run(3, quiet=True)
    with pytest.raises(ValueError, match="a bug of the metric"):
        broken.run(3, quiet=True)
    assert broken.epoch == len(broken.history) == 1
    if saves:
        broken.save(file)
        broken = start(0)
        broken.resume(file)
    broken.run(2, quiet=True)
    broken.save(file)
    start(0).resume(file)
    assert broken.history == whole.history and broken.steps == whole.steps
