"""Files of the ``safetensors`` format: named arrays, without code.

Requirement: weights that other frameworks wrote are read as NumPy arrays. The library is optional:
only a path that ends in ``.safetensors`` needs the library.

Source: the format and library safetensors of Hugging Face.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy

from tinynode.errors import StateError, printable
from tinynode.nn.state import State, check_has_bytes
from tinynode.safe_files import reason_of

SUFFIX = ".safetensors"
_MOST_HEADER = 1 << 23
"""The bytes of names and shapes: the library's time grows faster than their number."""
_DTYPES = {
    "BOOL": "bool",
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
"""The format's dtypes by their names in NumPy. NumPy has no bfloat16: see ``_array``."""


def has_suffix(path: str | os.PathLike[str]) -> bool:
    """True if the path ends in ``.safetensors``."""
    return os.fspath(path).endswith(SUFFIX)


def write_bytes(arrays: Mapping[str, Any]) -> bytes:
    """The content of a file with these arrays.

    Raises:
        ImportError: the library is not installed.
        StateError: the format has no such dtype, or a name is no text.
    """
    library = _library("save")
    known = set(_DTYPES.values())
    for name, array in arrays.items():
        if not isinstance(name, str) or array.dtype.name not in known:
            raise StateError(
                f"save: {name!r} is {array.dtype}; a {SUFFIX} file holds arrays of bool, integers "
                "and floats, by names that are text. Save to a .npz file, or cast the array."
            )
    return bytes(library.numpy.save({n: a.copy(order="C") for n, a in arrays.items()}))


def read_bytes(path: str | os.PathLike[str], content: bytes) -> State:
    """The arrays of a file; bfloat16 arrays come as float32, with the same values.

    Raises:
        ImportError: the library is not installed.
        StateError: the file is damaged, or has arrays of a dtype without a counterpart in NumPy.
    """
    library = _library("load")
    length = int.from_bytes(content[:8], "little")
    if len(content) > length > _MOST_HEADER:
        raise StateError(
            f"load: {os.fspath(path)} has {length} bytes of names and shapes, and at most "
            f"{_MOST_HEADER} bytes are read. Write the arrays to several files."
        )
    try:
        tensors = library.deserialize(content)
    except library.SafetensorError as error:
        raise StateError(
            f"load: {os.fspath(path)} is no {SUFFIX} file, or it is damaged: {reason_of(error)}"
        ) from error
    file = f"load: {os.fspath(path)}"
    return {name: _array(f"{file}: {printable(name[:60])}", tensor) for name, tensor in tensors}


def _array(where: str, tensor: Mapping[str, Any]) -> Any:
    kind, data = tensor["dtype"], bytes(tensor["data"])
    if kind == "BF16":  # the upper half of a float32
        upper = numpy.frombuffer(data, "<u2").astype(numpy.uint32)
        return _shaped(where, (upper << 16).view(numpy.float32), tensor["shape"])
    if kind not in _DTYPES:
        raise StateError(
            f"{where} has the dtype {kind}, unknown to NumPy. Write the file again with "
            "float32 arrays."
        )
    dtype = numpy.dtype(_DTYPES[kind])
    found = numpy.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
    return _shaped(where, found, tensor["shape"])


def _shaped(where: str, flat: Any, shape: list[int]) -> Any:
    """The array with the shape of the file; NumPy refuses lengths such as (0, 2**62)."""
    try:
        array = flat.reshape(shape)
        check_has_bytes("the array", array)
        return array
    except (OverflowError, ValueError) as error:
        raise StateError(f"{where} cannot have the shape {str(shape)[:60]}: {error}") from None


def _library(caller: str) -> Any:
    try:
        import safetensors.numpy  # of an extra
    except ImportError:
        raise ImportError(
            f"{caller}: a {SUFFIX} file needs the package safetensors. Install the extra: "
            "pip install 'tinynode[safetensors]'. Or save to a .npz file."
        ) from None
    return safetensors
