"""Reading files that a stranger may have written.

Requirement: a file gives its content or an error that names the file. Opening never waits, reading
ends, and the memory has a limit. So pipes, sockets and devices are refused before they are opened:
a pipe would wait for a writer, and a device may be endless. A link is followed to its file first.

Texts of JSON have limits of size and nesting too, and a key stands once in an object. Then
``entry`` takes the values out of the objects: an error names the file, the key, and the type.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable
from typing import Any, BinaryIO

from tinynode.errors import OperandError, describe, printable, short_text

MOST_TEXT = 1 << 28
"""The bytes of a file of text, such as a net: 256 MiB."""
MOST_PATH = 4096
"""The characters of a path."""
MOST_DEPTH = 64
"""The depth of lists and objects in each other in a text of JSON."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def checked_path(function: str, path: Any) -> str:
    """The path as a text, which the system takes.

    Raises:
        OperandError: the path is neither a text nor a ``pathlib.Path``.
        ValueError: the path holds a null character or half a character, or is too long.
    """
    try:
        text = os.fsdecode(path)
        is_usable = b"\0" not in os.fsencode(text) and len(text) <= MOST_PATH
    except TypeError:
        raise OperandError(
            f"{function}: path must be a text or a pathlib.Path, got {describe(path)}."
        ) from None
    except UnicodeError:
        is_usable = False
    if not is_usable:
        raise ValueError(
            f"{function}: path must have at most {MOST_PATH} characters, and no null character, "
            f"got {describe(path)}."
        )
    return text


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, in bytes.

    Raises:
        OSError: the file is missing, cannot be read, or is a folder, a pipe, a socket or a device.
    """
    _check_is_file(path, os.stat(path))
    file = open(path, "rb", opener=open_at_once)  # noqa: SIM115 - the caller closes it
    try:
        _check_is_file(path, os.fstat(file.fileno()))  # it may have been exchanged meanwhile
    except OSError:
        file.close()
        raise
    return file


def read_file(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """The content of a file.

    Args:
        path: the file.
        most: the bytes of the largest file that is read; by default, the memory of the machine.

    Raises:
        OSError: as for ``open_file``. Or the file is too large, or grows while it is read.
    """
    limit = _memory() if most is None else most
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            reason = f"the file has {size} bytes, and at most {limit} bytes are read"
            raise OSError(errno.EFBIG, reason, os.fspath(path))
        try:
            content = file.read(size)
        except MemoryError:
            reason = f"there is no memory for {size} bytes"
            raise OSError(errno.ENOMEM, reason, os.fspath(path)) from None
        if file.read(1):  # such as a file of /proc, whose size is 0
            reason = f"the file has more bytes than its size, {size}"
            raise OSError(errno.EFBIG, reason, os.fspath(path))
    return content


def open_at_once(path: str, flags: int) -> int:
    """An opener for ``open`` that does not wait for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_is_file(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a file is needed, got a folder", os.fspath(path))
    raise OSError(errno.EINVAL, f"a file is needed, got {kind}", os.fspath(path))


def _memory() -> int:
    """The memory of the machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows, or a system that does not tell
        return 1 << 48


# --- JSON ----------------------------------------------------------------------------------------


def parse_json(text: str | bytes, most_depth: int = MOST_DEPTH) -> Any:
    """The value of a text of JSON, of ``MOST_TEXT`` characters at most.

    Bytes are UTF-8, UTF-16 or UTF-32, with a mark of byte order or without.

    Raises:
        ValueError: the text is no JSON, is too long or nested too deeply, or an object has a key
            twice.
    """
    if len(text) > MOST_TEXT:
        raise ValueError(f"the text has {len(text)} characters, expected {MOST_TEXT} at most")
    # imported at the first file of JSON: safe_files is part of `import tinynode`
    import json

    try:
        data = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(_too_deep(most_depth)) from None
    _check_depth(data, most_depth)
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of two equal keys, Python would drop the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter([key for key, _ in pairs])
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {short_text(twice)} stands twice in an object")
    return found


def _check_depth(data: Any, most_depth: int) -> None:
    """Refuse lists and objects deeper in each other than ``most_depth``."""
    if not is_deeper(data, most_depth):
        return
    values = data if isinstance(data, dict) else {}
    keys = [key for key, value in values.items() if is_deeper(value, most_depth - 1)]
    where = f", at the key {short_text(keys[0])}" if keys else ""
    raise ValueError(f"{_too_deep(most_depth)}{where}")


def is_deeper(data: Any, depth: int) -> bool:
    """True if lists and objects stand in each other more than ``depth`` deep."""
    level = [data] if isinstance(data, dict | list) else []
    while level and depth > 0:
        depth -= 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)


def _too_deep(most_depth: int) -> str:
    return f"lists and objects stand in each other more than {most_depth} deep"


def entry(data: Any, key: str, *kinds: type, where: str) -> Any:
    """The value of a key in an object of JSON, of one of the types.

        entry({"format": 1}, "format", int, where="run.npz")  # 1

    Raises:
        ValueError: there is no object, the key is missing, or the value has another type. A bool
            is no int.
    """
    if type(data) is not dict:
        raise ValueError(f"{where}: expected an object with the key {key!r}, got {describe(data)}")
    if key not in data:
        raise ValueError(f"{where}: the key {key!r} is missing")
    value = data[key]
    if type(value) not in kinds:
        expected = " or ".join(_WORDS.get(kind, kind.__name__) for kind in kinds)
        raise ValueError(f"{where}: {key} must be {expected}, got {describe(value)}")
    return value


_WORDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def reason_of(error: Exception, most: int = 300) -> str:
    """The words of an error, on one line, cut: the file may have chosen them."""
    words = " ".join(str(error)[:most].split())
    return printable(words)[:most] or type(error).__name__


def listed(names: Iterable[Any], most: int = 20) -> str:
    """The first names out of a file, each cut to 60 characters: ``a, b and 7 more``."""
    found = list(names)
    text = ", ".join(printable(str(name)[:60]) for name in found[:most])
    return f"{text} and {len(found) - most} more" if len(found) > most else text
