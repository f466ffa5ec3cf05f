"""Products of NumPy's matrices on several threads.

Requirement: large products use all cores, and no product is slower than on one thread. BLAS, the
library behind NumPy's products, divides a product among threads of its own. The waiting threads of
BLAS keep their cores busy. So on a busy machine, a product on two threads takes several times as
long as on one. Here each product runs on one thread of BLAS. A large product is divided into
shares, and the thread that waits for the others sleeps.

The number of shares is that of ``threads.thread_count``, and the number of BLAS at most. Without
a known switch for BLAS, the products are NumPy's own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from tinynode.devices.arrays import namespace_of
from tinynode.devices.protocol import Array
from tinynode.devices.threads import in_shares, thread_count

SMALL = 18_000
"""Products of fewer multiplications and additions: BLAS takes a single thread."""
LARGE = 6 * 10**7
"""Products of fewer are not shared: the start of a thread takes as long as the gain."""

LONG = 10**9
"""Work of fewer, with copies beside the products, is not shared. On a busy machine, a share waits
several milliseconds for a core."""


class BlasThreads(NamedTuple):
    """The switch of a library.

    Attributes:
        get: () -> the number of threads of the next products.
        set: number -> None.
    """

    get: Callable[[], int]
    set: Callable[[int], Any]


def matrix_product(x: Array, y: Array, out: Array | None = None) -> Array:
    """x @ y, as ``matmul`` of the array library. ``out``, of NumPy alone, receives the result.

    A column times a row is a product of elements: NumPy's ``matmul`` takes up to ten times that.
    """
    is_numpy = type(x) is numpy.ndarray or out is not None
    is_outer = len(x.shape) > 1 < len(y.shape) and x.shape[-1] == 1 == y.shape[-2]
    if not is_numpy:
        return x * y if is_outer else namespace_of(x).matmul(x, y)
    if is_outer:
        return numpy.multiply(x, y, out)
    blas = blas_threads()
    work = 2 * x.size * y.shape[-1]
    if blas is None or work < SMALL:
        return numpy.matmul(x, y, out)
    number = blas.get()
    if number == 1:  # a block of the user, or a product in another thread
        return numpy.matmul(x, y, out)
    try:  # Ctrl-C may come at any line
        blas.set(1)
        shares = min(thread_count(), number)
        if work < LARGE or shares == 1 or not _is_shareable(x, y, out):
            return numpy.matmul(x, y, out)
        return _shared_product(x, y, out, shares)
    finally:
        blas.set(number)


def share_products(x: Array, work: int, function: Callable[[int, int], Any]) -> list[Any]:
    """The results of ``function(start, stop)``, which has products for a part of x's first axis.

    For NumPy's arrays each share has a thread, and BLAS has one thread for all of them. With
    fewer multiplications and additions than ``LONG``, the number ``work``, there is one share.
    """
    blas = blas_threads() if type(x) is numpy.ndarray and work >= LONG else None
    if blas is None:
        return [function(0, x.shape[0])]
    number = blas.get()
    shares = max(1, min(thread_count(), number, x.shape[0]))
    try:  # Ctrl-C may come at any line
        blas.set(1)
        return in_shares(x.shape[0], -(-x.shape[0] // shares), function)
    finally:
        blas.set(number)


def _is_shareable(x: Array, y: Array, out: Array | None) -> bool:
    """True for two matrices, a stack and a matrix, or two equal stacks, of a dtype of BLAS.

    ``out`` has the shape of the product, and no memory of x or y. Else a share would read
    numbers that another share wrote.
    """
    if x.dtype != y.dtype or x.dtype.char not in "fdFD" or min(x.ndim, y.ndim) < 2:
        return False
    is_fitting: bool = x.shape[-1] == y.shape[-2]
    if not is_fitting or (y.ndim > 2 and x.shape[:-2] != y.shape[:-2]):
        return False
    if out is None:
        return True
    is_apart = not (numpy.may_share_memory(x, out) or numpy.may_share_memory(y, out))
    return is_apart and out.shape == (*x.shape[:-1], y.shape[-1])


def _shared_product(x: Array, y: Array, out: Array | None, shares: int) -> Array:
    """The product in shares, each in a thread: of the first axis, or of the columns."""
    if out is None:
        out = numpy.empty((*x.shape[:-1], y.shape[-1]), x.dtype)
    is_wide = x.ndim == y.ndim == 2 and x.shape[0] < y.shape[1]
    length = y.shape[1] if is_wide else x.shape[0]

    def columns(start: int, stop: int) -> None:
        numpy.matmul(x, y[:, start:stop], out[:, start:stop])

    def rows(start: int, stop: int) -> None:
        right = y if y.ndim == 2 else y[start:stop]
        numpy.matmul(x[start:stop], right, out[start:stop])

    in_shares(length, -(-length // shares), columns if is_wide else rows)
    return out


@functools.cache
def blas_threads() -> BlasThreads | None:
    """The switch of NumPy's BLAS; None if unknown, or if BLAS has one thread at the first use."""
    found = _switch_of_openblas() or _switch_by_threadpoolctl()
    return found if found is not None and found.get() > 1 else None


@functools.cache  # else each class of ctypes would be a reference cycle
def _switch_of_openblas() -> BlasThreads | None:
    """The functions of the library in NumPy's wheel."""
    # in a browser there is neither a library nor ctypes for it
    import ctypes

    folder = Path(numpy.__file__).parent
    places = [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]
    for path in places:
        library = ctypes.CDLL(str(path))  # loaded before, by NumPy
        for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads"):
            if hasattr(library, name.format("set")):
                get, put = (getattr(library, name.format(verb)) for verb in ("get", "set"))
                return BlasThreads(get, put)
    return None


def _switch_by_threadpoolctl() -> BlasThreads | None:
    """The switch of any BLAS, by a package of the extra "threads"."""
    try:
        # the package is optional
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return None
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            return BlasThreads(library.get_num_threads, library.set_num_threads)
    return None
