"""The schema of operators: what a net may say about each of them, in a text and in code.

Requirement: an operator is refused when a text is read or a node is made, not in the middle of a
run. The schema is derived from the function's class. The parameters of the constructor are the
attributes. ``input_counts`` and ``output_counts`` say how many names there are.
"""

from __future__ import annotations

import functools
from typing import Any

from tinynode.errors import NetError, describe
from tinynode.functions.attribute_types import (
    attribute_types,
    exact,
    fits,
    stored_names,
    type_text,
)
from tinynode.habits import closest
from tinynode.net.registry import is_of_tinynode

_OF_ONE = ("tinynode.functions.", "tinynode.net.")
"""The modules whose functions have one input and one output, if they say nothing else."""


def check_attributes(
    type: str, node_class: Any, attrs: dict[str, Any], of_text: bool = False
) -> dict[str, Any]:
    """The attributes of an operator, with numbers as those of Python.

    A class of a user may set attributes in other ways, such as by a decorator: it has no schema.

    Args:
        type: the operator's type.
        node_class: the class of the function.
        attrs: the attributes by name.
        of_text: True if they come from a text, which has limits: see ``attribute_types.fits``.

    Raises:
        NetError: a name is not declared by the constructor, or is missing; or a value is not of
            the declared type, in the declared range, or one of the declared texts.
    """
    if not is_of_tinynode(node_class):
        return attrs
    known = attribute_types(node_class)
    if not known and not attrs:
        return attrs
    for name, value in attrs.items():
        if name not in known:
            raise _unknown(type, name, known)
        if not fits(value, known[name], of_text):
            raise NetError(
                f"{type}: attribute {name} must be {type_text(known[name])}, got "
                f"{describe(value)}. Give another value, or record and save the net anew."
            )
    missing = stored_names(node_class).difference(attrs)
    if missing:
        raise NetError(
            f"{type}: attribute {sorted(missing)[0]} is missing: expected {', '.join(known)}, got "
            f"{', '.join(attrs) or 'none'}. Add the attribute to the text, or save the net anew."
        )
    return {name: exact(value) for name, value in attrs.items()}


def _unknown(type: str, name: str, known: dict[str, Any]) -> NetError:
    close = closest(name, known)
    names = ", ".join(known) or "none"
    hint = f"did you mean {close[0]!r}?" if close else f"it has {names}."
    return NetError(f"{type} has no attribute {name!r}: {hint}")


def check_counts(type: str, node_class: Any, inputs: int, outputs: int) -> None:
    """Compare the numbers of inputs and outputs with those that a function takes and gives.

    Raises:
        NetError: the function takes or gives another number.
    """
    takes, gives = _counts_of(node_class)
    if inputs in takes and outputs in gives:
        return
    for what, counts, got in (("inputs", takes, inputs), ("outputs", gives, outputs)):
        if counts and not _agrees(counts, got):
            raise NetError(
                f"{type}: expected {_counts_text(counts)} {what}, got {got}. Compare the text "
                f"with the docstring of {node_class.__name__}."
            )


@functools.cache
def _counts_of(node_class: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The possible numbers of inputs and of outputs."""
    takes = node_class.input_counts
    gives = node_class.output_counts
    if node_class.__module__.startswith(_OF_ONE):
        takes = takes or ((2,) if node_class.is_broadcasting else (1,))
        gives = gives or (1,)
    return takes, gives


def _agrees(counts: tuple[Any, ...], got: int) -> bool:
    if counts[-1] is Ellipsis:
        return got >= int(counts[0])
    return got in counts


def _counts_text(counts: tuple[Any, ...]) -> str:
    if counts[-1] is Ellipsis:
        return f"at least {counts[0]}"
    return " or ".join(map(str, counts))
