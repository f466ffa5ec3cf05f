"""The parameters of an optimizer, checked and named; in groups, if so given.

Requirement: a wrong argument is refused by the constructor, and the message names the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tinynode.core.variable import Variable
from tinynode.errors import OperandError, describe, dtype_name
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter

Parameters: TypeAlias = Module | Iterable[Variable] | Iterable[Mapping[str, Any]]
"""A Module, Parameters, or groups: dictionaries with ``"parameters"`` and settings."""


class ParameterGroup(NamedTuple):
    """A group of parameters.

    Attributes:
        parameters: the parameters with names.
        settings: the group's own settings; None for parameters without groups.
    """

    parameters: list[tuple[str, Variable]]
    settings: dict[str, Any] | None


def named_groups(
    optimizer: str, given: Parameters, settings: tuple[str, ...]
) -> list[ParameterGroup]:
    """The groups; parameters without groups are a single group, whose settings are None.

    Args:
        optimizer: the name of the optimizer's class, for messages.
        given: the argument of the optimizer.
        settings: the names of the settings that a group may have.

    Raises:
        TypeError: a group lacks ``"parameters"``, or has a setting of another name.
        ValueError: a parameter is in two groups.
    """
    entries: Any = given if isinstance(given, Module | Variable) else list(given)
    if not isinstance(entries, list) or not any(isinstance(one, Mapping) for one in entries):
        return [ParameterGroup(named_parameters(optimizer, entries), None)]
    groups: list[ParameterGroup] = []
    first: dict[int, int] = {}
    start = 0
    for number, entry in enumerate(entries):
        title = f"{optimizer}: group {number}"
        parameters, own = _parts(title, entry, settings)
        named = named_parameters(title, parameters)
        start, named = _distinct(number, start, parameters, named)
        for name, p in named:
            if first.setdefault(id(p), number) != number:
                raise ValueError(
                    f"{title} has the parameter {parameter_title(name, p)}, which group "
                    f"{first[id(p)]} has too. Give each parameter to a single group."
                )
        groups.append(ParameterGroup(named, own))
    return groups


def _distinct(
    number: int, start: int, given: Any, named: list[tuple[str, Variable]]
) -> tuple[int, list[tuple[str, Variable]]]:
    """Distinct names: a list's indexes go on from ``start``, a Module's begin with the number."""
    if isinstance(given, Module):
        return start, [(f"{number}.{name}", p) for name, p in named]
    return start + len(named), [(str(start + i), p) for i, (_, p) in enumerate(named)]


def _parts(title: str, entry: Any, settings: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
    """The parameters of a group, and the settings."""
    if not isinstance(entry, Mapping):
        raise TypeError(
            f'{title} must be a dictionary, as the others: {{"parameters": [...], "lr": 0.01}}, '
            f"got {describe(entry)}."
        )
    own = dict(entry)
    keys = [key for key in ("parameters", "params") if key in own]
    if len(keys) != 1:
        raise TypeError(f'{title} must have "parameters", a Module or a list of Parameters.')
    parameters = own.pop(keys[0])
    unknown = [name for name in own if name not in settings]
    if unknown:
        raise TypeError(
            f"{title} has the unknown setting {unknown[0]!r}. The settings are "
            f"{', '.join(settings)}."
        )
    return parameters, own


def named_parameters(
    optimizer: str, parameters: Module | Iterable[Variable]
) -> list[tuple[str, Variable]]:
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
    if not isinstance(p, Variable) or p.raw is None:
        found = "an empty Variable" if isinstance(p, Variable) else describe(p)
        raise OperandError(
            f"{optimizer}: parameter {name} must be a Parameter, got {found}. "
            "Give model.parameters()."
        )
    is_frozen = isinstance(p, Parameter) and not p.requires_grad  # it may train again later
    if is_frozen or (p.requires_grad and p.creator_node is None):
        return
    why, cure = "was computed by a function", "Give the leaves of its graph."
    if not p.requires_grad:
        why, cure = "requires no gradient", "Make it with requires_grad=True, or leave it out."
    raise OperandError(
        f"{optimizer}: parameter {parameter_title(name, p)} {why}: only leaves that require a "
        f"gradient can be trained. {cure}"
    )


def parameter_title(name: str, p: Variable) -> str:
    """A parameter for messages: name or index, own name, shape, dtype and device."""
    own = f" {p.name!r}" if p.name and name.isdigit() else ""
    return f"{name}{own} (shape {p.shape}, {dtype_name(p.dtype)}, on {p.device})"
