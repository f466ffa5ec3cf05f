"""Optimizers change parameters along the gradients.

Requirement: an update is plain arithmetic on arrays, on any backend, and reads like the paper's
formula. Every parameter gets a *new* array. The old array stays as is: a graph may retain it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy

from tinynode.core.dispatch import is_fallback, run_portable
from tinynode.core.hooks import tell_value_read, thread_hooks
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Device,
    Fallback,
    OptimizerUpdate,
    supports,
    to_host,
)
from tinynode.errors import GraphError, OperandError, StateError, describe, dtype_name
from tinynode.nn.checks import checked_number
from tinynode.nn.module import Module
from tinynode.nn.parameter import assign, assign_gradient, fresh_copy, moved
from tinynode.nn.state import State, checked_state
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, OwnStep, SGDUpdate, UpdateFunction

Moments: TypeAlias = dict[str, Array]
"""An optimizer's arrays for a parameter, each of the parameter's shape, by name."""


class Optimizer:
    """Base class. A subclass defines ``step``, the update of a single parameter.

    Args:
        parameters: a Module, or a list of Parameters or other leaf Variables with
            ``requires_grad``. Messages and ``state_dict`` name a Module's parameters by dotted
            names, a list's parameters by index. A parameter given twice counts once.
        lr: the learning rate, not negative; a change between updates is allowed.
        allow_missing: skip parameters without a gradient; at least one gradient is needed.

    Raises:
        TypeError: an entry is no leaf Variable with ``requires_grad``.
        ValueError: there is no parameter, or lr is negative or not finite.
    """

    moment_names: tuple[str, ...] = ()
    """The names of the arrays passed from step to step; each starts as zeros."""
    setting_names: tuple[str, ...] = ("lr",)
    """The attributes shown by ``repr``."""

    def __init__(
        self,
        parameters: Module | Iterable[Variable],
        lr: float,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.lr = lr
        self.allow_missing = allow_missing
        self._slots = [
            _Slot(name, parameter, self.moment_names)
            for name, parameter in _named(type(self).__name__, parameters)
        ]

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        for hook in thread_hooks():
            hook.setting_assigned(f"{type(self).__name__}.lr")
        self._lr = checked_number(f"{type(self).__name__}: lr", lr, 0.0, math.inf)

    def step(
        self, array: Array, grad: Array, moments: Moments, count: int
    ) -> tuple[Array, Moments]:
        """A parameter's next array and moments, as new arrays.

        ``update`` calls ``step`` for each parameter; a training loop calls ``update``.

        Args:
            array: the parameter's array.
            grad: the gradient, of the same shape and dtype.
            moments: the arrays returned by the last step.
            count: 1 for the first step of the parameter.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step: define it in the class.")

    def update_function(self) -> UpdateFunction:
        """``step`` as a function of a net, with the present settings as constants."""
        return OwnStep(self)

    def update(self) -> None:
        """Change every parameter along the gradient, once. After Ctrl-C all are unchanged.

        Raises:
            GraphError: a gradient is missing, or has another shape; all parameters are unchanged.
        """
        hooks = thread_hooks()
        for hook in hooks:
            if hook.update_requested(self, self._slots):
                return
        ready = self._ready()
        results = self._results(ready)
        pairs = zip(ready, results, strict=True)
        accept_all([(slot, *slot.lifted(array, moments)) for slot, (array, moments) in pairs])
        for hook in hooks:
            hook.updated(self, self._slots)

    def _results(self, ready: list[_Slot]) -> Sequence[tuple[Array, Moments]]:
        """The next arrays and moments: by the backend's ``OptimizerUpdate``, else by ``step``."""
        steps = [
            (slot.parameter.array, slot.parameter.grad, slot.moments, slot.count + 1)
            for slot in ready
        ]
        device = ready[0].device
        if not supports(device.backend, OptimizerUpdate):
            return self._each_step(steps)
        alike = all(slot.device is device for slot in ready)
        results: Any = Fallback("several devices")
        if alike:
            results = device.backend.update_parameters(self, steps)
        if is_fallback(results):
            results = run_portable(results, device, type(self).__name__, self._each_step, steps)
        return cast("list[tuple[Array, Moments]]", results)

    def _each_step(self, steps: Sequence[Any]) -> list[tuple[Array, Moments]]:
        """The next arrays and moments, parameter by parameter."""
        return [self.step(*arguments) for arguments in steps]

    def _ready(self) -> list[_Slot]:
        """The slots of the parameters with a gradient; shapes and dtypes are checked."""
        ready = [slot for slot in self._slots if slot.parameter.grad is not None]
        missing = [slot for slot in self._slots if slot.parameter.grad is None]
        if not ready or (missing and not self.allow_missing):
            raise GraphError(
                f"{type(self).__name__}.update: {missing[0]} has no gradient"
                f"{_others(len(missing) - 1)}: no backward "
                "ran since cleargrads(), or the loss does not depend on it. Call loss.backward() "
                "before update(); if it is not to be trained, leave it out, or pass "
                "allow_missing=True."
            )
        for slot in ready:
            slot.check(f"{type(self).__name__}.update", "gradient", slot.parameter.grad)
            slot.prepare(f"{type(self).__name__}.update")
        return ready

    def cleargrads(self) -> None:
        """Set every parameter's gradient to None; needed before each backward."""
        for slot in self._slots:
            slot.parameter.cleargrad()

    def state_dict(self) -> State:
        """Host copies of the step counts and the moments, by name.

        The learning rate and the other settings of the constructor are not included.

        Raises:
            StateError: two parameters have one name.
        """
        state: State = {}
        for slot in self._slots:
            if f"{slot.name}/count" in state:
                same = [f"{other}" for other in self._slots if other.name == slot.name]
                raise StateError(
                    f"{type(self).__name__}: two parameters have the name {slot.name}, so their "
                    f"states cannot be told apart: {same[0]} and {same[1]}. Rename one of them."
                )
            state[f"{slot.name}/count"] = numpy.asarray(slot.count, dtype=numpy.int64)
            for name, moment in slot.moments.items():
                state[f"{slot.name}/{name}"] = to_host(moment).copy()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called.

        Raises:
            StateError: a name, a shape or a dtype differs; the optimizer is unchanged.
        """
        caller = f"{type(self).__name__}.load_state_dict"
        checked = checked_state(caller, state, self.state_dict())
        counts = {slot.name: int(checked[f"{slot.name}/count"]) for slot in self._slots}
        for name, count in counts.items():
            if count < 0:
                raise StateError(f"{caller}: {name}/count is {count}, expected 0 or more.")
        for slot in self._slots:
            slot.count = counts[slot.name]
            slot.moments = {
                name: fresh_copy(checked[f"{slot.name}/{name}"], slot.device)
                for name in slot.moments
            }

    def __repr__(self) -> str:
        count = len(self._slots)
        settings = "".join(f", {name}={getattr(self, name)}" for name in self.setting_names)
        return f"{type(self).__name__}({count} parameter{'s' * (count != 1)}{settings})"


class _Slot:
    """A parameter, with the count of steps and the moments."""

    __slots__ = ("count", "device", "moments", "name", "parameter")

    def __init__(self, name: str, parameter: Variable, moment_names: tuple[str, ...]) -> None:
        self.name = name
        self.parameter = parameter
        self.device: Device = parameter.device
        self.count = 0
        self.moments: Moments = {}
        self.set_moments(moment_names)

    def __str__(self) -> str:
        return f"parameter {title(self.name, self.parameter)}"

    def set_moments(self, names: tuple[str, ...]) -> None:
        """Keep the moments of the given names; a new moment starts as zeros."""
        zeros_like, p, old = self.parameter.xp.zeros_like, self.parameter, self.moments
        self.moments = {name: old[name] if name in old else zeros_like(p.array) for name in names}

    def prepare(self, function: str) -> None:
        """Move the moments to the parameter's device; check shapes and dtypes."""
        p = self.parameter
        if self.device is not p.device:
            self.device = p.device
            self.moments = {name: moved(m, p.device) for name, m in self.moments.items()}
        for name, moment in self.moments.items():
            self.check(function, name, moment)

    def check(self, function: str, name: str, other: Array) -> None:
        """Refuse a gradient or a moment with another shape or dtype than the parameter."""
        p = self.parameter
        if other.shape != p.shape or other.dtype != p.dtype:
            raise GraphError(
                f"{function}: {self} has a {name} of shape {tuple(other.shape)}, "
                f"{dtype_name(other.dtype)}: its array was replaced by an array of another shape "
                "or dtype. Run backward again; make a new optimizer for it."
            )

    def lifted(self, array: Array, moments: Moments) -> tuple[Array, Moments]:
        """The results of a step; an array library may give scalars for 0-d arrays."""
        lift = self.device.lift
        return lift(array), {name: lift(moment) for name, moment in moments.items()}


def _others(count: int) -> str:
    """``, nor has 1 other``, ``, nor have 2 others``, or nothing."""
    if count < 2:
        return ", nor has 1 other" if count else ""
    return f", nor have {count} others"


def accept_all(results: Sequence[tuple[_Slot, Array, Moments]]) -> None:
    """Store the results of a step for all parameters. On an error or Ctrl-C, store none."""
    before = [(slot, slot.parameter.raw, slot.moments, slot.count) for slot, _, _ in results]
    try:
        for slot, array, moments in results:
            assign(slot.parameter, array, slot.device)
            slot.moments = moments
            slot.count += 1
    except BaseException:
        for slot, array, moments, count in before:
            slot.parameter.replace_array(array, slot.device)
            slot.moments, slot.count = moments, count
        raise


def title(name: str, p: Variable) -> str:
    """A parameter for messages: name or index, own name, shape, dtype and device."""
    own = f" {p.name!r}" if p.name and name.isdigit() else ""
    return f"{name}{own} (shape {p.shape}, {dtype_name(p.dtype)}, on {p.device})"


def _named(optimizer: str, parameters: Module | Iterable[Variable]) -> list[tuple[str, Variable]]:
    """The checked parameters with names, each once."""
    if isinstance(parameters, Variable):
        raise OperandError(f"{optimizer}: parameters must be a list: write [parameter].")
    pairs: list[tuple[str, Any]] = (
        [*parameters.named_parameters()]
        if isinstance(parameters, Module)
        else [(str(position), p) for position, p in enumerate(parameters)]
    )
    if not pairs:
        raise ValueError(
            f"{optimizer}: parameters is empty: there is nothing to train. A model's weights are "
            "nn.Parameter attributes of the model or of Modules inside. A plain Variable does not "
            "count."
        )
    first: dict[int, tuple[str, Variable]] = {}
    for name, p in pairs:
        _check_trainable(optimizer, name, p)
        first.setdefault(id(p), (name, p))
    return list(first.values())


def _check_trainable(optimizer: str, name: str, p: Any) -> None:
    if not isinstance(p, Variable) or p.array is None:
        found = "an empty Variable" if isinstance(p, Variable) else describe(p)
        raise OperandError(
            f"{optimizer}: parameter {name} must be a Parameter, got {found}. "
            "Give model.parameters()."
        )
    if not p.requires_grad or p.creator_node is not None:
        why, cure = "was computed by a function", "Give the leaves of its graph."
        if not p.requires_grad:
            why = "requires no gradient"
            cure = "Leave it out: [p for p in model.parameters() if p.requires_grad]."
        raise OperandError(
            f"{optimizer}: parameter {title(name, p)} {why}: only leaves that require a gradient "
            f"can be trained. {cure}"
        )


class SGD(Optimizer):
    """Stochastic gradient descent: with g = dL/dp,   p <- p - lr * g.

    With momentum:   v <- momentum * v + g   p <- p - lr * v, and v = 0 before the first step.

    Source: Robbins and Monro, A Stochastic Approximation Method, 1951; Polyak, Some Methods of
    Speeding up the Convergence of Iteration Methods, 1964.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate.
        momentum: the factor of the last step's v, at least 0 and less than 1.
        allow_missing: skip parameters without a gradient.
    """

    setting_names = ("lr", "momentum")

    def __init__(
        self,
        parameters: Module | Iterable[Variable],
        lr: float = 0.01,
        momentum: float = 0.0,
        *,
        allow_missing: bool = False,
    ) -> None:
        super().__init__(parameters, lr, allow_missing=allow_missing)
        self.momentum = momentum

    @property
    def momentum(self) -> float:
        """The factor of the last step's v. A change between updates is allowed; 0 drops v."""
        return self._momentum

    @momentum.setter
    def momentum(self, momentum: float) -> None:
        for hook in thread_hooks():
            hook.setting_assigned("SGD.momentum")
        self._momentum = checked_number("SGD: momentum", momentum, 0.0, 1.0)
        others = tuple(name for name in self.moment_names if name != "v")  # of a subclass
        self.moment_names = (*others, "v") if self._momentum else others
        for slot in self._slots:
            slot.set_moments(self.moment_names)

    def step(
        self, array: Array, grad: Array, moments: Moments, count: int
    ) -> tuple[Array, Moments]:
        if not self.momentum:
            (p,) = SGDUpdate().forward((array, grad, self.lr))
            return p, {}
        p, v = MomentumUpdate().forward((array, grad, moments["v"], self.lr, self.momentum))
        return p, {"v": v}

    def update_function(self) -> UpdateFunction:
        if type(self).step is not SGD.step:
            return OwnStep(self)
        return MomentumUpdate() if self.momentum else SGDUpdate()


class Adam(Optimizer):
    """Steps of about lr, by exponentially fading means of the gradient and of its square.

    In step t of a parameter p, with g = dL/dp, and m = v = 0 before the first step:

        m <- b1 * m + (1 - b1) * g                  v <- b2 * v + (1 - b2) * g^2
        p <- p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate.
        betas: b1 and b2, each at least 0 and less than 1.
        eps: keeps the divisor away from 0; at least 0. In float16, a value below 1e-7 is rounded
            to 0.
        allow_missing: skip parameters without a gradient.
    """

    moment_names = ("m", "v")
    setting_names: tuple[str, ...] = ("lr", "betas", "eps")

    def __init__(
        self,
        parameters: Module | Iterable[Variable],
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        allow_missing: bool = False,
    ) -> None:
        b1, b2 = betas
        self.betas = (
            checked_number("Adam: betas[0]", b1, 0.0, 1.0),
            checked_number("Adam: betas[1]", b2, 0.0, 1.0),
        )
        self.eps = checked_number("Adam: eps", eps, 0.0, math.inf)
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def step(
        self, array: Array, grad: Array, moments: Moments, count: int
    ) -> tuple[Array, Moments]:
        inputs = array, grad, moments["m"], moments["v"], self.lr, count
        p, m, v = self._formula().forward(inputs)
        return p, {"m": m, "v": v}

    def _formula(self) -> AdamUpdate:
        return AdamUpdate(self.betas, self.eps)

    def update_function(self) -> UpdateFunction:
        return self._formula() if type(self).step is Adam.step else OwnStep(self)


class AdamW(Adam):
    """Adam, with decay of the weights beside the steps.

    First   p <- p - lr * weight_decay * p,   then the step of ``Adam``.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate.
        betas: as for ``Adam``.
        eps: as for ``Adam``.
        weight_decay: the rate of the decay, at least 0.
        allow_missing: skip parameters without a gradient.
    """

    setting_names = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        parameters: Module | Iterable[Variable],
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.weight_decay = checked_number("AdamW: weight_decay", weight_decay, 0.0, math.inf)
        super().__init__(parameters, lr, betas, eps, allow_missing=allow_missing)

    def _formula(self) -> AdamUpdate:
        return AdamUpdate(self.betas, self.eps, self.weight_decay)


def clip_gradients(parameters: Module | Iterable[Variable], max_norm: float) -> float:
    """Scale all gradients by the same factor, for a joint norm of at most ``max_norm``.

    The norm is sqrt(sum of g^2 over all elements of all gradients). If the norm is larger,
    every gradient is multiplied by max_norm / norm. Missing gradients do not count.

    Source: Pascanu, Mikolov and Bengio, On the Difficulty of Training Recurrent Neural Networks,
    2013.

    Args:
        parameters: a Module, or a list of Variables.
        max_norm: the largest norm allowed, above 0.

    Returns:
        The norm before scaling.

    Raises:
        ValueError: ``max_norm`` is not positive, or the norm is not finite; no gradient changes.
    """
    tell_value_read("clip_gradients, which stands between two compiled functions,")
    limit = checked_number("clip_gradients: max_norm", max_norm, 0.0, math.inf)
    if limit == 0:
        raise ValueError("clip_gradients: max_norm must be above 0.")
    named = _named("clip_gradients", parameters)
    with_grad = [(p, p.grad_var) for _, p in named if p.grad_var is not None]
    norm = math.hypot(*(_norm(p.xp, g.array) for p, g in with_grad))
    if not math.isfinite(norm):
        raise ValueError(
            f"clip_gradients: the norm of the gradients is {norm}: look for NaN with NaNHook or "
            "debug mode, or lower the learning rate."
        )
    if norm > limit:
        for p, g in with_grad:
            wide = p.xp.astype(g.array, p.xp.float64)  # limit / norm may be 0 in float16
            scaled = p.device.lift(wide * (limit / norm))
            assign_gradient(p, p.xp.astype(scaled, g.dtype), p.device)
    return norm


def _norm(xp: Any, array: Array) -> float:
    """sqrt(sum of squares), in float64; array / max |array| avoids over- and underflow."""
    if 0 in array.shape:
        return 0.0
    wide = xp.abs(xp.astype(array, xp.float64))
    largest = float(xp.max(wide))
    if not 0.0 < largest < math.inf:
        return largest
    ratios = wide / largest
    return largest * math.sqrt(float(xp.sum(ratios * ratios)))
