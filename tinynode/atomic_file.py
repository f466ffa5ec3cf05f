"""Writing a file completely, or not at all.

Requirement: a full disk, a crash or a kill while writing leaves the old file whole. So the content
goes to a temporary file in the same folder, and a rename replaces the old file. A killed save
leaves a temporary file; the next save of the same path removes the file. A lock protects the
temporary file of a running save. Windows and the browser have no such locks: temporary files of
killed saves stay.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
from typing import BinaryIO

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.tmp", re.DOTALL)


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file. The file appears at ``path`` only when complete.

    A symbolic link stays a link, and an existing file keeps its permissions.

    Raises:
        OSError: the file cannot be written; an old file is still whole.
    """
    target = os.path.realpath(path)
    _remove_left_files(target)
    file, temporary = _temporary_beside(target)
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":  # an open file has no other name there
                file.close()
            os.replace(temporary, target)  # the lock ends after the rename
    finally:
        with contextlib.suppress(FileNotFoundError):  # renamed if all went well
            os.unlink(temporary)


def append_to_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write at the end of a file. After an error, the file ends where it ended before.

    Raises:
        OSError: the file cannot be written.
    """
    with open(path, "ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        left = memoryview(content)
        try:
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(end)
            raise


def check_writable(path: str | os.PathLike[str], content: bytes = b"") -> None:
    """Check before a long job that ``replace_file`` can write to ``path``.

    Args:
        path: the file.
        content: the disk must have room for it, beside an old file.

    Raises:
        OSError: ``replace_file`` cannot write to ``path``.
    """
    target = os.path.realpath(path)
    file, temporary = _temporary_beside(target)
    try:
        with file:
            file.write(content)
            file.flush()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, target) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _temporary_beside(target: str) -> tuple[BinaryIO, str]:
    """A new file in the target's folder, open for writing and locked, and the file's name."""
    folder, name = os.path.split(target)
    if os.path.exists(target):
        if not os.path.isfile(target):
            raise OSError(errno.EINVAL, "not a file that can be replaced", target)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "write-protected", target)
    while True:
        temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")
        try:
            file = open(temporary, "xb")  # noqa: SIM115 - the caller closes it
        except OSError as error:
            raise type(error)(error.errno, error.strerror, target) from None
        _lock(file, wait=True)
        if os.path.exists(temporary):  # else another save removed the file before the lock
            break
        file.close()
    if os.path.exists(target):
        shutil.copymode(target, temporary)
    return file, temporary


def _remove_left_files(target: str) -> None:
    """Remove the temporary files of killed saves of the target."""
    folder, name = os.path.split(target)
    left = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.fullmatch(entry.name)
            if found and found["name"] == name and entry.is_file(follow_symlinks=False):
                left.append(entry.path)
    for path in left:
        with contextlib.suppress(OSError), open(path, "r+b") as file:
            if _lock(file, wait=False):
                os.unlink(path)


def _lock(file: BinaryIO, *, wait: bool) -> bool:
    """Lock a file until its end; False if another save has the lock, or if there are no locks."""
    if sys.platform in ("win32", "emscripten"):
        return False
    import fcntl  # here, since Windows and the browser do not have the module

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another save has the lock, or the file system has no locks
        return False
    return True
