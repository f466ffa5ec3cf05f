"""Random numbers: a single generator for the whole process, with ``seed``.

Requirement: after ``tn.seed(n)`` initializers and random functions give the same numbers on every
device. So NumPy's PCG64 generator draws on the host, in float64. The numbers are cast on the host,
then moved to the device.

Threads may draw at the same time, since NumPy locks the generator. The operating system chooses
the order of the threads. For repeatable numbers draw in a single thread.

Source: O'Neill, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
Random Number Generation, 2014.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never

import numpy

from tinynode.configuration import config
from tinynode.core.hooks import thread_hooks
from tinynode.devices import Array, Device, get_device, hidden_axes
from tinynode.errors import (
    OperandError,
    SizeError,
    StateError,
    VmapError,
    describe,
    dtype_name,
    short_text,
)
from tinynode.habits import missing_attribute

__all__ = [
    "get_generator",
    "get_state",
    "normal",
    "permutation",
    "seed",
    "set_state",
    "uniform",
]
__dir__ = __all__.copy  # for completion

if TYPE_CHECKING:
    from numpy.random import Generator

_lock = threading.Lock()
_generator: Generator | None = None  # made when first needed: importing numpy.random takes time
_HALF = (1 << 64) - 1
MOST_DRAWS = 2**48
"""The elements of an array of draws, at most: a petabyte of floats."""


def get_generator() -> Generator:
    """The process-wide ``numpy.random.Generator``; unpredictable until ``seed`` is called.

    The object stays the same: ``seed`` and ``set_state`` change the state.
    """
    global _generator
    with _lock:
        if _generator is None:
            _generator = numpy.random.Generator(numpy.random.PCG64())
        return _generator


def seed(n: int) -> None:
    """Start the process-wide generator anew, for repeatable draws.

        >>> tn.seed(0)
        >>> first = tn.random.uniform((2,))
        >>> tn.seed(0)
        >>> bool((tn.random.uniform((2,)) == first).all())
        True

    Args:
        n: an integer, not negative.

    Raises:
        TypeError: n is no integer.
        ValueError: n is negative.
    """
    try:
        number = operator.index(n)
    except TypeError:
        raise TypeError(f"seed: n must be an integer, got {describe(n)}.") from None
    if number < 0:
        raise ValueError(f"seed: n must not be negative, got {short_text(number)}.")
    _put_state(numpy.random.PCG64(number).state)


def get_state() -> Array:
    """The generator's state: a NumPy array of six uint64, to be saved with a training run."""
    state = get_generator().bit_generator.state
    words = []
    for number in (state["state"]["state"], state["state"]["inc"]):  # of 128 bits each
        words += [number >> 64, number & _HALF]
    return numpy.asarray([*words, state["has_uint32"], state["uinteger"]], dtype=numpy.uint64)


def set_state(state: Array) -> None:
    """Go on where ``get_state`` was called.

    Raises:
        StateError: the argument is no result of ``get_state``.
    """
    words = state if isinstance(state, numpy.ndarray) else numpy.asarray(None)
    if words.shape != (6,) or words.dtype != numpy.uint64:
        raise StateError(
            f"random.set_state: expected an array of shape (6,), uint64, as get_state() gives it, "
            f"got {describe(state)}."
        )
    high, low, increment_high, increment_low, has_uint32, uinteger = (int(w) for w in words)
    if has_uint32 > 1 or uinteger >> 32 or not increment_low & 1:
        raise StateError(
            f"random.set_state: {words.tolist()} is no state of a PCG64 generator. Use an array "
            "that get_state() gave."
        )
    numbers = {"state": high << 64 | low, "inc": increment_high << 64 | increment_low}
    _put_state(
        {
            "bit_generator": "PCG64",
            "state": numbers,
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }
    )


def _put_state(state: Any) -> None:
    bits = get_generator().bit_generator
    with bits.lock:  # the lock under which other threads draw
        bits.state = state


def normal(
    shape: tuple[int, ...],
    mean: float = 0.0,
    deviation: float = 1.0,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Array:
    """An array of draws from the normal distribution.

    Args:
        shape: the array's shape.
        mean: the distribution's mean.
        deviation: the standard deviation, not negative.
        dtype: float16, float32 or float64, by name or as a dtype; ``config.dtype`` by default.
        device: where the array stands; the current device by default.

    Raises:
        OperandError: the shape, the mean or the deviation is of another type.
        ValueError: a number is not finite, the deviation is negative, or the array is too large.
    """
    mean = _number("normal", "mean", mean)
    deviation = _number("normal", "deviation", deviation, least=0.0)
    sizes = _checked_shape("normal", "shape", shape)
    host = _drawn("normal", "shape", get_generator().normal, mean, deviation, sizes)
    return _place(host, dtype, device)


def uniform(
    shape: tuple[int, ...],
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Array:
    """An array of draws from the uniform distribution between ``low`` and ``high``.

    ``dtype`` and ``device`` are as for ``normal``. A draw lies below ``high``, or equals ``high``
    after rounding by the cast.

    Raises:
        OperandError: the shape or a bound is of another type.
        ValueError: a bound is not finite, ``high`` is below ``low``, or the array is too large.
    """
    low = _number("uniform", "low", low)
    high = _number("uniform", "high", high, least=low)
    if high - low == math.inf:
        raise ValueError(f"random.uniform: high - low must be finite, got {high:g} and {low:g}.")
    sizes = _checked_shape("uniform", "shape", shape)
    host = _drawn("uniform", "shape", get_generator().uniform, low, high, sizes)
    return _place(host, dtype, device)


def permutation(n: int, *, device: str | Device | None = None) -> Array:
    """The numbers 0 to n - 1 in random order: (n), int64.

    Raises:
        OperandError: n is no integer.
        ValueError: n is negative, or the array is too large.
    """
    (size,) = _checked_shape("permutation", "n", (n,))
    order = _drawn("permutation", "n", get_generator().permutation, size)
    return get_device(device).from_host(order.astype(numpy.int64))


def _number(function: str, argument: str, value: Any, least: float = -math.inf) -> float:
    """A finite number from ``least`` on, as a float."""
    place = f"random.{function}: {argument}"
    if not hasattr(value, "__float__") or getattr(value, "shape", ()) != ():
        raise OperandError(f"{place} must be a number, got {describe(value)}.")
    try:
        number = float(value)
    except OverflowError:  # an integer
        number = math.inf
    if not least <= number < math.inf or number == -math.inf:
        bound = "" if least == -math.inf else f" and at least {least:g}"
        raise ValueError(f"{place} must be finite{bound}, got {describe(value)}.")
    return number


def _checked_shape(function: str, argument: str, shape: Any) -> tuple[int, ...]:
    """The shape as a tuple of integers; an integer stands for a single axis.

    Raises:
        OperandError: the shape has another type.
        SizeError: a length is negative, or the array would have too many elements.
    """
    try:
        entries: Any = (shape,) if isinstance(shape, int | numpy.integer) else shape
        sizes = tuple([operator.index(n) for n in entries])
    except TypeError:
        raise OperandError(
            f"random.{function}: {argument} must be an integer or a tuple of integers, got "
            f"{describe(shape)}."
        ) from None
    if min(sizes, default=0) < 0 or math.prod(sizes) > MOST_DRAWS:
        raise SizeError(
            f"random.{function}: {argument} must not be negative, and have at most {MOST_DRAWS} "
            f"elements, got {describe(shape)}. Draw in parts."
        )
    return sizes


def _drawn(function: str, argument: str, draw: Callable[..., Any], *given: Any) -> Any:
    """``draw(*given)``; an error about the memory names the argument."""
    try:
        return draw(*given)
    except MemoryError as error:
        raise SizeError(
            f"random.{function}: {argument} is too large for the memory: {error}. Draw in parts."
        ) from error


def _place(host: Any, dtype: Any, device: str | Device | None) -> Array:
    """Cast float64 draws on the host, then move the array."""
    if hidden_axes.stack:
        raise VmapError(
            "random: the numbers would be the same in all examples of a vmapped function. Draw "
            "them before, with a row for each example, and pass them as an argument. "
            "functions.dropout and functions.gumbel_softmax draw for each example."
        )
    for hook in thread_hooks():
        hook.numbers_drawn()
    target = get_device(device)
    return target.from_host(numpy.asarray(host).astype(host_dtype(dtype)))


def host_dtype(dtype: Any) -> Any:
    """NumPy's floating dtype for a name or for any namespace's dtype; None means config.dtype.

    Raises:
        TypeError: NumPy has no such floating dtype.
    """
    wanted = config.dtype if dtype is None else dtype
    try:
        found = numpy.dtype(wanted if isinstance(wanted, str | type) else dtype_name(wanted))
    except TypeError:
        found = numpy.dtype(bool)
    if found.kind != "f":
        raise TypeError(
            f"random: dtype must be float16, float32 or float64, got {short_text(wanted)}."
        )
    return found


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise missing_attribute("random", name, __all__)
