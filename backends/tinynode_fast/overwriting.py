"""Overwriting: the results of a plan in the memory of inputs.

Requirement: a training step needs no second copy of parameters and moments. An optimizer's update
reads the old value of an element, and writes the new value in the same place. So updates run last,
after all other operators, which may fail or read an old value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import ArraySpec, node_class_of
from tinynode_fast.lowering import UPDATES, Action, OpaqueCall, View


def updates_last(operators: Sequence[Operator]) -> tuple[list[Operator], list[Operator]]:
    """The other operators, and the updates whose results no operator reads."""
    read = {name for operator in operators for name in operator.input_names}
    others: list[Operator] = []
    updates: list[Operator] = []
    for operator in operators:
        is_last = node_class_of(operator) in UPDATES and read.isdisjoint(operator.output_names)
        (updates if is_last else others).append(operator)
    return others, updates


def opaque_first(
    actions: Sequence[Action], number: int
) -> tuple[list[Action], list[Action], set[str]]:
    """The first ``number`` actions with the opaque updates, the updates, and the updates' results.

    An opaque update runs as a FunctionNode, makes new arrays, and may fail.
    """
    last: list[Action] = [
        action for action in actions[number:] if not isinstance(action, OpaqueCall)
    ]
    opaque = [action for action in actions[number:] if isinstance(action, OpaqueCall)]
    return [*actions[:number], *opaque], last, {n for action in last for n in action.writes}


def overwritten(
    updates: Sequence[Operator],
    first: Sequence[Action],
    last: Sequence[Action],
    forms: Mapping[str, ArraySpec],
    orders: Collection[str],
    outputs: Collection[str],
    small: Collection[str],
) -> dict[str, str]:
    """The results in the memory of an input, with the name of the input.

    Args:
        updates: the update operators.
        first, last: the actions before the updates, and the actions of the updates.
        forms: shape and dtype of every value.
        orders: the values with another order of memory than C's.
        outputs: the results of the plan.
        small: the inputs copied by the plan; an opaque call may give a view of the copy.
    """
    roots: dict[str, str] = {}
    for action in (*first, *last):
        if isinstance(action, View):
            roots[action.writes[0]] = roots.get(action.reads[0], action.reads[0])
    reads = Counter(roots.get(name, name) for action in last for name in action.reads)
    leaving = {roots.get(name, name) for name in outputs}
    opaque = [action for action in first if isinstance(action, OpaqueCall)]
    seen = {roots.get(name, name) for action in opaque for name in action.reads}
    writers = {name: action for action in last for name in action.writes}
    found = {}
    for operator in updates:
        (p, _, *others), (new, *results) = operator.input_names, operator.output_names
        for read, write in zip((p, *others), (new, *results), strict=False):
            if write == EMPTY or write in orders or forms[read] != forms[write]:
                continue
            is_alone = write in writers and read in writers[write].reads and reads[read] == 1
            if is_alone and read not in leaving and not (read in small and read in seen):
                found[write] = read
    return found
