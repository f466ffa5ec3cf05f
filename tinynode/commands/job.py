"""Jobs of ``python -m tinynode train``: a model, a loss and data, with good settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tinynode import nn
from tinynode.core.variable import Variable
from tinynode.functions import softmax_cross_entropy

Parts: TypeAlias = dict[str, Any]
"""Arguments of ``nn.Trainer`` by name."""
Loaders: TypeAlias = tuple[nn.DataLoader, nn.DataLoader]
"""The batches to train on, and the held-out batches."""
AVERAGE_RATE = 0.995
"""The factor of the mean parameters in each step: a mean over about 200 steps."""


class MeanParameters(nn.ExponentialMovingAverage):
    """A fading mean of the parameters, in which the first parameters have no weight.

    With p the parameters after step t, and b = ``AVERAGE_RATE``:
    mean <- mean + (1 - b) / (1 - b^t) * (p - mean).

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, section 7.2.
    """

    def update(self) -> None:
        """Take in the parameters of a step."""
        self.rate = 1 - (1 - AVERAGE_RATE) / (1 - AVERAGE_RATE ** (self.count + 1))
        super().update()


class Job(NamedTuple):
    """A model, data, and good settings for both.

    Attributes:
        load_data: gives the data for a batch size.
        loss: the mean loss of a model on a batch.
        metrics: measures of a model on a held-out batch, by name.
        result: the lines for the end, given the trained model and the measures of ``held_out``.
    """

    name: str
    summary: str
    load_data: Callable[[int], Loaders]
    make_model: Callable[[], nn.Module]
    loss: Callable[..., Variable]
    metrics: Mapping[str, Callable[..., Any]]
    result: Callable[[nn.Module, Mapping[str, float]], str]
    epochs: int
    batch_size: int
    lr: float

    def parts(self, batch_size: int | None = None) -> Parts:
        """The arguments of ``nn.Trainer``. The process-wide generator draws all random numbers.

        Args:
            batch_size: the number of examples in a batch; that of the job by default.
        """
        model = self.make_model()
        train, held_out = self.load_data(batch_size or self.batch_size)
        return {
            "model": model,
            "loss": self.loss,
            "optimizer": nn.Adam(model, lr=self.lr),
            "train": train,
            "validation": held_out,
            "metrics": self.metrics,
            "average": MeanParameters(model, AVERAGE_RATE),
        }


def cross_entropy(model: nn.Module, x: Variable, t: Variable) -> Variable:
    """The mean softmax cross entropy of the model's output: the loss of a plain classifier."""
    return softmax_cross_entropy(model(x), t)


def accuracy(model: nn.Module, x: Variable, t: Variable) -> float:
    """The fraction of examples with the right label as the largest output."""
    return nn.metrics.accuracy(model(x), t)


def accuracy_line(model: nn.Module, measured: Mapping[str, float]) -> str:
    """The last line of a classifier."""
    return f"held-out accuracy: {100 * measured['accuracy']:.1f} %"
