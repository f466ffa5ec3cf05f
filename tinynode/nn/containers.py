"""ModuleList and ModuleDict: PyTorch's names for a list and a dict of layers.

A Module finds layers in plain lists and dicts too: ``self.layers = [nn.Linear(2, 2)]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never

from tinynode.errors import describe
from tinynode.nn.module import Module
from tinynode.nn.module_text import text_of


class ModuleList(list[Any]):
    """A list of layers; the names of the parameters start with the place, ``0.weight``.

    Args:
        layers: Modules, or functions.

    Raises:
        TypeError: a layer cannot be called.
    """

    def __init__(self, layers: Iterable[Any] = ()) -> None:
        super().__init__(layers)
        for place, layer in enumerate(self):
            check_layer("ModuleList", place, layer)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            """The error for a wrong name; Python asks only for names that do not exist."""
            raise no_model("ModuleList", name)

    def __repr__(self) -> str:
        return text_of(self)


class ModuleDict(dict[str, Any]):
    """A dict of layers; the names of the parameters start with the key, ``key.weight``.

    Args:
        layers: Modules, or functions, by name.

    Raises:
        TypeError: a layer cannot be called.
    """

    def __init__(self, layers: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__(layers)
        for key, layer in self.items():
            check_layer("ModuleDict", key, layer)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            """The error for a wrong name; Python asks only for names that do not exist."""
            raise no_model("ModuleDict", name)

    def __repr__(self) -> str:
        return text_of(self)


def no_model(container: str, name: str) -> AttributeError:
    """The error for a name that a container has not; a method of a Module has a cure."""
    text = f"{container!r} object has no attribute {name!r}"
    if hasattr(Module, name):
        text += (
            ": the container is no Module. Assign it to an attribute of a Module, which has "
            f"{name}; nn.Sequential(*layers) is a Module, too."
        )
    return AttributeError(text, name=name, obj=None)


def check_layer(container: str, key: Any, layer: Any, hint: str = "") -> None:
    """Refuse a layer that cannot be called, and a class in place of a layer."""
    if not callable(layer) or isinstance(layer, type):
        raise TypeError(
            f"{container}: layer {key!r} must be a Module or a function, got {describe(layer)}."
            f"{hint}"
        )
