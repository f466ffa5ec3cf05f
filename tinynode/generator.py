"""The generator of the process: NumPy's PCG64, with ``seed`` and a state that can be saved.

Requirement: after ``tn.seed(n)`` initializers and random functions give the same numbers on every
device. So the generator draws on the host, in float64. The numbers are cast on the host, then
moved to the device.

Threads may draw at the same time, since NumPy locks the generator. The operating system chooses
the order of the threads. For repeatable numbers draw in a single thread.

Source: O'Neill, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
Random Number Generation, 2014.
"""

from __future__ import annotations

import operator
import threading
from typing import TYPE_CHECKING, Any

import numpy

from tinynode.devices import Array
from tinynode.errors import StateError, describe, short_text

if TYPE_CHECKING:
    from numpy.random import Generator

_lock = threading.RLock()  # re-entrant: with Python 3.14 a Ctrl-C may leave it locked
_generator: Generator | None = None  # made when first needed: importing numpy.random takes time
_HALF = (1 << 64) - 1


def get_generator() -> Generator:
    """The process-wide ``numpy.random.Generator``; unpredictable until ``seed`` is called.

    The object stays the same: ``seed`` and ``set_state`` change the state.
    """
    global _generator
    if _generator is None:
        with _lock:
            if _generator is None:  # another thread may have made the generator
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
