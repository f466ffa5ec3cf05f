"""Reads mutated files of one kind, in a process with limits of memory and time.

    python tests/fuzz/mutated_files.py KIND FIRST COUNT SEED FOLDER

Each file gives what the whole file gives, other values of the same form, or an error of tinynode,
a ValueError or an OSError. The last line of the output is JSON: the number of files with each
outcome, and the files with a wrong outcome, which stay in the folder. File i of a seed is the same
in each run. A signal of the operating system ends the process: the parent notices the status.
"""

from __future__ import annotations

import io
import json
import random
import re
import resource
import signal
import sys
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from PIL import Image

import tinynode as tn
from tinynode import nn
from tinynode.commands.command_line import CommandError
from tinynode.config_sources import read_sources
from tinynode.errors import TinynodeError
from tinynode.net import load_net, save_net, trace
from tinynode.nn.serializers import npz_bytes
from tinynode_course import owners, report
from tinynode_course.progress import FACTS, FORMAT, NAME, Progress, has_form, next_step

EXPECTED = (TinynodeError, ValueError, OSError, CommandError)
MOST_SECONDS = 20
MOST_MEMORY = 4 << 30
NUMBERS = ("-1", "0", "1.5", "1e999", "NaN", "9" * 30, "9" * 5000, str(2**64))
VALUES = ("null", "true", '""', '"x"', "[]", "{}", "[[1]]", '{"@array": 3}', '{"@array": "none"}')
DEEP = ("[" * 100_000, "[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300)
WORDS = (*NUMBERS, *VALUES, *DEEP, '"\\u0000"', '"' + "x" * 200_000 + '"')
"""Values for a text of JSON, in the place of another value."""


class Kind(NamedTuple):
    """A kind of file: its name, a good file's content, a reader, and a mutation of its parts.

    Attributes:
        form: the part of the result that no mutation of bytes may change without an error.
    """

    name: str
    content: Callable[[], bytes]
    read: Callable[[Path], Any]
    form: Callable[[Any], Any] = lambda found: None
    parts: Callable[[bytes, random.Random], bytes] | None = None


# --- good files ----------------------------------------------------------------------------------

ARRAYS = {
    "weight": numpy.arange(12.0).reshape(3, 4),
    "bias": numpy.arange(3, dtype=numpy.float32),
    "empty": numpy.zeros((0, 2)),
    "flags": numpy.asarray([True, False]),
    "steps": numpy.asarray(7),
}


def data() -> tuple[Any, Any]:
    return numpy.arange(16.0, dtype=numpy.float32).reshape(8, 2), numpy.arange(8) % 3


def run_parts() -> dict[str, Any]:
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm(4), nn.Linear(4, 3))
    optimizer = nn.Adam(model, 0.1)
    loader = nn.DataLoader(nn.ArrayDataset(*data()), 2, seed=1)
    return {"model": model, "optimizer": optimizer, "loader": loader}


def saved(write: Callable[[Path], Any], name: str) -> bytes:
    """The content of a file that tinynode writes."""
    path = Path(sys.argv[5], "good", name)
    path.parent.mkdir(exist_ok=True)
    write(path)
    return path.read_bytes()


def checkpoint() -> bytes:
    values = {"epoch": 3, "history": [{"loss": 0.5}], "means": numpy.ones(2), "name": "run"}
    return saved(lambda path: nn.save_checkpoint(path, **run_parts(), **values), "run.npz")


def make_trainer() -> nn.Trainer:
    parts = run_parts()

    def loss(model: Any, x: Any, y: Any) -> Any:
        return tn.functions.softmax_cross_entropy(model(x), y)

    return nn.Trainer(parts["model"], loss, parts["optimizer"], parts["loader"])


def trained() -> bytes:
    trainer = make_trainer()
    trainer.run(1, quiet=True)
    return saved(trainer.save, "trainer.npz")


def net() -> bytes:
    def f(x: Any, y: Any) -> Any:
        z = tn.functions.sum(tn.functions.exp(x) * y, axis=0)
        return tn.functions.concat([z, z[1:]], axis=0)[::2] + numpy.float32(2.5)

    x, y = (tn.Variable(numpy.ones((2, 3), numpy.float32)) for _ in range(2))
    return saved(lambda path: save_net(path, trace(f, x, y).net), "net.json")


def table() -> bytes:
    lines = [f"{i}.5,{i},{'ab'[i % 2]}" for i in range(20)]
    return "\r\n".join(["length,width,species", *lines, ""]).encode()


def picture(suffix: str) -> bytes:
    file = io.BytesIO()
    pixels = numpy.random.default_rng(0).integers(0, 255, (16, 12, 3)).astype(numpy.uint8)
    Image.fromarray(pixels).save(file, suffix)
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    numpy.save(file, ARRAYS["weight"])
    return file.getvalue()


def progress() -> bytes:
    facts = {
        "13": {"started": True, "attempts": 3, "passed": True, "hints": 2, "predictions": ["4"]},
        "14": {"taken": {"core/variable.py": {"Variable": "0123"}}, "cells": {"f": "12"}},
        "15": {"hunt": {"caught": 1, "of": 3, "runs": 2}, "cell": "ab"},
    }
    return json.dumps({"format": FORMAT, "steps": facts}, indent=2).encode()


def results() -> bytes:
    check = {"title": "t", "passed": False, "kind": "failed", "text": ["why"], "lines": []}
    step = {"step": "13", "title": "T", "state": "failed", "passed": False, "checks": [check]}
    step |= {"stopped": {"text": ["x"]}, "read_solution": [{"text": ["y"]}], "attempts": 2}
    step |= {"hidden": {"passed": False, "checks": [check]}, "same_as_reference": [], "hints": 0}
    step |= {"definitions": {"own": 1, "same as reference": 0, "taken": 2, "to write": 0}}
    step |= {"hunt": {"caught": 1, "of": 2, "broken": []}}
    head = {"format": report.grading.FORMAT, "version": report.grading.VERSION}
    return json.dumps({**head, "steps": [step, {**step, "step": "14", "hidden": None}]}).encode()


SETTINGS = b'device = "fast"\ndtype = "float32"\ndebug = true\ntrain = false\n'
PROJECT = b'[project]\nname = "x"\ndependencies = ["numpy>=2.0.1"]\n\n[tool.tinynode]\n' + SETTINGS


# --- readers -------------------------------------------------------------------------------------


def arrays_of(state: Any) -> Any:
    """Names, dtypes, shapes and bytes."""
    return {n: (str(a.dtype), a.shape, a.tobytes()) for n, a in state.items()}


def read_checkpoint(path: Path) -> Any:
    found = nn.load_checkpoint(path, **run_parts())
    return len(nn.load(path)), found


def read_npz(path: Path) -> Any:
    found = nn.ArrayDataset.from_npz(path, "weight", "bias")
    return [array.tolist() for array in found.arrays]


def read_npy(path: Path) -> Any:
    return nn.ArrayDataset.from_npy(path).arrays[0].tolist()


def read_image(path: Path) -> Any:
    dataset = nn.ImageFolder(path.parent.parent)
    found, _ = dataset[dataset.files.index(path)]
    assert found.shape[0] == 3 and found.dtype == numpy.float32
    return found.shape


def read_progress(path: Path) -> Any:
    found = Progress(path.parent)
    for key in ("13", "14", "15", "16"):
        facts = found.of(key)
        assert all(has_form(facts[name], FACTS[name]) for name in facts if name in FACTS)
    return found.warnings, owners.taken_by(found), next_step(found)


def read_report(path: Path) -> Any:
    students = report.read(path)
    keys = report.keys_of(students)
    return (
        [*report.as_text(students, keys)],
        report.as_csv(students, keys),
        report.as_html(students, keys),
    )


# --- mutations of parts --------------------------------------------------------------------------


def other_members(content: bytes, draw: random.Random) -> bytes:
    """The archive with a mutated member, whose checksum is right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = draw.choice(sorted(members))
    text = members[chosen]
    if chosen == "checkpoint.json.npy":
        state = numpy.load(io.BytesIO(text))
        changed = other_text(bytes(state), draw)
        file = io.BytesIO()
        numpy.save(file, numpy.frombuffer(changed, numpy.uint8))
        members[chosen] = file.getvalue()
    elif draw.random() < 0.5:
        head = text.index(b"\n")
        members[chosen] = other_bytes(text[:head], draw) + text[head:]
    else:
        members[chosen] = other_bytes(text, draw)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return target.getvalue()


def other_text(content: bytes, draw: random.Random) -> bytes:
    """The text with some values replaced, such as a number by a deep list."""
    text = content.decode()
    for _ in range(draw.choice((1, 1, 2, 4))):
        tokens = list(re.finditer(r'"[^"]*"|-?\d[\w.]*|true|false|null|\[\]|\{\}', text))
        if not tokens:
            return text.encode()
        token = draw.choice(tokens)
        word = draw.choice(WORDS) if draw.random() < 0.8 else draw.choice(tokens).group()
        text = text[: token.start()] + word + text[token.end() :]
    return text.encode("utf-8", "surrogatepass")


def other_bytes(content: bytes, draw: random.Random) -> bytes:
    """The content with some bytes changed, removed, or written twice."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        size = len(changed)
        if not size:
            break
        near_end = draw.random() < 0.3  # where an archive has its directory
        place = draw.randrange(max(0, size - 300) if near_end else 0, size)
        kind = draw.randrange(8)
        length = min(draw.choice((1, 2, 4, 8, 30, 200)), size - place)
        if kind <= 2:
            changed[place] ^= 1 << draw.randrange(8)
        elif kind == 3:
            changed[place : place + length] = draw.randbytes(length)
        elif kind == 4:
            number = draw.choice((0, 1, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 62)))
            changed[place : place + 8] = number.to_bytes(8, draw.choice(("little", "big")))
        elif kind == 5:
            del changed[place:]
        elif kind == 6:
            del changed[place : place + length]
        else:
            changed[place:place] = changed[place : place + length] * draw.choice((1, 1, 50))
    return bytes(changed)


def safetensors() -> bytes:
    return saved(lambda path: nn.save(path, ARRAYS), "x.safetensors")


def other_header(content: bytes, draw: random.Random) -> bytes:
    """A ``.safetensors`` file with another header, whose length is right."""
    size = int.from_bytes(content[:8], "little")
    header = other_text(content[8 : 8 + size], draw)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


KINDS = {
    "npz": Kind("x.npz", lambda: npz_bytes(ARRAYS), nn.load, arrays_of, other_members),
    "data set": Kind(
        "x.npz", lambda: npz_bytes(DATA), read_npz, lambda found: found, other_members
    ),
    "npy": Kind("x.npy", npy, read_npy),
    "safetensors": Kind("x.safetensors", safetensors, nn.load, len, other_header),
    "checkpoint": Kind("run.npz", checkpoint, read_checkpoint, lambda f: f[0], other_members),
    "trainer": Kind("t.npz", trained, lambda p: make_trainer().resume(p), parts=other_members),
    "net": Kind("net.json", net, load_net, parts=other_text),
    "table": Kind(
        "t.csv", table, lambda p: nn.TableDataset(p, "species").arrays, parts=other_text
    ),
    "progress": Kind(NAME, progress, read_progress, parts=other_text),
    "report": Kind("ada.json", results, read_report, parts=other_text),
    "settings": Kind(
        "tinynode.toml", lambda: SETTINGS, lambda p: read_sources({}, p.parent), parts=other_text
    ),
    "project": Kind(
        "pyproject.toml", lambda: PROJECT, lambda p: read_sources({}, p.parent), parts=other_text
    ),
    **{
        suffix: Kind(f"x.{suffix}", lambda suffix=suffix: picture(suffix), read_image)
        for suffix in ("png", "jpeg", "bmp", "gif", "tiff", "webp")
    },
}
DATA = {name: ARRAYS[name] for name in ("weight", "bias")}


# --- the run -------------------------------------------------------------------------------------


class TooLongError(BaseException):
    """A file took more than MOST_SECONDS."""


def too_long(number: int, frame: Any) -> None:
    raise TooLongError


def outcome(kind: Kind, path: Path, whole: Any, checks_form: bool) -> str:
    """The outcome of reading a file; a wrong outcome begins with "wrong"."""
    signal.alarm(MOST_SECONDS)
    try:
        found = kind.read(path)
    except EXPECTED as error:
        text = str(error)
        return "refused" if len(text) < 3000 else f"wrong: a message of {len(text)} characters"
    except BaseException as error:
        return f"wrong: {type(error).__name__}: {traceback.format_exc()[-1500:]}"
    finally:
        signal.alarm(0)
    if checks_form and kind.form(found) != whole:
        return "wrong: something was lost without an error"
    return "read"


def mutated(kind: Kind, content: bytes, draw: random.Random) -> tuple[bytes, bool]:
    """Another content, and whether bytes were mutated without a look at the parts."""
    if kind.parts is not None and draw.random() < 0.5:
        return kind.parts(content, draw), False
    return other_bytes(content, draw), True


def main(name: str, first: int, count: int, seed: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGALRM, too_long)
    warnings.simplefilter("ignore")
    kind = KINDS[name]
    place = folder / "files" / "class"
    place.mkdir(parents=True)
    path = place / kind.name
    content = kind.content()
    path.write_bytes(content)
    whole = kind.form(kind.read(path))
    found: Counter[str] = Counter()
    wrong = []
    for i in range(first, first + count):
        draw = random.Random(f"{seed}/{name}/{i}")
        changed, checks_form = mutated(kind, content, draw)
        path.write_bytes(changed)
        print(i, file=sys.stderr, flush=True)
        end = outcome(kind, path, whole, checks_form)
        found[end.split(":")[0]] += 1
        if end.startswith("wrong"):
            (folder / f"{i}-{kind.name}").write_bytes(changed)
            wrong.append([i, end])
    print(json.dumps({"counts": found, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
