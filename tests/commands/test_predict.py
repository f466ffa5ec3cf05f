"""The command ``python -m tinynode predict``: a saved model reads digits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn, random
from tinynode.commands import digits, main, predict

DIGITS = nn.datasets.load_digits()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The file of a model, trained for two epochs."""
    before = random.get_state()
    tn.seed(0)
    trainer = nn.Trainer(**digits.JOB.parts())
    trainer.run(2, quiet=True)
    path = tmp_path_factory.mktemp("model") / "digits.npz"
    trainer.save(path)
    yield str(path)
    random.set_state(before)


def picture(image: Any, dark_ink: bool) -> Any:
    """A digit as a larger picture: 10 pixels for each of the 64, with paper around."""
    large = np.kron(image.reshape(8, 8), np.ones((10, 10)))
    framed = np.pad(large, ((7, 31), (20, 12)))
    return 1 - framed if dark_ink else framed


@pytest.mark.parametrize("dark_ink", [True, False])
def test_a_picture_becomes_the_numbers_of_the_data(dark_ink: bool) -> None:
    found = [predict.as_example(picture(one, dark_ink)) for one in DIGITS.held_out_images]
    wanted = DIGITS.held_out_images
    near = [np.corrcoef(a.reshape(-1), b)[0, 1] for a, b in zip(found, wanted, strict=True)]
    assert np.median(near) > 0.95
    assert all(one.shape == (8, 8) and one.min() >= 0 and one.max() <= 1.001 for one in found)


def test_a_picture_without_ink_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no ink"):
        predict.as_example(np.full((20, 30), 0.7, np.float32))


def test_held_out_digits_tables_and_images_are_read(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", "digits", "--model", model]) == 0
    lines = capsys.readouterr().out.splitlines()
    right = [line.split(": ")[1][0] == line.removeprefix("held-out ")[0] for line in lines]
    assert len(lines) == predict.SHOWN and sum(right) >= 7

    table = tmp_path / "rows.csv"
    np.savetxt(table, DIGITS.held_out_images[:2], delimiter=",")
    image = tmp_path / "digit.png"
    pillow = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pixels = picture(DIGITS.held_out_images[0], dark_ink=True)
    pillow.fromarray((255 * pixels).astype(np.uint8)).save(image)
    assert main(["predict", "digits", "--model", model, str(table), str(image)]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{table}, line 1: 0, with") and ", line 2: 1" in second
    assert third.startswith(f"{image}: 0, with")


ROW = ",".join(["0.5"] * 64)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "1,2", "line 1: expected 64 numbers, got 2"),
        ("a.csv", f"{ROW}\n{ROW},x", "line 2: expected 64 numbers with commas between them"),
        ("a.csv", ROW.replace("0.5", "16"), "from 0 to 1, got 16 to 16; divide by"),
        ("a.csv", ROW.replace("0.5", "nan"), "from 0 to 1, got nan"),
        ("a.csv", "", "expected lines of 64 numbers, and there is no line"),
        ("a.csv", b"\xff\xfe", "expected text in UTF-8"),
        ("a.png", "no image", "is no image of the formats PNG"),
        ("a.txt", "", "expected a file whose name ends in .csv, .png"),
        (None, "", "No such file or directory"),
    ],
)
def test_a_wrong_file_is_named_with_the_cure(
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str | None,
    content: Any,
    words: str,
) -> None:
    path = tmp_path / (name or "missing.csv")
    if name is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["predict", "digits", "--model", model, str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"python -m tinynode predict digits: error: {path}: ")
    assert words in said and said.count(str(path)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_does_not_hang(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert main(["predict", "digits", "--model", model, str(tmp_path / "pipe.csv")]) == 2
    assert "a file is needed, got a pipe" in capsys.readouterr().err


def test_a_missing_model_and_one_of_another_job_are_named(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "none.npz")
    assert main(["predict", "digits", "--model", missing]) == 2
    assert "python -m tinynode train digits makes one" in capsys.readouterr().err
    assert main(["predict", "digits-cnn", "--model", model]) == 2
    assert "Was it saved from another model?" in capsys.readouterr().err
