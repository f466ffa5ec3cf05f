"""``python -m tinynode``, and its command ``train``."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy
import pytest
from child_process import running
from threadpoolctl import threadpool_info, threadpool_limits

import tinynode as tn
from tinynode import nn, random
from tinynode.commands import blas, digits, main, train
from tinynode.commands.job import Job, MeanParameters
from tinynode.nn import display
from tinynode.nn.interrupt import Interrupt

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'backends'}",
    "PYTHONUNBUFFERED": "",  # as at a user's
}
LAST_LINE = re.compile(r"held-out accuracy: (\d+\.\d) %")
STEPS = math.ceil(1437 / digits.JOB.batch_size)
"""Steps of an epoch."""
ROW = re.compile(r" +\d+ +\d\.\d\S+ +\d\.\d\S+ +\d\.\d{4}")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test works in an empty folder, and leaves the random generator as it was."""
    monkeypatch.chdir(tmp_path)
    before = random.get_state()
    yield tmp_path
    random.set_state(before)


def command(*arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return running(
        [sys.executable, "-m", "tinynode", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def train_digits(*arguments: str) -> int:
    return main(["train", "digits", *arguments])


def make_trainer(compile: bool = False) -> nn.Trainer:
    return nn.Trainer(**digits.JOB.parts(), compile=compile)


def saved(path: str, part: str, name: str) -> Any:
    """A number of a saved run."""
    document = json.loads(bytes(nn.load(path)["checkpoint.json"]))
    return document["objects"][part]["state"][name]


def same(one: str, other: str) -> bool:
    """Whether two saved runs are equal byte for byte."""
    return Path(one).read_bytes() == Path(other).read_bytes()


# --- the job ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_main_job(folder: Path) -> None:
    with command("train", "digits") as run:
        out, err = run.communicate()
    assert (run.returncode, err) == (0, "")
    lines = out.splitlines()
    found = LAST_LINE.fullmatch(lines[-1])
    assert found and float(found[1]) >= 97.0
    assert out.endswith(" %\n") and "\x1b" not in out
    rows = [line for line in lines if ROW.fullmatch(line)]
    assert len(rows) == digits.JOB.epochs
    assert f"{100 * float(rows[-1].split()[-1]):.1f}" == found[1]
    assert [p.name for p in folder.iterdir()] == ["digits.npz"]


@pytest.mark.slow
def test_the_saved_model_has_the_accuracy_that_was_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert train_digits("--epochs", "2", "--save", "here.npz") == 0
    found = LAST_LINE.fullmatch(capsys.readouterr().out.splitlines()[-1])
    model = digits.make_model()
    model.load_state_dict(nn.load("here.npz", part="average/means"))
    data = nn.datasets.load_digits()
    with tn.no_backprop_mode():
        outputs = model(tn.asarray(data.held_out_images, requires_grad=False)).array
    accuracy = (outputs.argmax(axis=1) == data.held_out_labels).mean()
    assert found and found[1] == f"{100 * accuracy:.1f}"


@pytest.mark.slow
def test_a_seed_makes_it_repeatable_bit_by_bit() -> None:
    for path, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert train_digits("--epochs", "2", "--seed", seed, "--save", path) == 0
    assert same("a", "b")
    assert not same("a", "c")
    random.seed(99)
    assert train_digits("--epochs", "1", "--save", "d") == 0
    assert train_digits("--epochs", "1", "--seed", "0", "--save", "e") == 0
    assert train_digits("--epochs", "1", "--seed", "1", "--save", "f") == 0
    assert same("d", "e") and not same("d", "f")


def test_every_epoch_has_an_order_and_a_jitter_of_its_own() -> None:
    random.seed(8)
    loader, _ = digits.load_data(16)
    first, second = ([x.array for x, _ in loader] for _ in range(2))
    random.seed(8)
    again, _ = digits.load_data(16)
    random.normal((3,))  # what others draw in the meantime
    numpy.testing.assert_array_equal(numpy.concatenate([x.array for x, _ in again]), joined(first))
    assert not (joined(second) == joined(first)).all(axis=1).any()


def joined(batches: list[Any]) -> Any:
    return numpy.concatenate(batches)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["strict", "strict:device1"])
def test_every_device_computes_the_same(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train_digits("--epochs", "2", "--save", "a", "--device", "numpy") == 0
    assert train_digits("--epochs", "2", "--save", "b", "--device", device) == 0
    assert f"weights on {tn.get_device(device)}" in capsys.readouterr().out
    one, other = nn.load("a"), nn.load("b")
    assert list(one) == list(other)
    for name in set(one) - {"checkpoint.json"}:
        numpy.testing.assert_allclose(one[name], other[name], rtol=1e-3, atol=1e-5)


def test_no_gradient_is_computed_for_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = tn.functions.Linear.backward

    def spy(self: Any, target_input_indexes: Any, grad_outputs: Any) -> Any:
        asked.append((self.inputs[0].shape[1], target_input_indexes))
        return original(self, target_input_indexes, grad_outputs)

    monkeypatch.setattr(tn.functions.Linear, "backward", spy)
    assert train_digits("--epochs", "1") == 0
    assert len(asked) == 3 * STEPS
    assert set(asked) == {(64, (1, 2)), (128, (0, 1, 2))}


def test_an_image_is_moved_by_parts_of_pixels() -> None:
    t = numpy.float64([-1, -0.25, 0, 0.5]).reshape(4, 1, 1)
    row = numpy.float64([0, 0, 0, 8, 4, 0, 0, 0])
    moved = (row @ digits.shift_matrix(t)).tolist()
    assert moved[0] == [0, 0, 8, 4, 0, 0, 0, 0]
    assert moved[1] == [0, 0, 2, 7, 3, 0, 0, 0]
    assert moved[2] == row.tolist()
    assert moved[3] == [0, 0, 0, 4, 6, 2, 0, 0]


def test_jitter_moves_both_axes_and_keeps_inner_pixels() -> None:
    image = numpy.zeros((1000, 8, 8), dtype="float32")
    image[:, 3, 5] = 1.0
    labels = numpy.arange(1000)
    generator = numpy.random.default_rng(0)
    moved, same_labels = digits.jittered((image.reshape(1000, 64), labels), generator)
    assert moved.shape == (1000, 64) and same_labels is labels
    square = moved.reshape(1000, 8, 8)
    numpy.testing.assert_allclose(square.sum(axis=(1, 2)), 1.0, rtol=1e-6)
    where = numpy.arange(8)
    for axis, start in ((2, 3), (1, 5)):
        centre = (square.sum(axis=axis) * where).sum(axis=1) - start
        assert -0.5 <= centre.min() < -0.45 and 0.45 < centre.max() <= 0.5
        assert abs(centre.mean()) < 0.04


def test_the_mean_of_the_parameters_is_the_papers() -> None:
    """Section 7.2 of Kingma and Ba: mean <- b mean + (1 - b) p, divided by 1 - b^t."""
    random.seed(0)
    model = nn.Linear(2, 1)
    average = MeanParameters(model)
    history = []
    for _ in range(5):
        model.weight.array = random.normal((1, 2))
        history.append(model.weight.array.astype("float64"))
        average.update()
    weights = 0.995 ** numpy.arange(4, -1, -1)
    expected = sum(w * p for w, p in zip(weights, history, strict=True)) / weights.sum()
    with average.average():
        numpy.testing.assert_allclose(model.weight.array, expected, rtol=1e-4, atol=1e-6)


# --- save and resume -------------------------------------------------------------------------


@pytest.mark.slow
def test_two_runs_are_as_good_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_digits("--epochs", "3", "--save", "whole", "--lr", "0.003") == 0
    whole = capsys.readouterr().out.splitlines()
    assert train_digits("--epochs", "2", "--save", "part", "--lr", "0.003") == 0
    capsys.readouterr()
    assert train_digits("--epochs", "1", "--resume", "part", "--save", "rest") == 0
    rest = capsys.readouterr().out.splitlines()
    assert same("whole", "rest")
    assert "resumed from part after epoch 2" in rest
    rows = [line for line in whole if ROW.fullmatch(line)]
    assert [line for line in rest if ROW.fullmatch(line)] == rows[2:]


@pytest.mark.parametrize("job", train.JOBS, ids=lambda job: job.name)
@pytest.mark.parametrize(
    "steps", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4, 5))]
)
def test_a_run_goes_on_from_any_step(job: Job, steps: int) -> None:
    """Two epochs of four steps, with a stop after some steps, equal two epochs without a stop."""
    whole = short(job)
    whole.run(2, quiet=True)
    whole.save("whole")
    part = short(job)
    stop_after(part, steps)
    part.run(2, quiet=True)
    assert part.stopped == "interrupted" and part.steps == steps
    part.save("part")
    random.seed(2)
    rest = short(job)
    rest.resume("part")
    rest.run(2 - rest.epoch, quiet=True)
    rest.save("rest")
    assert same("whole", "rest")
    assert rest.history == whole.history and len(rest.history) == 2


def short(job: Job) -> nn.Trainer:
    """A trainer of a job on few examples: an epoch of four steps."""
    random.seed(1)
    parts = job.parts(2)
    train, held_out = parts["train"], parts["validation"]
    train.dataset = nn.Subset(train.dataset, range(7))
    held_out.dataset = nn.Subset(held_out.dataset, range(5))
    return nn.Trainer(**parts)


def stop_after(trainer: nn.Trainer, steps: int) -> None:
    """Send Ctrl-C in the step of a number."""
    update = trainer.average.update

    def interrupted() -> None:
        update()
        if trainer.steps + 1 == steps:
            signal.raise_signal(signal.SIGINT)

    trainer.average.update = interrupted


@pytest.mark.slow
def test_what_a_resumed_run_takes_from_the_file() -> None:
    assert train_digits("--epochs", "1", "--lr", "0.01", "--batch-size", "50") == 0
    assert train_digits("--epochs", "0", "--resume", "digits.npz", "--save", "same") == 0
    assert same("digits.npz", "same")
    options = ["--resume", "digits.npz", "--save", "other", "--epochs", "0"]
    assert train_digits(*options, "--lr", "0.5", "--batch-size", "7") == 0
    document = json.loads(bytes(nn.load("other")["checkpoint.json"]))
    assert document["objects"]["optimizer"]["settings"]["lr"] == 0.5
    assert (saved("other", "loader", "batch_size"), saved("other", "training", "epoch")) == (7, 1)


@pytest.mark.slow
def test_a_seed_beside_a_saved_run_is_said_to_be_unused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert train_digits("--epochs", "1", "--seed", "5") == 0
    assert "--seed" not in capsys.readouterr().out
    for path, seed in (("a", ["--seed", "6"]), ("b", [])):
        assert train_digits("--epochs", "1", "--resume", "digits.npz", "--save", path, *seed) == 0
        assert ("--seed is not used" in capsys.readouterr().out) == bool(seed)
    assert same("a", "b")


# --- Ctrl-C ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_saves_says_so_and_can_be_resumed(times: int) -> None:
    with command("train", "digits", "--epochs", "100000", "--save", "stopped") as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.split()[:1] == ["2"] or "held-out" in line:  # of 100000 epochs, the second
                break
        for _ in range(times):
            run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (130, "")
    *_, said, cure = out.splitlines()
    assert re.fullmatch(r"interrupted (in|after) epoch \d+: saved to stopped", said)
    words = "go on with: python -m tinynode train digits --resume stopped"
    assert re.fullmatch(words + r" --epochs \d+ --save stopped", cure)
    epoch = saved("stopped", "training", "epoch")
    assert epoch >= 2
    assert train_digits("--resume", "stopped", "--epochs", "1", "--save", "rest") == 0
    assert train_digits("--epochs", str(epoch + 1), "--save", "whole") == 0
    assert same("rest", "whole")


@pytest.mark.slow
def test_compile_runs_nets_and_learns_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for path, more in (("a", []), ("b", ["--compile"])):
        assert train_digits("--epochs", "2", "--save", path, *more) == 0
        found.append(capsys.readouterr().out.splitlines()[2:4])
    assert found[0] == found[1]


def test_ctrl_c_before_training_saves_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = train.check_writable

    def interrupted(path: str) -> None:
        original(path)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(train, "check_writable", interrupted)
        assert train_digits("--epochs", "1", "--save", "start") == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert "interrupted after epoch 0: saved to start" in capsys.readouterr().out
    assert train_digits("--epochs", "1", "--resume", "start", "--save", "a") == 0
    assert train_digits("--epochs", "1", "--save", "b") == 0
    assert same("a", "b")


def test_ctrl_c_in_an_epoch_says_in_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = []
    original = MeanParameters.update

    def update(self: MeanParameters) -> None:
        steps.append(1)
        if len(steps) == STEPS + 5:
            signal.raise_signal(signal.SIGINT)
        original(self)

    with monkeypatch.context() as patch:
        patch.setattr(MeanParameters, "update", update)
        assert train_digits("--compile", "--device", "numpy") == 130
    *_, said, cure = capsys.readouterr().out.splitlines()
    assert said == "interrupted in epoch 2: saved to digits.npz"
    words = "go on with: python -m tinynode train digits --resume digits.npz"
    assert cure == f"{words} --epochs 39 --save digits.npz --compile --device numpy"
    assert len(steps) == STEPS + 5
    assert saved("digits.npz", "loader", "position") == 5
    assert train_digits("--resume", "digits.npz", "--epochs", "0", "--batch-size", "7") == 2
    assert "batch_size is 7 here and 16 in the state" in capsys.readouterr().err


def test_ctrl_c_elsewhere_is_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "Interrupt", interrupted)
    assert train_digits() == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupt_gives_the_old_handler_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), Interrupt() as interrupt:
        assert not interrupt.requested
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_than_the_first_trains_without_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGINT)
    status = []

    def work() -> None:
        status.append(train_digits("--epochs", "0"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert status == [0] and signal.getsignal(signal.SIGINT) is before


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "nump"], "--device: get_device: there is no backend 'nump'; did you mean"),
        (["--device", "numpy:7"], "--device: get_device: there is no device 'numpy:7'"),
        (["--resume", "missing.npz"], "--resume missing.npz: No such file or directory"),
        (["--resume", "."], "--resume .: a file is needed, got a folder"),
        (["--resume", "text"], "--resume text: load: text is not a file that tinynode.nn.save"),
        (["--resume", "shapes"], "layers.0.weight is float32 of shape (128, 64) here and "),
        (["--resume", "model"], "load_checkpoint: model is no file of save_checkpoint"),
        (["--resume", "position"], "training: position cannot be 99999: it is damaged"),
        (["--resume", "lr"], "Adam: lr must be at least 0 and less than inf, got nan"),
        (["--save", "missing/x.npz"], "--save missing/x.npz: No such file or directory"),
        (["--save", "."], "--save .: not a file that can be replaced"),
        (["--save", "text/x"], "--save text/x: Not a directory"),
        (["--epochs", "-1"], "argument --epochs: expected an integer, 0 or more, got '-1'"),
        (["--epochs", "two"], "argument --epochs: expected an integer, 0 or more, got 'two'"),
        (["--batch-size", "0"], "argument --batch-size: expected an integer, 1 or more, got '0'"),
        (["--lr", "0"], "argument --lr: expected a number above 0, got '0'"),
        (["--lr", "nan"], "argument --lr: expected a number above 0, got 'nan'"),
        (["--lr", "x"], "argument --lr: expected a number above 0, got 'x'"),
        (["--seed", "-3"], "argument --seed: expected an integer, 0 or more, got '-3'"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_bad_input_is_one_line_before_training(
    arguments: list[str],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_training(*arguments: Any) -> None:
        raise AssertionError("training has started")

    Path("text").write_text("no archive", encoding="utf-8")
    nn.save("model", digits.make_model())
    make_trainer().save("good")
    good = nn.load("good")
    nn.save("shapes", {**good, "model/layers.0.weight": numpy.zeros((3, 64), dtype="float32")})
    for name, old, new in (
        ("position", '"position": 0', '"position": 99999'),
        ("lr", "0.002", "NaN"),
    ):
        text = bytes(good["checkpoint.json"]).decode().replace(old, new)
        nn.save(name, {**good, "checkpoint.json": numpy.frombuffer(text.encode(), "uint8")})
    files = sorted(folder.iterdir())
    monkeypatch.setattr(nn.Trainer, "run", no_training)
    try:
        status = train_digits(*arguments)
    except SystemExit as error:  # what argparse does
        status = error.code if isinstance(error.code, int) else -1
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and err.startswith("python -m tinynode")
    assert message in err
    assert sorted(folder.iterdir()) == files


def test_a_configured_device_that_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    with tn.using_config(device="abacus"):
        assert train_digits() == 2
    err = capsys.readouterr().err
    assert "there is no backend 'abacus'" in err and "tinynode.config in this thread" in err


def test_a_disk_that_gets_full_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nn.Trainer, "save", full)
    assert train_digits("--epochs", "0") == 1
    err = capsys.readouterr().err
    assert (
        err
        == "python -m tinynode train digits: error: --save digits.npz: No space left on device\n"
    )


def test_nobody_reads_the_output(folder: Path) -> None:
    with command("train", "digits", "--epochs", "1000") as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        err = run.stderr.read()
        assert (run.wait(timeout=60), err) == (141, "")
    assert saved("digits.npz", "training", "epoch") >= 0
    assert [p.name for p in folder.iterdir()] == ["digits.npz"]


def test_nobody_reads_the_help() -> None:
    with command() as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        err = run.stderr.read()
        assert (run.wait(timeout=60), err) == (141, "")


# --- the command line ------------------------------------------------------------------------


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: python -m tinynode ")
    assert re.search(r"^ +train +train a model and save it$", out, re.MULTILINE)
    assert main(["train"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +digits +a perceptron on 1,797 handwritten digits", out, re.MULTILINE)


def test_help_says_what_a_resumed_run_restores(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["train", "digits", "--help"])
    assert left.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    options = "--save --resume --device --seed --epochs --batch-size --lr"
    for text in (*options.split(), "digits.npz in this folder", "A resumed run restores all"):
        assert text in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"tinynode {tn.__version__}\n"


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["juggle"])
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "invalid choice: 'juggle'" in err


def test_importing_tinynode_leaves_the_command_line_out() -> None:
    code = "import sys, tinynode; print('argparse' in sys.modules, 'rich' in sys.modules)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert done.stdout.split() == ["False", "False"]


# --- the terminal ----------------------------------------------------------------------------


def in_a_terminal(*arguments: str) -> tuple[int, str]:
    """Run the command in a pseudo-terminal: its exit status, and all that it wrote."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    ours, theirs = pty.openpty()
    with running(
        [sys.executable, "-m", "tinynode", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**ENVIRONMENT, "TERM": "xterm"},
    ) as run:
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: no process has the other end any more
                break
            if not piece:
                break
            written += piece
        os.close(ours)
        return run.wait(), written.decode()


@pytest.mark.slow
def test_a_terminal_gets_a_progress_bar() -> None:
    pytest.importorskip("rich", reason="the progress bar needs rich")
    status, written = in_a_terminal("train", "digits", "--epochs", "2")
    assert status == 0
    assert "training" in written and "100%" in written and "\x1b[2K" in written
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r\n", "\n").split("\n")
    assert LAST_LINE.fullmatch(lines[-2]) and lines[-1] == ""
    assert sum(1 for line in lines if ROW.fullmatch(line.rpartition("\r")[2])) == 2


def test_lines_come_above_the_bar_uncut_and_unstyled(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich", reason="the progress bar needs rich")
    text = "[bold]1.5[/bold] " + 30 * "long "
    with display.RichDisplay(10) as shown:
        shown.line(text)
        shown.advance(10)
    assert text in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("terminal", "rich"), [(True, False), (False, True)])
def test_plain_lines_otherwise(
    terminal: bool, rich: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display.sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(display.importlib.util, "find_spec", lambda name: rich or None)
    assert type(display.make_display(1)) is display.PlainDisplay


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_a_job_gives_blas_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in blas.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    with threadpool_limits(limits=2, user_api="blas"):
        with blas.one_thread():
            assert blas_threads() == {1}
            assert re.match(r"1 in \w+ \S+", blas.status())
        assert blas_threads() == {2}
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
        with blas.one_thread():
            assert blas_threads() == {2}


def test_without_threadpoolctl_blas_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in blas.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(blas, "find_spec", lambda name: None)
    with threadpool_limits(limits=2, user_api="blas"), blas.one_thread():
        assert blas_threads() == {2}
    assert blas.INSTALL in blas.status()


def test_training_runs_with_one_thread_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    run_job = train._train

    def watched(*arguments: Any) -> None:
        seen.append(blas_threads())
        run_job(*arguments)

    for variable in blas.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(train, "_train", watched)
    with threadpool_limits(limits=2, user_api="blas"):
        assert train_digits("--epochs", "0") == 0
    assert seen == [{1}]
