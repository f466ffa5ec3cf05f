"""Drills of training: two losses, two optimizers, the losses of ten steps."""

import importlib

import numpy as np

from tinynode_course.drilling import raised


def _nn(work):
    return importlib.import_module(f"{work.__name__}.nn")


def draw_losses(rng):
    n, classes = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    labels = rng.integers(0, classes, n)
    return {
        "x": rng.normal(size=(n, classes)),
        "labels": labels,
        "t": rng.normal(size=(n, classes)),
        "g": float(rng.uniform(0.5, 2)),
    }


def drill_losses(work, inputs):
    """The two losses: values and gradients, and no kept array changes"""
    found = []
    for dtype in ("float64", "float32"):
        x, t = inputs["x"].astype(dtype), inputs["t"].astype(dtype)
        labels = inputs["labels"].copy()
        leaf, target, g = work.Variable(x), work.Variable(t), np.asarray(inputs["g"], dtype)
        loss = work.softmax_cross_entropy(leaf, labels)
        node = loss.creator_node
        for _ in range(2):
            grads = node.backward((0,), (g, None)[: len(node.outputs)])
            found.append(grads[0].copy())
        found += [loss.array, leaf.array, labels]
        loss = work.mean_squared_error(leaf, target)
        loss.grad = g
        loss.backward()
        found += [loss.array, leaf.grad, target.grad, g]
    shifted = work.Variable(inputs["x"] * 10.0 + 2000.0)
    found.append(work.softmax_cross_entropy(shifted, inputs["labels"]).array)
    x, t = work.Variable(np.zeros((2, 3))), work.Variable(np.zeros(3))
    return [*found, raised(lambda: work.mean_squared_error(x, t), ValueError)]


def draw_optimizers(rng):
    return {
        "start": rng.normal(size=(2, 3)),
        "grads": rng.normal(size=(4, 2, 3)) * 1e-4,
        "lr": float(rng.uniform(0.01, 0.1)),
        "betas": [float(b) for b in rng.uniform(0.5, 0.99, 2)],
        "eps": float(10 ** rng.uniform(-5, -3)),
    }


def drill_optimizers(work, inputs):
    """SGD and Adam, step by step: eps beside the root, new arrays, gradients unchanged"""
    nn = _nn(work)
    found = []
    makers = (
        lambda p: nn.SGD([p], lr=inputs["lr"]),
        lambda p: nn.Adam([p], lr=inputs["lr"], betas=tuple(inputs["betas"]), eps=inputs["eps"]),
        lambda p: nn.Adam([p]),
    )
    for dtype in ("float64", "float32"):
        for maker in makers:
            first = inputs["start"].astype(dtype)
            p = nn.Parameter(first, name="p")
            optimizer = maker(p)
            for grad in inputs["grads"]:
                p.grad = given = grad.astype(dtype)
                optimizer.update()
                found += [p.array.copy(), given]
            found += [first, optimizer.count]
            optimizer.cleargrads()
            found += [p.grad is None, raised(optimizer.update, ValueError)]
    return found


def draw_training(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "x": rng.normal(size=(20, 3)),
        "labels": rng.integers(0, 3, 20),
    }


def drill_training(work, inputs):
    """A network learns: the losses of ten steps"""
    nn = _nn(work)
    work.seed(inputs["seed"])
    net = nn.Sequential(nn.Linear(3, 8), work.relu, nn.Linear(8, 3))
    optimizer = nn.Adam(net, lr=0.05)
    losses = []
    for _ in range(10):
        loss = work.softmax_cross_entropy(net(work.Variable(inputs["x"])), inputs["labels"])
        net.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(loss.array.copy())
    return losses
