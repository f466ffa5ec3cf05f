"""Large graphs, made small enough to look at.

Requirement: a picture is readable up to about 200 boxes, and real graphs have 100,000 functions.
So repeated blocks are folded: of 40 equal layers the picture has the first and the last, and
between them one box "× 38 more". A graph that is still too large is drawn near the roots only, and
the picture says how many boxes it leaves out.

Functions are listed in the order of their ranks. A repeated block is a stretch of the list equal
to the stretch before. A single box for a stretch causes no cycle: every function that depends on
the stretch comes later in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode, group_path

_LONGEST_BLOCK = 200
_FEWEST_BLOCKS = 4
_MOST_FOLDS = 50
_MOST_LABELS = 4


class Run(NamedTuple):
    """A block of functions, several times in a row.

    Attributes:
        start: the index of the first block's first function.
        length: the number of functions in a block.
        times: the number of blocks.
    """

    start: int
    length: int
    times: int

    @property
    def folded(self) -> int:
        """The number of functions between the first block and the last."""
        return (self.times - 2) * self.length


def fold_repeats(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge]
) -> tuple[list[DiagramNode], list[DiagramEdge]]:
    """The nodes and edges with one box for the middle of each repeated block.

    Two functions are equal if label, phase, findings, and the first facts (shape and dtype) of
    inputs and outputs are equal. Four or more equal blocks in a row are folded; the first and the
    last stay.

    Args:
        nodes: the boxes; a function's rank is not below the ranks of its inputs.
        edges: between Variables and functions.
    """
    functions, codes = _ordered(nodes, edges)
    fold_of: dict[str, DiagramNode] = {}
    for number, run in enumerate(find_runs(codes)):
        first = run.start + run.length
        members = functions[first : first + run.folded]
        fold = _fold(number, members, run)
        fold_of.update((member.id, fold) for member in members)
    return _replaced(nodes, edges, fold_of) if fold_of else (list(nodes), list(edges))


def _ordered(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge]
) -> tuple[list[DiagramNode], list[int]]:
    """The functions by rank, and a code for each: equal functions have equal codes."""
    first_fact = {node.id: node.facts[:1] for node in nodes}
    near: dict[str, tuple[list[tuple[str, ...]], list[tuple[str, ...]]]] = {}
    functions = [node for node in nodes if node.kind == "function"]
    for node in functions:
        near[node.id] = ([], [])
    for edge in edges:
        if edge.target in near:
            near[edge.target][0].append(first_fact[edge.source])
        if edge.source in near:
            near[edge.source][1].append(first_fact[edge.target])
    known: dict[object, int] = {}
    keyed = []
    for index, node in enumerate(functions):
        before, after = near[node.id]
        found = node.facts if "finding" in node.marks else ()
        content = (node.label, node.phase, found, tuple(before), tuple(after))
        keyed.append((node.rank, known.setdefault(content, len(known)), index))
    keyed.sort()
    return [functions[index] for _, _, index in keyed], [code for _, code, _ in keyed]


def find_runs(codes: Sequence[int]) -> list[Run]:
    """The runs of a list, in order and without overlap; long runs are found first."""
    array = numpy.asarray(codes, dtype=numpy.int64)
    waiting = [(0, len(array))]
    found: list[Run] = []
    while waiting and len(found) < _MOST_FOLDS:
        start, stop = waiting.pop()
        run = _longest_run(array[start:stop])
        if run is not None:
            run = Run(run.start + start, run.length, run.times)
            found.append(run)
            waiting += [(start, run.start), (run.start + run.length * run.times, stop)]
    return sorted(found)


def _longest_run(codes: numpy.ndarray) -> Run | None:
    """The run with the most folded functions; of several, the run of the shortest block."""
    best: Run | None = None
    for length in range(1, min(_LONGEST_BLOCK, len(codes) // _FEWEST_BLOCKS) + 1):
        if best is not None and best.folded >= len(codes) - 2 * length:
            break  # longer blocks cannot fold more
        differs = numpy.flatnonzero(codes[length:] != codes[:-length])
        ends = numpy.concatenate(([-1], differs, [len(codes) - length]))
        stretches = numpy.diff(ends) - 1
        longest = int(stretches.argmax())
        times = (int(stretches[longest]) + length) // length
        run = Run(int(ends[longest]) + 1, length, times)
        if times >= _FEWEST_BLOCKS and (best is None or run.folded > best.folded):
            best = run
    return best


def _fold(number: int, members: Sequence[DiagramNode], run: Run) -> DiagramNode:
    """The box in the place of some functions."""
    labels = [member.label for member in members[: min(run.length, _MOST_LABELS)]]
    words = ", ".join(labels) + (", …" if run.length > _MOST_LABELS else "")
    facts = (words, f"{len(members):,} functions")
    phases = {member.phase for member in members}
    phase = phases.pop() if len(phases) == 1 else "forward"
    label = f"\N{MULTIPLICATION SIGN} {run.times - 2:,} more"
    group = common_group([member.group for member in members])
    return DiagramNode(f"o{number}", "fold", label, facts, members[0].rank, phase, group=group)


def common_group(groups: Sequence[str | None]) -> str | None:
    """The innermost group around all of some groups."""
    paths = [group_path(group) for group in set(groups)]
    shared: str | None = None
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        shared = level[0]
    return shared


def _replaced(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge], fold_of: dict[str, DiagramNode]
) -> tuple[list[DiagramNode], list[DiagramEdge]]:
    """Put the folds in the place of the functions and of the Variables between."""
    creators: dict[str, str] = {}
    users: dict[str, list[str]] = {}
    for edge in edges:
        creators[edge.target] = edge.source
        users.setdefault(edge.source, []).append(edge.target)
    hidden: set[str] = set()
    kept: list[DiagramNode] = []
    leaves: dict[str, int] = {}
    drawn: set[str] = set()
    for node in nodes:
        fold = fold_of.get(node.id)
        if fold is not None:
            if fold.id not in drawn:  # in the place of its first function
                drawn.add(fold.id)
                kept.append(fold)
        elif _is_inside(node, creators, users, fold_of):
            hidden.add(node.id)
            if node.id not in creators:
                owner = fold_of[users[node.id][0]].id
                leaves[owner] = leaves.get(owner, 0) + 1
        else:
            kept.append(node)
    for node in kept:
        if node.id in leaves and node.kind == "fold":
            node.facts = (*node.facts, f"{leaves[node.id]:,} leaves")
    return kept, _joined(edges, fold_of, hidden, creators, users)


def _is_inside(
    node: DiagramNode,
    creators: dict[str, str],
    users: dict[str, list[str]],
    fold_of: dict[str, DiagramNode],
) -> bool:
    """True if only folded functions compute and use a Variable."""
    if node.kind != "variable" or "root" in node.marks:
        return False
    used = users.get(node.id, [])
    if node.id in creators:
        return creators[node.id] in fold_of and all(user in fold_of for user in used)
    return bool(used) and all(user in fold_of for user in used)


def _joined(
    edges: Sequence[DiagramEdge],
    fold_of: dict[str, DiagramNode],
    hidden: set[str],
    creators: dict[str, str],
    users: dict[str, list[str]],
) -> list[DiagramEdge]:
    """The remaining edges; several edges between a fold and another box are merged."""
    found: list[DiagramEdge] = []
    between: dict[tuple[str, str], tuple[DiagramEdge, int]] = {}
    for edge in edges:
        source, target = fold_of.get(edge.source), fold_of.get(edge.target)
        if edge.source in hidden:
            continue  # a leaf of a fold, or a Variable already followed from its creator
        if target and fold_of.get(creators.get(edge.source, "")) is target:
            continue  # back into its own fold
        ends = [(source.id if source else edge.source, target.id if target else edge.target)]
        if edge.target in hidden:
            ends = [(ends[0][0], fold_of[user].id) for user in users.get(edge.target, [])]
        elif not source and not target:
            found.append(edge)
            continue
        for pair in dict.fromkeys(ends):
            if pair[0] != pair[1]:
                made = DiagramEdge(*pair, edge.phase)
                made, count = between.get(pair, (made, 0))
                between[pair] = (made, count + 1)
    for made, count in between.values():
        if count > 1:
            made.label = f"\N{MULTIPLICATION SIGN} {count:,}"
        found.append(made)
    return found


def nearest(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge], limit: int
) -> tuple[list[DiagramNode], list[DiagramEdge], int]:
    """The nodes nearest to the roots, with edges, and the number of other nodes.

    A drawn function has all inputs and all unused outputs, so the result may exceed the limit
    by a few nodes.
    """
    before: dict[str, list[str]] = {}
    used: set[str] = set()
    for edge in edges:
        before.setdefault(edge.target, []).append(edge.source)
        used.add(edge.source)
    by_id = {node.id: node for node in nodes}
    wave = [node.id for node in nodes if "root" in node.marks]
    wave = wave or [node.id for node in nodes if node.id not in used]
    kept = dict.fromkeys(wave)
    while wave and len(kept) < limit:
        following: dict[str, None] = {}
        for end in wave:
            if len(kept) >= limit:
                break
            near = [name for name in before.get(end, ()) if name not in kept]
            for name in near:
                if by_id[name].kind != "variable":
                    kept.update(dict.fromkeys(before.get(name, ())))
                    following.update(dict.fromkeys(before.get(name, ())))
            kept.update(dict.fromkeys(near))
            following.update(dict.fromkeys(near))
        wave = list(following)
    for edge in edges:
        if edge.source in kept and edge.target not in used:
            kept[edge.target] = None
    chosen = [node for node in nodes if node.id in kept]
    inner = [edge for edge in edges if edge.source in kept and edge.target in kept]
    for node in chosen:
        if before.get(node.id) and not any(name in kept for name in before[node.id]):
            node.facts = (*node.facts, "its function is left out")
    return chosen, inner, len(nodes) - len(chosen)
