"""Saving and loading: named arrays in a ``.npz`` file, without pickle.

Requirements: loading runs no code of the file, so files from strangers are safe to load. A crash
while saving leaves the old file whole. Equal states give files of equal bytes. A file of another
model is refused, and the model is unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy

from tinynode.errors import StateError, describe
from tinynode.nn.module import Module
from tinynode.nn.state import State, host_array, take_prefix

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest date of the zip format
_DAMAGE = (
    EOFError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""The errors of NumPy and zipfile for damaged files and files of other formats."""


def save(path: str | os.PathLike[str], module_or_state: Module | Mapping[str, Any]) -> None:
    """Write a module's parameters, or named arrays, to a ``.npz`` file.

    The file appears at ``path`` only when complete. No suffix is added to ``path``.

    Args:
        path: the file; an existing file is replaced.
        module_or_state: a Module, or a dict of arrays of any device by name.

    Raises:
        StateError: a value is no array, or an array of Python objects.
        OSError: the file cannot be written; an old file is still whole.
    """
    if isinstance(module_or_state, Mapping):
        state = dict(module_or_state)
    elif hasattr(module_or_state, "state_dict"):
        state = module_or_state.state_dict()
    else:
        raise TypeError(
            f"save: the second argument must be a Module or a dict of arrays, got "
            f"{describe(module_or_state)}. The path comes first: save('model.npz', model)."
        )
    content = npz_bytes({name: host_array("save", name, value) for name, value in state.items()})
    target = os.path.realpath(path)  # a link stays a link
    file, temporary = _temporary_beside(target)
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):  # renamed if all went well
            os.unlink(temporary)


def _temporary_beside(target: str) -> tuple[BinaryIO, str]:
    """A new file in the target's folder, open for writing, and the file's name."""
    folder, name = os.path.split(target)
    if os.path.exists(target):
        if not os.path.isfile(target):
            raise OSError(errno.EINVAL, "not a file that can be replaced", target)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "write-protected", target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")
    try:
        file = open(temporary, "xb")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise type(error)(error.errno, error.strerror, target) from None
    if os.path.exists(target):
        shutil.copymode(target, temporary)
    return file, temporary


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check before a long job that ``save`` can write to ``path``.

    Raises:
        OSError: ``save`` cannot write to ``path``.
    """
    file, temporary = _temporary_beside(os.path.realpath(path))
    file.close()
    os.unlink(temporary)


def npz_bytes(arrays: Mapping[str, Any]) -> bytes:
    """The content of a ``.npz`` file, which depends only on the names and arrays.

    Compression is off, since compressors differ between machines.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            numpy.lib.format.write_array(member, numpy.asarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_FIRST_DAY)
            entry.create_system = 3  # else the bytes depend on the operating system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, member.getvalue())
    return content.getvalue()


def load(path: str | os.PathLike[str], part: str | None = None) -> State:
    """Read a ``.npz`` file: a dict of NumPy arrays by name, for ``module.load_state_dict``.

    Args:
        path: the file.
        part: return only the entries with the prefix ``part/``, without the prefix. A file of
            ``python -m tinynode train`` has the part ``"model"``.

    Raises:
        FileNotFoundError: there is no such file.
        StateError: the file is no ``.npz`` file, is damaged, holds pickled objects, or lacks the
            part.
    """
    if part is not None and not isinstance(part, str):
        raise TypeError(
            f"load: part must be a name such as 'model', got {describe(part)}. To fill a model "
            "write model.load_state_dict(load(path))."
        )
    with open(path, "rb") as file:
        content = file.read()
    try:
        state = _read(content)
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StateError(
            f"load: {os.fspath(path)} is not a file that tinynode.nn.save wrote, or it is "
            f"damaged: {reason}"
        ) from error
    return state if part is None else _part_of(state, part)


def _part_of(state: State, part: str) -> State:
    found = take_prefix(part, state)
    if not found:
        parts = sorted({name.partition("/")[0] for name in state if "/" in name})
        known = f"it has {', '.join(parts)}" if parts else "it has no parts"
        raise StateError(f"load: the file has no part {part!r}; {known}.")
    return found


def _read(content: bytes) -> State:
    file = io.BytesIO(content)
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no zip archive")
    file.seek(0)
    with numpy.load(file, allow_pickle=False) as archive:
        state = {name: archive[name] for name in archive.files}
    for name, array in state.items():
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"{name} is no array")
    return state
