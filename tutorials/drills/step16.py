"""Drills of convolution: windows, kernels, pooling, layers of images."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients, raised


def _size(rng, low, high):
    return int(rng.integers(low, high))


def draw_conv2d(rng):
    cases = []
    for _ in range(5):
        n, c, o = (_size(rng, 1, 4) for _ in range(3))
        kh, kw = _size(rng, 1, 4), _size(rng, 1, 4)
        h, w = kh + _size(rng, 0, 4), kw + _size(rng, 0, 4)
        stride, padding = _size(rng, 1, 4), _size(rng, 0, 3)
        out = [(length + 2 * padding - k) // stride + 1 for length, k in ((h, kh), (w, kw))]
        x, weight = rng.normal(size=(n, c, h, w)), rng.normal(size=(o, c, kh, kw))
        cases.append(
            [x, weight, rng.normal(size=o), rng.normal(size=(n, o, *out)), stride, padding]
        )
    return {"cases": cases}


def drill_conv2d(work, inputs):
    """conv2d with strides and paddings: values, gradients, dtypes"""
    found = []
    for x, w, b, gy, stride, padding in inputs["cases"]:
        for dtype in ("float64", "float32"):

            def function(x, w, b=None, stride=stride, padding=padding):
                return work.conv2d(x, w, b, stride=stride, padding=padding)

            arrays, g = [one.astype(dtype) for one in (x, w, b)], gy.astype(dtype)
            found += [
                gradients(work, function, arrays, g),
                gradients(work, function, arrays[:2], g),
            ]
    x, w = work.Variable(np.zeros((1, 2, 4, 4))), work.Variable(np.zeros((1, 3, 2, 2)))
    return [*found, raised(lambda: work.conv2d(x, w), work.InvalidType)]


def draw_max_pool2d(rng):
    cases = []
    for _ in range(4):
        k, stride = _size(rng, 1, 4), _size(rng, 1, 4)
        h, w = k + _size(rng, 0, 5), k + _size(rng, 0, 5)
        x = rng.integers(-2, 3, (2, 2, h, w)).astype(float)  # with many ties
        out = [(length - k) // stride + 1 for length in (h, w)]
        cases.append([x, rng.normal(size=(2, 2, *out)), k, stride])
    return {"cases": cases, "x": rng.normal(size=(1, 1, 4, 6))}


def drill_max_pool2d(work, inputs):
    """max_pool2d: one winner in each window, the first of equals"""
    found = []
    for x, gy, k, stride in inputs["cases"]:
        for dtype in ("float64", "float32"):

            def function(x, k=k, stride=stride):
                return work.max_pool2d(x, k, stride)

            found.append(gradients(work, function, [x.astype(dtype)], gy.astype(dtype)))
    return [*found, work.max_pool2d(work.Variable(inputs["x"]), 2).array]


def draw_layers(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "x": rng.normal(size=(4, 1, 6, 6)),
        "labels": rng.integers(0, 3, 4),
    }


def drill_layers(work, inputs):
    """A network for images: first values, parameters, losses of three steps"""
    nn = importlib.import_module(f"{work.__name__}.nn")
    work.seed(inputs["seed"])
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3, stride=1, padding=1),
        work.relu,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(27, 3),
    )
    found = [[p.name, p.array.copy()] for p in net.parameters()]
    optimizer = nn.SGD(net, lr=0.1)
    for _ in range(3):
        loss = work.softmax_cross_entropy(net(work.Variable(inputs["x"])), inputs["labels"])
        net.cleargrads()
        loss.backward()
        found += [loss.array.copy(), [p.grad.copy() for p in net.parameters()]]
        optimizer.update()
    strided = nn.Conv2d(1, 2, 2, stride=2)(work.Variable(inputs["x"]))
    return [*found, strided.shape, nn.MaxPool2d(3, 1)(work.Variable(inputs["x"])).array]
