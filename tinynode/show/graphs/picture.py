"""The graph behind Variables, and nets, as a Diagram.

Requirement: ``tn.show.graph(y)`` shows the computation of y. A picture holds texts, no arrays and
no nodes, so it keeps no graph alive and changes no result.

Backward nodes. A function does not record its caller, a user or a ``backward``, so the roots
decide. Nodes behind the roots are forward. Nodes behind gradients alone are backward. Gradients
are the roots in ``gradients``, and each ``grad_var`` of a Variable in the picture. In a net,
operators that read or write a gradient (``x@GRAD``) are backward, and so is every operator of a
gradient net.

Groups. A Parameter with a dotted name belongs to the module with the name before the last dot. So
does a function with the Parameter as input, and every function between two functions of a
module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tinynode.core.variable import Variable
from tinynode.errors import describe, short_name
from tinynode.net import CompiledFunction, NetOp, Operator, Scope, Trace
from tinynode.nn.module import Module
from tinynode.show.graphs.diagram import Diagram
from tinynode.show.graphs.diagram_data import group_name
from tinynode.show.graphs.eager import EagerPicture
from tinynode.show.graphs.folding import fold_repeats, nearest
from tinynode.show.graphs.grouping import spread_groups
from tinynode.show.graphs.net import NetPicture

_NETS = (NetOp, Operator, Trace, CompiledFunction)


class HasMarks(Protocol):
    """What ``graph(..., marks=...)`` takes: a Diagnosis of ``tinynode.diagnose``."""

    def marks(self) -> dict[Any, str]:
        """Words for the boxes of some FunctionNodes and VariableNodes."""


def graph(
    *roots: Any,
    gradients: Sequence[Variable] = (),
    model: Module | None = None,
    scope: Scope | Mapping[str, Any] | None = None,
    limit: int | None = 200,
    fold: bool | None = None,
    direction: str = "down",
    title: str | None = None,
    marks: HasMarks | None = None,
) -> Diagram:
    """A picture of the graph behind Variables, or of nets.

    A notebook shows the picture; ``print`` gives text; ``save("graph.svg")`` writes a file.
    Variables are rounded, functions are boxes. Computations of gradients are dashed
    and have another colour.

    Args:
        roots: Variables; or nets, operators, traces and compiled functions. Of a compiled function
            the picture has the net recorded last, with the gradient net if built. Common nodes of
            several roots are drawn once.
        gradients: results of a backward, such as ``tn.grad`` gives. Nodes behind gradients alone
            are drawn as backward. An ``x.grad_var`` among the roots is recognised.
        model: gives names to parameters, and its modules are drawn as groups.
        scope: for nets: the Variables, for the shapes in the picture.
        limit: the number of boxes to draw, or a few more; None means all.
        fold: draw repeated blocks as a single box. None means: only above the limit.
        direction: ``"down"`` or ``"right"``.
        title: a line above; by default the names of the roots.
        marks: the Diagnosis of ``tinynode.diagnose``: boxes with a finding get a thick red frame
            and the words of the finding. Nets have no marks.

    Raises:
        TypeError: a root is of another type, or nets and Variables are mixed.
        ValueError: there is no root, the limit is below 1, the direction is another, or a compiled
            function was not called yet.
    """
    _check(roots, gradients, limit, direction)
    if roots and isinstance(roots[0], _NETS):
        known = scope if isinstance(scope, Scope) else Scope(scope)
        picture: EagerPicture | NetPicture = NetPicture(roots, known)
    else:
        findings = {} if marks is None else marks.marks()
        picture = EagerPicture(roots, gradients, _names_of(model), findings)
    nodes, edges, notes = picture.nodes, picture.edges, picture.notes
    if fold or (fold is None and limit is not None and len(nodes) > limit):
        nodes, edges = fold_repeats(nodes, edges)
    if limit is not None and len(nodes) > limit:
        nodes, edges, left = nearest(nodes, edges, limit)
        notes = [*notes, f"and {left:,} more before these: graph(..., limit=None) draws all"]
    spread_groups(nodes, edges, None if model is None else _modules_of(model))
    picture.name(nodes)
    if title is None:
        title = picture.title(nodes)
    return Diagram(short_name(title), nodes, edges, notes, direction)


def _check(roots: Sequence[Any], gradients: Sequence[Any], limit: Any, direction: Any) -> None:
    if isinstance(gradients, Variable):
        raise TypeError(
            f"graph: gradients must be a list, got {describe(gradients)}. Write gradients=[gx]."
        )
    if not roots and not gradients:
        raise ValueError("graph: give at least one Variable or net: tinynode.show.graph(y).")
    nets = [isinstance(root, _NETS) for root in roots]
    for position, root in enumerate(roots):
        if not isinstance(root, (Variable, *_NETS)):
            raise TypeError(
                f"graph: argument {position} must be a Variable, a net, an operator, a trace or a "
                f"compiled function, got {describe(root)}."
            )
    if any(nets) and (not all(nets) or gradients):
        raise TypeError("graph: give Variables only or nets only; each makes a picture.")
    for position, gradient in enumerate(gradients):
        if not isinstance(gradient, Variable):
            raise TypeError(
                f"graph: gradients[{position}] must be a Variable, got {describe(gradient)}. Give "
                "x.grad_var, or what tinynode.grad returned."
            )
    if limit is not None and limit < 1:
        raise ValueError(f"graph: limit must be at least 1 or None, got {limit}.")
    if direction not in ("down", "right"):
        raise ValueError(f"graph: direction must be 'down' or 'right', got {direction!r}.")


def _names_of(model: Module | None) -> dict[int, str]:
    """The names of a model's parameters and buffers, by the id of each."""
    if model is None:
        return {}
    if not isinstance(model, Module):
        raise TypeError(f"graph: model must be a tinynode.nn.Module, got {describe(model)}.")
    named: list[tuple[str, Variable]] = [*model.named_parameters(), *model.named_buffers()]
    return {id(value): name for name, value in named}


def _modules_of(model: Module) -> set[str]:
    """The dotted names of the modules in a model."""
    return {group_name(name) for name, _ in model.named_modules()}
