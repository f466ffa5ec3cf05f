"""Finding: one fault of a model. Layer: the norms of one layer.

Requirement: a finding names the function or the parameter, gives the numbers, and says what to do.
A finding keeps no graph alive: the node is held weakly.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, field
from typing import Any

from tinynode.errors import number_text

SEVERITIES = ("error", "warning", "note")
"""``error``: a value or a gradient is wrong. ``warning``: training suffers. ``note``: to know."""


@dataclass
class Finding:
    """One fault.

    Attributes:
        kind: a short name, such as ``"wrong backward"`` or ``"dead ReLU"``.
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        where: the function, the parameter or the layer.
        message: one sentence with the numbers.
        remedy: the next thing to try.
        numbers: the numbers of the sentence, by name.
        line: the line of user code that called the function, as ``file:line``; "" if unknown.
        mark: the words of the mark in pictures.
        about: weak references to the FunctionNodes or VariableNodes.
    """

    kind: str
    severity: str
    where: str
    message: str
    remedy: str
    numbers: dict[str, float] = field(default_factory=dict)
    line: str = ""
    mark: str = ""
    about: tuple[weakref.ref[Any], ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        called = f" Called at {self.line}." if self.line else ""
        return f"{self.severity}: {self.kind}. {self.message}{called}\n{self.remedy}"


@dataclass
class Layer:
    """The gradient of a layer: of all its parameters together.

    Attributes:
        name: the name of the module, or of the function that uses the parameters.
        parameters: the names of the parameters.
        size: the number of elements.
        gradient: the norm of the gradient.
        weight: the norm of the parameters.
        update: the norm of the optimizer's next update; None without an optimizer.
        about: weak references to the nodes of the parameters.
    """

    name: str
    parameters: list[str]
    size: int
    gradient: float
    weight: float
    update: float | None = None
    about: tuple[weakref.ref[Any], ...] = field(default=(), repr=False, compare=False)

    @property
    def per_element(self) -> float:
        """The root of the mean square of the gradient."""
        return self.gradient / math.sqrt(max(self.size, 1))

    @property
    def update_ratio(self) -> float | None:
        """The norm of the update beside the norm of the weights; None if unknown."""
        return self.update / self.weight if self.update is not None and self.weight else None


def layer_rows(layers: list[Layer]) -> list[list[str]]:
    """The rows of the table of layers; the first row has the titles."""
    with_updates = any(layer.update_ratio is not None for layer in layers)
    titles = ["layer", "gradient", "weight", *(["update / weight"] if with_updates else [])]
    rows = [titles]
    for layer in layers:
        row = [layer.name, number_text(layer.gradient), number_text(layer.weight)]
        if with_updates:
            ratio = layer.update_ratio
            row.append("" if ratio is None else number_text(ratio))
        rows.append(row)
    return rows
