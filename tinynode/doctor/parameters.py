"""Parameters: without a gradient, outside of the optimizer, or without a change.

Requirement: a parameter that is not trained is named with the reason. A frozen parameter
(``requires_grad=False``) is intended, and no finding. Parameters with the same reason are one
finding.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from tinynode.core.variable import Variable
from tinynode.doctor.backward_pass import BackwardPass
from tinynode.doctor.diagnosis import Diagnosis
from tinynode.doctor.findings import Finding
from tinynode.show.graphs.explain import reasons_without_gradient

NamedParameters = Sequence[tuple[str, Variable]]
"""Parameters with the names of messages."""

_NAMED = 6
"""So many parameters are named; further ones are counted."""


def missing_gradients(
    y: Variable, parameters: NamedParameters, found: BackwardPass
) -> list[Finding]:
    """The parameters that get no gradient from y, by reason."""
    by_reason: dict[str, list[tuple[str, Variable]]] = {}
    for name, parameter in parameters:
        if parameter.requires_grad and parameter.node not in found.gradients:
            blocked = found.without.get(parameter.node)
            if blocked:
                labels = ", ".join(dict.fromkeys(function.label for function in blocked))
                reason = f"backward of {labels} gives none."
            else:
                reason = reasons_without_gradient(parameter, y, "the loss")
            by_reason.setdefault(reason, []).append((name, parameter))
    remedy = "Use these parameters in forward, freeze them by requires_grad=False, or remove them."
    return [
        _finding("no gradient", members, f"no gradient: {reason}", remedy)
        for reason, members in by_reason.items()
    ]


def outside_optimizer(parameters: NamedParameters, trained: Sequence[Variable]) -> list[Finding]:
    """The parameters that the optimizer does not know."""
    known = {id(parameter) for parameter in trained}
    members = [(n, p) for n, p in parameters if p.requires_grad and id(p) not in known]
    if not members:
        return []
    remedy = "Give the optimizer the whole model, or freeze the parameter."
    return [_finding("not in the optimizer", members, "a gradient, but no update.", remedy)]


def never_changed(
    parameters: NamedParameters, since: Diagnosis, found: BackwardPass
) -> list[Finding]:
    """The parameters with the values of an earlier diagnosis, despite a gradient."""
    unchanged = since.unchanged()
    members = [(n, p) for n, p in parameters if id(p) in unchanged and p.node in found.gradients]
    if not members:
        return []
    remedy = (
        "Call optimizer.update() after backward. Look whether the optimizer has the parameter: "
        "diagnose(loss, optimizer=optimizer)."
    )
    words = "a gradient, and the values of the earlier diagnosis."
    return [_finding("never changes", members, words, remedy)]


def _finding(kind: str, members: NamedParameters, words: str, remedy: str) -> Finding:
    """A finding on parameters, in the words "<parameters>: <words>"."""
    known = [f"{name} {parameter.shape}" for name, parameter in members]
    more = len(known) - _NAMED
    listed = ", ".join(known[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return Finding(
        kind=kind,
        severity="warning",
        where=", ".join(name for name, _ in members[:_NAMED]) + (" ..." if more > 0 else ""),
        message=f"{listed}: {words}",
        remedy=remedy,
        numbers={"parameters": len(members)},
        about=tuple([weakref.ref(parameter.node) for _, parameter in members]),
    )
