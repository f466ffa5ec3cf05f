"""Data sets, and the loader that makes batches of them.

Requirement: a run that goes on from a file sees the batches of the unbroken run. So the order of
an epoch depends on the loader's seed and the epoch's number alone. The random numbers of a
transform depend on the seed, the epoch and the sample's index. Threads change nothing.

A data set is any object with ``len(dataset)`` and ``dataset[i]``, also a list. A sample is an
array, a number, text, or a tuple or dict of these.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy

from tinynode import random
from tinynode.core.conversion import as_flag, as_host
from tinynode.core.nested import check_nested
from tinynode.core.variable import Variable
from tinynode.devices import Device, get_device, is_array, using_device
from tinynode.errors import StateError, describe, short_text
from tinynode.nn.checks import RefusesKeywords, checked_number, checked_size
from tinynode.nn.serializers import map_npy, read_npz
from tinynode.safe_files import listed

if TYPE_CHECKING:
    from concurrent.futures import Future


class Dataset(RefusesKeywords):
    """Base class of data sets. A subclass defines ``__len__`` and ``__getitem__``."""

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__: define it in the class.")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no __getitem__: define it in the class."
        )


@runtime_checkable
class BatchedDataset(Protocol):
    """A data set that gives many samples at once, faster than sample by sample."""

    def batch(self, indexes: Any) -> Any:
        """The samples of the indexes as a batch: (k), int64 -> arrays of length k."""


class ArrayDataset(Dataset):
    """Arrays of equal length: sample i is the tuple of the entries i.

        >>> data = nn.ArrayDataset(np.arange(3), np.arange(3) ** 2)
        >>> len(data), data[2]
        (3, (np.int64(2), np.int64(4)))

    Args:
        arrays: NumPy arrays, memory maps, or lists; the first axis counts the samples.

    Raises:
        ValueError: there is no array, or the lengths differ.
    """

    def __init__(self, *arrays: Any) -> None:
        self.arrays = tuple(_host(array) for array in arrays)
        shapes = [array.shape for array in self.arrays]
        if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
            raise ValueError(
                f"ArrayDataset: one array or more of the same length must be given, got "
                f"{f'the shapes {shapes}' if shapes else 'none'}."
            )

    @classmethod
    def from_npz(cls, path: Any, *names: str) -> ArrayDataset:
        """The arrays of a ``.npz`` file by name; without names all arrays, in the file's order.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file lacks a name, or the lengths differ.
            StateError: the file has another format, is damaged, is compressed, or holds pickled
                objects. ``numpy.savez`` writes without compression.
        """
        return cls(*read_npz("ArrayDataset.from_npz", path, names).values())

    @classmethod
    def from_npy(cls, *paths: Any) -> ArrayDataset:
        """The arrays of ``.npy`` files as memory maps: a batch reads its own samples only."""
        return cls(*[map_npy("ArrayDataset.from_npy", path) for path in paths])

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def batch(self, indexes: Any) -> tuple[Any, ...]:
        """The samples of the indexes: a tuple of arrays of length len(indexes)."""
        return tuple(numpy.asarray(array[indexes]) for array in self.arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"{type(self).__name__}({shapes})"


class Subset(Dataset):
    """Some samples of a data set, in the order of the indexes.

    Args:
        dataset: n samples.
        indexes: integers from -n to n - 1, or a mask: n bools, True for each sample to take.

    Raises:
        ValueError: the indexes are neither, or a sample does not exist.
    """

    def __init__(self, dataset: Any, indexes: Any) -> None:
        self.dataset = dataset
        self.indexes = _checked_indexes(as_host(indexes), len(dataset))

    def __len__(self) -> int:
        return len(self.indexes)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[int(self.indexes[index])]

    def batch(self, indexes: Any) -> Any:
        """The samples of the indexes as a batch."""
        return make_batch(self.dataset, self.indexes[indexes])


def _checked_indexes(given: Any, count: int) -> Any:
    """Integers from 0 to count - 1, of integers or of a mask."""
    is_mask = given.dtype == bool and given.shape == (count,)
    if is_mask:
        return numpy.flatnonzero(given)
    is_empty = given.shape == (0,)
    if given.ndim != 1 or not (is_empty or given.dtype.kind in "iu"):
        raise ValueError(
            f"Subset: indexes must be integers along one axis, or {count} bools, one for each "
            f"sample; got {given.dtype} of shape {given.shape}."
        )
    wrong = [i for i in given.tolist() if not -count <= i < count]
    if wrong:
        raise ValueError(
            f"Subset: there are {count} samples, so no sample {wrong[0]}: give indexes from "
            f"{-count} to {count - 1}."
        )
    return given.astype(numpy.int64) % max(count, 1)


def split_dataset(dataset: Any, share: float = 0.2, *, seed: int = 0) -> tuple[Subset, Subset]:
    """A random part for training, and a random part that is held out.

    Args:
        dataset: n samples.
        share: the held-out share, from 0 to 1: round(share * n) samples.
        seed: an integer, not negative. The same seed gives the same parts.

    Returns:
        The part for training, and the held-out part; each in the order of ``dataset``.
    """
    part = checked_number("split_dataset: share", share, 0.0, 1.0, with_high=True)
    count = len(dataset)
    generator = numpy.random.default_rng(checked_size("split_dataset: seed", seed, 0))
    order = generator.permutation(count)
    first = round(part * count)
    return Subset(dataset, numpy.sort(order[first:])), Subset(dataset, numpy.sort(order[:first]))


class DataLoader(RefusesKeywords):
    """Batches of a data set, as Variables on the current device without gradient.

        loader = nn.DataLoader(nn.ArrayDataset(images, labels), 32, shuffle=True, seed=0)
        for x, y in loader:
            loss = F.softmax_cross_entropy(model(x), y)

    A batch is a tuple if the samples are tuples, a dict if the samples are dicts, else a single
    Variable. Text stays a list. Floating arrays are cast to ``dtype``.

    Every ``for`` loop runs an epoch, in a new order if ``shuffle``. After ``load_state_dict`` the
    first loop finishes the epoch of the state.

        >>> data = nn.ArrayDataset(np.arange(5), np.arange(5) ** 2)
        >>> for x, y in nn.DataLoader(data, 2, shuffle=False):
        ...     print(x, y)
        variable([0 1]) variable([0 1])
        variable([2 3]) variable([4 9])
        variable([4]) variable([16])

    Args:
        dataset: an object with ``len(dataset)`` and ``dataset[i]``.
        batch_size: the number of samples in a batch; the last batch may be smaller.
        shuffle: True for a random order in each epoch.
        seed: the seed of the order and of the transforms; by default a draw of
            ``tinynode.random``.
        drop_last: leave out the last batch if smaller than ``batch_size``.
        prefetch: the number of batches that threads make ahead; 0 for none.
        threads: the number of threads for ``prefetch``; above 1 the data set must allow
            reading in several threads.
        transform: called with each sample and a NumPy generator; returns the sample to use.
        batch_transform: called with each batch of host arrays and a NumPy generator.
        collate: makes a batch of a list of samples, in place of the rule above.
        dtype: the dtype of floating arrays; ``config.dtype`` by default.
        device: the device of the batches; by default the current device of the loop.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        drop_last: bool = False,
        prefetch: int = 0,
        threads: int = 1,
        transform: Callable[[Any, Any], Any] | None = None,
        batch_transform: Callable[[Any, Any], Any] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        _check_dataset(dataset)
        for name, function in (("transform", transform), ("batch_transform", batch_transform)):
            _check_function(name, function)
        self.dataset = dataset
        self.batch_size = checked_size("DataLoader: batch_size", batch_size)
        self.shuffle = as_flag("DataLoader", "shuffle", shuffle)
        self.drop_last = as_flag("DataLoader", "drop_last", drop_last)
        self.prefetch = checked_size("DataLoader: prefetch", prefetch, 0)
        self.threads = checked_size("DataLoader: threads", threads)
        self.transform = transform
        self.batch_transform = batch_transform
        self.collate = collate
        self.dtype = random.host_dtype(dtype)
        self.device = device
        if seed is None:
            seed = int(random.get_generator().integers(1 << 32))
        self._seed = checked_size("DataLoader: seed", seed, 0)
        self._epoch, self._position = 0, 0
        self._is_resumed = False

    @property
    def epoch(self) -> int:
        """The number of the present epoch, from 0; after a full loop that of the next epoch."""
        return self._epoch

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self._position and not self._is_resumed:  # the last loop was left early
            self._epoch, self._position = self._epoch + 1, 0
        self._is_resumed = False
        epoch, order = self._epoch, self._order(self._epoch)
        numbers = range(self._position, len(self))
        batches = _Batches(self, epoch, order)
        with closing(batches.ahead(numbers) if self.prefetch else batches.here(numbers)) as made:
            for number, batch in zip(numbers, made, strict=True):
                self._epoch, self._position = epoch, number + 1
                yield self._placed(batch)
        self._epoch, self._position = epoch + 1, 0

    def _order(self, epoch: int) -> Any:
        """The indexes of the data set in the order of an epoch: (n), int64."""
        count = len(self.dataset)
        if not self.shuffle:
            return numpy.arange(count)
        return numpy.random.default_rng([self._seed, epoch]).permutation(count)

    def generator(self, epoch: int, kind: int, number: int) -> Any:
        """The generator for a sample (kind 0) or a batch (kind 1)."""
        return numpy.random.default_rng([self._seed, epoch, kind, number])

    def _placed(self, batch: Any) -> Any:
        """The batch with Variables in place of host arrays."""
        if isinstance(batch, Mapping):
            return {name: self._placed(value) for name, value in batch.items()}
        if isinstance(batch, tuple):
            return tuple(self._placed(value) for value in batch)
        if isinstance(batch, Variable) or not is_array(batch):
            return batch
        target = get_device(self.device)
        if batch.dtype.kind == "f":
            batch = batch.astype(self.dtype, copy=False)
        with using_device(target):
            return Variable(target.from_host(batch), requires_grad=False)

    def state_dict(self) -> dict[str, Any]:
        """The seed, the epoch, the number of batches given in this epoch, and the settings."""
        return {
            "seed": self._seed,
            "epoch": self._epoch,
            "position": self._position,
            "samples": len(self.dataset),
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called: the next loop finishes that epoch.

        Raises:
            StateError: the state is of another data set, or in the middle of an epoch with other
                settings; the loader is unchanged.
        """
        own = self.state_dict()
        if not isinstance(state, Mapping) or set(state) != set(own):
            raise StateError(
                f"DataLoader.load_state_dict: the state must have {', '.join(own)}, got "
                f"{listed(state) if isinstance(state, Mapping) else describe(state)}."
            )
        try:
            seed, epoch, position = [
                checked_size(f"DataLoader.load_state_dict: {name}", state[name], 0)
                for name in ("seed", "epoch", "position")
            ]
        except (TypeError, ValueError) as error:
            raise StateError(str(error)) from None
        fixed = ["samples"] + ["batch_size", "shuffle", "drop_last"] * (position > 0)
        for name in fixed:
            if state[name] != own[name]:
                raise StateError(
                    f"DataLoader.load_state_dict: {name} is {own[name]} here and "
                    f"{short_text(state[name])} in the state. Make the loader as it was saved."
                )
        self._seed, self._epoch, self._position = seed, epoch, position
        self._is_resumed = True

    def __repr__(self) -> str:
        return (
            f"DataLoader({len(self.dataset)} samples, {len(self)} batches of {self.batch_size}, "
            f"shuffle={self.shuffle}, seed={self._seed})"
        )


class _Batches:
    """The batches of an epoch, as host arrays, made here or in threads."""

    def __init__(self, loader: DataLoader, epoch: int, order: Any) -> None:
        self.loader = loader
        self.epoch = epoch
        self.order = order

    def make(self, number: int) -> Any:
        """The batch of a number, from 0."""
        loader = self.loader
        size = loader.batch_size
        indexes = self.order[number * size : (number + 1) * size]
        transform = None if loader.transform is None else self._transformed
        batch = make_batch(loader.dataset, indexes, transform, loader.collate)
        if loader.batch_transform is None:
            return batch
        return loader.batch_transform(batch, loader.generator(self.epoch, 1, number))

    def _transformed(self, sample: Any, index: int) -> Any:
        transform, generator = self.loader.transform, self.loader.generator(self.epoch, 0, index)
        return sample if transform is None else transform(sample, generator)

    def here(self, numbers: Sequence[int]) -> Generator[Any, None, None]:
        """The batches in turn, each made when asked for."""
        for number in numbers:
            yield self.make(number)

    def ahead(self, numbers: Sequence[int]) -> Generator[Any, None, None]:
        """The batches in turn, made in threads; at most ``prefetch`` batches wait.

        An error of a thread is raised here, at its batch. A loop that is left early ends the
        threads after the batches at work.
        """
        from concurrent.futures import ThreadPoolExecutor  # here, since the import takes time

        pool = ThreadPoolExecutor(self.loader.threads, thread_name_prefix="tinynode-data")
        waiting: deque[Future[Any]] = deque()
        try:
            for number in numbers:
                waiting.append(pool.submit(self.make, number))
                if len(waiting) > self.loader.prefetch:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def make_batch(
    dataset: Any,
    indexes: Any,
    transform: Callable[[Any, int], Any] | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
) -> Any:
    """The samples of the indexes as a batch of host arrays.

    Args:
        dataset: an object with ``dataset[i]``.
        indexes: (k), int64.
        transform: called with each sample and its index in ``dataset``.
        collate: makes the batch of the list of samples.
    """
    if transform is None and collate is None and isinstance(dataset, BatchedDataset):
        return dataset.batch(indexes)
    samples = []
    for index in indexes.tolist():
        try:
            sample = dataset[index]
            samples.append(sample if transform is None else transform(sample, index))
        except Exception as error:
            error.add_note(f"DataLoader: the error is of sample {index} of the data set.")
            raise
    return _collated(samples, indexes.tolist()) if collate is None else collate(samples)


def _collated(samples: list[Any], indexes: list[int]) -> Any:
    """Samples as a batch: arrays and numbers are stacked, tuples and dicts entry by entry.

    Args:
        samples: the samples, or an entry of each of them.
        indexes: the numbers of the samples, for errors.
    """
    first = samples[0]
    if any(isinstance(sample, str | bytes) for sample in samples):
        _require_alike("kinds", [type(sample).__name__ for sample in samples], indexes)
        return list(samples)
    if isinstance(first, Mapping):
        _require_alike("names", [_names(sample) for sample in samples], indexes)
        return {name: _collated([one[name] for one in samples], indexes) for name in first}
    if isinstance(first, tuple):
        _require_alike("lengths", [_length(sample) for sample in samples], indexes)
        return tuple(_collated(list(column), indexes) for column in zip(*samples, strict=True))
    arrays = [_host(sample) for sample in samples]
    _require_alike("shapes", [array.shape for array in arrays], indexes)
    return numpy.stack(arrays)


_LONGEST_TEXT = 80


def _names(sample: Any) -> Any:
    return sorted(map(str, sample)) if isinstance(sample, Mapping) else type(sample).__name__


def _length(sample: Any) -> Any:
    return len(sample) if isinstance(sample, tuple) else type(sample).__name__


def _require_alike(what: str, found: list[Any], indexes: list[int]) -> None:
    """Refuse samples of a batch unlike the first sample.

    Raises:
        ValueError: two samples differ.
    """
    for one, index in zip(found, indexes, strict=True):
        if one != found[0]:
            raise ValueError(
                f"DataLoader: the samples of a batch have different {what}, and cannot be "
                f"stacked: {_cut(found[0])} in sample {indexes[0]}, {_cut(one)} in sample "
                f"{index}. Give a transform that makes them equal, or collate=... that pads."
            )


def _cut(found: Any) -> str:
    text = str(found)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def _host(value: Any) -> Any:
    """An array, a Variable, a number or a list as a NumPy array; a memory map stays."""
    if isinstance(value, numpy.ndarray):
        return value
    check_nested("DataLoader", "a sample", value)
    array = as_host(value)
    if array.dtype.hasobject:
        raise TypeError(
            f"DataLoader: a sample must be an array, a number, text, or a tuple or dict of these, "
            f"got {describe(value)}. Give collate=... for other kinds."
        )
    return array


def _check_dataset(dataset: Any) -> None:
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        hint = " Write nn.ArrayDataset(x, y) for arrays."
        raise TypeError(
            f"DataLoader: dataset must have len() and [i], got {describe(dataset)}.{hint}"
        )
    if isinstance(dataset, tuple) and all(hasattr(one, "shape") for one in dataset):
        raise TypeError("DataLoader: dataset is a tuple of arrays. Write nn.ArrayDataset(x, y).")


def _check_function(name: str, function: Any) -> None:
    """Refuse a transform that cannot be called with two arguments."""
    if function is None:
        return
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        first = "sample" if name == "transform" else "batch"
        raise TypeError(
            f"DataLoader: {name} must be a function of ({first}, generator), got "
            f"{describe(function)}. Write def {name}({first}, generator)."
        ) from None
    except ValueError:  # some functions of C have no signature
        return
