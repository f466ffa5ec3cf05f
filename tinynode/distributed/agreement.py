"""Whether all ranks have the same parameters: names, shapes and dtypes.

Requirement: ranks with different models are refused at the first message. Messages are arrays
without names, so such ranks would drift apart, or mix the numbers of two parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tinynode.core.variable import Variable
from tinynode.distributed.communicator import Communicator
from tinynode.errors import RankError, dtype_name


def check_same_parameters(
    caller: str, communicator: Communicator, parameters: Iterable[tuple[str, Variable]]
) -> None:
    """Compare the parameters of all ranks. Every rank has to call the function.

    Raises:
        RankError: the parameters of a rank differ from those of rank 0.
    """
    if communicator.size == 1:
        return
    own = [(name, tuple(p.shape), dtype_name(p.dtype)) for name, p in parameters]
    every = communicator.allgather_objects(own)
    for rank, other in enumerate(every):
        if other != every[0]:
            raise RankError(
                f"{caller}: {_difference(every[0], other, rank)}. Build the same model with the "
                "same settings on every rank."
            )


def _difference(first: Sequence[Any], other: Sequence[Any], rank: int) -> str:
    """The first parameter that differs, on both ranks, in words."""
    place = 0
    while place < len(first) and place < len(other) and first[place] == other[place]:
        place += 1
    there, here = _words(other, place), _words(first, place)
    return f"parameter number {place + 1} is {there} on rank {rank}, and {here} on rank 0"


def _words(parameters: Sequence[Any], place: int) -> str:
    if place >= len(parameters):
        return f"missing (there are {len(parameters)})"
    name, shape, dtype = parameters[place]
    return f"{name} of shape {shape} and {dtype}"
