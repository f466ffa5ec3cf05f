"""The module of each box of a picture.

Requirement: a picture shows a model's layers as groups. A function that reads a parameter belongs
to the parameter's module. So do the functions between two functions of a module: a softmax
between two layers of an attention block.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode, group_path
from tinynode.show.graphs.folding import common_group


def spread_groups(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge], modules: set[str] | None
) -> None:
    """Give groups to forward functions and to outputs, if leaves have groups.

    Args:
        nodes: the boxes. Leaves have groups; functions without a group get a group.
        edges: between the boxes.
        modules: the names of all groups; None means every prefix of a dotted name.
    """
    if not any(node.group for node in nodes):
        return
    by_id = {node.id: node for node in nodes}
    before: dict[str, list[DiagramNode]] = {node.id: [] for node in nodes}
    after: dict[str, list[DiagramNode]] = {node.id: [] for node in nodes}
    for edge in edges:
        before[edge.target].append(by_id[edge.source])
        after[edge.source].append(by_id[edge.target])
    ordered = sorted(nodes, key=_order)
    computed = [node for node in ordered if before[node.id] and node.phase == "forward"]
    for node in computed:
        if node.kind == "function":
            groups = [x.group for x in before[node.id] if x.group and not before[x.id]]
            node.group = node.group or _known(common_group(groups), modules)
    _fill_between(computed, before, after, modules)
    for node in computed:
        if node.kind == "variable":
            node.group = before[node.id][0].group
    for node in nodes:
        if not before[node.id]:
            node.group = _known(node.group, modules)


def _order(node: DiagramNode) -> tuple[int, bool]:
    """By rank; of equal rank, Variables before functions."""
    return node.rank, node.kind != "variable"


def _known(group: str | None, modules: set[str] | None) -> str | None:
    """The innermost module among a group and the outer groups."""
    found = [name for name in group_path(group) if modules is None or name in modules]
    return found[-1] if found else None


def _fill_between(
    computed: Sequence[DiagramNode],
    before: dict[str, list[DiagramNode]],
    after: dict[str, list[DiagramNode]],
    modules: set[str] | None,
) -> None:
    """Give functions without a group the common group of functions before and behind.

    Each group is a bit of an integer. A box collects the bits of all boxes before, and the bits of
    all boxes behind. Bits in both collections are the groups with members on both sides.
    """
    names: dict[str, int] = {}
    own: dict[str, int] = {}
    for node in computed:
        bits = 0
        for name in group_path(node.group):
            if modules is None or name in modules:
                bits |= 1 << names.setdefault(name, len(names))
        own[node.id] = bits
    above = _collected(computed, before, own)
    below = _collected(computed[::-1], after, own)
    listed = list(names)
    for node in computed:
        both = above[node.id] & below[node.id]
        if node.kind == "variable" or not both:
            continue
        found = [name for i, name in enumerate(listed) if both >> i & 1]
        inner = max(found, key=_depth)
        if _depth(inner) > _depth(node.group or ""):
            node.group = inner


def _collected(
    ordered: Sequence[DiagramNode], near: dict[str, list[DiagramNode]], own: dict[str, int]
) -> dict[str, int]:
    """The bits of each node, with the bits of all nodes on a side."""
    found: dict[str, int] = {}
    for node in ordered:
        bits = own[node.id]
        for other in near[node.id]:
            bits |= found.get(other.id, 0)
        found[node.id] = bits
    return found


def _depth(group: str) -> int:
    return len(group_path(group))
