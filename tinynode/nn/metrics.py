"""Metrics: numbers that measure a model, over one batch or over many.

Requirement: the value over many batches equals the value over all examples at once. A metric
object adds up counts and sums:

    metric = nn.metrics.Accuracy()
    for x, labels in loader:
        metric.update(model(x), labels)
    print(metric.value())

Arguments are Variables or arrays of any device. Scores are (..., classes), and labels are integers
(...). Examples whose label is ``ignore_label`` do not count. With a NaN among the scores of an
example, the number is NaN; a ``ConfusionMatrix`` refuses NaN.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy

from tinynode.configuration import no_backprop_mode
from tinynode.core.conversion import as_host
from tinynode.core.nested import check_nested
from tinynode.devices import using_device
from tinynode.errors import OperandError
from tinynode.functions import log_softmax
from tinynode.nn.checks import checked_number, checked_size

__all__ = [
    "Accuracy",
    "ConfusionMatrix",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "Perplexity",
    "R2",
    "accuracy",
    "confusion_matrix",
    "top_k_accuracy",
]
__dir__ = __all__.copy  # for completion


class Metric:
    """Base class: ``update`` adds a batch, ``value`` gives the number, ``reset`` starts anew."""

    def update(self, *arguments: Any) -> Self:
        """Add a batch; returns the metric."""
        raise NotImplementedError(f"{type(self).__name__} has no update: define it in the class.")

    def value(self) -> Any:
        """The number over all batches since the last ``reset``; NaN before the first."""
        raise NotImplementedError(f"{type(self).__name__} has no value: define it in the class.")

    def reset(self) -> None:
        """Forget all batches."""
        raise NotImplementedError(f"{type(self).__name__} has no reset: define it in the class.")


class _Average(Metric):
    """Base of the metrics that are a sum divided by a count."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count: float = 0

    def value(self) -> float:
        """The sum divided by the count; NaN without examples."""
        return self.total / self.count if self.count else math.nan

    def reset(self) -> None:
        self.total, self.count = 0.0, 0

    def _add(self, values: Any) -> Self:
        self.total += float(values.sum(dtype=numpy.float64))
        self.count += values.size
        return self


class Mean(_Average):
    """The mean of numbers, such as losses, with weights."""

    def update(self, value: Any, count: float = 1) -> Self:
        """Add a number.

        Args:
            value: a number, or a Variable or array with a single element.
            count: the weight: for the mean loss of a batch the number of examples. A number with
                the weight 0 does not count, not even NaN.
        """
        checked_number("Mean: count", count, 0.0, math.inf)
        if not count:
            return self
        self.total += float(_host("Mean", "value", value).item()) * count
        self.count += count
        return self


class Accuracy(_Average):
    """The share of the examples whose label is among the k largest scores.

    Args:
        k: 1 for the accuracy, 5 for the top-5 accuracy. Of equal scores the first class counts.
        ignore_label: examples with this label do not count.
    """

    def __init__(self, k: int = 1, *, ignore_label: int | None = -1) -> None:
        super().__init__()
        self.k = checked_size("Accuracy: k", k)
        self.ignore_label = ignore_label

    def update(self, scores: Any, labels: Any) -> Self:
        """Add a batch.   scores: (..., classes); labels: (...), integers."""
        scores, labels = _scored("Accuracy", scores, labels, self.ignore_label)
        if self.k == 1:
            is_right = scores.argmax(axis=-1) == labels
        else:
            # from right to left, and back: of equal scores the first class stays first
            ascending = numpy.argsort(scores[:, ::-1], axis=-1, kind="stable")
            first = scores.shape[-1] - 1 - ascending[:, ::-1][:, : self.k]
            is_right = (first == labels[:, None]).any(axis=-1)
        return self._add(numpy.where(numpy.isnan(scores).any(axis=-1), numpy.nan, is_right))


class Perplexity(_Average):
    """exp(mean of -log softmax(scores)[label]): the effective number of choices of a text model.

    Args:
        ignore_label: examples with this label do not count.
    """

    def __init__(self, *, ignore_label: int | None = -1) -> None:
        super().__init__()
        self.ignore_label = ignore_label

    def update(self, scores: Any, labels: Any) -> Self:
        """Add a batch.   scores: (..., classes), before softmax; labels: (...), integers."""
        scores, labels = _scored("Perplexity", scores, labels, self.ignore_label)
        with using_device("numpy"), no_backprop_mode():
            logs = log_softmax(scores.astype(numpy.float64), axis=-1).array
        return self._add(-numpy.take_along_axis(logs, labels[:, None], axis=-1))

    def value(self) -> float:
        """The perplexity, at least 1; NaN without examples."""
        try:
            return math.exp(super().value())
        except OverflowError:
            return math.inf


class MeanAbsoluteError(_Average):
    """The mean of |prediction - target| over all elements."""

    def update(self, predictions: Any, targets: Any) -> Self:
        """Add a batch: two floating arrays of the same shape."""
        predictions, targets = _paired("MeanAbsoluteError", predictions, targets)
        return self._add(numpy.abs(predictions - targets))


class MeanSquaredError(_Average):
    """The mean of (prediction - target)^2 over all elements."""

    def update(self, predictions: Any, targets: Any) -> Self:
        """Add a batch: two floating arrays of the same shape."""
        predictions, targets = _paired("MeanSquaredError", predictions, targets)
        return self._add((predictions - targets) ** 2)


class R2(Metric):
    """R2 = 1 - sum (prediction - target)^2 / sum (target - mean target)^2, over all elements.

    1 is perfect; 0 is as good as the targets' mean. NaN if all targets are equal.
    """

    _count: int
    _mean: float
    _spread: float
    _residual: float

    def __init__(self) -> None:
        self.reset()

    def update(self, predictions: Any, targets: Any) -> Self:
        """Add a batch: two floating arrays of the same shape."""
        predictions, targets = _paired("R2", predictions, targets)
        self._residual += float(((predictions - targets) ** 2).sum())
        if targets.size:  # Chan's formula: a sum of squares would cancel
            mean, count = float(targets.mean()), self._count + targets.size
            step = mean - self._mean
            self._spread += float(((targets - mean) ** 2).sum())
            self._spread += step**2 * self._count * targets.size / count
            self._mean += step * targets.size / count
            self._count = count
        return self

    def value(self) -> float:
        """1 - residual / spread."""
        return 1.0 - self._residual / self._spread if self._spread else math.nan

    def reset(self) -> None:
        self._count, self._mean = 0, 0.0
        self._spread, self._residual = 0.0, 0.0


class ConfusionMatrix(Metric):
    """Counts: entry [i, j] is the number of examples of class i that were classified as j.

    Args:
        classes: the number of classes.
        ignore_label: examples with this label do not count.
    """

    def __init__(self, classes: int, *, ignore_label: int | None = -1) -> None:
        self.classes = checked_size("ConfusionMatrix: classes", classes)
        self.ignore_label = ignore_label
        self.reset()

    def update(self, predictions: Any, labels: Any) -> Self:
        """Add a batch.

        Args:
            predictions: scores (..., classes), floating, or classes (...), integers.
            labels: (...), integers from 0 to classes - 1.
        """
        name = "ConfusionMatrix"
        found = _host(name, "predictions", predictions)
        if found.dtype.kind == "f":
            scores, labels = _scored(name, found, labels, self.ignore_label)
            has_nan = numpy.isnan(scores).any(axis=-1)
            if has_nan.any():
                raise OperandError(
                    f"{name}: {has_nan.sum()} of {len(scores)} examples have a NaN among their "
                    "scores, and so no class. tinynode.diagnose(loss) says where NaN come from."
                )
            found = scores.argmax(axis=-1)
        else:
            found, labels = _classes(name, found, labels, self.ignore_label)
        for what, array in (("predictions", found), ("labels", labels)):
            if array.size and not 0 <= array.min() <= array.max() < self.classes:
                raise OperandError(
                    f"{name}: {what} must be from 0 to {self.classes - 1}, got "
                    f"{array.min()} to {array.max()}."
                )
        numpy.add.at(self._counts, (labels, found), 1)
        return self

    def value(self) -> Any:
        """The counts: (classes, classes), int64."""
        return self._counts.copy()

    def reset(self) -> None:
        self._counts = numpy.zeros((self.classes, self.classes), numpy.int64)

    def accuracy(self) -> float:
        """The share of the examples that were classified right; NaN without examples."""
        total = self._counts.sum()
        return float(self._counts.trace() / total) if total else math.nan

    def precision(self, average: str | None = "macro") -> Any:
        """Of the examples classified as a class, the share that belongs to the class.

        Args:
            average: ``"macro"`` for the mean over the classes, ``"micro"`` for the share over all
                examples, None for the values of all classes: (classes). A class without examples
                has the value 0.
        """
        return self._averaged(self._counts.sum(axis=0), average)

    def recall(self, average: str | None = "macro") -> Any:
        """Of the examples of a class, the share classified as the class; see ``precision``."""
        return self._averaged(self._counts.sum(axis=1), average)

    def f1(self, average: str | None = "macro") -> Any:
        """2 * precision * recall / (precision + recall) for each class; see ``precision``."""
        both = (self._counts.sum(axis=0) + self._counts.sum(axis=1)) / 2
        return self._averaged(both, average)

    def _averaged(self, totals: Any, average: str | None) -> Any:
        """The right examples divided by totals: (classes), with 0 / 0 = 0."""
        right = self._counts.diagonal()
        if average == "micro":
            return float(right.sum() / totals.sum()) if totals.sum() else 0.0
        if average not in ("macro", None):
            raise ValueError(f"average must be 'macro', 'micro' or None, got {average!r}.")
        shares = right / numpy.maximum(totals, 0.5)  # totals are 0, or at least 0.5
        return shares if average is None else float(shares.mean())


def accuracy(scores: Any, labels: Any, *, ignore_label: int | None = -1) -> float:
    """The share of the examples whose label has the largest score.

    scores: (..., classes); labels: (...), integers.
    """
    return Accuracy(ignore_label=ignore_label).update(scores, labels).value()


def top_k_accuracy(
    scores: Any, labels: Any, k: int = 5, *, ignore_label: int | None = -1
) -> float:
    """The share of the examples whose label is among the k largest scores: see ``accuracy``."""
    return Accuracy(k, ignore_label=ignore_label).update(scores, labels).value()


def confusion_matrix(predictions: Any, labels: Any, classes: int) -> Any:
    """Counts (classes, classes): entry [i, j] for examples of class i classified as j."""
    return ConfusionMatrix(classes).update(predictions, labels).value()


def _host(metric: str, name: str, value: Any) -> Any:
    """A Variable, an array of any device, a number or a list as a NumPy array."""
    check_nested(metric, name, value)
    host = as_host(value)
    if host.dtype.kind not in "fiub":
        raise OperandError(f"{metric}: {name} must be numbers, got an array of {host.dtype}.")
    return host


def _scored(metric: str, scores: Any, labels: Any, ignore: int | None) -> tuple[Any, Any]:
    """Scores (n, classes) and labels (n), without ignored examples."""
    scores, labels = _host(metric, "scores", scores), _host(metric, "labels", labels)
    if scores.ndim != labels.ndim + 1 or scores.shape[:-1] != labels.shape or not scores.shape[-1]:
        raise OperandError(
            f"{metric}: scores must be (..., classes) and labels (...), got shapes "
            f"{scores.shape} and {labels.shape}. For one-hot labels give labels.argmax(-1)."
        )
    _check_integers(metric, labels)
    scores, labels = scores.reshape(-1, scores.shape[-1]), labels.reshape(-1)
    counted = labels != ignore if ignore is not None else numpy.ones(labels.shape, bool)
    scores, labels = scores[counted], labels[counted]
    if labels.size and not 0 <= labels.min() <= labels.max() < scores.shape[-1]:
        raise OperandError(
            f"{metric}: labels must be from 0 to {scores.shape[-1] - 1}, got {labels.min()} to "
            f"{labels.max()}."
        )
    return scores, labels.astype(numpy.int64)


def _classes(metric: str, found: Any, labels: Any, ignore: int | None) -> tuple[Any, Any]:
    """Predicted and right classes, (n) both, without ignored examples."""
    labels = _host(metric, "labels", labels)
    if found.shape != labels.shape:
        raise OperandError(
            f"{metric}: predictions and labels must have the same shape, got {found.shape} and "
            f"{labels.shape}."
        )
    _check_integers(metric, labels)
    counted = labels != ignore if ignore is not None else numpy.ones(labels.shape, bool)
    return found[counted].astype(numpy.int64), labels[counted].astype(numpy.int64)


def _check_integers(metric: str, labels: Any) -> None:
    if labels.dtype.kind == "f":
        raise OperandError(
            f"{metric}: labels must be integers, got {labels.dtype}. Cast them: "
            "labels.astype('int64')."
        )


def _paired(metric: str, predictions: Any, targets: Any) -> tuple[Any, Any]:
    """Predictions and targets in float64, of the same shape."""
    first = _host(metric, "predictions", predictions).astype(numpy.float64)
    second = _host(metric, "targets", targets).astype(numpy.float64)
    if first.shape != second.shape:
        raise OperandError(
            f"{metric}: predictions and targets must have the same shape, got {first.shape} and "
            f"{second.shape}. Reshape one: predictions.reshape(targets.shape)."
        )
    return first, second
