"""Drills of backward by hand: each operation multiplies by its derivative."""

NAMES = ("exp", "square", "negative", "sin")


def draw_derivatives(rng):
    return {"x": rng.normal(size=(2, 3)), "gy": rng.normal(size=(2, 3))}


def drill_derivatives(work, inputs):
    """backward of each operation: gy times the derivative, and no input changes"""
    found = []
    for dtype in ("float64", "float32"):
        for name in NAMES:
            x, gy = inputs["x"].astype(dtype), inputs["gy"].astype(dtype)
            y = getattr(work, name)(work.Variable(x))
            value = y.array.copy()
            grads = y.creator_node.backward((0,), (gy,))
            grad = grads[0].copy()
            found += [name, value, type(grads).__name__, grad, x, gy, y.array]
    return found


def draw_chain(rng):
    words = [str(rng.choice(NAMES)) for _ in range(4)]
    return {"words": words, "x": rng.uniform(-0.5, 0.5, 3), "gy": rng.normal(size=3)}


def drill_chain(work, inputs):
    """A chain, backward by hand: the product of the derivatives"""
    y = work.Variable(inputs["x"])
    empty = y.grad is None
    for word in inputs["words"]:
        y = getattr(work, word)(y)
    found = []
    g, creator = inputs["gy"], y.creator_node
    while creator is not None:
        (g,) = creator.backward((0,), (g,))
        found.append(g.copy())
        creator = creator.inputs[0].creator_node
    return [empty, y.array, found]
