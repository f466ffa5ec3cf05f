"""The order of boxes in the layers of a picture.

Requirement: few arrows cross, and the boxes of a module stay side by side. The inputs of a
function lie in the order of the arguments, unless arrows would cross.

The first order comes from a walk along the arguments. Sweeps then go down and up the layers: a box
takes the mean slot of its neighbours in the layer before. The order with the fewest crossings is
kept. At the end, misplaced arguments are exchanged. Crossings are counted as inversions, with a
tree of sums.

Sources: K. Sugiyama, S. Tagawa and M. Toda, 1981; the count is that of W. Barth, M. Juenger and
P. Mutzel, "Simple and efficient bilayer cross counting", 2002.
"""

from __future__ import annotations

import itertools

from tinynode.show.graphs.layout_grid import Grid

_ROUNDS = 8
_SMALL = 300  # up to so many boxes and bends, neighbours are swapped
_TWO_STARTS = 1000  # up to so many, the sweeps begin from two orders
_ARGUMENTS = 20  # of a function, kept in order
_NARROW = 60  # up to so many boxes and bends in a layer, arguments are exchanged at the end


def put_in_order(grid: Grid) -> None:
    """Put each layer into an order with few crossings; of equal orders, by the arguments."""
    is_small = len(grid.layer) <= _SMALL
    starts = [_from_arguments(grid)]
    if len(grid.layer) <= _TWO_STARTS:
        starts.append(_from_sources(grid))
    best: list[list[int]] = []
    least: tuple[int, ...] = ()
    for start in starts:
        for row in grid.rows:
            _sort(grid, row, start)
        for round_number in range(_ROUNDS + 1):
            if round_number:
                is_downwards = round_number % 2 == 1
                _sweep_order(grid, grid.rows[:: 1 if is_downwards else -1], is_downwards)
                if is_small:
                    _swap_neighbours(grid)
            cost = _cost(grid, grid.rows)
            if not least or cost < least:
                least, best = cost, [list(row) for row in grid.rows]
            if cost[0] == 0:
                break
        if not any(least):
            break
    grid.rows = best
    _exchange_arguments(grid)


def _from_arguments(grid: Grid) -> list[float]:
    """The positions in a walk against the arrows, from the results, in the arguments' order."""
    results = [item for item in range(len(grid.layer)) if not grid.down[item]]
    return _depth_first(results, grid.up)


def _from_sources(grid: Grid) -> list[float]:
    """The positions in a walk along the arrows, from the sources."""
    sources = [item for item in range(len(grid.layer)) if not grid.up[item]]
    return _depth_first(sources, grid.down)


def _depth_first(starts: list[int], neighbours: list[list[int]]) -> list[float]:
    """The position of each box and bend in a depth-first walk."""
    met = [-1.0] * len(neighbours)
    count = 0
    for start in starts:
        waiting = [start]
        while waiting:
            item = waiting.pop()
            if met[item] < 0:
                met[item] = count
                count += 1
                waiting.extend(reversed(neighbours[item]))
    return met


def _sweep_order(grid: Grid, rows: list[list[int]], downwards: bool) -> None:
    """Sort each of some layers by the mean slot of the neighbours in the layer before."""
    neighbours = grid.up if downwards else grid.down
    others = grid.down if downwards else grid.up
    slot = _slots(grid)
    for row in rows:
        wanted = {}
        for item in row:
            # a leaf has no neighbour above: its neighbours below decide
            near = neighbours[item] or others[item]
            found = [slot[other] for other in near]
            wanted[item] = sum(found) / len(found) if found else slot[item]
        _sort(grid, row, wanted)
        for number, item in enumerate(row):
            slot[item] = (number + 0.5) / len(row)


def _slots(grid: Grid) -> list[float]:
    """The slot of each box and bend: its position in its layer, between 0 and 1."""
    slot = [0.0] * len(grid.layer)
    for row in grid.rows:
        for number, item in enumerate(row):
            slot[item] = (number + 0.5) / len(row)
    return slot


def _sort(grid: Grid, row: list[int], wanted: dict[int, float] | list[float]) -> None:
    """Sort a layer, with the members of each group side by side."""
    if not any(grid.groups[item] for item in row):
        row.sort(key=wanted.__getitem__)
        return
    members: dict[str, list[float]] = {}
    for item in row:
        for name in grid.groups[item]:
            members.setdefault(name, []).append(wanted[item])
    keys = {}
    for item in row:
        path = [(sum(members[n]) / len(members[n]), n) for n in grid.groups[item]]
        keys[item] = [*path, (wanted[item], "")]
    row.sort(key=keys.__getitem__)


def _swap_neighbours(grid: Grid) -> None:
    """Swap two neighbours of a layer wherever a swap saves crossings."""
    slot = _slots(grid)
    for _ in range(4):
        swapped = False
        for row in grid.rows:
            for i in range(len(row) - 1):
                left, right = row[i], row[i + 1]
                if grid.groups[left] == grid.groups[right] and _saves(grid, slot, left, right):
                    row[i], row[i + 1] = right, left
                    slot[left], slot[right] = slot[right], slot[left]
                    swapped = True
        if not swapped:
            return


def _saves(grid: Grid, slot: list[float], left: int, right: int) -> bool:
    """True if the arrows of two neighbours cross less after a swap."""
    change = 0
    for neighbours in (grid.up, grid.down):
        for a in neighbours[left]:
            for b in neighbours[right]:
                change += (slot[b] > slot[a]) - (slot[b] < slot[a])
    return change < 0


def crossings_between(grid: Grid, above: list[int], below: list[int]) -> int:
    """The crossings between two layers: inversions, counted with a tree of sums."""
    if len(above) == 1 or len(below) == 1:
        return 0
    index = {item: i for i, item in enumerate(below)}
    size = len(below) + 1
    tree = [0] * (size + 1)
    seen = total = 0
    for item in above:
        targets = sorted(index[other] for other in grid.down[item])
        for target in targets:
            i, before = target + 1, 0
            while i > 0:
                before += tree[i]
                i -= i & -i
            total += seen - before
        for target in targets:
            i = target + 1
            while i <= size:
                tree[i] += 1
                i += i & -i
        seen += len(targets)
    return total


# --- the order of the arguments ------------------------------------------------------------------


def _exchange_arguments(grid: Grid) -> None:
    """Exchange a function's misplaced arguments, if the exchange adds no crossings."""
    for number, row in enumerate(grid.rows[1:]):
        above = grid.rows[number]
        if len(above) > _NARROW:
            continue
        for target in list(row):
            for first, second in itertools.combinations(grid.up[target][:_ARGUMENTS], 2):
                if above.index(first) > above.index(second):
                    _exchange(grid, number, second, first)


def _exchange(grid: Grid, number: int, left: int, right: int) -> None:
    """Exchange two boxes of a layer, with the boxes' groups, if the exchange lowers the cost.

    A small picture gets a second trial: sweeps adapt the other layers to the exchange.
    """
    row = grid.rows[number]
    near = grid.rows[max(number - 1, 0) : number + 2]
    before, cost = list(row), _cost(grid, near)
    a, b = _stretch(grid, row, left, right), _stretch(grid, row, right, left)
    changed = row[b.start : b.stop] + row[a.stop : b.start] + row[a.start : a.stop]
    row[a.start : b.stop] = changed
    if _cost(grid, near) < cost:
        return
    if len(grid.layer) <= _SMALL:
        exchanged, row[:] = list(row), before
        kept, cost = [list(row) for row in grid.rows], _cost(grid, grid.rows)
        row[:] = exchanged
        _sweep_order(grid, grid.rows[number + 1 :], downwards=True)
        _sweep_order(grid, grid.rows[:number][::-1], downwards=False)
        if _cost(grid, grid.rows) < cost:
            return
        for number, old in enumerate(kept):
            grid.rows[number][:] = old
    row[:] = before


def _stretch(grid: Grid, row: list[int], item: int, other: int) -> range:
    """The positions of a box and of its outermost group without the other box."""
    start = row.index(item)
    stop = start + 1
    own = [name for name in grid.groups[item] if name not in grid.groups[other]]
    if own:
        while start > 0 and own[0] in grid.groups[row[start - 1]]:
            start -= 1
        while stop < len(row) and own[0] in grid.groups[row[stop]]:
            stop += 1
    return range(start, stop)


def _cost(grid: Grid, rows: list[list[int]]) -> tuple[int, int, int]:
    """The number of crossings, of misplaced boxes, and of misplaced boxes and bends.

    A pair of arguments is misplaced if the later argument lies first. Boxes come before bends: in
    ``x * y + x``, the product decides on the order of x and y.
    """
    slot = {item: i for row in rows for i, item in enumerate(row)}
    crossings = boxes = both = 0
    for above, below in itertools.pairwise(rows):
        crossings += crossings_between(grid, above, below)
        is_label = grid.layer[above[0]] in grid.label_layers
        for target in below if len(above) > 1 else ():
            for a, b in itertools.combinations(grid.up[target][:_ARGUMENTS], 2):
                if slot[a] > slot[b]:
                    both += 1
                    boxes += is_label or not (grid.is_bend(a) or grid.is_bend(b))
    return crossings, boxes, both
