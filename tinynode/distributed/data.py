"""The data of several ranks: equal parameters, parts of data sets and batches, and metrics.

Requirement: the ranks together see each example once, and measure what a single rank measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from tinynode.core.conversion import assign
from tinynode.core.variable import Variable
from tinynode.devices import is_array, is_floating
from tinynode.distributed.communicator import Communicator, checked_communicator
from tinynode.errors import OperandError, RankError, describe, dtype_name
from tinynode.nn.data import Subset
from tinynode.nn.module import Module


def check_same_parameters(
    caller: str, communicator: Communicator, parameters: Iterable[tuple[str, Variable]]
) -> None:
    """Compare the parameters of all ranks. Every rank has to call the function.

    Messages are arrays without names: ranks with different models would drift apart, or mix the
    numbers of two parameters.

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


def broadcast_parameters(
    model: Any, root: int = 0, communicator: Communicator | None = None
) -> None:
    """Give each rank the parameters and buffers of the rank ``root``.

    Raises:
        OperandError: the model is no Module.
        ValueError: there is no such rank.
        RankError: names, shapes or dtypes differ between the ranks.
    """
    comm = checked_communicator("broadcast_parameters", communicator)
    if not isinstance(model, Module):
        raise OperandError(f"broadcast_parameters: model must be a Module, got {describe(model)}.")
    named = [*model.named_parameters(), *model.named_buffers()]
    check_same_parameters("broadcast_parameters", comm, named)
    for _, x in named:
        assign(x, comm.broadcast(x.raw, root), x.device)


def scatter_dataset(
    dataset: Any, seed: int | None = None, communicator: Communicator | None = None
) -> Subset:
    """The part of a dataset for this rank: each example belongs to a single rank.

    Args:
        dataset: has ``len`` and an item for each index; the same on each rank.
        seed: shuffles the examples before; the same order on each rank. None keeps the order.
        communicator: by default the communicator of all ranks.

    Returns:
        A Subset. The lengths of the ranks differ by at most an example.
    """
    comm = checked_communicator("scatter_dataset", communicator)
    order = numpy.arange(len(dataset))
    if seed is not None:
        order = numpy.random.default_rng(seed).permutation(order)
    return Subset(dataset, order[comm.rank :: comm.size])


def all_metrics(
    metrics: Mapping[str, float], weight: float = 1.0, communicator: Communicator | None = None
) -> dict[str, float]:
    """Means over all ranks: sum_r weight_r metric_r / sum_r weight_r, for each name.

    Args:
        metrics: numbers by name, the same names on each rank.
        weight: the number of examples of this rank.
        communicator: by default the communicator of all ranks.

    Raises:
        OperandError: a metric is no number.
        ValueError: the names of two ranks differ, or all weights are 0.
    """
    comm = checked_communicator("all_metrics", communicator)
    for name, value in metrics.items():
        if not hasattr(value, "__float__"):
            raise OperandError(
                f"all_metrics: metric {name!r} must be a number, got {describe(value)}."
            )
    metrics = {name: float(value) for name, value in metrics.items()}
    every = comm.allgather_objects((dict(metrics), float(weight)))
    names = [sorted(given) for given, _ in every]
    if any(one != names[0] for one in names):
        raise ValueError(f"all_metrics: the names differ between the ranks: {names}.")
    total = math.fsum(w for _, w in every)
    if total == 0:
        raise ValueError("all_metrics: the weights of all ranks are 0.")
    return {name: math.fsum(w * given[name] for given, w in every) / total for name in metrics}


def average_buffers(model: Any, communicator: Communicator | None = None) -> None:
    """Give each rank the means of the buffers, such as running statistics, over all ranks.

    Buffers of integers get the values of rank 0.
    """
    comm = checked_communicator("average_buffers", communicator)
    if comm.size == 1:
        return
    for _, buffer in model.named_buffers():
        array = buffer.raw
        is_mean = is_floating(array)
        new = comm.allreduce(array, "mean") if is_mean else comm.broadcast(array)
        assign(buffer, new, buffer.device)


class Share(NamedTuple):
    """The part of a batch for a rank.

    Attributes:
        batch: the examples of the rank, as the loader gives a batch.
        examples: the number of examples of the rank. A batch with fewer examples than ranks
            leaves ranks without an example. Then ``batch`` has the first example, and ``examples``
            is 0.
        total: the number of examples of the whole batch.
    """

    batch: Any
    examples: int
    total: int


class Shares:
    """The shares of this rank of each batch of a loader; see ``scatter_batches``."""

    def __init__(self, loader: Any, communicator: Communicator) -> None:
        self.loader = loader
        self.communicator = communicator

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Share]:
        for batch in self.loader:
            yield share_of(batch, self.communicator)


def scatter_batches(loader: Any, communicator: Communicator | None = None) -> Shares:
    """The share of this rank of each batch of a loader.

        for share in scatter_batches(loader):
            loss = loss_of(model, *share.batch) * (share.examples / share.total)

    Each rank makes the whole batch, and keeps the examples ``rank``, ``rank + size`` and so on.
    The loader of each rank gets the seed of rank 0. So the batches are those of a single rank,
    also with a shuffle and with random transforms.

    Args:
        loader: gives batches: a DataLoader, or a list of tuples.
        communicator: by default the communicator of all ranks.

    Raises:
        OperandError: the loader has no length.
    """
    if not hasattr(loader, "__len__") or not hasattr(loader, "__iter__"):
        raise OperandError(
            f"scatter_batches: loader must be batches with len(), such as a DataLoader, got "
            f"{describe(loader)}."
        )
    comm = checked_communicator("scatter_batches", communicator)
    share_order(loader, comm)
    return Shares(loader, comm)


def share_order(loader: Any, communicator: Communicator) -> None:
    """Give each rank the seed and the position of the loader of rank 0.

    Raises:
        StateError: the loaders differ, such as in the number of samples.
    """
    if communicator.size == 1 or not hasattr(loader, "load_state_dict"):
        return
    state = communicator.broadcast_object(loader.state_dict())
    if not communicator.is_main:
        loader.load_state_dict(state)


def share_of(batch: Any, communicator: Communicator) -> Share:
    """The examples of this rank of a batch.

    Raises:
        OperandError: the batch has no array with a first axis.
    """
    total = _length(batch)
    if total is None:
        raise OperandError(
            f"scatter_batches: a batch must hold arrays with a first axis, got {describe(batch)}."
        )
    rank, size = communicator.rank, communicator.size
    if size == 1:
        return Share(batch, total, total)
    examples = len(range(rank, total, size))
    own = slice(rank, None, size) if examples else slice(0, 1)
    return Share(_part(batch, own), examples, total)


def _length(batch: Any) -> int | None:
    """The number of examples: the length of the first array."""
    if isinstance(batch, Mapping | tuple | list):
        entries = batch.values() if isinstance(batch, Mapping) else batch
        found = [length for entry in entries if (length := _length(entry)) is not None]
        return found[0] if found else None
    shape = getattr(batch, "shape", ())
    return int(shape[0]) if shape else None


def _part(batch: Any, own: slice) -> Any:
    """The entries ``own`` of each array of a batch."""
    if isinstance(batch, Mapping):
        return {name: _part(value, own) for name, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple([_part(value, own) for value in batch])
    if isinstance(batch, list):
        if all(isinstance(value, str | bytes) for value in batch):
            return batch[own]
        return [_part(value, own) for value in batch]
    if isinstance(batch, Variable) or is_array(batch):
        return batch[own, ...] if batch.shape else batch
    return batch
