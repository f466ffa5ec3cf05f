"""One flat memory for a launch, which knows the bytes that may be read and written."""

from __future__ import annotations

from typing import Any

import numpy as np

READ, WRITE = 1, 2
GAP = 64
"""The bytes between two pieces of memory; none of them may be touched."""


class MemoryFaultError(Exception):
    """A thread reads or writes a byte of nobody, or reads a byte before it is written."""


class Memory:
    """Pieces of memory by address. Shared and local memory are pieces like all others."""

    def __init__(self) -> None:
        self._bytes = np.zeros(1 << 16, np.uint8)
        self._marks = np.zeros(1 << 16, np.uint8)
        self._end = 256  # the address 0 belongs to nobody

    def allocate(self, size: int, mark: int) -> int:
        """The address of ``size`` new bytes."""
        address = self._end
        self._end += (size + GAP + 255) // 256 * 256
        while self._end > self._bytes.size:
            self._bytes = np.concatenate([self._bytes, np.zeros_like(self._bytes)])
            self._marks = np.concatenate([self._marks, np.zeros_like(self._marks)])
        self._marks[address : address + size] = mark
        return address

    def add_bytes(self, values: bytes) -> int:
        """The address of constants."""
        address = self.allocate(len(values), READ)
        self._bytes[address : address + len(values)] = np.frombuffer(values, np.uint8)
        return address

    def add_array(self, array: Any, mark: int) -> int:
        """The address of the first element; the array has its strides in this memory too.

        Only the bytes of elements may be touched: bytes between elements have no mark.
        """
        low, high = np.lib.array_utils.byte_bounds(array)
        address = self.allocate(high - low, 0) + array.ctypes.data - low
        self._window(array, address)[...] = array
        strides = (*array.strides, 1)
        shape = (*array.shape, array.itemsize)
        np.ndarray(shape, np.uint8, self._marks.data, address, strides)[...] = mark
        return address

    def fetch_array(self, array: Any, address: int) -> None:
        """Copies an array's elements back; each one has to be written."""
        shape, strides = (*array.shape, array.itemsize), (*array.strides, 1)
        marks = np.ndarray(shape, np.uint8, self._marks.data, address, strides)
        if not np.all(marks & READ):
            raise MemoryFaultError("a result has elements that no thread has written")
        array[...] = self._window(array, address)

    def _window(self, array: Any, address: int) -> Any:
        return np.ndarray(array.shape, array.dtype, self._bytes.data, address, array.strides)

    def load(self, addresses: Any, dtype: np.dtype[Any]) -> Any:
        """The values at the addresses of the threads."""
        marks = self._marks_at(addresses, dtype)
        if not np.all(marks & READ):
            raise MemoryFaultError("a thread reads a byte of nobody, or one never written")
        return self._bytes.view(dtype)[addresses // dtype.itemsize]

    def store(self, addresses: Any, values: Any) -> None:
        """Write the values of the threads."""
        if not np.all(self._marks_at(addresses, values.dtype) & WRITE):
            raise MemoryFaultError("a thread writes a byte that is not writable")
        self._bytes.view(values.dtype)[addresses // values.dtype.itemsize] = values
        for i in range(values.dtype.itemsize):
            self._marks[addresses + i] |= READ

    def _marks_at(self, addresses: Any, dtype: np.dtype[Any]) -> Any:
        """The marks of all bytes; addresses are multiples of the size, as on a GPU."""
        size = dtype.itemsize
        if np.any(addresses < 0) or np.any(addresses + size > self._bytes.size):
            raise MemoryFaultError("an address outside of the memory")
        if np.any(addresses % size):
            raise MemoryFaultError(f"an address that is not a multiple of {size}")
        return self._marks[addresses[:, None] + np.arange(size)]
