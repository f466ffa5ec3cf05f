"""Further optimizers with a step size for each element, and Lion.

The formulas are in ``updates``. The defaults are PyTorch's.
"""

from __future__ import annotations

from tinynode.core.conversion import as_flag
from tinynode.nn.groups import Parameters
from tinynode.nn.optimizers import FormulaOptimizer
from tinynode.nn.updates import (
    AdagradUpdate,
    LionUpdate,
    NAdamUpdate,
    RMSpropUpdate,
    UpdateFunction,
)


class RMSprop(FormulaOptimizer):
    """Steps along g, divided by the root of a fading mean of g^2.

    With g = dL/dp (plus weight_decay * p), and v = a = b = 0 before the first step:

        v <- alpha * v + (1 - alpha) * g^2
        p <- p - lr * g / (sqrt(v) + eps)

    With centered:   a <- alpha * a + (1 - alpha) * g,   and v - a^2 stands in place of v below
    the root. With momentum:   b <- momentum * b + g / (sqrt(v) + eps),   p <- p - lr * b.

    Source: Tieleman and Hinton, Lecture 6.5 - RMSprop, Coursera, 2012; Graves, Generating
    Sequences with Recurrent Neural Networks, 2013, for ``centered``.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate.
        alpha: the factor of the last step's means, at least 0 and less than 1.
        eps: keeps the divisor away from 0; at least 0.
        weight_decay: the factor of the parameter in the gradient, at least 0.
        momentum: the factor of the last step's b, at least 0 and less than 1. A change between
            updates is allowed; 0 drops b.
        centered: divide by the root of the variance, not of the mean square.
        allow_missing: skip parameters without a gradient.
    """

    setting_names = ("lr", "alpha", "eps", "weight_decay", "momentum", "centered")
    optional_names = ("weight_decay", "momentum", "centered")

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.alpha = alpha
        self.eps = eps
        self.weight_decay = weight_decay
        self._momentum = momentum
        self.centered = centered
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def check_settings(self) -> None:
        self.alpha = self.checked("alpha", 0.0, 1.0)
        self.eps = self.checked("eps")
        self.weight_decay = self.checked("weight_decay")
        self.centered = as_flag("RMSprop", "centered", self.centered)
        self.moment_names = ("v", "a") if self.centered else ("v",)
        self.momentum = self._momentum

    @property
    def momentum(self) -> float:
        """The factor of the last step's b."""
        return self._momentum

    @momentum.setter
    def momentum(self, momentum: float) -> None:
        self._momentum = momentum
        self._momentum = self.checked("momentum", 0.0, 1.0)
        self.keep_moment("b", self._momentum > 0)

    def formula(self) -> UpdateFunction:
        numbers = self.alpha, self.eps, self.weight_decay, self.momentum
        return RMSpropUpdate(*numbers, self.centered)


class Adagrad(FormulaOptimizer):
    """Steps along g, divided by the root of the sum of all g^2.

    In step t, with g = dL/dp (plus weight_decay * p), and s = 0 before the first step:

        s <- s + g^2
        p <- p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s + initial_accumulator_value) + eps)

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization, 2011.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate.
        lr_decay: the decay of the learning rate, at least 0.
        weight_decay: the factor of the parameter in the gradient, at least 0.
        initial_accumulator_value: the start of the sum, at least 0.
        eps: keeps the divisor away from 0; at least 0.
        allow_missing: skip parameters without a gradient.
    """

    moment_names = ("s",)
    setting_names = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    optional_names = ("lr_decay", "weight_decay", "initial_accumulator_value")

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.lr_decay = lr_decay
        self.weight_decay = weight_decay
        self.initial_accumulator_value = initial_accumulator_value
        self.eps = eps
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def check_settings(self) -> None:
        self.lr_decay = self.checked("lr_decay")
        self.weight_decay = self.checked("weight_decay")
        self.initial_accumulator_value = self.checked("initial_accumulator_value")
        self.eps = self.checked("eps")

    def formula(self) -> UpdateFunction:
        numbers = self.lr_decay, self.weight_decay, self.initial_accumulator_value, self.eps
        return AdagradUpdate(*numbers)


class NAdam(FormulaOptimizer):
    """Adam with Nesterov's look ahead along the mean of the gradient.

    In step t, with g = dL/dp (plus weight_decay * p), and m = v = 0 before the first step:

        mu_t = b1 * (1 - 0.5 * 0.96^(t * momentum_decay))     M_t = mu_1 * mu_2 * ... * mu_t
        m <- b1 * m + (1 - b1) * g                            v <- b2 * v + (1 - b2) * g^2
        n = mu_(t+1) * m / (1 - M_(t+1)) + (1 - mu_t) * g / (1 - M_t)
        p <- p - lr * n / (sqrt(v / (1 - b2^t)) + eps)

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate.
        betas: b1 and b2, each at least 0 and less than 1.
        eps: keeps the divisor away from 0; at least 0.
        weight_decay: the factor of the parameter in the gradient, at least 0.
        momentum_decay: how quickly mu_t rises from b1 / 2 to b1, at least 0.
        allow_missing: skip parameters without a gradient.
    """

    moment_names = ("m", "v")
    setting_names = ("lr", "betas", "eps", "weight_decay", "momentum_decay")
    optional_names = ("weight_decay",)

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 0.002,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 0.004,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.momentum_decay = momentum_decay
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def check_settings(self) -> None:
        self.betas = self.checked_betas()
        self.eps = self.checked("eps")
        self.weight_decay = self.checked("weight_decay")
        self.momentum_decay = self.checked("momentum_decay")

    def formula(self) -> UpdateFunction:
        return NAdamUpdate(self.betas, self.eps, self.weight_decay, self.momentum_decay)


class Lion(FormulaOptimizer):
    """Steps of exactly lr in each element, along the sign of a mean of the gradient.

    With g = dL/dp, and m = 0 before the first step:

        p <- p - lr * (sign(b1 * m + (1 - b1) * g) + weight_decay * p)
        m <- b2 * m + (1 - b2) * g

    Source: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, algorithm 2. PyTorch
    has no Lion.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate; 3 to 10 times smaller than for ``Adam``.
        betas: b1 and b2, each at least 0 and less than 1.
        weight_decay: the rate of the decay, at least 0.
        allow_missing: skip parameters without a gradient.
    """

    moment_names = ("m",)
    setting_names = ("lr", "betas", "weight_decay")
    optional_names = ("weight_decay",)

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 0.0001,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.betas = betas
        self.weight_decay = weight_decay
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def check_settings(self) -> None:
        self.betas = self.checked_betas()
        self.weight_decay = self.checked("weight_decay")

    def formula(self) -> UpdateFunction:
        return LionUpdate(self.betas, self.weight_decay)
