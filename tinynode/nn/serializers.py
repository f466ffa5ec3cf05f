"""Saving and loading: named arrays in a ``.npz`` or ``.safetensors`` file, without pickle.

Requirements: loading runs no code of the file, and needs little more memory than the file's size.
So files from strangers are safe to load. A crash while saving leaves the old file whole. Equal
states give files of equal bytes. A file of another model is refused, and the model is unchanged.
"""

from __future__ import annotations

import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import IO, Any, BinaryIO

import numpy

from tinynode.atomic_file import replace_file
from tinynode.errors import StateError, describe
from tinynode.nn.module import Module
from tinynode.nn.safetensors_files import has_suffix, read_bytes, write_bytes
from tinynode.nn.state import State, check_has_bytes, host_array, take_prefix
from tinynode.safe_files import checked_path, listed, open_file, read_file, reason_of

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest date of the zip format
_SUFFIX = ".npy"
_LONGEST_NAME = 60_000  # bytes; a zip archive has two bytes for the length
_SMALL = 1 << 20
_LENGTHS_AT = 26  # the byte of a member's header with the lengths of the name and the extra field
_HAS_DESCRIPTOR = 0x08
_NEXT = (b"PK\x03\x04", b"PK\x01\x02")  # the next member begins, or the directory
_DAMAGE = (
    EOFError,
    KeyError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""The errors of NumPy and zipfile for damaged files and files of other formats."""


def save(path: str | os.PathLike[str], module_or_state: Module | Mapping[str, Any]) -> None:
    """Write a module's parameters, or named arrays, to a file.

    A path that ends in ``.safetensors`` gives a file of this format, by the optional library
    safetensors. Every other path gives a ``.npz`` file. No suffix is added to ``path``.
    The file appears at ``path`` only when complete.

    Args:
        path: the file; an existing file is replaced.
        module_or_state: a Module, or a dict of arrays of any device by name.

    Raises:
        StateError: a value is no array, or an array of Python objects. Or two arrays have one
            name.
        ImportError: a ``.safetensors`` file is wanted, and the library is not installed.
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
    path = checked_path("save", path)
    for name, value in state.items():
        if value is None or isinstance(value, bool | int | float | str | list | tuple | dict):
            raise StateError(
                f"save: {name} must be an array, got {describe(value)}. For numbers, text, dicts "
                "and whole training runs write nn.save_checkpoint(path, model=model, epoch=3)."
            )
    write_arrays(path, {name: host_array("save", name, value) for name, value in state.items()})


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write NumPy arrays to a file, in the format of the path's suffix."""
    replace_file(path, file_content(path, arrays))


def file_content(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> bytes:
    """The content of a file with NumPy arrays, in the format of the path's suffix."""
    if has_suffix(path):
        return write_bytes(arrays)
    return npz_bytes(arrays)


def npz_bytes(arrays: Mapping[str, Any]) -> bytes:
    """The content of a ``.npz`` file, which depends only on the names and arrays.

    Compression is off, since compressors differ between machines.

    Raises:
        StateError: two names are equal in the file, or a name is no text of at most 60,000 bytes
            in UTF-8 without a NUL character.
    """
    _check_names(list(arrays))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            numpy.lib.format.write_array(member, numpy.asarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}{_SUFFIX}", date_time=_FIRST_DAY)
            entry.create_system = 3  # else the bytes depend on the operating system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, member.getvalue())
    return content.getvalue()


def _check_names(names: list[str]) -> None:
    """Refuse names that the file cannot hold: a zip archive ends a name at a NUL character."""
    held: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not _fits(name):
            raise StateError(
                f"save: a name must be text of at most {_LONGEST_NAME} bytes in UTF-8, "
                f"got {type(name).__name__} {str(name)[:40]!r}. Rename it."
            )
        other = held.setdefault(zipfile.ZipInfo(name).filename, name)
        if other is not name:
            raise StateError(
                f"save: {other!r} and {name!r} are the same name in a .npz file. Rename one."
            )
    for name in names:
        if "\0" in name:
            raise StateError(
                f"save: {name!r} has a NUL character, and a .npz file ends the name there. "
                "Rename it."
            )


def _fits(name: str) -> bool:
    """True if a zip archive can hold the name."""
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def load(path: str | os.PathLike[str], part: str | None = None) -> State:
    """Read a file: a dict of NumPy arrays by name, for ``module.load_state_dict``.

    A path that ends in ``.safetensors`` is read by the optional library safetensors. Every other
    path is read as a ``.npz`` file.

    Args:
        path: the file.
        part: return only the entries with the prefix ``part/``, without the prefix. A file of
            ``python -m tinynode train`` has the part ``"model"``.

    Raises:
        FileNotFoundError: there is no such file.
        ImportError: a ``.safetensors`` file is given, and the library is not installed.
        StateError: the file has another format, is damaged, is compressed, holds pickled objects,
            or lacks the part.
    """
    if part is not None and not isinstance(part, str):
        raise TypeError(
            f"load: part must be a name such as 'model', got {describe(part)}. To fill a model "
            "write model.load_state_dict(load(path))."
        )
    path = checked_path("load", path)
    state = read_bytes(path, read_file(path)) if has_suffix(path) else read_npz("load", path)
    return state if part is None else _part_of(state, part)


def read_npz(caller: str, path: str | os.PathLike[str], names: Sequence[str] = ()) -> State:
    """The arrays of a ``.npz`` file, or those of the names, in the order of the file.

    Raises:
        FileNotFoundError: there is no such file.
        StateError: the file has another format, is damaged, is compressed, holds pickled objects,
            or lacks a name.
    """
    path = checked_path(caller, path)
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            is_small = size <= _SMALL  # seeking in memory is faster
            return _read(io.BytesIO(file.read()) if is_small else file, size, names)
    except _DAMAGE as error:
        raise StateError(
            f"{caller}: {os.fspath(path)} is not a file that tinynode.nn.save wrote, or it is "
            f"damaged: {reason_of(error)}"
        ) from error


def map_npy(caller: str, path: str | os.PathLike[str]) -> Any:
    """The array of a ``.npy`` file as a memory map: elements are read when they are used.

    Raises:
        FileNotFoundError: there is no such file.
        StateError: the file has another format, is damaged, or holds pickled objects.
    """
    path = checked_path(caller, path)
    open_file(path).close()  # refuses a pipe or a device, which NumPy would open
    try:
        array = numpy.lib.format.open_memmap(path, mode="r")
        check_has_bytes("the array", array)
        _check_dtype("the array", array)
    except (*_DAMAGE, MemoryError) as error:  # of the parser, for a header of very many signs
        raise StateError(
            f"{caller}: {os.fspath(path)} is not a file that numpy.save wrote, or it is damaged: "
            f"{reason_of(error)}"
        ) from error
    return array


def _part_of(state: State, part: str) -> State:
    found = take_prefix(part, state)
    if not found:
        parts = sorted({name.partition("/")[0] for name in state if "/" in name})
        known = f"it has {listed(parts)}" if parts else "it has no parts"
        raise StateError(f"load: the file has no part {part!r}; {known}.")
    return found


def _read(file: BinaryIO, size: int, names: Sequence[str]) -> State:
    """The arrays of a file, in memory of about the file's size."""
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no zip archive")
    state: State = {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_sizes(entries, size)
        _check_directory(entries, file, archive.start_dir)
        members = _members(entries)
        unknown = [name for name in names if name not in members]
        if unknown:
            known = listed(members)
            raise ValueError(f"it has no array {unknown[0]!r}; the file has {known}")
        for name in names or members:
            with archive.open(members[name]) as member:
                state[name] = _read_array(name, member)
    return state


def _members(entries: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """The entries of the archive by the names of the arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.filename.removesuffix(_SUFFIX)
        if name == entry.filename:
            raise TypeError(f"{name} is no array")
        if name in members:
            raise ValueError(f"the array {name} comes twice")
        members[name] = entry
    return members


def _check_directory(entries: list[zipfile.ZipInfo], file: BinaryIO, size: int) -> None:
    """Refuse bytes before the directory that belong to no entry of the directory.

    A damaged directory can lose an entry, and zipfile does not notice. The array's bytes stay.
    """
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset != end:
            break
        file.seek(end + _LENGTHS_AT)
        lengths = struct.unpack("<HH", file.read(4))  # of the name, and of the extra field
        end += _LENGTHS_AT + 4 + sum(lengths) + entry.compress_size
        if entry.flag_bits & _HAS_DESCRIPTOR:
            end += _descriptor_size(file, end)
    if end != size:
        raise ValueError(f"the archive's directory has lost the array at byte {end}")


def _descriptor_size(file: BinaryIO, start: int) -> int:
    """The size of the sums behind a member, from a writer that could not go back."""
    file.seek(start)
    found = file.read(28)
    sizes = [size for size in (12, 16, 20, 24) if found[size : size + 4] in _NEXT]
    return sizes[0] if sizes else 0


def _check_sizes(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse a small file that claims large arrays, before the first array is read."""
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(
                f"{entry.filename} is compressed; write the file again by tinynode.nn.save or "
                "numpy.savez, which do not compress"
            )
    claimed = sum(entry.file_size for entry in entries)
    if claimed > size:
        raise ValueError(f"the file has {size} bytes, and claims arrays of {claimed} bytes")


def _read_array(name: str, member: IO[bytes]) -> Any:
    try:
        array = numpy.lib.format.read_array(member, allow_pickle=False)
    except MemoryError:
        raise ValueError(f"there is no memory for an array as large as {name} claims") from None
    except RecursionError:
        raise ValueError(f"the header of {name} is nested too deeply") from None
    check_has_bytes(name, array)
    if member.read(1):  # the checksum is compared at the end of the member
        raise ValueError(f"{name} has bytes behind the array")
    _check_dtype(name, array)
    return array


def _check_dtype(name: str, array: Any) -> None:
    """Refuse dates, spans of time and raw bytes; numbers, bools, text, and records pass."""
    dtype = array.dtype
    dtypes = [dtype] if dtype.names is None else [dtype[key] for key in dtype.names]
    if any(one.base.kind not in "biufcSU" for one in dtypes):
        raise ValueError(f"{name} has elements of the kind {dtype.char!r}, not numbers or text")
