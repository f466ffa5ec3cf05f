"""Cache: the compiled libraries on disk, in a folder of the user alone.

Requirement: nobody else decides what is loaded, and a damaged file costs a compilation, no more.
The folder is opened and checked once for each use; all files are then reached by its descriptor.
So another folder under the same name changes nothing. After the library itself, a file has a seal:
a mark, the length of the library, and a checksum of the library and its key. A file without its
seal was cut, emptied, changed or exchanged: the library is compiled anew, and replaces the file.

A seal is no signature: whoever can write the folder can write a seal.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tinynode.configuration import cache_path

CACHE_BYTES = 64 << 20
"""The size of the cache on disk; the libraries that were not used for longest go first."""
MARK = b"tinynode library"
SEAL_BYTES = len(MARK) + 8 + hashlib.sha256().digest_size
FORGOTTEN_SECONDS = 3600
"""A folder of a compilation that is older belongs to a program that ended."""
_LIBRARY = re.compile(r"[0-9a-f]{32}\.so")
_BUILD = re.compile(r"build-[0-9a-f]{16}")
_CURE = "Set TINYNODE_CACHE to a folder of your own, by its full path"


class NotBuiltError(Exception):
    """No library: the message is the reason, in one line."""


def seal_of(key: str, library: bytes) -> bytes:
    """The bytes after a library in a file: a mark, the length, a checksum of key and library."""
    checksum = hashlib.sha256(key.encode() + b"\0" + library).digest()
    return MARK + len(library).to_bytes(8, "little") + checksum


def is_of_user(found: os.stat_result) -> bool:
    """True for what belongs to the user, without write access for others."""
    writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not writable and found.st_uid == os.getuid()


class CacheFolder:
    """The open folder of the cache; a context manager that closes the folder.

    Raises:
        NotBuiltError: the folder cannot be made or opened, or belongs to another user, or others
            may write to it.
    """

    def __init__(self) -> None:
        try:
            self.path = cache_path()
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except (OSError, RuntimeError) as error:
            reason = str(error)[:200]
            raise NotBuiltError(
                f"the cache's folder cannot be made or opened: {reason}. {_CURE}"
            ) from None
        found = os.fstat(self.descriptor)
        if not is_of_user(found):
            os.close(self.descriptor)
            raise NotBuiltError(
                f"the cache's folder {self.path} is not this user's alone (owner {found.st_uid}, "
                f"mode {stat.S_IMODE(found.st_mode):o}). {_CURE}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        os.close(self.descriptor)

    def through(self, name: str) -> str:
        """A path to a file of this open folder, for programs that take no descriptor."""
        path = f"/proc/self/fd/{self.descriptor}/{name}"
        has_descriptors = Path("/proc/self/fd").is_dir()  # Linux; elsewhere the name has to do
        return path if has_descriptors else str(self.path / name)

    # --- reading ---------------------------------------------------------------------------------

    def load(self, key: str) -> ctypes.CDLL | None:
        """The library of a key; None if there is no good file, so the next one replaces it.

        The checked bytes are loaded from a copy without a name, so nothing can change them later.
        A process with the memory of a shortened file would end by a signal.

        Raises:
            NotBuiltError: the copy cannot be written, or the system does not load the library.
        """
        try:
            checked = self._checked(key)
        except OSError:  # no file, an unreadable file, or a link
            return None
        if checked is None:
            return None
        try:
            with self.new_folder() as folder:
                copy = f"{folder}/{key}.so"
                self.write(copy, checked)
                return self._opened(copy, key)
        except OSError as error:
            raise NotBuiltError(f"{key}.so cannot be loaded: {error}"[:200]) from None

    def _opened(self, copy: str, key: str) -> ctypes.CDLL:
        """The library of a copy; a library that does not load is removed from the cache."""
        try:
            return ctypes.CDLL(self.through(copy))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(f"{key}.so", dir_fd=self.descriptor)  # the next program compiles anew
            raise

    def _checked(self, key: str) -> bytes | None:
        """The library in a file of the user alone whose seal fits; its use is noted."""
        data = self.read(f"{key}.so", of_user_alone=True)
        if data is None:
            return None
        os.utime(f"{key}.so", dir_fd=self.descriptor, follow_symlinks=False)  # used now
        library, seal = data[:-SEAL_BYTES], data[-SEAL_BYTES:]
        return library if seal == seal_of(key, library) else None

    # --- writing ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def new_folder(self) -> Iterator[str]:
        """The name of a new folder in the cache, removed at the end."""
        name = f"build-{os.urandom(8).hex()}"
        os.mkdir(name, 0o700, dir_fd=self.descriptor)
        try:
            yield name
        finally:
            shutil.rmtree(name, ignore_errors=True, dir_fd=self.descriptor)

    def write(self, name: str, data: bytes, is_lasting: bool = False) -> None:
        """A new file of the user alone; a lasting one is on the disk when this returns."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self.descriptor), "wb") as file:
            file.write(data)
            if is_lasting:
                file.flush()
                os.fsync(file.fileno())

    def read(self, name: str, of_user_alone: bool = False) -> bytes | None:
        """The bytes of a file; None for a folder, a pipe, or too many bytes.

        With ``of_user_alone`` also for a file of another user, or with write access for others.

        Raises:
            OSError: there is no file, it cannot be read, or it is a link.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO does not wait
        descriptor = os.open(name, flags, dir_fd=self.descriptor)
        try:
            found = os.fstat(descriptor)
            is_file = stat.S_ISREG(found.st_mode) and found.st_size <= CACHE_BYTES
            if not is_file or (of_user_alone and not is_of_user(found)):
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def keep(self, key: str, library: bytes, folder: str) -> None:
        """Write a library with its seal into a folder, then move it to its place at once."""
        sealed = f"{folder}/sealed.so"
        self.write(sealed, library + seal_of(key, library), is_lasting=True)
        here = self.descriptor
        os.replace(sealed, f"{key}.so", src_dir_fd=here, dst_dir_fd=here)
        self.shrink()

    def shrink(self) -> None:
        """Remove the libraries with the oldest use, until the cache is small enough.

        Files and folders with other names belong to the user, and stay.
        """
        found: list[tuple[float, int, str]] = []
        for name in os.listdir(self.descriptor):
            with contextlib.suppress(OSError):  # another process may remove the same file
                state = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
                found.append((state.st_mtime, state.st_size, name))
        total = 0
        for changed, size, name in sorted(found, reverse=True):
            if _BUILD.fullmatch(name):
                if time.time() - changed > FORGOTTEN_SECONDS:
                    shutil.rmtree(name, ignore_errors=True, dir_fd=self.descriptor)
            elif _LIBRARY.fullmatch(name):
                total += size
                if total > CACHE_BYTES:
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=self.descriptor)
