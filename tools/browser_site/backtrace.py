"""A WebAssembly module with one function: ``backtrace``, which NumPy calls.

NumPy's build for WebAssembly calls ``backtrace`` of the C library for large temporary arrays. The
interpreter's C library has no such function, so the call would end Python. This module supplies
``int backtrace(void **buffer, int size)``. The function returns 0: no frames.

The format: https://webassembly.github.io/spec/core/binary/modules.html. The section ``dylink.0``
makes the module a side module, which the interpreter's dynamic linker loads:
https://github.com/WebAssembly/tool-conventions/blob/main/DynamicLinking.md
"""

from __future__ import annotations

I32 = 0x7F
END = 0x0B


def section(number: int, content: bytes) -> bytes:
    """A section of a module; all sizes here fit into one byte."""
    return bytes([number, len(content)]) + content


def named(name: str) -> bytes:
    """A name with the length in front."""
    return bytes([len(name)]) + name.encode()


def side_module() -> bytes:
    """The bytes of the module."""
    memory_info = section(1, bytes([0, 0, 0, 0]))  # sizes and alignments of memory and table
    function_type = bytes([0x60, 2, I32, I32, 1, I32])  # two parameters, one result
    body = bytes([0, 0x41, 0, END])  # no local variables; i32.const 0
    return b"".join(
        (
            b"\0asm" + bytes([1, 0, 0, 0]),
            section(0, named("dylink.0") + memory_info),
            section(1, bytes([1]) + function_type),
            section(3, bytes([1, 0])),  # function 0 has type 0
            section(7, bytes([1]) + named("backtrace") + bytes([0, 0])),  # exports function 0
            section(10, bytes([1, len(body)]) + body),
        )
    )
