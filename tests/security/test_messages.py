"""Errors about files: no name in a file steers the terminal or fills the screen."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinynode import nn
from tinynode.config_sources import read_sources
from tinynode.net import Scope, loads
from tinynode.nn.serializers import map_npy, npz_bytes
from tinynode_course import report
from tinynode_course.report import grading

CLEAR = "\x1b[2J\u202e"
"""It clears a terminal, then writes from right to left."""
NAMES = [CLEAR, CLEAR * 3000, "x" * 15_000]
MOST_SIGNS = 1500

names = pytest.mark.parametrize("name", NAMES, ids=["short", "long", "plain"])


def assert_plain(call: Callable[[], object]) -> None:
    """The error of the call is short, and has no signs that a terminal obeys."""
    with pytest.raises(Exception, match=r".") as caught:
        call()
    text = str(caught.value).replace("\n", "")
    assert text.isprintable() and len(text) < MOST_SIGNS


def npy(change: bytes = b"<f4") -> bytes:
    content = io.BytesIO()
    np.save(content, np.zeros(2, "<f4"))
    return content.getvalue().replace(b"<f4", change)


# --- arrays --------------------------------------------------------------------------------------


def archive(path: Path, members: list[tuple[str, bytes]], compression: int = 0) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name comes twice
        with zipfile.ZipFile(path, "w", compression) as file:
            for name, content in members:
                file.writestr(name, content)


ARCHIVES: dict[str, Callable[[Path, str], None]] = {
    "compressed": lambda path, name: archive(path, [(f"{name}.npy", npy())], zipfile.ZIP_DEFLATED),
    "no array": lambda path, name: archive(path, [(f"{name}.txt", npy())]),
    "twice": lambda path, name: archive(path, [(f"{name}.npy", npy())] * 2),
    "longer": lambda path, name: archive(path, [(f"{name}.npy", npy() + b"x")]),
    "shorter": lambda path, name: archive(path, [(f"{name}.npy", npy()[:-1])]),
    "dtype": lambda path, name: archive(path, [("x.npy", npy(b"\x1b[2"))]),
}


@names
@pytest.mark.parametrize("kind", ARCHIVES)
def test_the_error_of_an_archive(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    ARCHIVES[kind](path, name)
    assert_plain(lambda: nn.load(path))


@names
def test_the_error_about_a_part_or_an_array_that_is_missing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(npz_bytes({f"{name}/{i}/x": np.zeros(1) for i in range(3)}))
    assert_plain(lambda: nn.load(path, part="model"))
    assert_plain(lambda: nn.ArrayDataset.from_npz(path, "x"))
    assert_plain(lambda: nn.Linear(2, 2).load_state_dict(nn.load(path)))


def test_the_error_of_a_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(b"\x1b[2"))
    assert_plain(lambda: map_npy("test", path))


@names
@pytest.mark.parametrize("entry", [("F4", [4]), ("F32", [1 << 40, 0]), ("", [2]), ("F32", "")])
def test_the_error_of_a_file_of_safetensors(entry: Any, name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    dtype, shape = (part or name for part in entry)
    size = 2 if dtype == "F4" else 0
    tensor = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    head = json.dumps({name: tensor}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(size))
    assert_plain(lambda: nn.load(path))


# --- checkpoints ---------------------------------------------------------------------------------

CHECKPOINTS: dict[str, Callable[[Any, str], Any]] = {
    "class": lambda content, name: content["objects"]["optimizer"].update({"class": name}),
    "object": lambda content, name: content["objects"].update(
        {name: content["objects"]["optimizer"]}
    ),
    "part": lambda content, name: content["objects"].update({name: {"class": 5}}),
    "array": lambda content, name: content["objects"]["model"].update(
        state={"weight": {"@array": name}}
    ),
    "state": lambda content, name: content["objects"]["model"]["state"].update(
        {name: {"@array": "model/weight"}}
    ),
    "setting": lambda content, name: content["objects"]["optimizer"]["settings"].update({name: 1}),
    "value": lambda content, name: content["objects"]["optimizer"]["settings"].update(lr=name),
    "random": lambda content, name: content.update(random=name),
    "random array": lambda content, name: content.update(random={"@array": name}),
}


@names
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_the_error_of_a_checkpoint(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    model = nn.Linear(2, 2)
    parts = {"model": model, "optimizer": nn.SGD(model, lr=0.1)}
    nn.save_checkpoint(path, **parts)
    arrays = nn.load(path)
    content = json.loads(arrays["checkpoint.json"].tobytes())
    CHECKPOINTS[kind](content, name)
    arrays["checkpoint.json"] = np.frombuffer(json.dumps(content).encode(), np.uint8)
    path.write_bytes(npz_bytes(arrays))
    assert_plain(lambda: nn.load_checkpoint(path, **parts))


# --- nets ----------------------------------------------------------------------------------------


def net_text(net: str = "f", writes: Any = None, **changes: Any) -> str:
    operator = {"type": "exp", "inputs": ["x"], "outputs": ["y"], "attrs": {}, **changes}
    content = {"net": net, "operators": [operator], "writes": writes or {}}
    return json.dumps({"format": "tinynode net 1", "content": content})


NETS: dict[str, Callable[[str], str]] = {
    "type": lambda name: net_text(type=name),
    "attribute": lambda name: net_text(attrs={name: 1}),
    "key": lambda name: net_text(attrs={"x": {name: 1}}),
    "device": lambda name: net_text(attrs={"x": {"device": name}}),
    "names": lambda name: net_text(inputs=[name, name]),
    "no list": lambda name: net_text(outputs=name),
    "written twice": lambda name: net_text(name, inputs=[name], outputs=[name]),
    "writes": lambda name: net_text(name, writes={name: [name]}),
    "format": lambda name: json.dumps({"format": name}),
    "a key twice": lambda name: f"{{{json.dumps(name)}: 1, {json.dumps(name)}: 2}}",
}


@names
@pytest.mark.parametrize("kind", NETS)
def test_the_error_of_a_net(kind: str, name: str) -> None:
    assert_plain(lambda: loads(NETS[kind](name)))


@names
def test_the_error_of_a_run_of_a_net(name: str) -> None:
    net = loads(net_text(name, inputs=[name], outputs=[f"{name}2"]))
    assert_plain(lambda: net.run(Scope({})))


# --- tables, settings, reports -------------------------------------------------------------------


@names
@pytest.mark.parametrize("table", ["a,{}\n1,x\n", "a,b\n1,{}\n", "{0},{0}\n1,2\n", "{},b\n,2\n"])
def test_the_error_of_a_table(table: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(table.format(name), encoding="utf-8")
    assert_plain(lambda: nn.TableDataset(path))
    assert_plain(lambda: nn.TableDataset(path, "label"))


@names
@pytest.mark.parametrize(
    "text", ["{} = 1", "dtype = {}", "debug = {}", "x = {} y", "{0}=1\n{0}=2"]
)
def test_the_error_of_settings(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "tinynode.toml"
    path.write_text(text.format(json.dumps(name)), encoding="utf-8")
    path.chmod(0o644)
    assert_plain(lambda: read_sources({}, tmp_path))


@names
def test_the_error_of_a_report(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    head = {"format": grading.FORMAT, "version": grading.VERSION}
    contents = [{name: 1}, {**head, "steps": [name]}, {**head, "steps": [{"step": name}]}]
    for content in [*contents, {**head, "version": name}]:
        path.write_text(json.dumps(content))
        assert_plain(lambda: report.read(path))
