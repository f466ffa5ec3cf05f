"""Recipes: the part of a film for a replay, beside the values.

Requirement: each step of a film can be computed again after the recording. The film keeps no
Variable, function or array of the program alive. So a recipe has the class of a function, and
copies of the attributes from before forward. Numbers, texts, dtypes and devices are copied, in
lists and dictionaries too. Of an array the recipe has a copy on the host, of a random generator
the state. An attribute of another kind is a reason against a replay.

The key of a recipe is the index of the step in the film. The keeper of the recipes is a hook. The
keeper hears each event just before the recorder, which then adds the step at the film's end.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode.configuration import config
from tinynode.core.backprop import Sweep
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Arrays, Device, find_device, to_host
from tinynode.errors import NonFiniteError, describe
from tinynode.functions.masking import FiniteOperands
from tinynode.interop.old_style import FunctionAdapter
from tinynode.net.program import NetFunction
from tinynode.show.films.nodes import Recording
from tinynode.show.films.values import CELLS
from tinynode.transforms.checkpoint import Checkpoint

Strides: TypeAlias = "tuple[int, ...] | None"
"""The strides of an array in NumPy's memory; None for the order of C, and on other devices."""


class Operand(NamedTuple):
    """An input of a function, beside the value."""

    device: Device
    requires_grad: bool
    strides: Strides


class ApplicationRecipe(NamedTuple):
    """Of a forward step.

    Attributes:
        cls: the class of the function, or of the old-style Function.
        attributes: copies of the function's attributes, as before forward.
        operands: the inputs.
        settings: the thread's own settings.
        reason: a reason against a replay, or "".
    """

    cls: type
    attributes: dict[str, Any]
    operands: tuple[Operand, ...]
    settings: dict[str, Any]
    reason: str

    def function(self) -> FunctionNode:
        """A new function of the class with the same attributes, not applied yet."""
        new: Any = object.__new__(self.cls)
        vars(new).update({name: _made_anew(value) for name, value in self.attributes.items()})
        if isinstance(new, FunctionNode):
            return new
        adapter: FunctionAdapter = new.node
        adapter.own(new)
        return adapter


class BackwardRecipe(NamedTuple):
    """Of a backward step.

    Attributes:
        targets: the positions of the inputs with a gradient.
        has_graph: True if backward recorded a graph.
        is_lazy: the function's ``lazy_grad_sum``.
        is_masked: the function's ``is_masked`` before the step.
        keeps_zeros: True if the function had the hook of a mask behind.
        strides: of the gradients of the outputs.
    """

    targets: tuple[int, ...]
    has_graph: bool
    is_lazy: bool
    is_masked: bool
    keeps_zeros: bool
    strides: tuple[Strides, ...]


class StartRecipe(NamedTuple):
    """Of the start of a backward pass."""

    devices: tuple[Device, ...]


class EndRecipe(NamedTuple):
    """Of the end of a backward pass.

    Attributes:
        grads: for each result the index of the ``grad`` before, or None, and the device.
        is_backward: False for ``tn.grad``: a result may be a sum with ``grad_inputs``.
    """

    grads: tuple[tuple[int | None, Device], ...]
    is_backward: bool


class SlotRecipe(NamedTuple):
    """Of a parameter in an update.

    Attributes:
        group: the number of the parameter's group.
        number: 1 for the first update of the parameter.
        device: the parameter's device.
        is_frozen: True if the parameter does not change.
    """

    group: int
    number: int
    device: Device
    is_frozen: bool


class UpdateRecipe(NamedTuple):
    """Of an update: the settings of each group, and the parameters with a gradient."""

    cls: type
    groups: tuple[dict[str, Any], ...]
    slots: tuple[SlotRecipe, ...]
    reason: str

    def optimizer(self, group: int) -> Any:
        """An optimizer without parameters, with the settings of a group."""
        new: Any = object.__new__(self.cls)
        vars(new).update({name: _made_anew(value) for name, value in self.groups[group].items()})
        return new


# --- copies of attributes ------------------------------------------------------------------------


class _KeptArray(NamedTuple):
    """An array among the attributes, as a copy on the host."""

    device: Device
    host: Any


class _KeptGenerator(NamedTuple):
    """A random generator among the attributes: the state before the draw."""

    kind: type[numpy.random.BitGenerator]
    state: Any

    def generator(self) -> numpy.random.Generator:
        """A new generator, which draws the same numbers."""
        bits = self.kind()
        bits.state = self.state
        return numpy.random.Generator(bits)


_GENERATORS = {
    *(numpy.random.PCG64, numpy.random.PCG64DXSM, numpy.random.Philox),
    *(numpy.random.SFC64, numpy.random.MT19937),
}
"""The bit generators of NumPy."""


class _CopyError(Exception):
    """The attribute cannot be copied."""


_FIXED: frozenset[type] = frozenset(
    {int, float, complex, bool, str, bytes, slice, type, range, Device}
    | {type(None), type(Ellipsis), types.BuiltinFunctionType, numpy.ufunc}
)
"""The types of constant values without an array inside."""


def _copies(attributes: Mapping[str, Any], most: float) -> tuple[dict[str, Any], str]:
    """Copies of attributes, and a reason if an attribute cannot be copied.

    Args:
        attributes: the attributes by name.
        most: the largest number of elements of an array to copy.
    """
    found = {}
    for name, value in attributes.items():
        try:
            found[name] = value if type(value) in _FIXED else _copy(value, most)
        except _CopyError as error:
            return {}, f"its attribute {name} is {error}"
    return found, ""


def _copy(value: Any, most: float) -> Any:
    """A constant value, or a copy.

    Raises:
        _CopyError: a part is of another kind.
    """
    if type(value) in _FIXED or isinstance(value, type | numpy.dtype | numpy.generic):
        return value
    if isinstance(value, tuple):
        items = [_copy(item, most) for item in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        if type(value) is tuple:
            return tuple(items)
    if type(value) is list:
        return [_copy(item, most) for item in value]
    if type(value) is dict:
        return {_copy(key, most): _copy(item, most) for key, item in value.items()}
    if type(value) in (set, frozenset):
        return {_copy(item, most) for item in value}
    if _is_constant(value):
        return value
    if type(value) is numpy.random.Generator and type(value.bit_generator) in _GENERATORS:
        return _KeptGenerator(type(value.bit_generator), copy.deepcopy(value.bit_generator.state))
    device = None if isinstance(value, Variable) else find_device(value)
    if device is None or "batched" in device.backend.capabilities:
        raise _CopyError(f"of class {type(value).__name__}, which a film does not copy")
    host = to_host(value)
    if host.size > most:
        raise _CopyError(f"{describe(value)}: record(arrays=True) keeps large arrays")
    return _KeptArray(device, host.copy())


def _is_constant(value: Any) -> bool:
    """True for a dtype of an array library, and for a function without values inside."""
    if isinstance(value, types.FunctionType):
        return value.__closure__ is None and not value.__defaults__ and not value.__kwdefaults__
    return type(value).__name__ in ("dtype", "DType")


def _made_anew(value: Any) -> Any:
    """A copied value for one more function, which may change it."""
    if isinstance(value, _KeptArray):
        return value.device.from_host(value.host.copy())
    if isinstance(value, _KeptGenerator):
        return value.generator()
    if type(value) is tuple:
        return tuple([_made_anew(item) for item in value])
    if type(value) is list:
        return [_made_anew(item) for item in value]
    if type(value) is dict:
        return {key: _made_anew(item) for key, item in value.items()}
    return set(value) if type(value) is set else value


def _strides(array: Any) -> Strides:
    is_plain = not isinstance(array, numpy.ndarray) or array.flags.c_contiguous
    return None if is_plain else array.strides


# --- the keeper ----------------------------------------------------------------------------------

_OF_FUNCTION = ("local_hooks_or_none", "_owned_adapter", "_adapter")
"""The attributes of a new function, except the constants."""

_OF_OPTIMIZER = ("_slots", "_groups", "lr_owner")
"""The attributes of an optimizer, except the settings."""


class _RunningSweep:
    """A running sweep: the recipe of the present step, and each ``grad`` of a reached leaf."""

    def __init__(self) -> None:
        self.step: BackwardRecipe | None = None
        self.masks = (False, False)
        self.grads: dict[VariableNode, int | None] = {}


class RecipeKeeper(FunctionHook):
    """Writes a recipe for each step of this thread into a film.

    Args:
        film: gets the recipes. The film's values keep each ``grad`` of a leaf.
    """

    def __init__(self, film: Recording) -> None:
        self.film = film
        self.name = f"recipes of film {id(film)}"
        self._elements = float("inf") if film.values.keeps_whole else float(CELLS)
        self._reasons: dict[type, str] = {}
        self._begun: dict[int, tuple[dict[str, Any], str]] = {}
        self._sweeps: list[_RunningSweep] = []
        self._update: UpdateRecipe | None = None

    def forget(self) -> None:
        """Drop all references to functions; the film is over."""
        self._begun.clear()
        self._sweeps.clear()

    def _keep(self, recipe: Any, after: int = 0) -> None:
        """Keep the recipe of the next step, or of a step after the next."""
        self.film.recipes[len(self.film.steps) + after] = recipe

    # --- forward ---------------------------------------------------------------------------------

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        """Copy the attributes, which forward may change."""
        if self._sweeps and not config.enable_backprop:
            return  # no step
        cls = type(function)
        reason = self._reasons.get(cls)
        if reason is None:
            reason = self._reasons[cls] = _why_not(function)
        if reason:
            self._begun[id(function)] = {}, reason
            return
        owner = function.function if isinstance(function, FunctionAdapter) else function
        own = vars(owner)
        if own:
            own = {name: value for name, value in own.items() if name not in _OF_FUNCTION}
        self._begun[id(function)] = _copies(own, self._elements)

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """A function was applied: the recipe of a forward step."""
        if self._sweeps and function.inputs is None:
            return
        attributes, reason = self._begun.pop(id(function), ({}, "hooks did not see its start"))
        operands: list[Operand] = []
        for x in inputs:
            device = x.device
            if "batched" in device.backend.capabilities:
                reason = "inside of vmap, an array has a hidden axis"
                operands.clear()
                break
            operands.append(Operand(device, x.requires_grad, _strides(x.raw)))
        cls = type(function.user_function)
        settings = _copies(vars(config), 0)[0] if vars(config) else {}
        self._keep(ApplicationRecipe(cls, attributes, tuple(operands), settings, reason))

    def failed(self, function: FunctionNode, direction: str, error: BaseException) -> None:
        """A forward or backward ended with an exception: no step."""
        self._begun.pop(id(function), None)
        if direction == "backward" and self._sweeps:
            self._sweeps[-1].step = None

    # --- backward --------------------------------------------------------------------------------

    def sweep_began(self, sweep: Sweep) -> None:
        """The recipe of the start of a backward pass."""
        self._sweeps.append(_RunningSweep())
        self._keep(StartRecipe(tuple([gy.device for gy in sweep.table.gradients.values()])))

    def before_backward(self, sweep: Sweep, function: FunctionNode) -> None:
        """Note the masks behind the function, and the ``grad`` of leaves."""
        if not self._sweeps:
            return
        running = self._sweeps[-1]
        hooks = (function.local_hooks_or_none or {}).values() if function.is_masked else ()
        running.masks = function.is_masked, any(isinstance(h, FiniteOperands) for h in hooks)
        for node in function.inputs or ():
            variable = node.get_variable_or_none()
            grad = None if variable is None else variable.grad_var
            if grad is not None and node not in running.grads and node.creator_node is None:
                running.grads[node] = self.film.values.add(grad.raw)

    def after_backward(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        """Note the recipe; the step ends later."""
        if self._sweeps:
            strides = tuple([None if gy is None else _strides(gy.raw) for gy in grad_outputs])
            self._sweeps[-1].step = BackwardRecipe(
                target_input_indexes,
                config.enable_backprop,
                function.lazy_grad_sum,
                *self._sweeps[-1].masks,
                strides,
            )

    def after_accumulate(self, sweep: Sweep, function: FunctionNode) -> None:
        """The recipe of a backward step."""
        if self._sweeps and self._sweeps[-1].step is not None:
            self._keep(self._sweeps[-1].step)
            self._sweeps[-1].step = None

    def sweep_ended(self, sweep: Sweep, error: BaseException | None) -> None:
        """The recipe of the end of a backward pass."""
        if not self._sweeps:
            return
        running = self._sweeps.pop()
        is_cut = isinstance(error, NonFiniteError) and running.step is not None
        if is_cut:
            self._keep(running.step)
        living = [node for node in sweep.results if node.get_variable_or_none() is not None]
        grads = tuple([(running.grads.get(node), node.device) for node in living])
        self._keep(EndRecipe(grads, sweep.wanted is None), int(is_cut))

    # --- optimizers ------------------------------------------------------------------------------

    def update_requested(self, optimizer: Any, parameters: Sequence[Any]) -> bool:
        """Note the settings of an optimizer that is about to update parameters."""
        groups, slots, reason = [], [], ""
        for number, group in enumerate(optimizer.groups):
            settings = {n: value for n, value in vars(group).items() if n not in _OF_OPTIMIZER}
            copied, told = _copies(settings, self._elements)
            groups.append(copied)
            reason = reason or told
            for slot in group.slots:
                p = slot.parameter
                if p.grad_var is not None:
                    slots.append(SlotRecipe(number, slot.count + 1, p.device, not p.requires_grad))
        self._update = UpdateRecipe(type(optimizer), tuple(groups), tuple(slots), reason)
        return False

    def updated(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        """The recipe of an update."""
        if self._update is not None:
            self._keep(self._update)
            self._update = None


def _why_not(function: FunctionNode) -> str:
    """The reason against a replay of a function, or ""."""
    if function.is_collective:
        return "all processes must run it together"
    if function.crosses_vmap:
        return "inside of vmap, an array has a hidden axis"
    if isinstance(function, NetFunction):
        return "a compiled function runs a net of functions"
    if isinstance(function, Checkpoint):
        return "a checkpoint runs other functions"
    return ""
