"""Checks of the elective diffusion: noise in, noise out, and a picture that is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_signal": Hint(
        "Each step leaves a share of the picture. What is left after many?",
        "a = the product of all 1 - b so far: np.cumprod.",
    ),
    "check_add": Hint(
        "Which two factors make a noisy picture, and what do their squares add up to?",
        "sqrt(a_t) x + sqrt(1 - a_t) noise, with a[t][:, None].",
    ),
    "check_loss": Hint(
        "What does the network see, and what should it name?",
        "The network gets the noisy picture and t; mean squared difference to the noise.",
    ),
    "check_remove": Hint(
        "How much of the named noise leaves in one step, and what is added again?",
        "mean = (x - b_t / sqrt(1 - a_t) noise) / sqrt(1 - b_t); for t > 0 plus sqrt(b_t) fresh.",
    ),
    "check_draw": Hint(
        "In which order do the steps run, and is a graph needed?",
        "for t in reversed(range(len(b))), in no_backprop_mode.",
    ),
    "check_known_picture": Hint(
        "A perfect network names all noise. What should be left after the last step?",
        "The last step adds no fresh noise.",
    ),
}


def _shares(seed: int, steps: int = 6) -> Any:
    return np.random.default_rng(seed).uniform(0.05, 0.5, steps)


def check_signal(work: Any) -> None:
    """the share of the picture that is left"""
    from mynode.diffusion import signal_left

    for seed in (1, 2):
        b = _shares(seed)
        given = b.copy()
        right, left = [], 1.0
        for share in given:
            left *= 1.0 - share
            right.append(left)
        look = "each step multiplies the share of the picture by 1 - b"
        expect_close("signal_left(b)", signal_left(b), np.array(right), look, rtol=1e-12)
        expect_equal("b afterwards", b, given, "make a new array")


def check_add(work: Any) -> None:
    """add_noise, with another step for each row"""
    from mynode.diffusion import add_noise

    rng = np.random.default_rng(3)
    x, noise = rng.normal(size=(2, 5, 3))
    a = np.cumprod(1.0 - _shares(3))
    t = np.array([0, 5, 2, 2, 4])
    kept = x.copy(), noise.copy()
    right = [
        np.sqrt(a[k]) * row + np.sqrt(1 - a[k]) * e for k, row, e in zip(t, x, noise, strict=True)
    ]
    look = "row i takes a[t[i]]; the two squares of the factors add up to 1"
    expect_close("add_noise", add_noise(x, noise, t, a), np.array(right), look, rtol=1e-12)
    expect_equal("x afterwards", x, kept[0], "make a new array")
    expect_equal("the noise afterwards", noise, kept[1], "make a new array")


def check_loss(work: Any) -> None:
    """the loss, and what the network is told"""
    from mynode.diffusion import noise_loss

    rng = np.random.default_rng(4)
    x, noise = rng.normal(size=(2, 4, 3))
    a = np.cumprod(1.0 - _shares(4))
    t = np.array([5, 1, 0, 3])
    weight = work.Variable(np.array(0.7))
    told = []

    def model(x: Any, t: Any) -> Any:
        told.append((x, t))
        return x * weight

    loss = noise_loss(model, x, noise, t, a)
    noisy = np.sqrt(a[t])[:, None] * x + np.sqrt(1 - a[t])[:, None] * noise
    look = "model(Variable(noisy), t), where noisy is of add_noise"
    expect_equal("calls of the network", len(told), 1, look)
    expect_true("the network gets a Variable", isinstance(told[0][0], work.Variable), look)
    expect_close("the picture that the network gets", told[0][0].array, noisy, look)
    expect_equal("the steps that the network gets", np.asarray(told[0][1]), t, look)
    look = "the mean of (noise - named)^2: the target is the noise, not the picture"
    expect_true("the loss is a Variable", isinstance(loss, work.Variable), look)
    expect_close("the loss", loss.array, np.mean((noise - 0.7 * noisy) ** 2), look)
    loss.backward()
    right = np.mean(-2 * (noise - 0.7 * noisy) * noisy)
    expect_true("the loss has a gradient for the network", weight.grad is not None, look)
    expect_close("the gradient of the network's weight", weight.grad, right, look)


def _back(x: Any, named: Any, t: int, b: Any, fresh: Any) -> Any:
    left = np.prod(1 - b[: t + 1])
    mean = (x - b[t] * named / np.sqrt(1 - left)) / np.sqrt(1 - b[t])
    return mean + np.sqrt(b[t]) * fresh if t > 0 else mean


def check_remove(work: Any) -> None:
    """a step back, and the last step back"""
    from mynode.diffusion import remove_noise

    x, named, fresh = np.random.default_rng(5).normal(size=(3, 4, 3))
    kept = x.copy()
    b = _shares(5)
    for t in (0, 1, 3, 5):
        look = "b[t] is the step's share, 1 - signal_left(b)[t] the variance of all noise"
        if t == 0:
            look = "the last step back, t = 0, adds no fresh noise"
        got = remove_noise(x, named, t, b, fresh)
        expect_close(f"remove_noise, t = {t}", got, _back(x, named, t, b, fresh), look)
    expect_equal("x afterwards", x, kept, "make a new array")


def check_draw(work: Any) -> None:
    """all steps back, in order, without a graph"""
    from mynode.diffusion import draw_pictures

    b = _shares(6)
    weight = work.Variable(np.array(0.4))
    steps, graphs = [], []

    def model(x: Any, t: Any) -> Any:
        steps.append(np.asarray(t).tolist())
        y = x * weight
        graphs.append(y.creator_node)
        return y

    got = draw_pictures(model, (3, 2), b, np.random.default_rng(9))
    rng = np.random.default_rng(9)
    x = rng.normal(size=(3, 2))
    for t in (5, 4, 3, 2, 1, 0):
        x = _back(x, 0.4 * x, t, b, rng.normal(size=(3, 2)))
    look = "for t in reversed(range(len(b))), and np.full(shape[0], t) for the network"
    expect_equal(
        "the steps that the network gets", steps, [[t] * 3 for t in range(5, -1, -1)], look
    )
    look = "rng draws the first x, then fresh noise of the same shape in each step"
    expect_close("draw_pictures", got, x, look)
    look = "run the network under no_backprop_mode()"
    expect_true("no step has a graph", all(one is None for one in graphs), look)


def check_known_picture(work: Any) -> None:
    """a network that knows the picture draws the picture"""
    from mynode.diffusion import draw_pictures

    b = _shares(7, 9)
    a = np.cumprod(1 - b)
    picture = np.random.default_rng(8).normal(size=5)

    def model(x: Any, t: Any) -> Any:
        left = a[np.asarray(t)][:, None]
        return work.Variable((x.array - np.sqrt(left) * picture) / np.sqrt(1 - left))

    got = draw_pictures(model, (4, 5), b, np.random.default_rng(1))
    look = "the last step back gives the picture of the network, for every first noise"
    expect_close("the drawn pictures", got, np.tile(picture, (4, 1)), look, atol=1e-8)


def _wrong(old: str, new: str) -> dict[str, str]:
    return mistake("diffusion", "diffusion.py", old, new)


_MIX = "np.sqrt(share) * x + np.sqrt(1.0 - share) * noise"
_FRESH = "return mean + np.sqrt(b[t]) * fresh"

MISTAKES = (
    (
        "the share is that of a single step",
        _wrong("return np.cumprod(1.0 - b)", "return 1.0 - b"),
    ),
    (
        "the shares of noise are added up",
        _wrong("return np.cumprod(1.0 - b)", "return 1.0 - np.cumsum(b)"),
    ),
    (
        "the shares mix without roots",
        _wrong(_MIX, "share * x + (1.0 - share) * noise"),
    ),
    (
        "the noise has no root",
        _wrong(_MIX, "np.sqrt(share) * x + (1.0 - share) * noise"),
    ),
    (
        "picture and noise are exchanged",
        _wrong(_MIX, "np.sqrt(1.0 - share) * x + np.sqrt(share) * noise"),
    ),
    (
        "all rows take the step of the first row",
        _wrong("share = a[t][:, None]", "share = a[t][0]"),
    ),
    (
        "the noise is added into the picture itself",
        _wrong(
            "return np.sqrt(share) * x",
            "x *= np.sqrt(share)\n    return x",
        ),
    ),
    (
        "the target is the picture",
        _wrong("requires_grad=False), t), noise)", "requires_grad=False), t), x)"),
    ),
    (
        "the network sees the clean picture",
        _wrong("Variable(noisy, requires_grad=False)", "Variable(x, requires_grad=False)"),
    ),
    (
        "the network is not told the step",
        _wrong("requires_grad=False), t), noise)", "requires_grad=False), 0 * t), noise)"),
    ),
    (
        "the loss is an array without a graph",
        _wrong(
            "mean_squared_error(model(Variable(noisy, requires_grad=False), t), noise)",
            "np.mean((model(Variable(noisy, requires_grad=False), t).array - noise) ** 2)",
        ),
    ),
    (
        "the named noise is divided by the root of the step's share",
        _wrong("np.sqrt(1.0 - signal_left(b)[t])", "np.sqrt(b[t])"),
    ),
    (
        "the picture does not grow back",
        _wrong("* named) / np.sqrt(1.0 - b[t])", "* named)"),
    ),
    (
        "the step back takes away all noise at once",
        _wrong(
            "(x - b[t] / np.sqrt(1.0 - signal_left(b)[t]) * named)",
            "(x - np.sqrt(1.0 - signal_left(b)[t]) * named)",
        ),
    ),
    (
        "the last step adds noise",
        _wrong("if t == 0:", "if t < 0:"),
    ),
    (
        "no step adds fresh noise",
        _wrong(_FRESH, "return mean"),
    ),
    (
        "the fresh noise has no root",
        _wrong(_FRESH, "return mean + b[t] * fresh"),
    ),
    (
        "the steps go forward",
        _wrong("reversed(range(len(b)))", "range(len(b))"),
    ),
    (
        "step 0 is left out",
        _wrong("reversed(range(len(b)))", "reversed(range(1, len(b)))"),
    ),
    (
        "the fresh noise is a single number",
        _wrong("b, rng.normal(size=shape))", "b, rng.normal())"),
    ),
    (
        "each step builds a graph",
        _wrong("with no_backprop_mode():", "if True:"),
    ),
)
