"""The training loop of a classifier.

Requirement: a run, stopped after any step and resumed, gives the same parameters as a run without
a stop; on the CPU, to the last bit. So the saved state holds all values used by the next step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy

from tinynode import random
from tinynode.configuration import config, using_config
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.devices import Array, Device, get_device, to_host
from tinynode.errors import StateError
from tinynode.functions import softmax_cross_entropy
from tinynode.net import compile
from tinynode.nn import Adam, Module
from tinynode.nn.datasets import Classification
from tinynode.nn.state import State, add_prefix, checked_state, take_prefix

AVERAGE_RATE = 0.995
"""The factor of the mean parameters in each step: a mean over about 200 steps."""


class Job(NamedTuple):
    """A model, data, and good settings for both."""

    name: str
    summary: str
    load_data: Callable[[], Classification]
    make_model: Callable[[], Module]
    vary: Callable[[Array, Device], Array]
    """Returns the training images of an epoch, changed at random; the labels stay right."""
    loss: Callable[[Module, Variable, Variable], Variable]
    """Returns the loss of a model on images and labels."""
    epochs: int
    batch_size: int
    lr: float


def cross_entropy(model: Module, x: Variable, t: Variable) -> Variable:
    """The mean softmax cross entropy of the model's output: the loss of a plain classifier."""
    return softmax_cross_entropy(model(x), t)


class Trainer:
    """A model with optimizer, data and progress.

    With ``compiled``, the loss and the gradient run as nets.

    Attributes:
        model: the model changed by the optimizer.
        average: the same model with a fading mean of the parameters, less noisy than the
            parameters of a single step. With p the parameters after step t, and b = 0.995:
            mean <- mean + (1 - b) / (1 - b^t) * (p - mean).
            Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, section 7.2.
        epoch: the number of complete epochs.
        position: the number of images used in the current epoch.
        loss_sum: the sum of the losses of these images.
        random_state: the state of the random generator at the start of the current epoch. All
            random numbers of an epoch are drawn there, so a resumed run can draw them again.
    """

    def __init__(self, job: Job, compiled: bool = False) -> None:
        data = job.load_data()
        self.model = job.make_model()
        self.average = job.make_model()
        self.optimizer = Adam(self.model, lr=job.lr)
        self.vary = job.vary
        self.loss_function = compile(job.loss) if compiled else job.loss
        self.batch_size = job.batch_size
        self.device = get_device()
        self.train = _on_device(data.train_images, data.train_labels, self.device)
        self.held_out = _on_device(data.held_out_images, data.held_out_labels, self.device)
        self.size = len(data.train_labels)
        self.steps = 0
        self.epoch = 0
        self.position = 0
        self.loss_sum = 0.0
        self.random_state = random.get_state()
        self.average.load_state_dict(self.model.state_dict())

    def run_epoch(self, after_step: Callable[[int], bool]) -> bool:
        """Finish the current epoch, or run a new epoch; returns True if the epoch is complete.

        ``after_step(images)`` is called after each step with the number of used images. If
        ``after_step`` returns False, training stops.
        """
        random.set_state(self.random_state)
        images, labels = self.train
        order = random.permutation(self.size, device=self.device)
        varied = self.vary(images, self.device)
        if self.position == 0:
            self.loss_sum = 0.0
        while self.position < self.size:
            stop = min(self.position + self.batch_size, self.size)
            used = self._step(varied, labels, order[self.position : stop])
            self.position += used
            if not after_step(used) and self.position < self.size:
                return False
        self.epoch += 1
        self.position = 0
        self.random_state = random.get_state()
        return True

    @property
    def loss(self) -> float:
        """The mean loss of the last epoch's images, each computed in the image's own step."""
        return self.loss_sum / (self.position or self.size)

    def _step(self, images: Array, labels: Array, indices: Array) -> int:
        """A step against the gradient of the mean loss; returns the number of images."""
        take = self.device.xp.take
        x = self._input(take(images, indices, axis=0))
        t = self._input(take(labels, indices, axis=0))
        self.optimizer.cleargrads()
        loss = self.loss_function(self.model, x, t)
        loss.backward()
        self.optimizer.update()
        self._update_average()
        used = t.shape[0]
        self.loss_sum += float(loss) * used
        return used

    def _update_average(self) -> None:
        self.steps += 1
        weight = (1 - AVERAGE_RATE) / (1 - AVERAGE_RATE**self.steps)
        pairs = zip(self.average.parameters(), self.model.parameters(), strict=True)
        for mean, p in pairs:
            mean.array = mean.array + weight * (p.array - mean.array)

    def _input(self, array: Array) -> Variable:
        """A Variable of data: no gradient is computed."""
        return asarray(array, device=self.device, requires_grad=False)

    def accuracy(self) -> float:
        """The fraction of held-out images with the right label as ``average``'s largest output."""
        images, labels = self.held_out
        xp = self.device.xp
        with using_config(enable_backprop=False, train=False):
            output = self.average(self._input(images)).array
        hits = to_host(xp.argmax(output, axis=1) == labels)
        return float(hits.sum() / hits.shape[0])

    def state_dict(self) -> State:
        """All values used by the next step, except the data.

        The part ``model`` is the average, for use; the part ``last`` is the model in training.
        """
        return (
            add_prefix("model", self.average.state_dict())
            | add_prefix("last", self.model.state_dict())
            | add_prefix("optimizer", self.optimizer.state_dict())
            | add_prefix("training", self._numbers())
        )

    def _numbers(self) -> State:
        return {
            "steps": numpy.asarray(self.steps, dtype=numpy.int64),
            "epoch": numpy.asarray(self.epoch, dtype=numpy.int64),
            "position": numpy.asarray(self.position, dtype=numpy.int64),
            "loss_sum": numpy.asarray(self.loss_sum, dtype=numpy.float64),
            "random_state": self.random_state,
            "lr": numpy.asarray(self.optimizer.lr, dtype=numpy.float64),
            "batch_size": numpy.asarray(self.batch_size, dtype=numpy.int64),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called.

        Raises:
            StateError: the state is not of a run of the same job.
        """
        checked = checked_state("training", state, self.state_dict())
        numbers = take_prefix("training", checked)
        self._check_numbers(numbers)
        random.set_state(numbers["random_state"])
        self.optimizer.load_state_dict(take_prefix("optimizer", checked))
        self.model.load_state_dict(take_prefix("last", checked))
        self.average.load_state_dict(take_prefix("model", checked))
        self.optimizer.lr = float(numbers["lr"])
        self.batch_size = int(numbers["batch_size"])
        self.steps = int(numbers["steps"])
        self.epoch = int(numbers["epoch"])
        self.position = int(numbers["position"])
        self.loss_sum = float(numbers["loss_sum"])
        self.random_state = numbers["random_state"]

    def _check_numbers(self, numbers: State) -> None:
        """Raise a StateError for a number outside the possible range."""
        most = {"position": self.size - 1, "lr": sys.float_info.max}
        for name in ("steps", "epoch", "position", "batch_size", "lr"):
            least = 1 if name == "batch_size" else 0
            if not least <= numbers[name] <= most.get(name, numbers[name]):
                raise StateError(f"training: {name} cannot be {numbers[name]}: it is damaged.")


def _on_device(images: Any, labels: Any, device: Device) -> tuple[Array, Array]:
    """Host arrays on the device, the images in the parameters' dtype."""
    return device.from_host(images.astype(config.dtype)), device.from_host(labels)
