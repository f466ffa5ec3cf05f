"""Random generators of a part of a computation, and drawing the same numbers again.

Requirement: ``checkpoint`` runs a function twice, and dropout must draw the same mask both times.
So a random function first calls ``note_generator``. The caller that runs the function again keeps
the state of each generator.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy

from tinynode.errors import OperandError, describe
from tinynode.random import get_generator

if TYPE_CHECKING:
    from numpy.random import Generator

    States = dict[Generator, dict[str, Any]]


class _Notes(threading.local):
    """The generators noted in this thread: an entry for each open block, the innermost last."""

    opened: tuple[States, ...] = ()


_notes = _Notes()


@contextmanager
def noted_generators() -> Iterator[States]:
    """The generators used inside the block, with the states before the first draw."""
    outer = _notes.opened
    states: States = {}
    _notes.opened = (*outer, states)
    try:
        yield states
    finally:
        _notes.opened = outer


def note_generator(generator: Generator) -> None:
    """Announce a draw from the generator."""
    for states in _notes.opened:
        if generator not in states:
            # pragma: no mutate (DropCopy): NumPy gives a new dict at each read
            states[generator] = dict(generator.bit_generator.state)


@contextmanager
def drawing_again(states: States) -> Iterator[None]:
    """Start the generators from the given states; restore the present states at the end."""
    # pragma: no mutate (DropCopy): NumPy gives a new dict at each read
    now = {generator: dict(generator.bit_generator.state) for generator in states}
    try:
        put_back(states)
        yield
    finally:
        try:
            put_back(now)
        finally:
            put_back(now)  # again, since Ctrl-C may have stopped the first


def put_back(states: States) -> None:
    """Set the generators to the given states."""
    for generator, state in states.items():
        with generator.bit_generator.lock:  # the lock under which other threads draw
            generator.bit_generator.state = state


def checked_generator(function: str, generator: Any) -> Generator:
    """The generator; None is that of ``tn.seed``.

    Raises:
        OperandError: the argument is no ``numpy.random.Generator``.
    """
    if generator is None:
        return get_generator()
    if not isinstance(generator, numpy.random.Generator):
        raise OperandError(
            f"{function}: generator must be a numpy.random.Generator, got {describe(generator)}. "
            "Make one with numpy.random.default_rng(seed), or leave it out."
        )
    return generator
