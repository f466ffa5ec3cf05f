"""Optimizers change parameters along the gradients.

Requirement: an update is plain arithmetic on arrays, on any backend, and reads like the paper's
formula. Every parameter gets a *new* array. The old array stays as is: a graph may retain it.

The formulas are in ``updates``. ``adaptive`` has further optimizers.
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeAlias, cast

from tinynode.core.conversion import as_flag, assign
from tinynode.core.dispatch import is_fallback, run_portable
from tinynode.core.hooks import thread_hooks
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Device,
    Fallback,
    OptimizerUpdate,
    hidden_axes,
    is_float16,
    supports,
    to_host,
)
from tinynode.errors import GraphError, StateError, describe, dtype_name, unknown_keywords
from tinynode.habits import missing_attribute
from tinynode.nn.checks import RefusesKeywords, checked_number
from tinynode.nn.groups import Parameters, named_groups, parameter_title
from tinynode.nn.parameter import fresh_copy, moved
from tinynode.nn.state import State, checked_state, number_arrays, widened_state
from tinynode.nn.updates import (
    AdamUpdate,
    DecayedSGDUpdate,
    MomentumUpdate,
    OwnStep,
    SGDUpdate,
    UpdateFunction,
    own_step,
    updated,
)

Moments: TypeAlias = dict[str, Array]
"""An optimizer's arrays for a parameter, each of the parameter's shape, by name."""


class Optimizer(RefusesKeywords):
    """Base class. A subclass defines ``update_one``, the update of a single parameter.

    Args:
        parameters: a Module, or a list of Parameters or other leaf Variables with
            ``requires_grad``. Messages and ``state_dict`` name a Module's parameters by dotted
            names, a list's parameters by index. A parameter given twice counts once. Or a list of
            *groups*: dictionaries with ``"parameters"`` (or ``"params"``) and the settings of the
            group, such as ``{"parameters": model.body, "lr": 1e-4}``. The arguments of the
            constructor are the settings of the other groups.
        lr: the learning rate, not negative; a change between updates is allowed.
        allow_missing: skip parameters without a gradient; at least one gradient is needed.

    A subclass assigns further settings before ``super().__init__``, and lists the names in
    ``setting_names``. Then a group may have the settings too.

    A frozen parameter stays as it is: the array, the moments and the count of steps. After
    ``unfreeze`` the parameter trains.

    Raises:
        TypeError: an entry is neither a Parameter nor a leaf Variable with ``requires_grad``, or a
            group has a setting of another name.
        ValueError: there is no parameter, a parameter is in two groups, or lr is negative or not
            finite.
    """

    moment_names: tuple[str, ...] = ()
    """The names of the arrays passed from update to update; each starts as zeros."""
    setting_names: tuple[str, ...] = ("lr",)
    """The attributes shown by ``repr``; a group may set these."""
    lr_factor: float = 1.0
    """For a group: the factor in group.lr = lr_factor * lr, at each assignment of ``lr``."""
    has_wide_moments = False
    """True if the moments of a parameter of float16 are arrays of float32."""
    optional_names: tuple[str, ...] = ()
    """The settings that ``repr`` leaves out while they are zero or False."""
    lr_owner: Any = None
    """The ``schedules.LrOwner`` of the schedule that sets ``lr``, if any."""
    _slots: Sequence[_Slot] = ()
    _groups: Sequence[Optimizer] = ()

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "step" in vars(cls) and _takes_arrays(cls.step):
            warnings.warn(
                f"{cls.__name__}.step(array, grad, moments, count) is deprecated: name the method "
                "update_one. step() now updates all parameters.",
                DeprecationWarning,
                stacklevel=2,
            )

    def __init__(self, parameters: Parameters, lr: float, *, allow_missing: bool = False) -> None:
        title = type(self).__name__
        self.lr = lr
        self.allow_missing = as_flag(title, "allow_missing", allow_missing)
        self.check_settings()
        self._has_old_step = _takes_arrays(type(self).step)
        given = named_groups(title, parameters, self.setting_names)
        if given[0].settings is None:
            self._slots = self._new_slots(given[0].parameters)
            return
        self._groups = [self._group(one.parameters, one.settings or {}) for one in given]
        self._slots = [slot for group in self._groups for slot in group.slots]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            """The error for a wrong name; Python asks only for names that do not exist."""
            known = () if name[0] == "_" else dir(self)
            raise missing_attribute("optimizer", name, known, title=type(self).__name__)

    def _group(
        self, parameters: list[tuple[str, Variable]], settings: dict[str, Any]
    ) -> Optimizer:
        group = copy.copy(self)
        for name, value in settings.items():
            setattr(group, name, value)
        group.check_settings()
        if group.lr != self.lr:
            if not self.lr:
                raise ValueError(
                    f"{type(self).__name__}: a group has lr {group.lr}, and the lr of the "
                    "constructor is 0, so the group has no factor. Give the constructor an lr "
                    "above 0."
                )
            group.lr_factor = group.lr / self.lr
        group._slots = group._new_slots(parameters)
        return group

    def _new_slots(self, parameters: list[tuple[str, Variable]]) -> list[_Slot]:
        return [_Slot(name, p, self.moment_names, self.has_wide_moments) for name, p in parameters]

    @property
    def in_numbers(self) -> str:
        """The update in the words of a film, such as ``"before - 0.1 * gradient"``, if short.

        Equations of moments come before, with ``;`` behind: ``v = 0.9 * v_old + gradient; ...``.
        """
        return ""

    def check_settings(self) -> None:
        """Check the settings of the constructor, or of a group; a subclass overrides it."""

    @property
    def lr(self) -> float:
        """The learning rate. An assignment changes each group's too: see ``lr_factor``."""
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        for hook in thread_hooks():
            hook.setting_assigned(f"{type(self).__name__}.lr")
        self._lr = checked_number(f"{type(self).__name__}: lr", lr, 0.0, math.inf)
        for group in self._groups:
            group.lr = group.lr_factor * self._lr

    @property
    def groups(self) -> Sequence[Optimizer]:
        """The groups of parameters: optimizers of this class, each with its own settings.

        An optimizer without groups is its own only group. Change the settings of a group by
        assignment: ``optimizer.groups[1].betas = (0.8, 0.99)``.
        """
        return self._groups or [self]

    @property
    def slots(self) -> Sequence[_Slot]:
        """For each parameter: the name, the parameter, the count of updates and the moments."""
        return self._slots

    def update_one(
        self, array: Array, grad: Array, moments: Moments, count: int
    ) -> tuple[Array, Moments]:
        """A parameter's next array and moments, as new arrays.

        ``update`` calls ``update_one`` for each parameter; a training loop calls ``update``.

        Args:
            array: the parameter's array.
            grad: the gradient, of the same shape and dtype.
            moments: the arrays returned by the last call; zeros at first.
            count: 1 for the first update of the parameter.

        Returns:
            The next array, and a dict with the next moments, one for each of ``moment_names``. All
            are of the shape and dtype of the parameter.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no update_one: define it in the class."
        )

    def update_function(self) -> UpdateFunction:
        """``update_one`` as a function of a net, with the present settings as constants."""
        return OwnStep(self)

    @property
    def rule(self) -> Callable[..., Any]:
        """``update_one``, or the ``step`` of a subclass with the old name of the method."""
        return self.step if self._has_old_step else self.update_one

    def step(self, *arguments: Any) -> Any:
        """``update()``; with a closure, call the closure first.

        Args:
            arguments: nothing, or a function without arguments. The function clears the
                gradients, computes the loss, calls ``backward``, and returns the loss.

        Returns:
            The result of the closure, or None.
        """
        if len(arguments) == 4:  # super().step(array, grad, moments, count) of an old subclass
            return self.update_one(*arguments)
        if len(arguments) > 1:
            raise TypeError(
                f"{type(self).__name__}.step: expected no argument or a closure, got "
                f"{len(arguments)} arguments. The update of one parameter is update_one."
            )
        return self.update(*arguments)

    def update(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter along the gradient, once. After Ctrl-C all are unchanged.

        Args:
            closure: called first, if given: see ``step``.

        Returns:
            The result of the closure, or None.

        Raises:
            GraphError: a gradient is missing, or has another shape, or every parameter is frozen;
                all parameters are unchanged.
        """
        loss = None if closure is None else closure()
        self._check_frozen()
        hooks = thread_hooks()
        for hook in hooks:
            if hook.update_requested(self, self._slots):
                return loss
        self._check_missing()
        results: list[tuple[_Slot, Array, Moments]] = []
        for group in self.groups:
            ready = group._ready()
            found = group._results(ready)
            for slot, (array, moments) in zip(ready, found, strict=True):
                if not array.shape:
                    array, moments = slot.lifted(array, moments)
                results.append((slot, array, moments))
        accept_all(results)
        for hook in hooks:
            hook.updated(self, self._slots)
        return loss

    def _results(self, ready: list[_Slot]) -> Sequence[tuple[Array, Moments]]:
        """The next arrays and moments: by the backend's ``OptimizerUpdate``, else portable."""
        steps = []
        for slot in ready:
            p: Any = slot.parameter  # the program reads no value, so no hook is told
            steps.append((p.raw, p.grad_var.raw, slot.moments, slot.count + 1))
        if not ready:  # a group without a gradient
            return []
        device = ready[0].device
        if not supports(device.backend, OptimizerUpdate):
            return self._each_one(steps)
        alike = all(slot.device is device for slot in ready)
        results: Any = Fallback("several devices")
        if alike:
            results = device.backend.update_parameters(self, steps)
        if is_fallback(results):
            results = run_portable(results, device, type(self).__name__, self._each_one, steps)
        return cast("list[tuple[Array, Moments]]", results)

    def _each_one(self, steps: Sequence[Any]) -> list[tuple[Array, Moments]]:
        """The next arrays and moments, parameter by parameter."""
        return [own_step(self, *arguments) for arguments in steps]

    @property
    def trained_slots(self) -> list[_Slot]:
        """The slots of the parameters that are not frozen."""
        return [slot for slot in self._slots if slot.parameter.requires_grad]

    def _check_frozen(self) -> None:
        """Refuse parameters that are all frozen."""
        if not any(slot.parameter.requires_grad for slot in self._slots):
            raise GraphError(
                f"{type(self).__name__}.update: every parameter is frozen, so there is nothing to "
                "train. Call model.unfreeze(), or unfreeze a layer of the model."
            )

    def _check_missing(self) -> None:
        """Refuse parameters without a gradient."""
        missing = [
            slot
            for slot in self._slots
            if slot.parameter.grad_var is None and slot.parameter.requires_grad
        ]
        if missing and (not self.allow_missing or len(missing) == len(self.trained_slots)):
            raise GraphError(
                f"{type(self).__name__}.update: {missing[0]} has no gradient"
                f"{_others(len(missing) - 1)}: no backward "
                "ran since cleargrads(), or the loss does not depend on it. Call loss.backward() "
                "before update(); if it is not to be trained, freeze it by requires_grad = False, "
                "or pass allow_missing=True."
            )

    def _ready(self) -> list[_Slot]:
        """The slots of the trained parameters with a gradient; shapes and dtypes are checked."""
        title = f"{type(self).__name__}.update"
        ready = []
        for slot in self._slots:
            parameter = slot.parameter
            gradient = parameter.grad_var
            if gradient is not None and parameter.requires_grad:
                slot.check(title, "gradient", gradient.raw, parameter.raw.dtype)
                if slot.moments or slot.device is not parameter.device:
                    slot.prepare(title)
                ready.append(slot)
        return ready

    def cleargrads(self) -> None:
        """Set every parameter's gradient to None; needed before each backward."""
        for slot in self._slots:
            slot.parameter.cleargrad()

    def zero_grad(self, **unknown: Never) -> None:
        """``cleargrads()``, by PyTorch's name."""
        if unknown:
            raise unknown_keywords("zero_grad", unknown)
        self.cleargrads()

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
            state |= number_arrays(**{f"{slot.name}/count": slot.count})
            for name, moment in slot.moments.items():
                state[f"{slot.name}/{name}"] = to_host(moment).copy()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called.

        Raises:
            StateError: a name, a shape or a dtype differs; the optimizer is unchanged.
        """
        caller = f"{type(self).__name__}.load_state_dict"
        own = self.state_dict()
        checked = checked_state(caller, widened_state(state, own), own)
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
        groups = f" in {len(self._groups)} groups" if self._groups else ""
        values = {name: getattr(self, name) for name in self.setting_names}
        shown = {n: v for n, v in values.items() if v or n not in self.optional_names}
        settings = "".join(f", {name}={value}" for name, value in shown.items())
        return f"{type(self).__name__}({count} parameter{'s' * (count != 1)}{groups}{settings})"


def _takes_arrays(step: Callable[..., Any]) -> bool:
    """True for ``step(array, grad, moments, count)``, the former name of ``update_one``."""
    if step is Optimizer.step:
        return False
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [p for p in inspect.signature(step).parameters.values() if p.kind in kinds]
    return len(taken) == 5  # self too


class _Slot:
    """A parameter, with the count of steps and the moments.

    The moments have the shape and dtype of the parameter, or float32 for float16 if ``is_wide``.
    """

    __slots__ = ("count", "device", "is_wide", "moments", "name", "parameter")

    def __init__(
        self, name: str, parameter: Variable, moment_names: tuple[str, ...], is_wide: bool
    ) -> None:
        self.name = name
        self.parameter = parameter
        self.is_wide = is_wide
        self.device: Device = parameter.device
        self.count = 0
        self.moments: Moments = {}
        self.set_moments(moment_names)

    def __str__(self) -> str:
        return f"parameter {parameter_title(self.name, self.parameter)}"

    def __getstate__(self) -> Any:
        """For copies and pickles: moments on the host, since dpnp's arrays have neither."""
        state = {name: getattr(self, name) for name in self.__slots__}
        state["moments"] = {name: to_host(m) for name, m in self.moments.items()}
        return state

    def __setstate__(self, state: Any) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.moments = {name: moved(m, self.device) for name, m in self.moments.items()}

    def set_moments(self, names: tuple[str, ...]) -> None:
        """Keep the moments of the given names; a new moment starts as zeros."""
        p, old = self.parameter, self.moments
        dtype = self._moment_dtype()
        self.moments = {
            name: old[name] if name in old else p.xp.zeros_like(p.array, dtype=dtype)
            for name in names
        }

    def _moment_dtype(self) -> Any:
        """The dtype of the moments."""
        p = self.parameter
        return p.xp.float32 if self.is_wide and is_float16(p.raw) else p.raw.dtype

    def prepare(self, function: str) -> None:
        """Move the moments to the parameter's device; check shapes and dtypes."""
        p = self.parameter
        if self.device is not p.device:
            self.device = p.device
            self.moments = {name: moved(m, p.device) for name, m in self.moments.items()}
        dtype = self._moment_dtype()
        for name, moment in self.moments.items():
            self.check(function, name, moment, dtype)

    def check(self, function: str, name: str, other: Array, dtype: Any) -> None:
        """Refuse a gradient or a moment with another shape than the parameter, or dtype."""
        if other.shape != self.parameter.raw.shape or other.dtype != dtype:
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
    is_usual = not (thread_hooks() or hidden_axes.stack)
    try:
        for slot, array, moments in results:
            parameter = slot.parameter
            if is_usual and parameter.is_like(array, slot.device):
                parameter.refill(array)  # as ``assign`` does, quickly
            else:
                assign(parameter, array, slot.device)
            slot.moments = moments
            slot.count += 1
    except BaseException:
        for slot, array, moments, count in before:
            slot.parameter.replace_array(array, slot.device)
            slot.moments, slot.count = moments, count
        raise


class FormulaOptimizer(Optimizer):
    """An optimizer whose update of one parameter is an UpdateFunction.

    A subclass defines ``formula``. Eager code and nets compute by the same lines.
    """

    def formula(self) -> UpdateFunction:
        """The update of one parameter, with the present settings as constants.

        An update asks once for each group, and uses the function for all parameters of the group.
        """
        raise NotImplementedError(f"{type(self).__name__} has no formula: define it in the class.")

    def update_one(
        self, array: Array, grad: Array, moments: Moments, count: int
    ) -> tuple[Array, Moments]:
        return self._each_by(self.formula(), [(array, grad, moments, count)])[0]

    def _each_one(self, steps: Sequence[Any]) -> list[tuple[Array, Moments]]:
        return super()._each_one(steps) if self._is_own else self._each_by(self.formula(), steps)

    def _each_by(
        self, function: UpdateFunction, steps: Sequence[Any]
    ) -> list[tuple[Array, Moments]]:
        """The next arrays and moments of each step, by one function."""
        counts = {count for _, _, _, count in steps}
        if len(counts) == 1:  # the usual case
            return self._each_of_count(function, steps)
        results: list[Any] = [None] * len(steps)
        for count in counts:
            places = [place for place, step in enumerate(steps) if step[3] == count]
            found = self._each_of_count(function, [steps[place] for place in places])
            for place, result in zip(places, found, strict=True):
                results[place] = result
        return results

    def _each_of_count(
        self, function: UpdateFunction, steps: Sequence[Any]
    ) -> list[tuple[Array, Moments]]:
        """The next arrays and moments of steps with the same count."""
        _, _, moments, count = steps[0]
        names = [name for name in function.moments if name in moments]
        columns = [[array for array, _, _, _ in steps], [grad for _, grad, _, _ in steps]]
        columns += [[moments[name] for _, _, moments, _ in steps] for name in names]
        new, *found = updated(function, columns, self._numbers(function, count))
        if not names:
            return [(array, {}) for array in new]
        each = zip(*found, strict=True)
        return [(p, dict(zip(names, own, strict=True))) for p, own in zip(new, each, strict=True)]

    def _numbers(self, function: UpdateFunction, count: int) -> list[Any]:
        """The values of ``function.numbers`` in step ``count``."""
        return [count if name == "count" else getattr(self, name) for name in function.numbers]

    @property
    def has_wide_moments(self) -> bool:  # type: ignore[override]
        """True: ``formula`` computes in float32. A rule of one's own has moments as documented."""
        return not self._is_own

    @property
    def _is_own(self) -> bool:
        """True if a subclass or an instance has a rule of its own in place of the formula."""
        return getattr(self.rule, "__func__", None) is not FormulaOptimizer.update_one

    def _computes_as(self, cls: type[FormulaOptimizer]) -> bool:
        """True if the methods of an update are those of ``cls``: then its equation holds."""
        methods = {
            "formula": cls.formula,
            "update": Optimizer.update,
            "_each_one": FormulaOptimizer._each_one,
            "_each_by": FormulaOptimizer._each_by,
        }
        return not self._is_own and all(
            getattr(getattr(self, name), "__func__", None) is method
            for name, method in methods.items()
        )

    def update_function(self) -> UpdateFunction:
        return super().update_function() if self._is_own else self.formula()

    def checked(self, name: str, low: float = 0.0, high: float = math.inf) -> float:
        """The value of a setting, a number: low <= value < high."""
        return checked_number(f"{type(self).__name__}: {name}", getattr(self, name), low, high)

    def checked_betas(self) -> tuple[float, float]:
        """The setting ``betas``: two numbers, each at least 0 and less than 1."""
        title, betas = type(self).__name__, cast("Any", self).betas
        try:
            b1, b2 = betas
        except (TypeError, ValueError):
            raise TypeError(
                f"{title}: betas must be two numbers, such as (0.9, 0.999), got {describe(betas)}."
            ) from None
        return (
            checked_number(f"{title}: betas[0]", b1, 0.0, 1.0),
            checked_number(f"{title}: betas[1]", b2, 0.0, 1.0),
        )

    def keep_moment(self, name: str, is_needed: bool) -> None:
        """Add a moment to the last place of ``moment_names``, or remove the moment."""
        others = tuple(other for other in self.moment_names if other != name)
        self.moment_names = (*others, name) if is_needed else others
        if not self._groups:
            for slot in self._slots:
                slot.set_moments(self.moment_names)


class SGD(FormulaOptimizer):
    """Stochastic gradient descent: with g = dL/dp,   p <- p - lr * g.

    With weight_decay, first   g <- g + weight_decay * p.
    With momentum:   v <- momentum * v + g   p <- p - lr * v, and v = 0 before the first step.
    With nesterov:   v as with momentum,     p <- p - lr * (g + momentum * v).

        >>> p = nn.Parameter(np.array([1.0]))
        >>> optimizer = nn.SGD([p], lr=0.1)
        >>> (p * p).backward()
        >>> optimizer.update()
        >>> p.tolist()
        [0.8]

    Source: Robbins and Monro, A Stochastic Approximation Method, 1951; Polyak, Some Methods of
    Speeding up the Convergence of Iteration Methods, 1964; Sutskever et al., On the Importance of
    Initialization and Momentum in Deep Learning, 2013, in the form of PyTorch.

    Args:
        parameters: as for ``Optimizer``, as are ``lr`` and ``allow_missing``.
        lr: the learning rate. PyTorch's default is 0.001.
        momentum: the factor of the last step's v, at least 0 and less than 1.
        weight_decay: the factor of the parameter in the gradient, at least 0.
        nesterov: look ahead along v; needs momentum.
        allow_missing: skip parameters without a gradient.
    """

    setting_names: tuple[str, ...] = ("lr", "momentum", "weight_decay", "nesterov")
    optional_names = ("weight_decay", "nesterov")

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def check_settings(self) -> None:
        self.weight_decay = self.checked("weight_decay")
        self.nesterov = as_flag("SGD", "nesterov", self.nesterov)
        if self.nesterov and not self.momentum:
            raise ValueError("SGD: nesterov needs a momentum above 0: pass momentum=0.9.")

    @property
    def momentum(self) -> float:
        """The factor of the last step's v. A change between updates is allowed; 0 drops v."""
        return self._momentum

    @momentum.setter
    def momentum(self, momentum: float) -> None:
        for hook in thread_hooks():
            hook.setting_assigned("SGD.momentum")
        self._momentum = checked_number("SGD: momentum", momentum, 0.0, 1.0)
        self.keep_moment("v", self._momentum > 0)

    @property
    def in_numbers(self) -> str:
        """The update of an optimizer without groups, for films."""
        if self._groups or not self._computes_as(SGD):
            return ""
        gradient, momentum = "gradient", f"{self.momentum:g}"
        if self.weight_decay:
            gradient = f"( gradient + {self.weight_decay:g} * before )"
        if not self.momentum:
            return f"before - {self.lr:g} * {gradient}"
        direction = f"( {gradient} + {momentum} * v )" if self.nesterov else "v"
        return f"v = {momentum} * v_old + {gradient}; before - {self.lr:g} * {direction}"

    def formula(self) -> UpdateFunction:
        if self.weight_decay or self.nesterov:
            return DecayedSGDUpdate(self.weight_decay, self.nesterov)
        return MomentumUpdate() if self.momentum else SGDUpdate()


class Adam(FormulaOptimizer):
    """Steps of about lr, by exponentially fading means of the gradient and of its square.

    In step t of a parameter p, with g = dL/dp, and m = v = 0 before the first step:

        m <- b1 * m + (1 - b1) * g                  v <- b2 * v + (1 - b2) * g^2
        p <- p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

        >>> layer = nn.Linear(1, 1)
        >>> optimizer = nn.Adam(layer, lr=0.1)
        >>> F.sum(layer(np.ones((1, 1)))).backward()
        >>> before = layer.bias.item()
        >>> optimizer.update()
        >>> round(before - layer.bias.item(), 4)
        0.1

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
        parameters: Parameters,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.betas = betas
        self.eps = eps
        super().__init__(parameters, lr, allow_missing=allow_missing)

    def check_settings(self) -> None:
        self.betas = self.checked_betas()
        self.eps = self.checked("eps")

    @property
    def in_numbers(self) -> str:
        """The update of an optimizer without groups, for films."""
        return self._in_numbers("before") if self._computes_as(Adam) else ""

    def _in_numbers(self, before: str) -> str:
        counts = {slot.count for slot in self._slots if slot.count}
        if self._groups or len(counts) != 1:
            return ""  # each count has its own corrections
        (b1, b2), count = self.betas, counts.pop()
        means = (
            f"m = {b1:g} * m_old + {1 - b1:g} * gradient; "
            f"v = {b2:g} * v_old + {1 - b2:g} * gradient ^ 2; "
        )
        mean, square = f"( m / {1 - b1**count:.4g} )", f"sqrt ( v / {1 - b2**count:.4g} )"
        return f"{means}{before} - {self.lr:g} * {mean} / ( {square} + {self.eps:g} )"

    def formula(self) -> UpdateFunction:
        return AdamUpdate(self.betas, self.eps)


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
        parameters: Parameters,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        *,
        allow_missing: bool = False,
    ) -> None:
        self.weight_decay = weight_decay
        super().__init__(parameters, lr, betas, eps, allow_missing=allow_missing)

    def check_settings(self) -> None:
        super().check_settings()
        self.weight_decay = self.checked("weight_decay")

    @property
    def in_numbers(self) -> str:
        """The update of an optimizer without groups, for films."""
        before = f"{1 - self.lr * self.weight_decay:.6g} * before"
        return self._in_numbers(before) if self._computes_as(AdamW) else ""

    def formula(self) -> UpdateFunction:
        return AdamUpdate(self.betas, self.eps, self.weight_decay)
