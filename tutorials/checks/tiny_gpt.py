"""Checks of the tiny GPT: attention against loops over positions, its gradient, and top-k."""

import math

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_causal": Hint(
        "Along which axis do the weights of one position add up to 1?",
        "softmax(q k^T / sqrt(d)) over the last axis, minus infinity where j > i.",
    ),
    "check_window": Hint(
        "How far back may a position read if the window is 1, and if the window is 2?",
        "0 <= i - j < window.",
    ),
    "check_leading_axes": Hint(
        "Which two axes are positions and numbers if heads and lines stand in front?",
        "F.matrix_transpose, q.shape[-2], q.shape[-1].",
    ),
    "check_gradient": Hint(
        "Which line ends the graph between q and the result?",
        "F.where, F.softmax, F.matmul of Variables.",
    ),
    "check_top_k": Hint(
        "Which scores stay, and over which of them is the sum taken?",
        "The k largest: e^score / the sum of these, zeros elsewhere.",
    ),
    "check_top_k_of_special_scores": Hint(
        "Which of two equal scores comes first, and what is the exponential of a thousand?",
        'np.argsort(-scores, kind="stable")[:k]; subtract the largest score first.',
    ),
}


def draw(*shape):
    """Three random arrays q, k, v."""
    rng = np.random.default_rng(sum(shape))
    return tuple(rng.normal(size=shape) for _ in range(3))


def slow_attention(q, k, v, window):
    """The same by loops, for matrices."""
    rows = []
    for i in range(len(q)):
        read = range(max(0, i - window + 1), i + 1)
        weights = [math.exp(q[i] @ k[j] / math.sqrt(q.shape[1])) for j in read]
        rows.append(sum(w * v[j] for w, j in zip(weights, read, strict=True)) / sum(weights))
    return np.array(rows)


def attention(work, arrays, window):
    """The learner's attention of three arrays."""
    result = work.windowed_attention(*(tn.asarray(a, device="numpy") for a in arrays), window)
    look = "Functions of tinynode give Variables: F.matmul, F.where, F.softmax."
    expect_true("the result is a Variable", isinstance(result, tn.Variable), look)
    return result


def check_causal(work):
    """A large window gives causal attention."""
    arrays = draw(5, 4)
    look = "The softmax runs over j, the last axis; scores are divided by the root of d."
    expected = slow_attention(*arrays, 5)
    expect_close("attention with a window of 5", attention(work, arrays, 5).array, expected, look)
    first = attention(work, arrays, 100).array[0]
    look = "The first position reads itself alone, so its result is v[0]."
    expect_close("the first position of a window of 100", first, arrays[2][0], look)


def check_window(work):
    """A small window forgets the positions far back."""
    arrays = draw(6, 3)
    look = "A window of 1 reads the position itself, a window of 2 the one before as well."
    for window in 1, 2, 3:
        result = attention(work, arrays, window).array
        expected = slow_attention(*arrays, window)
        expect_close(f"attention with a window of {window}", result, expected, look)


def check_leading_axes(work):
    """Heads and lines stand in front."""
    q, k, v = draw(2, 3, 4, 2)
    result = attention(work, (q, k, v), 2).array
    look = "F.matrix_transpose exchanges the last two axes. n and d are the last two of q.shape."
    expect_equal("the shape for q of (2, 3, 4, 2)", result.shape, (2, 3, 4, 2), look)
    expected = slow_attention(q[1, 2], k[1, 2], v[1, 2], 2)
    expect_close("attention of line 1, head 2", result[1, 2], expected, look)


def check_gradient(work):
    """The gradients of q, k and v are right."""
    arrays = draw(4, 3)

    def function(q, k, v):
        return work.windowed_attention(q, k, v, 2)

    gy = np.random.default_rng(7).normal(size=(4, 3))
    attention(work, arrays, 2)
    try:
        gradient_check.check_backward(function, arrays, gy, eps=1e-5)
    except AssertionError as error:
        look = "Stay with Variables from q to the result: .array ends the graph."
        got = str(error).splitlines()[0]
        raise CheckFailed("the gradient", "that of the difference", got, look) from error


def check_top_k(work):
    """top_k gives the probabilities of the largest scores."""
    scores = np.array([2.0, 1.0, 3.0, 0.0])
    both = np.exp([2.0, 3.0]) / np.exp([2.0, 3.0]).sum()
    look = "The k largest stay, and the sum is taken over these alone."
    expected = np.array([both[0], 0.0, both[1], 0.0])
    expect_close("top_k of [2, 1, 3, 0] with k = 2", work.top_k(scores, 2), expected, look)
    every = F.softmax(tn.asarray(scores, device="numpy")).array
    expect_close("top_k with k = 4", work.top_k(scores, 4), every, "With all: the softmax.")
    one = work.top_k(scores, 1)
    expect_close("top_k with k = 1", one, np.array([0.0, 0.0, 1.0, 0.0]), "The largest alone.")


def check_top_k_of_special_scores(work):
    """top_k is right for equal and for large scores."""
    look = "Of equal scores the lower number comes first: a stable sort of -scores."
    equal = work.top_k(np.zeros(5), 2)
    expect_close("top_k of five zeros with k = 2", equal, np.array([0.5, 0.5, 0, 0, 0]), look)
    look = "exp(1000) is inf. Subtract the largest score first: the probabilities are the same."
    with np.errstate(all="ignore"):
        large = work.top_k(np.array([1000.0, 1000.0, 0.0]), 2)
    expect_close("top_k of [1000, 1000, 0] with k = 2", large, np.array([0.5, 0.5, 0.0]), look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("no causal mask", _SOLUTION.replace("(distance >= 0) & ", "")),
    ("the window is too long", _SOLUTION.replace("distance < window", "distance <= window")),
    ("the scores are not divided", _SOLUTION.replace(" / d**0.5", "")),
    ("forbidden scores are 0", _SOLUTION.replace("scores, -np.inf)", "scores, 0.0)")),
    ("the softmax runs over i", _SOLUTION.replace("-np.inf), axis=-1)", "-np.inf), axis=-2)")),
    (
        "the graph ends at the weights",
        _SOLUTION.replace("F.matmul(weights, v)", "F.matmul(weights.array, v)"),
    ),
    (
        "the sum is that of all characters",
        _SOLUTION.replace("p / p.sum()", "p / np.exp(scores - scores[best].max()).sum()"),
    ),
    ("exp overflows", _SOLUTION.replace(" - scores[best].max()", "")),
)
