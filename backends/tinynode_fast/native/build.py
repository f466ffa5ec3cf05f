"""Build: C source becomes functions, by the compiler of the system, with a cache on disk.

Requirement: a plan asks for a library and gets the library, or a reason in one line. A library is
compiled once for each source, compiler, set of flags and machine. The cache's folder is
``TINYNODE_CACHE``, or ``tinynode`` in the user's cache folder. A file of another user, or a file
with write access for others, is never loaded. Two processes may build the same library at once:
each writes a separate file, and renames the complete file.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tinynode.configuration import config
from tinynode.devices import count_use, fallback_uses

FLAGS = (
    "-std=c11",
    "-O3",
    "-march=native",
    "-fno-math-errno",  # sqrt becomes an instruction
    "-fno-trapping-math",  # a choice becomes an instruction: no one reads the flags of errors
    "-ffp-contract=off",  # x * y + z rounds twice, as in NumPy
    "-fopenmp-simd",
    "-shared",
    "-fPIC",
)
SECONDS = 60.0
"""The time that a compiler may take."""
CACHE_BYTES = 64 << 20
"""The size of the cache on disk; the libraries that were not used for longest go first."""


class NotBuiltError(Exception):
    """No library: the message is the reason, in one line."""


_lock = threading.Lock()  # a single compiler at a time
_loaded: dict[str, ctypes.CDLL] = {}
_threads: list[threading.Thread] = []
_reasons: set[str] = set()


def _after_fork() -> None:
    """The child has no building thread: one may hold the lock in the parent."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

# --- the compiler --------------------------------------------------------------------------------


def compiler(wanted: str | None = None) -> str:
    """The path of the compiler named by ``config.compiler``, or by ``wanted``.

    Raises:
        NotBuiltError: the setting is "none", or there is no such program.
    """
    wanted = config.compiler if wanted is None else wanted
    if wanted == "none":
        raise NotBuiltError("config.compiler is 'none'")
    if not hasattr(os, "getuid"):  # the owner of a file could not be checked
        raise NotBuiltError("nets are compiled on POSIX systems alone")
    names = ("cc", "gcc", "clang") if wanted == "auto" else (wanted,)
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        what = "no cc, gcc or clang" if wanted == "auto" else f"no program {wanted!r}"
        raise NotBuiltError(f"there is {what} in the path")
    return found


def version_of(path: str) -> str:
    """The first line of the compiler's ``--version``."""
    text = _run([path, "--version"])
    return text.partition("\n")[0]


def _run(command: list[str], folder: str | None = None) -> str:
    """The output of a program, or ``NotBuiltError``."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"{command[0]}: {type(error).__name__}: {error}".splitlines()[0]
        raise NotBuiltError(reason) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise NotBuiltError(f"{command[0]} failed: {lines[0].strip()[:200]}")
    return done.stdout


@functools.cache
def machine() -> str:
    """The processor, for which ``-march=native`` compiles."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", "rb") as file:
        first = itertools.takewhile(bytes.strip, file)  # an empty line ends a processor
        named = [line for line in first if line.startswith((b"model name", b"flags", b"Features"))]
        return f"{platform.machine()} {b' '.join(named)!r}"
    return f"{platform.machine()} {platform.processor()} {platform.node()}"


@functools.cache
def has_vector_functions() -> bool:
    """True if the C library has vector forms of exp, tanh and the others: glibc 2.35 and later."""
    name, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return name == "glibc" and numbers >= (2, 35) and platform.machine() == "x86_64"


# --- the cache -----------------------------------------------------------------------------------


def cache_folder() -> Path:
    """The folder of the libraries."""
    given = os.environ.get("TINYNODE_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tinynode"


def is_safe(path: Path) -> bool:
    """True for a file or folder of the user, without write access for others."""
    try:
        found = path.lstat()
    except OSError:
        return False
    kind = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return kind and not writable and found.st_uid == os.getuid()


def _own_folder() -> Path:
    """The folder of the cache, made for the user alone."""
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise NotBuiltError(f"the cache's folder cannot be made: {error}") from None
    if not is_safe(folder):
        raise NotBuiltError(f"the cache's folder {folder} is not this user's alone")
    return folder


def library(source: str, wanted: str | None = None, compiles: bool = True) -> ctypes.CDLL:
    """The functions of C source: loaded before, from the cache, or compiled now.

    A building thread lacks the settings of the caller, so ``wanted`` is the caller's setting.

    Raises:
        NotBuiltError: there is no compiler, or the source could not be compiled or loaded. With
            ``compiles=False`` also for a source that was not compiled before.
    """
    path = compiler(wanted)
    state = os.stat(path)  # a new version of the compiler is another file
    parts = (source, path, f"{state.st_size} {state.st_mtime_ns}", *FLAGS, machine())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    if key not in _loaded:
        target = _own_folder() / f"{key}.so"
        if not target.exists():
            if not compiles:
                raise NotBuiltError("not compiled yet")
            with _lock:
                _compile(target, source, path)
        _loaded[key] = _load(target)
    return _loaded[key]


def _load(target: Path) -> ctypes.CDLL:
    if not is_safe(target):
        raise NotBuiltError(f"{target} is not this user's alone")
    with contextlib.suppress(OSError):
        os.utime(target)  # used now
    try:
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise NotBuiltError(f"{target} cannot be loaded: {error}"[:200]) from None


def _compile(target: Path, source: str, path: str) -> None:
    """Compile in a new folder beside the target; a rename makes the library appear."""
    if target.exists():  # by another thread, meanwhile
        return
    folder = ""
    try:
        folder = tempfile.mkdtemp(dir=target.parent, prefix="build-")  # a program may end before
        Path(folder, "net.c").write_text(source, encoding="utf-8")
        libraries = ("-lmvec", "-lm") if has_vector_functions() else ("-lm",)
        _run([path, *FLAGS, "net.c", "-o", "net.so", *libraries], folder)
        made = Path(folder, "net.so")
        made.chmod(0o700)
        made.replace(target)
        _shrink(target.parent)
    except OSError as error:
        raise NotBuiltError(f"{target} cannot be written: {error}"[:200]) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _shrink(folder: Path) -> None:
    """Remove the libraries with the oldest use, until the cache is small enough."""
    now, total = time.time(), 0
    with contextlib.suppress(OSError):  # another process may remove the same file
        found = [*folder.glob("*.so"), *folder.glob("build-*")]
        for path in sorted(found, key=os.path.getmtime, reverse=True):
            total += path.stat().st_size
            if path.is_dir() and now - path.stat().st_mtime > 3600:  # its program ended
                shutil.rmtree(path, ignore_errors=True)
            elif path.is_file() and total > CACHE_BYTES:
                path.unlink()


# --- in the background ---------------------------------------------------------------------------


def note(reason: str) -> None:
    """Count a plan without C, with the reason, for ``show.fallbacks()``."""
    _reasons.add(reason)
    count_use(fallback_uses, ("fast", "a compiled net", reason), 0.0)


def in_background(work: Callable[[], object], seconds: float) -> None:
    """Build in a thread, and wait some seconds; the end of the program does not wait."""
    thread = threading.Thread(target=work, name="tinynode_fast build", daemon=True)
    _threads[:] = [one for one in _threads if one.is_alive()]
    with contextlib.suppress(RuntimeError):  # the program ends
        thread.start()
        _threads.append(thread)
        thread.join(seconds)


def wait() -> None:
    """Wait until every requested plan is compiled, or has failed."""
    for thread in _threads.copy():
        thread.join()


def compiler_status() -> Iterator[str]:
    """Lines about the compiler, for ``python -m tinynode backends``."""
    try:
        path = compiler()
        yield f"{path}, {version_of(path)}"
    except NotBuiltError as error:
        yield f"none: {error}"
    yield from sorted(_reasons)
