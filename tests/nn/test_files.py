"""Files of arrays and nets: names that meet, hostile claims, writing that leaves no half file."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest

from tinynode import nn
from tinynode.atomic_file import replace_file
from tinynode.errors import NetError, StateError
from tinynode.net import NetOp, load_net, save_net
from tinynode.nn.serializers import npz_bytes


class Holder(nn.Module):
    """A module with any value as its child."""

    def __init__(self, child: Any) -> None:
        self.child = child


def linear() -> nn.Linear:
    return nn.Linear(2, 2)


# --- two arrays of one name ----------------------------------------------------------------------

TWINS = [
    ({"a.b": linear(), "a": {"b": linear()}}, "child['a.b'].weight", "child['a']['b'].weight"),
    ({1: linear(), "1": linear()}, "child[1].weight", "child['1'].weight"),
]


@pytest.mark.parametrize(("child", "first", "second"), TWINS)
def test_two_arrays_of_one_name_are_refused_by_both_places(
    child: Any, first: str, second: str, tmp_path: Path
) -> None:
    module = Holder(child)
    for use in (module.state_dict, lambda: nn.save(tmp_path / "x", module)):
        with pytest.raises(StateError) as caught:
            use()
        assert f"{first} and {second}" in str(caught.value)
    with pytest.raises(StateError, match=r"^Holder.load_state_dict: two arrays"):
        module.load_state_dict({})
    assert not list(tmp_path.iterdir())
    module.to_device("fast").cleargrads()  # other uses need no names
    assert "child" in repr(module)


def test_an_optimizer_of_two_parameters_of_one_name_has_no_state() -> None:
    optimizer = nn.Adam(Holder({1: linear(), "1": linear()}))
    for use in (optimizer.state_dict, lambda: optimizer.load_state_dict({})):
        with pytest.raises(StateError, match=r"two parameters have the name child\.1\.weight"):
            use()


def test_a_shared_array_has_a_single_name() -> None:
    shared = linear()
    assert list(Holder({"a.b": shared, "a": {"b": shared}}).state_dict()) == [
        "child.a.b.weight",
        "child.a.b.bias",
    ]


@pytest.mark.parametrize(
    "names", [("a\0b", "a\0c"), ("a\0b",), (1, "1")], ids=["two after NUL", "NUL", "1 and '1'"]
)
def test_names_that_a_file_cannot_hold_are_refused(names: Any, tmp_path: Path) -> None:
    state = {name: numpy.ones(1) for name in names}
    with pytest.raises(StateError, match=r"^save: ") as caught:
        nn.save(tmp_path / "x", state)
    assert all(repr(name) in str(caught.value) for name in names)
    assert not list(tmp_path.iterdir())


def test_names_that_end_as_files_do_keep_their_arrays(tmp_path: Path) -> None:
    state = {"a": numpy.zeros(1), "a.npy": numpy.ones(1), ".npy": numpy.ones(2), "": numpy.ones(3)}
    nn.save(tmp_path / "x", state)
    found = nn.load(tmp_path / "x")
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in state.items()
    }


# --- hostile files -------------------------------------------------------------------------------


def npy(header: str, content: bytes = b"") -> bytes:
    """A .npy file of version 1.0 with any header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def archive_of(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def claim(shape: str, content: bytes = b"") -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"
    return archive_of(("a.npy", npy(header, content)))


def overlapping(count: int) -> bytes:
    """Many entries of the directory for one and the same member of 64 kB."""
    content = npz_bytes({"a": numpy.zeros(8192)})
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = content[start:end]
    names = [entry[:46] + b"%c.npy" % (97 + i) for i in range(count)]
    tail = bytearray(content[end:])
    tail[8:12] = count.to_bytes(2, "little") * 2
    tail[12:16] = (len(entry) * count).to_bytes(4, "little")
    return content[:start] + b"".join(names) + bytes(tail)


HOSTILE = {
    "deflated zeros": archive_of(
        ("a.npy", npz_bytes({"a": numpy.zeros(2_000_000)})), compression=zipfile.ZIP_DEFLATED
    ),
    "bzip2": archive_of(("a.npy", npy("{}")), compression=zipfile.ZIP_BZIP2),
    "overlap": overlapping(20),
    "huge": claim("(100000000000000000,)"),
    "huger": claim(f"({10**30},)"),
    "product": claim("(4294967296, 4294967296)"),
    "negative": claim("(-1,)"),
    "truth": claim("(True,)"),
    "nested": claim("(" * 3000 + ")" * 2999),
    "open": claim("(" * 50),
    "indented": archive_of(("a.npy", npy("{}\n   {}\n {}"))),
    "longer": claim("(0,)", b"1"),
    "twice": archive_of(("a.npy", npy("")), ("b.npy", npy(""))).replace(b"b.npy", b"a.npy"),
}


@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.npz"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(StateError, match=r"load: .*hostile.npz is not a file that tinynode"):
        nn.load(path)


@pytest.mark.parametrize("name", ["\ud800", "a" * 70_000, 1, None])
def test_a_name_that_no_archive_holds_is_refused(name: Any, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="save: a name must be text of at most"):
        nn.save(tmp_path / "state.npz", {name: numpy.ones(2)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["deflated zeros", "overlap"])
def test_a_small_file_never_takes_much_memory(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.npz"
    path.write_bytes(HOSTILE[kind])
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match=r"is compressed|claims arrays of 1313280 bytes"):
            nn.load(path)
        assert tracemalloc.get_traced_memory()[1] < 300_000
    finally:
        tracemalloc.stop()


def test_a_compressed_file_is_refused_with_the_cure(tmp_path: Path) -> None:
    numpy.savez_compressed(tmp_path / "x.npz", a=numpy.zeros(3))
    with pytest.raises(StateError, match=r"a.npy is compressed.*numpy\.savez"):
        nn.load(tmp_path / "x.npz")


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0:UserWarning")
def test_files_of_numpy_are_read(tmp_path: Path) -> None:
    record = numpy.zeros(2, dtype=[("ä", "f4"), ("名", "i8")])  # a header of version 3
    fortran = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
    numpy.savez(tmp_path / "x.npz", record=record, fortran=fortran, empty=numpy.zeros((0, 2)))
    found = nn.load(tmp_path / "x.npz")
    for name, array in (("record", record), ("fortran", fortran), ("empty", numpy.zeros((0, 2)))):
        assert found[name].dtype == array.dtype
        numpy.testing.assert_array_equal(found[name], array)


# --- writing -------------------------------------------------------------------------------------


def test_a_net_that_cannot_be_written_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.json"
    save_net(path, NetOp([], "old"))

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_net(path, NetOp([], "new"))
    assert load_net(path).type == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["net.json"]
    with pytest.raises(NetError, match="load_net"):
        load_net(Path(__file__))


def test_left_files_of_killed_saves_go_and_other_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "x"
    left = tmp_path / f".x.{'0' * 16}.tmp"
    left.write_bytes(b"half")
    others = [".x.tmp", f".y.{'0' * 16}.tmp", f".x.{'g' * 16}.tmp", f"x.{'0' * 16}.tmp"]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / f".x.{'1' * 16}.tmp").mkdir()
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    expected = [*others, "x", f".x.{'1' * 16}.tmp"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(expected)


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_save_leaves_the_file_of_another_save_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    original = os.fsync

    def other_save_first(number: int) -> None:
        monkeypatch.setattr(os, "fsync", original)
        replace_file(path, b"other")
        assert len(list(tmp_path.iterdir())) == 2

    monkeypatch.setattr(os, "fsync", other_save_first)
    replace_file(path, b"first")
    assert path.read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
