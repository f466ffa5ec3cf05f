"""Reading: a file gives its content, or an error that names the file. Nothing waits or runs."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

import tinynode as tn
from tinynode import nn, safe_files
from tinynode.commands.command_line import CommandError
from tinynode.config_sources import read_sources
from tinynode.errors import ConfigError, DeviceError, NetError, StateError
from tinynode.net import load_net
from tinynode.nn.serializers import map_npy, npz_bytes
from tinynode.safe_files import MOST_DEPTH, entry, parse_json, read_file
from tinynode_course import report
from tinynode_course.progress import MOST_BYTES, NAME, Progress

if sys.platform == "win32":
    pytest.skip("needs pipes, devices and alarms of POSIX", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 30


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """A test that waits fails."""

    def too_long(number: int, frame: Any) -> None:
        raise AssertionError(f"the reader took more than {MOST_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(MOST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- pipes, sockets, devices, links --------------------------------------------------------------


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # the name of a socket is short


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_pipe(path: Path) -> None:
    other = path.with_name("pipe")
    os.mkfifo(other)
    path.symlink_to(other)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def image(path: Path) -> Any:
    dataset = nn.ImageFolder(path.parent.parent)
    return dataset[dataset.files.index(path)]


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "nn.load": ("x.npz", nn.load),
    "nn.load of safetensors": ("x.safetensors", nn.load),
    "load_checkpoint": ("x.npz", nn.load_checkpoint),
    "from_npz": ("x.npz", nn.ArrayDataset.from_npz),
    "from_npy": ("x.npy", nn.ArrayDataset.from_npy),
    "load_net": ("x.json", load_net),
    "TableDataset": ("x.csv", nn.TableDataset),
    "ImageFolder": ("x.png", image),
    "report": ("x.json", report.read),
}


@pytest.mark.parametrize(
    "make", [make_pipe, make_socket, link_to_device, link_to_pipe, link_to_itself, make_folder]
)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_opens_what_is_no_file(
    reader: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    name, read = READERS[reader]
    path = tmp_path / "class" / name
    path.parent.mkdir()
    make(path)
    with pytest.raises((OSError, CommandError), match=re.escape(str(path))):
        read(path)


@pytest.mark.parametrize("make", [make_pipe, link_to_device])
def test_progress_and_settings_go_on_without_the_file(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / NAME)
    assert "cannot be read" in Progress(tmp_path).warnings[0]
    make(tmp_path / "pyproject.toml")
    assert read_sources({}, tmp_path) == {}


def test_a_file_that_is_exchanged_before_opening_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1")
    original = safe_files.open_at_once

    def exchanged(name: str, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return original(name, flags)

    monkeypatch.setattr(safe_files, "open_at_once", exchanged)
    with pytest.raises(OSError, match="a file is needed, got a pipe"):
        read_file(path)


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    nn.save(tmp_path / "x.npz", {"a": numpy.ones(2)})
    (tmp_path / "link.npz").symlink_to("x.npz")
    assert nn.load(tmp_path / "link.npz")["a"].tolist() == [1, 1]


def test_the_bytes_have_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(OSError, match=r"the file has 5 bytes, and at most 4 bytes are read.*x'"):
        read_file(path, 4)
    with open(path, "r+b") as file:
        file.truncate(1 << 43)  # a file of zeros that takes no room
    with pytest.raises(OSError, match="at most"):
        read_file(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_a_file_without_a_size_is_refused() -> None:
    with pytest.raises(OSError, match="more bytes than its size, 0"):
        read_file("/proc/self/status")


# --- JSON ----------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_json_has_limits_of_depth_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_json(nested(MOST_DEPTH)) is not None
    with pytest.raises(ValueError, match=rf"more than {MOST_DEPTH} deep$"):
        parse_json(nested(MOST_DEPTH + 1))
    with pytest.raises(ValueError, match=r"more than 64 deep, at the key 'b'$"):
        parse_json(f'{{"a": {nested(9)}, "b": {nested(64)}}}')
    with pytest.raises(ValueError, match="more than 64 deep"):
        parse_json(nested(100_000))
    with pytest.raises(ValueError, match="the key 'a' stands twice in an object"):
        parse_json('[{"a": 1, "b": 2, "a": 3}]')
    monkeypatch.setattr(safe_files, "MOST_TEXT", 10)
    with pytest.raises(ValueError, match="the text has 12 characters, expected 10 at most"):
        parse_json("[1, 2, 3, 4]")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"^x: expected an object with the key 'n', got list \[\]"),
        ({"m": 1}, "^x: the key 'n' is missing"),
        ({"n": True}, "^x: n must be an integer or null, got bool True"),
        ({"n": "9" * 999}, "^x: n must be an integer or null, got str '999"),
    ],
)
def test_an_entry_has_a_type(data: Any, message: str) -> None:
    assert entry({"n": 3}, "n", int, where="x") == 3
    with pytest.raises(ValueError, match=message) as caught:
        entry(data, "n", int, type(None), where="x")
    assert len(str(caught.value)) < 200


DEEP = '{"format": 1, "content": ' + nested(100_000) + "}"


def test_deep_json_is_an_error_of_each_reader(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(DEEP)
    with pytest.raises(NetError, match=r"load_net: .*x.*deep"):
        load_net(path)
    with pytest.raises(CommandError, match=r"x has no results.*deep"):
        report.read(path)
    (tmp_path / NAME).write_text(DEEP)
    assert "is damaged" in Progress(tmp_path).warnings[0]
    nn.save(path, {"checkpoint.json": numpy.frombuffer(DEEP.encode(), numpy.uint8)})
    with pytest.raises(StateError, match=r"x is no file of save_checkpoint.*deep"):
        nn.load_checkpoint(path)


# --- checkpoints ---------------------------------------------------------------------------------


def changed_checkpoint(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A checkpoint with another document; the arrays stay."""
    nn.save_checkpoint(path, optimizer=optimizer(), epoch=3)
    state = nn.load(path)
    document = json.loads(bytes(state["checkpoint.json"]))
    change(document)
    text = json.dumps(document).encode()
    nn.save(path, {**state, "checkpoint.json": numpy.frombuffer(text, numpy.uint8)})


def optimizer() -> nn.Adam:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    return nn.Adam([{"parameters": first}, {"parameters": second, "lr": 0.01}], 0.1)


def test_a_checkpoint_that_could_not_be_loaded_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    value: list[Any] = []
    for _ in range(180):
        value = [value]
    nn.save_checkpoint(path, value=value)
    assert nn.load_checkpoint(path) == {"value": value}
    for _ in range(40):
        value = [value]
    with pytest.raises(StateError, match="more than 200 deep"):
        nn.save_checkpoint(tmp_path / "other.npz", value=value)
    assert not (tmp_path / "other.npz").exists()


CHANGES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "settings": (lambda d, s: d.update(settings=[1]), "optimizer: settings must be an object"),
    "class": (lambda d, s: d.update({"class": 3}), "optimizer: class must be text, got int 3"),
    "state": (lambda d, s: d.pop("state"), "optimizer: the key 'state' is missing"),
    "groups": (lambda d, s: s.update(groups=3), "groups must be a list, got int 3"),
    "a group": (lambda d, s: s.update(groups=[1, 2]), "groups must be a list of objects"),
    "names": (lambda d, s: s["groups"][1].pop("eps"), "group 1 has the settings"),
    "text": (lambda d, s: s.update(lr="0.1"), "lr is str '0.1' in the file, expected a value"),
    "numbers": (lambda d, s: s.update(betas=0.9), "betas is float 0.9 in the file"),
    "length": (lambda d, s: s.update(betas=[0.9]), r"betas is list \[0.9\] in the file"),
    "inner": (lambda d, s: s["groups"][0].update(eps=[]), r"group 0: eps is list \[\] in"),
    "array": (lambda d, s: d.update(state={"a": {"@array": []}}), "lacks the array"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_checkpoint_of_wrong_types_is_refused(kind: str, tmp_path: Path) -> None:
    change, message = CHANGES[kind]
    path = tmp_path / "run.npz"
    changed_checkpoint(
        path,
        lambda document: change(
            document["objects"]["optimizer"], document["objects"]["optimizer"]["settings"]
        ),
    )
    own = optimizer()
    before = {name: array.tolist() for name, array in own.state_dict().items()}
    with pytest.raises(StateError, match=f"^load_checkpoint: .*{message}"):
        nn.load_checkpoint(path, optimizer=own)
    assert {name: array.tolist() for name, array in own.state_dict().items()} == before
    assert own.lr == 0.1


@pytest.mark.parametrize("random", [3, {}, {"@array": "none"}, {"a": [1]}])
def test_a_checkpoint_with_another_random_state_is_refused(random: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    changed_checkpoint(path, lambda document: document.update(random=random))
    own = optimizer()
    with pytest.raises(StateError, match=r"^load_checkpoint: .*run.npz.*random|lacks the array"):
        nn.load_checkpoint(path, optimizer=own)


# --- archives ------------------------------------------------------------------------------------

ARRAYS = {"a": numpy.ones(3), "b": numpy.zeros(2), "c": numpy.asarray(3)}


def listed(state: Any) -> dict[str, Any]:
    return {name: array.tolist() for name, array in state.items()}


def test_no_flipped_bit_of_an_archive_loses_an_array(tmp_path: Path) -> None:
    """Each bit of the directory, and of the last member."""
    path = tmp_path / "x.npz"
    content = npz_bytes(ARRAYS)
    start = content.rindex(b"PK\x03\x04")
    for place in range(start, len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            try:
                found = nn.load(path)
            except StateError as error:
                assert "x.npz" in str(error)
            else:
                assert listed(found) == listed(ARRAYS), (place, bit)


@pytest.mark.parametrize("lost", range(3))
def test_a_lost_entry_of_the_directory_is_noticed(lost: int, tmp_path: Path) -> None:
    content = npz_bytes(ARRAYS)
    start, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    entries = [b"PK\x01\x02" + rest for rest in content[start:end].split(b"PK\x01\x02")[1:]]
    del entries[lost]
    directory = b"".join(entries)
    tail = bytearray(content[end:])
    tail[8:12] = struct.pack("<HH", 2, 2)
    tail[12:16] = struct.pack("<I", len(directory))
    path = tmp_path / "x.npz"
    path.write_bytes(content[:start] + directory + tail)
    with numpy.load(path) as file:
        assert len(file.files) == 2  # other readers notice nothing
    for read in (nn.load, nn.ArrayDataset.from_npz):
        with pytest.raises(StateError, match=r"x.npz.*directory has lost the array at byte \d+"):
            read(path)


class Stream(io.RawIOBase):
    """A stream that cannot go back, so zipfile writes the sums of a member behind the member."""

    def __init__(self) -> None:
        self.content = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.content += bytes(data)
        return len(data)


def test_an_archive_of_a_stream_is_read(tmp_path: Path) -> None:
    stream = Stream()
    numpy.savez(stream, **ARRAYS)
    path = tmp_path / "x.npz"
    path.write_bytes(stream.content)
    assert listed(nn.load(path)) == listed(ARRAYS)


def test_a_compressed_bomb_is_no_data_set(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    numpy.savez_compressed(path, a=numpy.zeros(20_000_000))
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match=r"^ArrayDataset.from_npz: .*x.npz.*is compressed"):
            nn.ArrayDataset.from_npz(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ({"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}, b""),
        ({"dtype": "BF16", "shape": [0, 2**62], "data_offsets": [0, 0]}, b""),
        ({"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}, b""),
        ({"dtype": "F32", "shape": [0] * 100, "data_offsets": [0, 0]}, b""),
        ({"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}, b"\0"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [0, 2**62]}, b""),
    ],
)
def test_safetensors_with_hostile_headers_are_refused(
    header: Any, body: bytes, tmp_path: Path
) -> None:
    text = json.dumps({"a": header}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    with pytest.raises(StateError, match=r"^load: .*x\.safetensors"):
        nn.load(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00\xff\xff{", b"\x80\x04."]
)
def test_a_map_of_another_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"^ArrayDataset.from_npy: .*x\.npy is not a file"):
        nn.ArrayDataset.from_npy(path)


# --- images --------------------------------------------------------------------------------------


def save_image(path: Path, image: Any, kind: str = "png") -> nn.ImageFolder:
    path.parent.mkdir(exist_ok=True)
    image.save(path, kind)
    return nn.ImageFolder(path.parent.parent)


@pytest.mark.parametrize("suffix", ["png", "jpeg", "bmp", "gif", "tiff", "webp"])
def test_the_six_formats_are_read(suffix: str, tmp_path: Path) -> None:
    dataset = save_image(tmp_path / "a" / f"x.{suffix}", Image.new("RGB", (3, 2)), suffix)
    assert dataset[0][0].shape == (3, 2, 3)


def test_postscript_with_the_name_of_an_image_starts_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    path = tmp_path / "images" / "a" / "x.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(OSError, match=r"^ImageFolder: .*x.png is no image of the formats PNG"):
        nn.ImageFolder(path.parent.parent)[0]
    assert not (tmp_path / "ran").exists()


def test_the_pixels_have_a_limit_and_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.png"
    save_image(path, Image.new("1", (30, 20)))
    assert nn.ImageFolder(tmp_path, max_pixels=600)[0][0].shape == (3, 20, 30)
    with pytest.raises(ValueError, match=r"has 30 x 20 pixels, and at most 599 .*max_pixels="):
        nn.ImageFolder(tmp_path, max_pixels=599)[0]
    with pytest.raises(ValueError, match="max_pixels"):
        nn.ImageFolder(tmp_path, max_pixels=0)


@pytest.mark.filterwarnings("ignore:Image size:PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [7_100, 12_000, 60_000])
def test_an_image_beyond_the_default_limit_takes_no_memory(side: int, tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.gif"
    dataset = save_image(path, Image.new("L", (3, 3)), "gif")
    content = bytearray(path.read_bytes())
    content[6:10] = struct.pack("<HH", side, side)
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"x.gif has .*at most 50000000 pixels are read"):
            dataset[0]
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_limit_beyond_that_of_pillow_names_the_setting_of_pillow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a" / "x.png"
    save_image(path, Image.new("1", (30, 20)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    dataset = nn.ImageFolder(tmp_path, max_pixels=1000)
    with pytest.raises(ValueError, match=r"Pillow.*PIL\.Image\.MAX_IMAGE_PIXELS") as caught:
        dataset[0]
    assert "max_pixels=" not in str(caught.value)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert dataset[0][0].shape == (3, 20, 30)


# --- shapes without bytes ------------------------------------------------------------------------


HUGE = [((1 << 60,), "|V0"), ((1 << 31, 1 << 31), "|S0"), ((1 << 40, 0), "<f4"), ((1 << 60,), [])]
"""Shapes whose elements take no bytes, so the size of the file says nothing about them."""


def npy_bytes(shape: tuple[int, ...], descr: Any) -> bytes:
    """A file of ``numpy.save`` with no elements."""
    content = io.BytesIO()
    header = {"shape": shape, "fortran_order": False, "descr": descr}
    numpy.lib.format.write_array_header_1_0(content, header)
    return content.getvalue()


@pytest.mark.parametrize(("shape", "descr"), HUGE)
@pytest.mark.parametrize("read", [nn.load, nn.ArrayDataset.from_npz])
def test_an_archive_claims_no_endless_shape(
    read: Any, shape: tuple[int, ...], descr: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy_bytes(shape, descr))
    with pytest.raises(StateError, match=r"x.npz .*x claims the shape .* without a byte"):
        read(path)


@pytest.mark.parametrize(("shape", "descr"), [*HUGE, ((0, 1 << 40), "<f4"), ((-1,), "<f4")])
def test_a_mapped_file_claims_no_endless_shape(
    shape: tuple[int, ...], descr: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy_bytes(shape, descr))
    with pytest.raises(StateError, match=r"x.npy"):
        map_npy("test", path)


@pytest.mark.parametrize("shape", [[1 << 40, 0], [0, 1 << 40]])
def test_a_file_of_safetensors_claims_no_endless_shape(shape: list[int], tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    head = json.dumps({"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    with pytest.raises(StateError, match=r"x.safetensors: x.*without a byte"):
        nn.load(path)


def test_shapes_without_bytes_are_read_when_short(tmp_path: Path) -> None:
    state = {"a": numpy.zeros((1000, 0), "f4"), "b": numpy.zeros((0, 7))}
    for path in (tmp_path / "x.npz", tmp_path / "x.safetensors"):
        nn.save(path, state)
        assert {name: value.shape for name, value in nn.load(path).items()} == {
            name: value.shape for name, value in state.items()
        }


def test_a_file_of_safetensors_has_a_limit_of_names(tmp_path: Path) -> None:
    """The time of the library grows faster than the number of arrays."""
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", 9_000_000) + b"{}" + b" " * 9_000_000)
    with pytest.raises(StateError, match=r"x.safetensors has 9000000 bytes of names and shapes"):
        nn.load(path)


# --- tables --------------------------------------------------------------------------------------


def test_a_table_takes_linear_time_in_its_columns(tmp_path: Path) -> None:
    """Quadratic time would be minutes: the alarm of this file rings first."""
    path = tmp_path / "x.csv"
    count = 50_000
    row = ",".join(["1"] * count)
    path.write_text(",".join(f"c{i}" for i in range(count)) + f"\n{row}\n" * 3)
    assert nn.TableDataset(path).arrays[0].shape == (3, count)
    path.write_text(",".join(["a"] * count) + f"\n{row}\n")
    with pytest.raises(ValueError, match=r"x.csv, line 1: two columns have the name 'a'"):
        nn.TableDataset(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n\xff,4\n", "line 3: the file must be text in UTF-8, got the byte 0xff"),
        (b'a,b\n1,2\n"' + b"x" * 200_000 + b'",4\n', "line 3, column .a.: .xxx"),
        (b"a,b\n1,2\n" + b"x" * 100_000 + b",4\n", "line 3, column 'a': 'xxx"),
        (b"a,b\n1,2\n3\n", "line 3: expected 2 values as in the header, got 1"),
        (b"a,b\n1,nan\n", "line 2, column 'b': 'nan' is no finite number"),
    ],
)
def test_an_error_of_a_table_names_file_and_line(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"x.csv, {message}") as caught:
        nn.TableDataset(path)
    assert len(str(caught.value)) < 500


def test_an_unknown_column_of_a_wide_table_is_a_short_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"c{i}" for i in range(1000)) + "\n" + ",".join(["1"] * 1000))
    with pytest.raises(ValueError, match=r"no column 'y'; it has c0, .*c19 and 980 more\."):
        nn.TableDataset(path, "y")


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a." * 200_000 + "a = 1", "[" + "a . " * 100_000 + "a]"])
def test_a_key_of_many_tables_is_refused_at_once(text: str, tmp_path: Path) -> None:
    (tmp_path / "tinynode.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"tinynode.toml: a key has more than 32 dots"):
        read_sources({}, tmp_path)


def test_a_long_value_is_a_short_error(tmp_path: Path) -> None:
    (tmp_path / "tinynode.toml").write_text(f'dtype = "{"x" * 100_000}"')
    with pytest.raises(ConfigError) as caught:
        read_sources({}, tmp_path)
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


# --- the course ----------------------------------------------------------------------------------


def test_a_report_of_wrong_types_names_file_and_key(tmp_path: Path) -> None:
    head = {"format": report.grading.FORMAT, "version": report.grading.VERSION}
    path = tmp_path / "ada.json"
    for content, message in [
        ({**head, "steps": 3}, "steps must be a list, got int 3"),
        ({**head, "steps": [3]}, "steps: 0: expected an object with the key 'step'"),
        ({**head, "steps": [{"step": "13"}]}, "steps: 0: the key 'state' is missing"),
        ({"format": head["format"]}, "results: the key 'version' is missing"),
        ([], "results: expected an object"),
    ]:
        path.write_text(json.dumps(content))
        with pytest.raises(CommandError, match=f"ada.json has no results.*{message}"):
            report.read(path)


def make_too_large(path: Path) -> None:
    path.write_text(json.dumps({"format": 2, "steps": {"1": {"cell": "x" * MOST_BYTES}}}))


def link_to_too_large(path: Path) -> None:
    make_too_large(path.with_name("other"))
    path.symlink_to("other")


@pytest.mark.parametrize("make", [make_too_large, link_to_too_large])
def test_a_progress_file_that_cannot_be_read_is_kept(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / NAME)
    old = (tmp_path / NAME).lstat()
    progress = Progress(tmp_path)
    assert len(progress.warnings) == 1 and "the old one is kept beside it" in progress.warnings[0]
    progress.note("13", passed=True)
    assert Progress(tmp_path).of("13") == {"passed": True}
    assert (tmp_path / f"{NAME}.broken-1").lstat() == old


@pytest.mark.parametrize("make", [make_pipe, link_to_device])
def test_what_is_no_progress_file_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / NAME)
    old = (tmp_path / NAME).lstat()
    progress = Progress(tmp_path)
    assert len(progress.warnings) == 1 and "cannot be read" in progress.warnings[0]
    progress.note("13", passed=True)
    now = (tmp_path / NAME).lstat()  # the time of access is another: the link was followed
    assert (now.st_ino, now.st_size, now.st_mtime_ns) == (old.st_ino, old.st_size, old.st_mtime_ns)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_in_the_encodings_of_editors_and_shells_is_read(
    encoding: str, tmp_path: Path
) -> None:
    """PowerShell writes UTF-16 for ``check all --json > ada.json``."""
    (tmp_path / NAME).write_bytes(
        '{"format": 3, "steps": {"13": {"cell": "\u00e9"}}}'.encode(encoding)
    )
    progress = Progress(tmp_path)
    assert progress.warnings == [] and progress.of("13") == {"cell": "\u00e9"}
    head = {"format": report.grading.FORMAT, "version": report.grading.VERSION, "steps": []}
    (tmp_path / "ada.json").write_bytes(json.dumps(head).encode(encoding))
    (ada,) = report.read(tmp_path / "ada.json")
    assert ada.steps == {}


def test_facts_of_wrong_types_are_left_out(tmp_path: Path) -> None:
    facts = {"taken": {"a": 3}, "cells": {"f": []}, "predictions": [3], "hints": 2, "later": [1]}
    (tmp_path / NAME).write_text(json.dumps({"format": 3, "steps": {"13": facts}}))
    progress = Progress(tmp_path)
    assert progress.warnings == [] and progress.of("13") == {"hints": 2, "later": [1]}


# --- mutated files -------------------------------------------------------------------------------

KINDS = (
    *("npz", "data set", "npy", "safetensors", "checkpoint", "trainer", "net", "table"),
    *("progress", "report", "settings", "project", "png", "jpeg", "bmp", "gif", "tiff", "webp"),
)
CHUNK = 1000


def read_mutated(kind: str, first: int, count: int, seed: int, folder: Path) -> dict[str, int]:
    """Read mutated files in a process of its own; the outcomes are as expected."""
    program = ROOT / "tests" / "fuzz" / "mutated_files.py"
    command = [sys.executable, str(program), kind, *map(str, (first, count, seed, folder))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    last = done.stderr.split()[-1:]
    assert done.returncode == 0, f"file {last}: status {done.returncode}: {done.stderr[-2000:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == [], found["wrong"][:3]
    assert sum(found["counts"].values()) == count
    counts: dict[str, int] = found["counts"]
    return counts


OFTEN = ("jpeg", "bmp", "gif", "tiff", "webp")
"""Kinds like png, which the slow tests mutate."""


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind in OFTEN)) for kind in KINDS],
)
def test_mutated_files(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, record_property: Any
) -> None:
    """``--mutated-files 100000`` divides so many files among the kinds."""
    signal.alarm(0)
    wanted, seed = (request.config.getoption(name) for name in ("mutated_files", "fuzz_seed"))
    count = -(-wanted // len(KINDS))
    for first in range(0, count, CHUNK):
        folder = tmp_path / str(first)
        folder.mkdir()
        counts = read_mutated(kind, first, min(CHUNK, count - first), seed, folder)
        record_property("mutated files", counts)


def test_a_key_that_stands_twice_among_very_many_is_found_at_once() -> None:
    """The comparison of each pair of keys would take minutes."""
    keys = [f'"k{i}": 0' for i in range(200_000)]
    with pytest.raises(NetError, match="the key 'k199999' stands twice"):
        tn.net.loads("{" + ", ".join([*keys, keys[-1]]) + "}")


def test_a_header_of_very_many_signs_is_an_error_of_the_file(tmp_path: Path) -> None:
    shape = "-" * 9000 + "1"
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape},)}}".encode()
    start = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little")
    path = tmp_path / "x.npy"
    path.write_bytes(start + header + b"\n" + bytes(8))
    with pytest.raises(StateError, match=r"x\.npy is not a file that numpy\.save wrote"):
        nn.ArrayDataset.from_npy(path)


@pytest.mark.parametrize("text", [None, 5, ["{}"]])
def test_a_net_is_read_from_text(text: Any) -> None:
    with pytest.raises(TypeError, match="loads: text must be the text of dumps, got"):
        tn.net.loads(text)


def test_the_name_of_an_operator_or_a_device_is_cut_in_an_error() -> None:
    name = "x" * 1_000_000
    operators = [{"type": name, "inputs": [], "outputs": ["y"], "attrs": {}}]
    content = {"net": "f", "operators": operators}
    with pytest.raises(NetError) as found:
        tn.net.loads(json.dumps({"format": "tinynode net 1", "content": content}))
    assert len(str(found.value)) < 1000
    with pytest.raises(DeviceError) as found:
        tn.get_device(name)
    assert len(str(found.value)) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_mutated_files(kind: str, tmp_path: Path) -> None:
    signal.alarm(0)
    read_mutated(kind, 0, 200, 1, tmp_path)
