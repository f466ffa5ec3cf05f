"""The order of boxes in the layers of a picture.

Requirement: few arrows cross, and the boxes of a module stay side by side. Sweeps go down and up
the layers: a box takes the mean slot of its neighbours in the layer before. The order with the
fewest crossings is kept. Crossings are counted as inversions, with a tree of sums.

Sources: K. Sugiyama, S. Tagawa and M. Toda, 1981; the count is that of W. Barth, M. Juenger and
P. Mutzel, "Simple and efficient bilayer cross counting", 2002.
"""

from __future__ import annotations

from tinynode.show.layout_grid import Grid

_ROUNDS = 8
_SMALL = 300  # up to so many boxes and bends, neighbours are swapped as well


def put_in_order(grid: Grid) -> None:
    """Put each layer into an order with few crossings."""
    by_first_use = _depth_first(grid)
    best: list[list[int]] = []
    fewest = -1
    for row in grid.rows:
        _sort(grid, row, {item: float(by_first_use[item]) for item in row})
    for round_number in range(_ROUNDS):
        _sweep_order(grid, downwards=round_number % 2 == 0)
        if len(grid.layer) <= _SMALL:
            _swap_neighbours(grid)
        crossings = count_crossings(grid)
        if fewest < 0 or crossings < fewest:
            fewest, best = crossings, [list(row) for row in grid.rows]
        if fewest == 0:
            break
    grid.rows = best


def _depth_first(grid: Grid) -> list[int]:
    """The position of each box and bend in a depth-first walk along the arrows."""
    met = [-1] * len(grid.layer)
    count = 0
    for start in range(len(grid.layer)):
        waiting = [start] if grid.layer[start] == 0 or not grid.up[start] else []
        while waiting:
            item = waiting.pop()
            if met[item] < 0:
                met[item] = count
                count += 1
                waiting.extend(reversed(grid.down[item]))
    return met


def _sweep_order(grid: Grid, downwards: bool) -> None:
    """Sort each layer by the mean slot of the neighbours in the layer before."""
    rows = grid.rows if downwards else grid.rows[::-1]
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


def _sort(grid: Grid, row: list[int], wanted: dict[int, float]) -> None:
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


def count_crossings(grid: Grid) -> int:
    """The number of crossings of arrows: inversions, counted with a tree of sums."""
    total = 0
    index = {item: i for row in grid.rows for i, item in enumerate(row)}
    for number, row in enumerate(grid.rows[1:]):
        above = grid.rows[number]
        size = len(row) + 1
        tree = [0] * (size + 1)
        seen = 0
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
