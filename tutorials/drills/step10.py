"""Drills of training that generalises: first values, dropout, weight decay."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients


def _part(work, name):
    return importlib.import_module(f"{work.__name__}.{name}")


def draw_first_values(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "sizes": [int(n) for n in rng.integers(2, 6, 4)],
        "number": float(rng.normal()),
    }


def drill_first_values(work, inputs):
    """he_normal, and Linear with an initializer: values from the seed"""
    nn, initializers = _part(work, "nn"), _part(work, "nn.initializers")
    work.seed(inputs["seed"])
    a, b, c, d = inputs["sizes"]
    found = [initializers.he_normal((a, b)), initializers.he_normal((a, b, c, d))]
    layers = [
        nn.Linear(a, b, initializer=initializers.he_normal),
        nn.Linear(b, c, False, initializer=lambda shape: np.full(shape, inputs["number"])),
        nn.Linear(c, d),
    ]
    return [*found, [[p.name, p.array] for one in layers for p in one.parameters()]]


def draw_dropout(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "x": rng.normal(size=(40, 50)),
        "gy": rng.normal(size=(40, 50)),
        "ratio": float(rng.uniform(0.15, 0.35) + rng.choice([0.0, 0.5])),  # not near a half
    }


def drill_dropout(work, inputs):
    """dropout in training: shares, kept values, gradients, dtypes; the seed fixes the mask"""
    nn, ratio = _part(work, "nn"), inputs["ratio"]
    found, masks = [], []
    for dtype in ("float64", "float32"):
        x, gy = inputs["x"].astype(dtype), inputs["gy"].astype(dtype)
        for function, share in (
            (lambda x: work.dropout(x, ratio), ratio),
            (nn.Dropout(ratio), ratio),
            (nn.Dropout(), 0.5),
            (work.dropout, 0.5),
        ):
            work.seed(inputs["seed"])
            y, gx, given = gradients(work, function, [x], gy)
            kept = y != 0
            masks.append(kept)
            scale = np.asarray(1 / (1 - share), dtype)
            # dropped elements in the form of kept ones: the same values for each mask
            found += [np.where(kept, y, x * scale), np.where(kept, gx, gy * scale), given]
            found += [bool((gx[~kept] == 0).all()), bool(abs(kept.mean() - 1 + share) < 0.08)]
            found += [bool((kept != kept[:1]).any()), bool((kept != kept[:, :1]).any())]
    work.seed(inputs["seed"])
    first, second = (work.dropout(work.Variable(inputs["x"])).array for _ in range(2))
    found += [bool(((first != 0) == masks[-1]).all()), bool((first != second).any())]
    return [*found, nn.Dropout().parameters()]


def drill_evaluation(work, inputs):
    """With config.train False, dropout keeps all; the old value comes back, also after an error"""
    x = work.Variable(inputs["x"])
    layer = _part(work, "nn").Dropout(inputs["ratio"])
    work.seed(inputs["seed"])

    def drops():
        return bool((layer(x).array == 0).any())

    found = [work.config.train]
    with work.using_config("train", False):
        found += [work.config.train, layer(x).array, work.dropout(x, inputs["ratio"]).array]
        try:
            with work.using_config("train", True):
                found += [work.config.train, drops()]
                raise KeyError("as planned")
        except KeyError:
            found += [work.config.train, layer(x).array]
    return [*found, work.config.train, drops()]


draw_evaluation = draw_dropout


def draw_decay(rng):
    return {
        "start": rng.normal(size=(2, 3)),
        "grads": rng.normal(size=(4, 2, 3)),
        "lr": float(rng.uniform(0.01, 0.1)),
        "decay": float(rng.uniform(0.1, 0.9)),
    }


def drill_decay(work, inputs):
    """AdamW, step by step: the decay beside the moments, new arrays, gradients unchanged"""
    nn = _part(work, "nn")
    lr, decay = inputs["lr"], inputs["decay"]
    makers = (
        lambda p: nn.AdamW([p], lr=lr, weight_decay=decay),
        lambda p: nn.AdamW([p], lr, (0.8, 0.9), 1e-4, decay),
        lambda p: nn.AdamW([p]),
    )
    found = []
    for dtype in ("float64", "float32"):
        for maker in makers:
            first = inputs["start"].astype(dtype)
            p = nn.Parameter(first, name="p")
            optimizer = maker(p)
            for grad in inputs["grads"]:
                p.grad = given = grad.astype(dtype)
                optimizer.update()
                found += [p.array.copy(), given]
            found += [first, isinstance(optimizer, nn.Adam)]
    return found
