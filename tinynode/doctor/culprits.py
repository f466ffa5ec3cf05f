"""The functions of a graph with a wrong backward, in the order of forward.

Requirement: a wrong function in the middle of a deep model is named, not the model. Each function
is checked alone, by ``node_check``. A class is named once: the first function, and the number of
the others.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.doctor.backward_pass import undisturbed
from tinynode.doctor.findings import Finding
from tinynode.doctor.naming import LineHook, Names, line_of_call, place_of_backward
from tinynode.doctor.node_check import NodeCheck, check_node
from tinynode.doctor.replay import NodeArrays
from tinynode.errors import number_text
from tinynode.show.graphs.text import functions_behind


class BackwardChecks:
    """The checks of the functions of a graph.

    Args:
        functions: the functions to check, in the order of forward.
        values: the values of the graph's nodes.
        trusted: classes that are not checked.
        limit: the number of functions to check; None means all.

    Attributes:
        checked: the number of checked functions.
        unchecked: for each reason, the labels of the functions that were not checked.
        wrong: the checks with a wrong gradient.
    """

    def __init__(
        self,
        functions: Sequence[FunctionNode],
        values: NodeArrays,
        trusted: Collection[type] = (),
        limit: int | None = None,
    ) -> None:
        self.checked = 0
        self.unchecked: dict[str, list[str]] = {}
        self.wrong: list[NodeCheck] = []
        for number, function in enumerate(functions):
            if limit is not None and number >= limit:
                self._skip(function, f"above the limit of {limit}")
            elif isinstance(function.user_function, tuple(trusted)):
                self._skip(function, "trusted")
            else:
                self._check(function, values)

    def _skip(self, function: FunctionNode, reason: str) -> None:
        self.unchecked.setdefault(reason, []).append(function.label)

    def _check(self, function: FunctionNode, values: NodeArrays) -> None:
        seen = values.inputs(function)
        arrays = []
        for node, array in zip(function.inputs or (), seen, strict=True):
            arrays.append(values.stand_in(node) if array is None else array)
        found = check_node(function, arrays)
        if found.unchecked:
            self._skip(function, found.unchecked)
            return
        if found.is_wrong and any(array is None for array in seen) and not _is_certain(found):
            self._skip(function, "arrays were freed")
            return
        self.checked += 1
        if found.is_wrong:
            self.wrong.append(found)

    def findings(self, names: Names) -> list[Finding]:
        """A finding for each class with a wrong backward."""
        by_class: dict[type, list[NodeCheck]] = {}
        for check in self.wrong:
            by_class.setdefault(type(check.function.user_function), []).append(check)
        return [_finding(checks, names) for checks in by_class.values()]


def _is_certain(check: NodeCheck) -> bool:
    """True if a mismatch on stand-ins is a mistake of backward.

    A function of tinynode may expect inputs that fit each other, as stand-ins do not. Tests prove
    these functions.
    """
    return type(check.function.user_function).__module__.partition(".")[0] != "tinynode"


def _finding(checks: list[NodeCheck], names: Names) -> Finding:
    """The finding for the functions of a class; the first function is named."""
    first, others = checks[0], len(checks) - 1
    function = first.function
    where = names.function(function)
    parts, numbers = [], {}
    for slope in first.slopes:
        name = names.input((function.inputs or ())[slope.input])
        parts.append(
            f"for input {slope.input} ({name}) the slope is {number_text(slope.actual)} by "
            f"backward, {number_text(slope.expected)} by central differences"
        )
        numbers[f"backward {slope.input}"] = slope.actual
        numbers[f"difference {slope.input}"] = slope.expected
    if first.error is not None:
        parts.append(f"backward raises {type(first.error).__name__}: {first.error}")
    more = f" {others} more of the class {'is' if others == 1 else 'are'} wrong." if others else ""
    place = place_of_backward(function)
    written = f" ({place})" if place else ""
    return Finding(
        kind="wrong backward",
        severity="error",
        where=where,
        message=f"{where}: {'; '.join(parts)}.{more}",
        remedy=(
            f"Correct {type(function.user_function).__name__}.backward{written}. If the gradient "
            "differs on purpose, give trusted=[the class]."
        ),
        numbers=numbers,
        line=line_of_call(function),
        mark="wrong backward",
        about=tuple([weakref.ref(check.function) for check in checks]),
    )


def blame(call: Callable[[], Sequence[Variable]]) -> list[str]:
    """A line for each class with a wrong backward behind the results of ``call``.

    ``gradient_check`` adds the lines to the errors. Without a wrong class, a line says so.
    """
    with LineHook():
        nodes = [y.node for y in call()]
    functions = functions_behind(nodes, differentiable=True)
    with undisturbed():
        checks = BackwardChecks(functions, NodeArrays(functions_behind(nodes)))
    found = checks.findings(Names(functions, None))
    if not found:
        return [
            f"No culprit: of {checks.checked} functions checked alone, each is right. Look for "
            "x.array and detach(), which cut the graph."
        ]
    lines = []
    for finding in found:
        called = f" Called at {finding.line}." if finding.line else ""
        lines.append(f"Culprit: {finding.message}{called} {finding.remedy.partition('. ')[0]}.")
    return lines
