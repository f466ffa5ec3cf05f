"""Which random generators a part of a computation draws from, and drawing the same once more.

Requirement: ``forget`` runs a function twice, and dropout must draw the same mask both times. So
a function that draws says so first (``note_generator``), and who will run it again keeps the state
that each generator had.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator

    States = dict[Generator, dict[str, Any]]


class _Notes(threading.local):
    """What is noted in this thread: one entry for each block that is open, the inner ones last."""

    opened: tuple[States, ...] = ()


_notes = _Notes()


@contextmanager
def noted_generators() -> Iterator[States]:
    """The generators that are drawn from inside, with their states before the first draw."""
    outer = _notes.opened
    states: States = {}
    _notes.opened = (*outer, states)
    try:
        yield states
    finally:
        _notes.opened = outer


def note_generator(generator: Generator) -> None:
    """Says that the generator will be drawn from."""
    for states in _notes.opened:
        if generator not in states:
            states[generator] = dict(generator.bit_generator.state)


@contextmanager
def drawing_again(states: States) -> Iterator[None]:
    """Inside, the generators start from these states; afterwards they go on where they were."""
    now = {generator: dict(generator.bit_generator.state) for generator in states}
    put_back(states)
    try:
        yield
    finally:
        put_back(now)


def put_back(states: States) -> None:
    """Let the generators go on from these states."""
    for generator, state in states.items():
        with generator.bit_generator.lock:  # the lock under which other threads draw
            generator.bit_generator.state = state
