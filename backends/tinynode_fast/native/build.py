"""Build: C source becomes functions, by the compiler of the system, with a cache on disk.

Requirement: a plan asks for a library and gets the library, or a reason in one line. A library is
compiled once for each source, compiler, set of flags and machine, and kept in the cache (see
``cache.py``). Two processes may build the same library at once: each writes a separate file, and
renames the complete file. A compiler that does not end is ended, with all programs that it
started.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import platform
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

from tinynode.configuration import config
from tinynode.devices import count_use, fallback_uses
from tinynode_fast.native.cache import CacheFolder, NotBuiltError

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

_lock = threading.RLock()  # a single compiler at a time; re-entrant as in tinynode/generator.py
_loaded: dict[str, ctypes.CDLL] = {}
_threads: list[threading.Thread] = []
_running: set[subprocess.Popen[str]] = set()
_python_ends = threading.Event()
_reasons: set[str] = set()


def _after_fork() -> None:
    """The child has no building thread: one may hold the lock in the parent."""
    global _lock
    _lock = threading.RLock()


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
    return os.path.abspath(found)  # it runs in a folder of the cache


def version_of(path: str) -> str:
    """The first line of the compiler's ``--version``."""
    text = _run([path, "--version"])
    return text.partition("\n")[0]


def _run(command: list[str], folder: str | None = None, *kept: int) -> str:
    """The output of a program, or ``NotBuiltError``; ``kept`` are its open descriptors.

    The program has a process group of its own, so everything that it started ends with it.
    """
    if _python_ends.is_set():
        raise NotBuiltError("Python ends")
    pipe = subprocess.PIPE
    program = None
    try:  # Ctrl-C may come at any line
        program = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            errors="replace",
            pass_fds=kept,
            start_new_session=True,
        )
        _running.add(program)
        output, errors = program.communicate(timeout=SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise _failed(command, error) from None
    finally:
        if program is not None:
            _end(program)
    if program.returncode:
        lines = [line for line in errors.splitlines() if "error" in line] or ["no message"]
        raise NotBuiltError(f"{command[0]} failed: {lines[0].strip()[:200]}")
    return output


def _failed(command: list[str], error: Exception) -> NotBuiltError:
    return NotBuiltError(f"{command[0]}: {type(error).__name__}: {error}".splitlines()[0])


def _end(program: subprocess.Popen[str]) -> None:
    """End a program and all programs that it started; a program that has ended stays as it is."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    for stream in (program.stdout, program.stderr):
        if stream is not None:
            stream.close()
    _running.discard(program)


def _end_all() -> None:
    """The end of Python ends the compilers, and the building threads remove their folders."""
    _python_ends.set()
    for program in _running.copy():
        _end(program)
    for thread in _threads.copy():
        thread.join(1.0)


atexit.register(_end_all)


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
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return name == "glibc" and numbers >= (2, 35) and platform.machine() == "x86_64"


# --- the library ---------------------------------------------------------------------------------


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
        with CacheFolder() as folder:
            found = folder.load(key)
            if found is None and not compiles:
                raise NotBuiltError("not compiled yet")
            _loaded[key] = found or _built(folder, key, source, path)
    return _loaded[key]


def _built(folder: CacheFolder, key: str, source: str, path: str) -> ctypes.CDLL:
    """The library after a compilation, or by another thread meanwhile."""
    with _lock:
        found = folder.load(key)
        if found is None:
            _compile(folder, key, source, path)
            found = folder.load(key)
    if found is None:
        raise NotBuiltError("the new library was damaged or removed before it was loaded")
    return found


def _compile(folder: CacheFolder, key: str, source: str, path: str) -> None:
    """Compile in a new folder of the cache; a rename makes the library appear."""
    libraries = ("-lmvec", "-lm") if has_vector_functions() else ("-lm",)
    command = [path, *FLAGS, "net.c", "-o", "net.so", *libraries]
    try:
        with folder.new_folder() as name:
            folder.write(f"{name}/net.c", source.encode())
            _run(command, folder.through(name), folder.descriptor)
            folder.keep(key, _made(folder, f"{name}/net.so", path), name)
    except OSError as error:
        target = folder.path / f"{key}.so"
        raise NotBuiltError(f"{target} cannot be written: {error}"[:200]) from None


def _made(folder: CacheFolder, name: str, path: str) -> bytes:
    """The library that the compiler has made."""
    with contextlib.suppress(OSError):  # no file, or a link
        made = folder.read(name)
        if made is not None:
            return made
    raise NotBuiltError(f"{path} made no library")


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
