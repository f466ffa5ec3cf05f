"""The cache of libraries: nobody else chooses a library, and damage costs a compilation."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from c_compiler import missing_compiler

from tinynode_fast.native import build, cache
from tinynode_fast.native.cache import CacheFolder, NotBuiltError

if missing_compiler():
    pytest.skip(missing_compiler(), allow_module_level=True)

SOURCE = "int number(void) { return 42; }\n"
OTHER = "int number(void) { return 13; }\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test alone; nothing is loaded."""
    path = tmp_path / "cache"
    monkeypatch.setenv("TINYNODE_CACHE", str(path))
    monkeypatch.setattr(build, "_loaded", {})
    return path


def number(source: str = SOURCE) -> int:
    """The number of the library, by a look into the folder."""
    build._loaded.clear()
    return int(build.library(source, "auto").number())


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


PROGRAM = f"""
from tinynode_fast.native import build
print(build.library({SOURCE!r}, "auto").number())
"""


def start(folder: Path, program: str = PROGRAM) -> subprocess.Popen[str]:
    environment = {**os.environ, "TINYNODE_CACHE": str(folder)}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


# --- damage --------------------------------------------------------------------------------------


def test_a_file_cut_at_each_of_200_lengths_is_not_loaded(folder: Path) -> None:
    assert number() == 42
    path = only_file(folder)
    data = path.read_bytes()
    rng = random.Random(0)
    lengths = [0, 1, len(data) - 1, len(data) - cache.SEAL_BYTES]
    lengths += [rng.randrange(len(data)) for _ in range(196)]
    with CacheFolder() as opened:
        for length in lengths:
            path.write_bytes(data[:length])
            assert opened.load(path.stem) is None
        path.write_bytes(data)
        assert opened.load(path.stem) is not None


def zeroed(data: bytes) -> bytes:
    return bytes(len(data))


def zeroed_before_the_seal(data: bytes) -> bytes:
    return bytes(len(data) - cache.SEAL_BYTES) + data[-cache.SEAL_BYTES :]


def with_another_bit(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def longer(data: bytes) -> bytes:
    return data + bytes(4096)


def without_a_seal(data: bytes) -> bytes:
    return data[: -cache.SEAL_BYTES]


@pytest.mark.parametrize(
    "damage", [zeroed, zeroed_before_the_seal, with_another_bit, longer, without_a_seal]
)
def test_a_damaged_library_is_compiled_anew(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    assert number() == 42
    path = only_file(folder)
    good = path.read_bytes()
    path.write_bytes(damage(good))
    assert number() == 42
    with CacheFolder() as opened:
        assert opened.load(path.stem) is not None  # replaced


def test_the_library_of_another_key_is_not_loaded(folder: Path) -> None:
    assert number() == 42
    mine = only_file(folder)
    assert number(OTHER) == 13
    (other,) = set(folder.iterdir()) - {mine}
    os.replace(other, mine)
    assert number() == 42


def test_a_loaded_library_is_no_longer_the_file(folder: Path) -> None:
    """Else a write to the file would end this process by a signal."""
    library = build.library(SOURCE, "auto")
    path = only_file(folder)
    os.truncate(path, 0)
    assert library.number() == 42


# --- what is no file of the user -----------------------------------------------------------------


def make_link(path: Path) -> None:
    path.symlink_to("/bin/true")


def make_endless_link(path: Path) -> None:
    path.symlink_to(path.name)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_writable(path: Path) -> None:
    data = b"anything"
    path.write_bytes(data + cache.seal_of(path.stem, data))
    path.chmod(0o666)


def make_unreadable(path: Path) -> None:
    path.write_bytes(b"anything")
    path.chmod(0)


@pytest.mark.parametrize(
    "make", [make_link, make_endless_link, make_fifo, make_writable, make_unreadable]
)
def test_what_is_no_file_of_the_user_is_replaced(
    folder: Path, make: Callable[[Path], None]
) -> None:
    assert number() == 42
    path = only_file(folder)
    path.unlink()
    make(path)
    assert number() == 42
    assert path.is_file() and not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_in_place_of_a_library_is_a_reason(folder: Path) -> None:
    assert number() == 42
    path = only_file(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(NotBuiltError, match="cannot be written"):
        number()


def test_a_file_that_the_system_does_not_load_is_a_reason(folder: Path) -> None:
    assert number() == 42
    path = only_file(folder)
    data = b"no library"
    path.write_bytes(data + cache.seal_of(path.stem, data))
    with pytest.raises(NotBuiltError, match="cannot be loaded"):
        number()


# --- the folder ----------------------------------------------------------------------------------


def test_a_folder_that_others_may_write_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(NotBuiltError, match="not this user's alone"):
        number()


def test_a_link_in_place_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o755)
    folder.symlink_to(tmp_path / "other")
    with pytest.raises(NotBuiltError, match="cannot be made or opened"):
        number()
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o755
    assert not list((tmp_path / "other").iterdir())


def test_a_folder_under_the_same_name_changes_nothing(folder: Path, tmp_path: Path) -> None:
    """Between the check and the load, another folder takes the name."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no paths through descriptors on this system")
    assert number() == 42
    path = only_file(folder)
    assert number(OTHER) == 13
    (other,) = set(folder.iterdir()) - {path}
    with CacheFolder() as opened:
        folder.rename(tmp_path / "mine")
        folder.mkdir()
        (folder / path.name).write_bytes((tmp_path / "mine" / other.name).read_bytes())
        library = opened.load(path.stem)
    assert library is not None and library.number() == 42


@pytest.mark.parametrize("given", ["cache", "./cache", "", "~/cache"])
def test_a_relative_path_does_not_count(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYNODE_CACHE", given)
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_path() == tmp_path / "home" / ".cache" / "tinynode"
    assert number() == 42
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_the_cache_stays_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    names = [f"{digit * 32}.so" for digit in "abc"]
    old, new = f"build-{'d' * 16}", f"build-{'e' * 16}"
    for age, name in enumerate(names):
        path = folder / name
        path.write_bytes(bytes(10))
        os.utime(path, (100 - age, 100 - age))
    for name in (old, new):
        (folder / name).mkdir()
    os.utime(folder / old, (100, 100))
    monkeypatch.setattr(cache, "CACHE_BYTES", 15)
    with CacheFolder() as opened:
        opened.shrink()
    assert sorted(path.name for path in folder.iterdir()) == [names[0], new]


@pytest.mark.parametrize("name", ["mine.so", "build-release", "build-abc", "build", "notes.txt"])
def test_other_files_in_the_folder_stay(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TINYNODE_CACHE may name a folder with work of the user."""
    folder.mkdir(mode=0o700)
    path = folder / name
    if name.startswith("build"):
        path.mkdir()
        (path / "work").write_text("of a day")
    else:
        path.write_bytes(bytes(100))
    os.utime(path, (100, 100))
    monkeypatch.setattr(cache, "CACHE_BYTES", 15)
    with CacheFolder() as opened:
        opened.shrink()
    assert path.exists() and (path.is_file() or (path / "work").exists())


def make_a_folder_of_many(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o775)


def make_a_link(folder: Path) -> None:
    folder.symlink_to(folder.parent)


def make_a_file(folder: Path) -> None:
    folder.write_text("no folder")


@pytest.mark.parametrize("make", [make_a_folder_of_many, make_a_link, make_a_file])
def test_a_folder_that_cannot_serve_is_named_with_a_cure(
    folder: Path, make: Callable[[Path], None]
) -> None:
    make(folder)
    with pytest.raises(NotBuiltError) as caught:
        number()
    assert str(folder) in str(caught.value)
    assert "Set TINYNODE_CACHE to a folder of your own" in str(caught.value)


def test_a_relative_home_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYNODE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "home")
    with pytest.raises(NotBuiltError, match=r"home is a relative path.*Set TINYNODE_CACHE"):
        number()
    assert not list(tmp_path.iterdir())


# --- several processes, and their ends -----------------------------------------------------------


def test_eight_processes_build_the_same_library(folder: Path) -> None:
    running = [start(folder) for _ in range(8)]
    outputs = [process.communicate(timeout=120)[0].strip() for process in running]
    assert outputs == ["42"] * 8
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_right_cache(folder: Path) -> None:
    began = time.monotonic()
    process = start(folder)
    process.communicate()
    seconds = time.monotonic() - began
    rng = random.Random(0)
    for _ in range(30):
        for path in folder.glob("*.so"):
            path.unlink()
        process = start(folder)
        time.sleep(rng.uniform(0.3, 1.1) * seconds)
        process.kill()
        process.communicate()
        assert number() == 42


SLOW_COMPILER = """#!/bin/sh
sleep 60 &
echo $! > {child}
sleep 60
"""


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_a_library_that_does_not_load_is_not_kept(tmp_path: Path) -> None:
    """A wrapper of a compiler, or a full disk, may leave an empty file and no error."""
    bad = tmp_path / "bad"
    bad.touch()
    text = f'if [ -e {bad} ]; then : > net.so; else exec cc "$@"; fi'
    wanted = script(tmp_path / "sometimes-cc", text)
    with pytest.raises(NotBuiltError, match="cannot be loaded"):
        build.library(SOURCE, wanted)
    bad.unlink()
    assert build.library(SOURCE, wanted).number() == 42


@pytest.mark.parametrize("make", ["", "mkdir net.so", "mkfifo net.so", "ln -s /bin/sh net.so"])
def test_a_compiler_that_makes_no_file_is_a_reason(
    make: str, folder: Path, tmp_path: Path
) -> None:
    wanted = script(tmp_path / "odd-cc", make)
    with pytest.raises(NotBuiltError, match="odd-cc made no library"):
        build.library(SOURCE, wanted)
    assert not list(folder.iterdir())


def test_a_compiler_may_have_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler runs in another folder."""
    script(tmp_path / "my-cc", 'exec cc "$@"')
    monkeypatch.chdir(tmp_path)
    assert build.library(SOURCE, "./my-cc").number() == 42


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(is_true: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_true():
            return
        time.sleep(0.02)
    pytest.fail("not true after 10 s")


def slow_compiler(tmp_path: Path) -> tuple[Path, Path]:
    """A compiler that hangs and starts a child, and the file with the child's number."""
    path, child = tmp_path / "slow-cc", tmp_path / "child"
    path.write_text(SLOW_COMPILER.format(child=child))
    path.chmod(0o700)
    return path, child


def test_a_compiler_that_hangs_ends_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, child = slow_compiler(tmp_path)
    monkeypatch.setattr(build, "SECONDS", 1.0)
    with pytest.raises(NotBuiltError, match="slow-cc: TimeoutExpired"):
        build.library(SOURCE, str(path))
    wait_until(lambda: not is_alive(int(child.read_text())))
    assert not build._running


def test_the_end_of_python_ends_a_compiler(folder: Path, tmp_path: Path) -> None:
    path, child = slow_compiler(tmp_path)
    program = f"""
import contextlib, time
from pathlib import Path
from tinynode_fast.native import build
def work():
    with contextlib.suppress(build.NotBuiltError):
        build.library({SOURCE!r}, {str(path)!r})
build.in_background(work, 0.0)
path = Path({str(child)!r})
while not build._running or not path.exists() or not path.read_text():
    time.sleep(0.01)
"""
    process = start(folder, program)
    process.communicate(timeout=30)
    assert process.returncode == 0
    wait_until(lambda: not is_alive(int(child.read_text())))
    assert not list(folder.iterdir())


def test_an_interrupt_ends_a_compiler(folder: Path, tmp_path: Path) -> None:
    path, child = slow_compiler(tmp_path)
    program = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tinynode_fast.native import build
build.library({SOURCE!r}, {str(path)!r})
"""
    process = start(folder, program)
    wait_until(lambda: child.exists() and bool(child.read_text()))
    time.sleep(0.3)  # Popen has returned: it knows the compiler
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode != 0
    wait_until(lambda: not is_alive(int(child.read_text())))
    assert not list(folder.glob("build-*"))
