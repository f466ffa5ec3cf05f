"""Drills of the bytes of a step, and of checkpoints."""

import importlib
import weakref

import numpy as np

from tinynode_course.drilling import Quiet


def _module(work, name):
    return importlib.import_module(f"{work.__name__}.{name}")


def draw_bytes(rng):
    arrays = [
        rng.normal(size=int(n)).astype(str(rng.choice(["float64", "float32"])))
        for n in rng.integers(4, 40, 4)
    ]
    return {"arrays": arrays, "picks": [int(n) for n in rng.integers(0, 4, 6)]}


def drill_bytes(work, inputs):
    """bytes_of: arrays, views, and views of views"""
    bytes_of = _module(work, "memory").bytes_of
    arrays = inputs["arrays"]
    picked = [arrays[n] for n in inputs["picks"]]
    views = [array[1:][1:] for array in picked[:2]] + [
        array.reshape(-1, 1).T for array in picked[2:]
    ]
    tails = [array[2:] for array in arrays]
    return [
        bytes_of(arrays),
        bytes_of(tails),
        bytes_of(picked),
        bytes_of(views),
        bytes_of(views + picked),
    ]


def draw_steps(rng):
    sizes = [int(n) for n in rng.integers(2, 9, 4)]
    return {
        "x": rng.normal(size=(sizes[0], sizes[1])),
        "w": rng.normal(size=(sizes[2], sizes[1])),
        "v": rng.normal(size=(sizes[3], sizes[2])),
        "kind": str(rng.choice(["Adam", "AdamW"])),
        "dtype": str(rng.choice(["float64", "float32"])),
    }


def drill_steps(work, inputs):
    """step_bytes of two optimizers, with a parameter that has no gradient"""
    step_bytes = _module(work, "memory").step_bytes
    nn = _module(work, "nn")
    found = []
    for kind in ("SGD", inputs["kind"]):
        arrays = [inputs[name].astype(inputs["dtype"]) for name in ("w", "v", "x")]
        optimizer = getattr(nn, kind)([nn.Parameter(array) for array in arrays])
        for number in range(2):
            optimizer.cleargrads()
            w, v, unused = optimizer.parameters
            x = work.Variable(inputs["x"].astype(inputs["dtype"]), requires_grad=False)
            y = work.linear(work.tanh(work.linear(x, w)), v)
            loss = work.sum(work.square(work.relu(y)))
            loss.backward()
            if number == 0:
                unused.grad = unused.array * 0
                optimizer.update()
        counted = step_bytes(loss, optimizer)
        found.append(
            [counted[name] for name in ("weights", "gradients", "moments", "activations")]
        )
    return found


def _function(work, words):
    def function(x, w):
        y = work.linear(x, w)
        for word in words:
            y = getattr(work, word)(y)
        return y

    return function


def draw_checkpoint(rng):
    return {
        "words": [str(word) for word in rng.choice(["tanh", "sin", "square"], 4)],
        "x": rng.normal(size=(5, 3)),
        "w": rng.normal(size=(3, 3)),
        "gy": rng.normal(size=(5, 3)),
        "seed": int(rng.integers(0, 10000)),
    }


def drill_checkpoint(work, inputs):
    """The values and gradients of two checkpoints in a row, twice, and the generator afterwards"""
    checkpoint = _module(work, "functions.checkpoint").checkpoint
    found = _twice(work, checkpoint, _function(work, inputs["words"]), inputs)
    noisy = _function(work, [*inputs["words"][:2], "dropout", *inputs["words"][2:], "dropout"])
    mine = _twice(work, checkpoint, noisy, inputs)
    plain = _twice(work, _call, noisy, inputs)  # the masks are the student's
    return [*found, [bool(np.allclose(*pair)) for pair in zip(mine, plain, strict=True)]]


def _call(function, *xs):
    return function(*xs)


def _twice(work, checkpoint, function, inputs):
    """Values, gradients of two passes, and numbers of the generator after each."""
    random = _module(work, "random")
    work.seed(inputs["seed"])
    x, w = work.Variable(inputs["x"].copy()), work.Variable(inputs["w"].copy())
    y = checkpoint(function, checkpoint(function, x, w), w)
    found = [y.array.copy(), random.get_generator().random(2)]
    for _ in range(2):
        y.grad = inputs["gy"].copy()
        y.backward()
        found += [x.grad.copy(), w.grad.copy(), random.get_generator().random(2)]
    return [*found, x.array, w.array]


def draw_kept(rng):
    return {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=(2, 3))}


def drill_kept(work, inputs):
    """The calls of the function, its arrays after each, and the retained inputs"""
    checkpoint = _module(work, "functions.checkpoint").checkpoint
    inner, found = [], []

    def function(x, w):
        y = work.tanh(work.linear(x, w))
        inner.append(weakref.ref(y.array))
        return work.tanh(y)

    with Quiet():
        x, w = work.Variable(inputs["x"].copy()), work.Variable(inputs["w"].copy())
        y = checkpoint(function, x, w)
        kept = y.creator_node.get_retained_inputs()
        found += [[one() is None for one in inner], len(kept)]
        found += [kept[0] is x.array, kept[1] is w.array]
        y.grad = np.ones(y.shape)
        y.backward()
        found += [[one() is None for one in inner], x.grad]
    return found
