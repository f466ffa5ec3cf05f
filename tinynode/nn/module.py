"""Module: the base class of layers and models, with parameters.

Requirement: a user writes a model as a plain class. The constructor assigns Parameters, Buffers
and Modules to attributes, and ``forward`` computes the outputs. Nothing is registered: each method
walks the present attributes, in the order of assignment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Never, Self

from tinynode.core.conversion import as_flag, assign
from tinynode.core.hooks import thread_hooks
from tinynode.devices import Device, get_device, to_host
from tinynode.errors import StateError, describe, unknown_keywords
from tinynode.habits import missing_attribute
from tinynode.nn.checks import RefusesKeywords
from tinynode.nn.layer_notes import note_layer
from tinynode.nn.module_text import Described
from tinynode.nn.module_text import Wrapper as Wrapper
from tinynode.nn.parameter import Buffer, Parameter, assign_gradient, fresh_copy, moved
from tinynode.nn.state import State, checked_state


class Module(Described, RefusesKeywords):
    """Base class of layers and models.

    Parameters, Buffers and Modules are found in attributes, and in lists, tuples and dicts:

        class TwoLayers(nn.Module):
            def __init__(self):
                self.layers = [nn.Linear(64, 32), nn.Linear(32, 10)]

            def forward(self, x):
                hidden, output = self.layers
                return output(relu(hidden(x)))

        TwoLayers().named_parameters()[0][0]        # 'layers.0.weight'

    ``print(model)`` shows the layers inside. A subclass may override ``extra_repr``, the settings
    in this text.

    Attributes:
        training: True for training, if ``config.train`` is True as well. Dropout and batch
            normalisation differ in training and evaluation.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            """The error for a wrong name; Python asks only for names that do not exist."""
            known = () if name[0] == "_" else dir(self)
            raise missing_attribute("model", name, known, title=type(self).__name__)

    @property
    def training(self) -> bool:
        """True if the module behaves as in training, False if as in evaluation."""
        for hook in thread_hooks():
            hook.training_read(self)
        return bool(vars(self).get("training", True))

    @training.setter
    def training(self, training: bool) -> None:
        vars(self)["training"] = training

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the outputs. A subclass overrides ``forward``."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward: define forward(self, x) in the class."
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        for hook in thread_hooks():
            hook.module_called(self)
        try:
            return self.forward(*inputs, **options)
        except Exception as error:
            with contextlib.suppress(Exception):  # the error itself counts
                note_layer(error, self, self._walk(as_places=True))
            raise

    def named_parameters(self) -> list[tuple[str, Parameter]]:
        """The parameters with dotted names, in the order of assignment.

        A Parameter with several names comes once, under the first name.
        """
        return [(name, value) for name, value in self._walk() if isinstance(value, Parameter)]

    def named_buffers(self) -> list[tuple[str, Buffer]]:
        """The buffers with dotted names, in the order of assignment, each once."""
        return [(name, value) for name, value in self._walk() if isinstance(value, Buffer)]

    def modules(self) -> list[Module]:
        """This module and all modules inside, each once."""
        return [value for _, value in self._walk() if isinstance(value, Module)]

    def _walk(self, *, as_places: bool = False) -> list[tuple[str, Any]]:
        """Every module, parameter and buffer with a dotted name, each once.

        Args:
            as_places: give places such as ``layers[0].weight``, in place of dotted names.
        """
        found: list[tuple[str, Any]] = []
        seen: set[int] = set()
        waiting: list[tuple[str, Any]] = [("", self)]
        while waiting:
            name, value = waiting.pop()
            while isinstance(value, Wrapper):  # a compiled layer has the names of the layer
                value = value.function
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Module | Parameter | Buffer):
                found.append((name, value))
            children = reversed(members_of(value))
            if as_places and not isinstance(value, Module):
                waiting += [(f"{name}[{key!r}]", child) for key, child in children]
                continue
            start = f"{name}." if name else ""
            waiting += [(f"{start}{key}", child) for key, child in children]
        return found

    def train(self, training: bool = True) -> Self:
        """Set training mode for this module and all modules inside; returns the module."""
        training = as_flag(f"{type(self).__name__}.train", "training", training)
        for module in self.modules():
            module.training = training
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and all modules inside; returns the module."""
        return self.train(False)

    def freeze(self, *names: str) -> Self:
        """Train the parameters no further: no gradient is computed for them. Returns the module.

        A frozen parameter has ``requires_grad`` False. It stays in ``state_dict``, and optimizers
        leave it as it is. Buffers, such as running statistics, follow ``train`` and ``eval``.

            model.encoder.freeze()                  # all of a layer
            model.freeze("encoder", "head.bias")    # names of layers and of parameters
            model.freeze("*.bias")                  # patterns, as for file names

        Args:
            names: dotted names of parameters or of modules, and patterns with ``*``; none for all.

        Raises:
            StateError: a name fits no parameter; nothing is frozen.
        """
        for parameter in self._chosen("freeze", names):
            parameter.requires_grad = False
        return self

    def unfreeze(self, *names: str) -> Self:
        """Let frozen parameters train again; returns the module.

        Args:
            names: as for ``freeze``.

        Raises:
            StateError: a name fits no parameter; nothing is changed.
        """
        for parameter in self._chosen("unfreeze", names):
            parameter.requires_grad = True
        return self

    def _chosen(self, method: str, names: tuple[str, ...]) -> list[Parameter]:
        """The parameters with the names, or inside of modules with the names."""
        every = self.named_parameters()
        if not names:
            return [p for _, p in every]
        found: dict[int, Parameter] = {}
        for pattern in names:
            if not isinstance(pattern, str):
                raise TypeError(
                    f"{type(self).__name__}.{method}: expected names, got {describe(pattern)}. "
                    f"A layer has the method too: model.layer.{method}()."
                )
            fitting = [p for name, p in every if _fits(name, pattern)]
            if not fitting:
                raise StateError(
                    f"{type(self).__name__}.{method}: no parameter has the name {pattern!r}. "
                    f"{_cure([name for name, _ in every], pattern)}"
                )
            found.update((id(p), p) for p in fitting)
        return list(found.values())

    def _state(self) -> list[tuple[str, Parameter | Buffer]]:
        return [(name, v) for name, v in self._walk() if isinstance(v, Parameter | Buffer)]

    def _state_by_name(self, method: str) -> dict[str, Parameter | Buffer]:
        """Parameters and buffers by dotted name.

        Raises:
            StateError: two arrays have one name.
        """
        state = self._state()
        named = dict(state)
        if len(named) < len(state):
            found = self._walk(as_places=True)
            places = [place for place, v in found if isinstance(v, Parameter | Buffer)]
            first: dict[str, str] = {}
            for (name, _), place in zip(state, places, strict=True):
                if first.setdefault(name, place) is not place:
                    raise StateError(
                        f"{type(self).__name__}.{method}: two arrays have the name {name}: "
                        f"{first[name]} and {place}. Give one of them another key."
                    )
        return named

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module, with the name "", and all modules inside with dotted names, each once."""
        return [(name, value) for name, value in self._walk() if isinstance(value, Module)]

    def parameters(self) -> list[Parameter]:
        """The parameters, each once, in the order of assignment."""
        return [parameter for _, parameter in self.named_parameters()]

    def cleargrads(self) -> None:
        """Set every parameter's gradient to None; needed before each backward."""
        for parameter in self.parameters():
            parameter.cleargrad()

    def zero_grad(self, **unknown: Never) -> None:
        """``cleargrads()``, by PyTorch's name."""
        if unknown:
            raise unknown_keywords("zero_grad", unknown)
        self.cleargrads()

    def state_dict(self) -> State:
        """Host copies of the arrays of parameters and buffers, by name.

        Raises:
            StateError: two arrays have one name, such as those of the keys ``1`` and ``"1"``.
        """
        state = self._state_by_name("state_dict")
        return {name: to_host(p.array).copy() for name, p in state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy arrays, such as ``state_dict`` or ``nn.load`` gives, into parameters and buffers.

        Raises:
            StateError: a name, a shape or a dtype differs, or two arrays have one name; the module
                is unchanged.
        """
        own = self._state_by_name("load_state_dict")
        expected = {name: to_host(p.array) for name, p in own.items()}
        checked = checked_state(f"{type(self).__name__}.load_state_dict", state, expected)
        for name, parameter in own.items():
            device = parameter.device
            assign(parameter, fresh_copy(checked[name], device), device)

    def to_device(self, device: str | Device) -> Self:
        """Move parameters, gradients and buffers, in place; returns the module.

        Raises:
            DeviceError: there is no such device; the module is unchanged.
        """
        target = get_device(device)
        parameters = [p for _, p in self._state() if p.device is not target]
        arrays = [moved(p.array, target) for p in parameters]
        gradients = [None if p.grad is None else moved(p.grad, target) for p in parameters]
        for parameter, array, gradient in zip(parameters, arrays, gradients, strict=True):
            parameter.cleargrad()
            assign(parameter, array, target)
            if gradient is not None:
                assign_gradient(parameter, gradient, target)
        return self


def _cure(names: list[str], pattern: str) -> str:
    """What to write in place of a name that fits no parameter."""
    dotted = pattern.replace("[", ".").replace("]", "")
    for other in (dotted, f"*.{dotted}"):
        if any(_fits(name, other) for name in names):
            return f"Write {other!r}."
    known = ", ".join(names[:3]) or "none"
    return f"The names begin with {known}: see named_parameters()."


def _fits(name: str, pattern: str) -> bool:
    """True if the pattern is for a parameter's name, or for a module around the parameter."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")


def members_of(value: Any) -> list[tuple[Any, Any]]:
    """The direct members of a module or a container, by attribute, key or index."""
    if isinstance(value, Module):
        return list(vars(value).items())
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list | tuple) else []
