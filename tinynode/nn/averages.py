"""Exponential moving average of a model's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never

from tinynode.core.conversion import assign
from tinynode.core.variable import Variable
from tinynode.devices import Array, to_host, widened_array
from tinynode.habits import missing_attribute
from tinynode.nn.checks import RefusesKeywords, checked_number
from tinynode.nn.groups import named_parameters
from tinynode.nn.module import Module
from tinynode.nn.parameter import fresh_copy, moved
from tinynode.nn.state import State, checked_state, number_arrays, widened_state


class ExponentialMovingAverage(RefusesKeywords):
    """A fading mean of each parameter, less noisy than the parameters of a single step.

    The means start as the parameters. At each ``update``:   mean <- rate * mean + (1 - rate) * p.
    The mean of a parameter of float16 has float32, since a small step would be rounded away. The
    mean of a frozen parameter is the parameter.

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992;
    Tarvainen and Valpola, Mean Teachers, 2017.

    Args:
        model: the model. Buffers, such as a running mean, are not averaged.
        rate: the factor of the last mean, at least 0 and less than 1; 0.999 is a mean over about
            1,000 steps.
    """

    def __init__(self, model: Module, rate: float = 0.999) -> None:
        self.rate = checked_number("ExponentialMovingAverage: rate", rate, 0.0, 1.0)
        self.count = 0
        self._parameters = dict(named_parameters("ExponentialMovingAverage", model))
        self._means: dict[str, Array] = {}
        self.start_again()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            """The error for a wrong name; Python asks only for names that do not exist."""
            raise missing_attribute("average", name, dir(self), title=type(self).__name__)

    def parameters(self) -> list[Variable]:
        """The parameters that have a mean."""
        return list(self._parameters.values())

    def start_again(self) -> None:
        """Each mean becomes the parameter's present value."""
        self._means = {
            name: moved(widened_array(p.array), p.device) for name, p in self._parameters.items()
        }

    def update(self) -> None:
        """Move each mean towards the parameter; call it after each ``optimizer.update()``."""
        means = {}
        for name, p in self._parameters.items():
            if not p.requires_grad:
                means[name] = moved(widened_array(p.array), p.device)
                continue
            mean = self._mean(name)
            means[name] = p.device.lift(
                self.rate * mean + (1 - self.rate) * widened_array(p.array)
            )
        self._means = means
        self.count += 1

    def _mean(self, name: str) -> Array:
        """The mean, on the device of the parameter."""
        p, mean = self._parameters[name], self._means[name]
        return mean if p.device.holds(mean) else moved(mean, p.device)

    @contextmanager
    def average(self) -> Iterator[None]:
        """Give the model the means inside the block, and its own parameters afterwards.

        Changes of the parameters inside the block are lost.
        """
        before = {name: p.array for name, p in self._parameters.items()}
        gradients = {name: p.grad_var for name, p in self._parameters.items()}
        try:
            for name, p in self._parameters.items():
                assign(p, p.xp.astype(self._mean(name), p.dtype), p.device)
            yield
        finally:
            for name, p in self._parameters.items():
                assign(p, before[name], p.device)
                p.grad_var = gradients[name]

    def state_dict(self) -> State:
        """Host copies of the means, by the parameters' names, and the number of updates."""
        state = number_arrays(count=self.count)
        for name, mean in self._means.items():
            state[f"means/{name}"] = to_host(mean).copy()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called.

        Raises:
            StateError: a name, a shape or a dtype differs; the means are unchanged.
        """
        caller = "ExponentialMovingAverage.load_state_dict"
        own = self.state_dict()
        checked = checked_state(caller, widened_state(state, own), own)
        self._means = {
            name: fresh_copy(checked[f"means/{name}"], p.device)
            for name, p in self._parameters.items()
        }
        self.count = int(checked["count"])

    def __repr__(self) -> str:
        return f"ExponentialMovingAverage({len(self._means)} parameters, rate={self.rate})"
