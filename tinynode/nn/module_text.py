"""The printed text of a Module: its layers, nested, by the names of the attributes.

    Net(
        (encoder): Sequential(
            (0): Linear(64, 32)
            (1): relu
        )
        (heads): list(
            (0-1): 2 x Linear(32, 10)
        )
        (last): the same as heads[0]
    )  # 2740 parameters

Requirement: the text reads in any state of the module, also half made, in its own constructor.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tinynode.errors import dtype_name, short_name
from tinynode.nn.parameter import Buffer, Parameter

INDENT = "    "
DEEPEST = 30
"""The levels of layers in a text; dots stand for deeper ones."""


class Wrapper:
    """Base class of wrappers of functions: a wrapped Module is part of the model.

    Attributes:
        function: a Module, or any function.
    """

    function: Any


class Described:
    """Base class of Module, with the printed text.

    Attributes:
        one_line: True if the text names the settings alone, and no layers inside.
    """

    one_line = False

    def extra_repr(self) -> str:
        """The settings in the printed text, such as ``3, bias=False``; a subclass overrides it."""
        return ""

    def named_members(self) -> list[tuple[Any, Any]]:
        """The attributes by name; a Sequential has its layers by index."""
        return list(vars(self).items())

    def __repr__(self) -> str:
        return text_of(self)


@dataclass
class _Place:
    """A module, array, function or container in a model, with its place in the text.

    Attributes:
        value: the module, array, function or container.
        name: the attribute, key or index.
        parent: the part around this one.
        depth: the number of parts around this one.
        text: the text, once known; an empty text is left out.
        members: the parts inside, in order.
    """

    value: Any
    name: Any = ""
    parent: _Place | None = None
    depth: int = 0
    text: str = ""
    members: list[_Place] = field(default_factory=list)

    @property
    def is_function(self) -> bool:
        """True for a plain function among layers."""
        layers_and_more: Any = Described | Parameter | Buffer | list | tuple | dict
        return not isinstance(self.value, layers_and_more)

    @property
    def path(self) -> str:
        """The code behind the name of the model, such as ``heads[0]``."""
        names: list[str] = []
        part = self
        while part.parent is not None:
            is_attribute = isinstance(part.parent.value, Described) and isinstance(part.name, str)
            names.append(f".{part.name}" if is_attribute else f"[{part.name!r}]")
            part = part.parent
        return "".join(reversed(names)).removeprefix(".")


def text_of(value: Any) -> str:
    """The text of a module or a container of modules, with the number of the parameters."""
    parts = _parts(value)
    for part in reversed(parts):  # the members of a part stand behind the part
        part.text = part.text or _joined(part)
    text = parts[0].text or f"{type(value).__name__}()"
    parameters = {id(p.value): p.value for p in parts if isinstance(p.value, Parameter)}
    count = sum(parameter.size for parameter in parameters.values())
    plural = "" if count == 1 else "s"
    return f"{text}  # {count} parameter{plural}" if count and "\n" in text else text


def _parts(value: Any) -> list[_Place]:
    """All parts of a value, each part before its members. Nothing is entered twice."""
    found: list[_Place] = []
    firsts: dict[int, _Place] = {}
    waiting = [_Place(value)]
    while waiting:
        part = waiting.pop()
        first = firsts.setdefault(id(part.value), part)
        if first is part:
            found.append(part)
            part.text = _own_text(part.value) if part.parent else ""
            part.members = [_member(part, *member) for member in _members_of(part.value)]
            waiting += reversed(part.members)
        elif isinstance(part.value, Described | Parameter | Buffer):
            part.text = f"the same as {first.path or 'the whole'}"
        elif callable(part.value):
            part.text = _own_text(part.value)
    return found


def _member(part: _Place, name: Any, value: Any) -> _Place:
    """A member of a part; a compiled layer is shown as the layer."""
    while isinstance(value, Wrapper):
        value = value.function
    return _Place(value, name, part, part.depth + 1)


def _members_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """The members that may be part of the text, by attribute, key or index."""
    kinds: Any = Described | Parameter | Buffer | Wrapper | list | tuple | dict
    members: Any = ()
    if isinstance(value, Described):
        members = value.named_members()
    elif isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list | tuple):
        members = enumerate(value)
    for name, member in members:
        is_attribute = isinstance(name, str) and isinstance(value, Described)
        if isinstance(member, kinds) or (callable(member) and not is_attribute):
            yield name, member


def _own_text(value: Any) -> str:
    """The text of a function, of an array, and of a module with a ``__repr__`` of its own."""
    if isinstance(value, Parameter | Buffer):
        return f"{type(value).__name__} {value.shape}, {dtype_name(value.dtype)}, {value.device}"
    if isinstance(value, Described):
        is_own = type(value).__repr__ is not Described.__repr__
        return repr(value) if is_own else ""
    is_function = callable(value)
    return str(getattr(value, "__name__", None) or repr(value)) if is_function else ""


def _joined(part: _Place) -> str:
    """The text of a module or a container, from the texts of the members."""
    if part.depth > DEEPEST:
        return ""
    value = part.value
    members = [member for member in part.members if member.text]
    settings = ""
    if isinstance(value, Described):
        settings = _settings(value)
        if settings:  # they tell the shapes
            members = [m for m in members if not isinstance(m.value, Parameter | Buffer)]
        members = [] if value.one_line else members
    elif all(m.is_function for m in members):
        return ""
    title = type(value).__name__
    if part.depth == DEEPEST and part.members:
        return f"{title}({settings or '...'})"
    if not members:
        return f"{title}({settings})"
    lines = [*settings.splitlines(), *_lines(members)]
    inside = "\n".join(lines).replace("\n", f"\n{INDENT}")
    return f"{title}(\n{INDENT}{inside}\n)"


def _lines(members: list[_Place]) -> Iterator[str]:
    """The members' names and texts; equal neighbours by index share a line."""
    for _, group in itertools.groupby(members, _key):
        equal = list(group)
        first, last, count = equal[0], equal[-1], len(equal)
        if count == 1:
            yield f"({short_name(str(first.name))}): {first.text}"
        else:
            yield f"({first.name}-{last.name}): {count} x {first.text}"


def _key(member: _Place) -> Any:
    """Equal for members that share a line."""
    return member.text if isinstance(member.name, int) else id(member)


def _settings(module: Described) -> str:
    """The settings of a module; dots while the constructor has not set them yet."""
    try:
        return module.extra_repr()
    except (AttributeError, LookupError):
        return "..."
