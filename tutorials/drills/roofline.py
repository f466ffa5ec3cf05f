"""Drills of the roofline: limits, tiles, the model of a cache, and products in blocks."""


def draw_limits(rng):
    return {
        "pairs": [[float(x) for x in rng.uniform(1.0, 90.0, 2)] for _ in range(4)],
        "intensities": [float(x) for x in rng.uniform(0.01, 20.0, 6)],
        "tiles": [[int(x) for x in rng.integers(1, 40, 2)] for _ in range(6)],
    }


def drill_limits(work, inputs):
    """roof and ridge of several machines, and the bytes of tiles"""
    found = []
    for peak, bandwidth in inputs["pairs"]:
        found.append(work.ridge(peak, bandwidth))
        found += [
            work.roof(x * peak / bandwidth / 10, peak, bandwidth) for x in inputs["intensities"]
        ]
    for rows, columns in inputs["tiles"]:
        found += [work.bytes_per_flop(rows, columns), work.bytes_per_flop(rows, columns, 4)]
    return found


def draw_lines(rng):
    rows = [[int(x) for x in 8 * rng.integers(0, 60, 40)] for _ in range(6)]
    return {"rows": rows, "capacities": [int(x) for x in rng.integers(1, 7, 6)]}


def drill_lines(work, inputs):
    """lines_loaded of random reads, and of reads in order"""
    found = []
    for addresses, capacity in zip(inputs["rows"], inputs["capacities"], strict=True):
        for line in (16, 32, 64):
            found.append(work.lines_loaded(list(addresses), capacity, line))
        found.append(work.lines_loaded(iter(sorted(addresses)), capacity))
    return found


def draw_blocks(rng):
    cases = []
    for _ in range(6):
        m, length, n = (int(x) for x in rng.integers(1, 8, 3))
        dtype = str(rng.choice(["float64", "float32"]))
        a, b = rng.normal(size=(m, length)), rng.normal(size=(length, n))
        cases.append([a.astype(dtype), b.astype(dtype), int(rng.integers(1, 5))])
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(7, 3))
    return {"cases": [*cases, [a.astype("float32"), b.astype("float32"), 2]]}


def drill_blocks(work, inputs):
    """product_in_blocks: values, the blocks in any order, and no input changes"""
    found = []
    for a, b, size in inputs["cases"]:
        seen = []

        def multiply(x, y, seen=seen):
            seen.append([*x.shape, *y.shape])
            return x @ y

        first, second = a.copy(), b.copy()
        y = work.product_in_blocks(first, second, size, multiply)
        found += [list(y.shape), str(y.dtype), y, sorted(seen), first, second]
    return found
