"""Loss scaling: small gradients stay above the least number of float16."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tinynode.core.variable import Variable
from tinynode.errors import GraphError, NaNError, dtype_name
from tinynode.functions import astype
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.parameter import assign_gradient
from tinynode.nn.state import State, checked_state, number_arrays

_LEAST_SCALE = 2.0**-24  # the least number of float16


class LossScaler:
    """Dynamic loss scaling, for models that compute in float16.

    The loss is multiplied by ``scale`` before ``backward``, and the gradients are divided by
    ``scale`` afterwards. If a gradient has an infinite element or NaN, the update is skipped, and
    the scale is multiplied by ``backoff_factor``. After ``growth_interval`` updates without a
    skipped update, the scale is multiplied by ``growth_factor``. A scale below 2^-24 is an error:
    the gradients are not finite at any scale.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    In debug mode an infinite gradient is an error. ``config.debug_infinite = False`` lets infinite
    gradients pass, and the scaler skips the update.

    Keep the parameters in float32, and cast them in the model: a gradient of float16 loses its
    small elements again in the division.

    Source: Micikevicius et al., Mixed Precision Training, 2018, section 3.2.

    Args:
        init_scale: the first scale, above 0. PyTorch's is 65536, infinite in float16.
        growth_factor: above 1.
        backoff_factor: above 0 and less than 1.
        growth_interval: a number of updates, at least 1.
    """

    def __init__(
        self,
        init_scale: float = 32768.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> None:
        tiny, above_1 = math.nextafter(0.0, 1.0), math.nextafter(1.0, 2.0)
        title, inf = "LossScaler: ", math.inf
        self.factor = checked_number(title + "init_scale", init_scale, tiny, inf)
        self.growth_factor = checked_number(title + "growth_factor", growth_factor, above_1, inf)
        self.backoff_factor = checked_number(title + "backoff_factor", backoff_factor, tiny, 1.0)
        self.growth_interval = checked_size(title + "growth_interval", growth_interval)
        self.growth_count = 0
        self._unscaled: list[Optimizer] = []
        self._found_infinite = False

    def scale(self, loss: Variable) -> Variable:
        """The loss times the scale; a loss of float16 is cast to float32 before."""
        is_half = dtype_name(loss.dtype) == "float16"
        return (astype(loss, "float32") if is_half else loss) * self.factor

    def unscale(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer by the scale, for clipping; ``step`` does so too.

        Raises:
            GraphError: the gradients were divided already since the last ``update()``.
        """
        if any(other is optimizer for other in self._unscaled):
            raise GraphError(
                "LossScaler.unscale: the gradients of this optimizer are unscaled already. "
                "Call scaler.update() after scaler.step(optimizer)."
            )
        for slot in optimizer.slots:
            p, grad = slot.parameter, slot.parameter.grad
            if grad is None:
                continue
            wide = p.xp.astype(grad, p.xp.float64) / self.factor  # exact: often a power of two
            if not bool(p.xp.all(p.xp.isfinite(wide))):
                self._found_infinite = True
            assign_gradient(p, p.xp.astype(p.device.lift(wide), grad.dtype), p.device)
        self._unscaled.append(optimizer)

    def step(self, optimizer: Optimizer) -> bool:
        """Unscale the gradients and update; an infinite element or NaN skips the update.

        Returns:
            True if the parameters were updated.
        """
        if not any(other is optimizer for other in self._unscaled):
            self.unscale(optimizer)
        if self._found_infinite:
            return False
        optimizer.update()
        return True

    def update(self) -> None:
        """Adapt the scale; call it once after ``step`` of all optimizers.

        Raises:
            NaNError: the gradients are not finite, and the scale is small already.
        """
        was_skipped = self._found_infinite
        self._unscaled = []
        self._found_infinite = False
        if was_skipped:
            self._reduce()
            return
        self.growth_count += 1
        if self.growth_count == self.growth_interval:
            self.factor *= self.growth_factor
            self.growth_count = 0

    def _reduce(self) -> None:
        """Take a smaller scale."""
        self.growth_count = 0
        factor = self.factor * self.backoff_factor
        if factor < _LEAST_SCALE:
            raise NaNError(
                f"LossScaler.update: gradients are infinite or NaN at the scale {self.factor}, so "
                "a smaller scale does not help, and every update would be skipped. Find the "
                "cause: tn.diagnose(loss)."
            )
        self.factor = factor

    def state_dict(self) -> State:
        """The scale, and the number of updates since the scale changed."""
        return number_arrays(factor=self.factor, growth_count=self.growth_count)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called.

        Raises:
            StateError: a name, a shape or a dtype differs; the scaler is unchanged.
        """
        checked = checked_state("LossScaler.load_state_dict", state, self.state_dict())
        self.factor = float(checked["factor"])
        self.growth_count = int(checked["growth_count"])

    def __repr__(self) -> str:
        return f"LossScaler(scale={self.factor})"
