"""Checks of the elective reinforce: logarithms of probabilities, returns, the mean estimate."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_gradients, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_values": Hint(
        "Which number of a row counts, and where could the exponential be too large?",
        "score of the action - log of the sum of e^score, after subtracting the largest score.",
    ),
    "check_gradients": Hint(
        "How does the logarithm of one probability move if the score of another action grows?",
        "gs = gy (one_hot - p).",
    ),
    "check_returns": Hint(
        "Which rewards can a move still change?",
        "R_t = r_t + discount R_(t+1), from the last step to the first.",
    ),
    "check_baseline": Hint(
        "Whose rewards may a fair comparison use, and whose not?",
        "(the sum over the episodes - the episode itself) / (episodes - 1).",
    ),
    "check_loss": Hint(
        "In which direction should a move's probability go if it earned more than the others?",
        "The sum of log p(action) * (-advantage / episodes).",
    ),
    "check_mean": Hint(
        "The mean over all episodes should be exact. Which of your weights depends on the "
        "move itself?",
        "The baseline of an episode must not contain this episode.",
    ),
}


def check_values(work: Any) -> None:
    """the logarithm of the probability of an action"""
    from mynode.reinforce import log_probability

    rng = np.random.default_rng(1)
    for n, k in ((5, 4), (1, 3), (3, 2)):
        scores, actions = 3.0 * rng.normal(size=(n, k)), rng.integers(0, k, n)
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        kept = scores.copy()
        got = log_probability(work.Variable(scores), actions).array
        look = (
            "row i takes the score of actions[i], less the logarithm of the sum of e^s of the row"
        )
        expect_close("log_probability", got, np.log(p[np.arange(n), actions]), look)
        expect_equal("the scores afterwards", scores, kept, "make a new array")
    scores = np.array([[1000.0, 0.0, -1000.0], [-900.0, -905.0, -950.0]])
    with np.errstate(all="ignore"):
        got = log_probability(work.Variable(scores), np.array([2, 1])).array
    look = "subtract the largest score first, and take no logarithm of a probability of 0"
    expect_close("log_probability of large scores", got, np.array([-2000.0, -5.006715348]), look)


def check_gradients(work: Any) -> None:
    """the gradient of the logarithm, with a weight for each row"""
    from mynode.reinforce import log_probability

    rng = np.random.default_rng(2)
    for n, k in ((4, 3), (2, 5)):
        scores, actions = rng.normal(size=(n, k)), rng.integers(0, k, n)

        def run(s: Any, actions: Any = actions) -> Any:
            return log_probability(s, actions)

        look = "gs = gy (one-hot(action) - p), for every score of the row"
        expect_gradients("log_probability", run, [scores], work.Variable, look)
    scores = work.Variable(rng.normal(size=(3, 2)).astype("float32"))
    y = log_probability(scores, np.array([0, 1, 1]))
    expect_equal("the dtype of y", str(y.array.dtype), "float32", "keep the dtype of the scores")
    y.grad = np.ones(3, "float32")
    y.backward()
    look = "np.eye(..., dtype=s.dtype)"
    expect_equal("the dtype of the gradient", str(scores.grad.dtype), "float32", look)


def check_returns(work: Any) -> None:
    """the rewards from each step on"""
    from mynode.reinforce import returns

    rng = np.random.default_rng(3)
    for discount in (1.0, 0.5):
        rewards = rng.normal(size=(3, 5))
        kept = rewards.copy()
        right = np.zeros(rewards.shape)
        for t, k in itertools.product(range(5), range(5)):
            if k >= t:
                right[:, t] += discount ** (k - t) * rewards[:, k]
        look = "a move changes no earlier reward: R_t = r_t + discount R_{t+1}"
        expect_close(f"returns, discount {discount}", returns(rewards, discount), right, look)
        expect_equal("the rewards afterwards", rewards, kept, "make a new array")


def check_baseline(work: Any) -> None:
    """the mean of the other episodes"""
    from mynode.reinforce import baseline

    for n, steps in ((2, 3), (5, 4)):
        found = np.random.default_rng(n).normal(size=(n, steps))
        kept = found.copy()
        right = [np.delete(found, i, axis=0).mean(axis=0) for i in range(n)]
        look = "for each step, the mean over the other episodes, without the episode itself"
        expect_close(f"baseline of {n} episodes", baseline(found), np.array(right), look)
        expect_equal("R_t afterwards", found, kept, "make a new array")


def check_loss(work: Any) -> None:
    """the loss, and a gradient that points to larger rewards"""
    from mynode.reinforce import policy_loss

    rng = np.random.default_rng(4)
    n, steps, k = 3, 2, 4
    scores, advantage = rng.normal(size=(n * steps, k)), rng.normal(size=(n, steps))
    actions = rng.integers(0, k, (n, steps))
    s = work.Variable(scores.copy())
    loss = policy_loss(s, actions, advantage)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    flat, weights = actions.reshape(-1), advantage.reshape(-1)
    look = "the sum over episodes and steps, divided by the number of episodes, with a minus"
    expect_true("the loss is a Variable", isinstance(loss, work.Variable), look)
    right = -(np.log(p[np.arange(n * steps), flat]) * weights).sum() / n
    expect_close("the loss", loss.array, right, look)
    loss.backward()
    right = -weights[:, None] * (np.eye(k)[flat] - p) / n
    expect_true("the scores have a gradient", s.grad is not None, look)
    expect_close("the gradient of the scores", s.grad, right, look)


def check_mean(work: Any) -> None:
    """the mean of all estimates is the exact gradient"""
    from mynode.reinforce import baseline, policy_loss, returns

    scores = np.random.default_rng(5).normal(size=3)
    reward = np.array([1.0, -2.0, 4.0])
    p = np.exp(scores) / np.exp(scores).sum()
    exact = p * (reward - p @ reward)
    for name, compare in (("without", False), ("with", True)):
        mean = np.zeros(3)
        for pair in itertools.product(range(3), repeat=2):  # two episodes of a single move
            found = returns(reward[list(pair)][:, None])
            advantage = found - baseline(found) if compare else found
            s = work.Variable(np.stack([scores, scores]))
            policy_loss(s, np.array(pair)[:, None], advantage).backward()
            mean += p[pair[0]] * p[pair[1]] * -s.grad.sum(axis=0)
        look = "the mean over all pairs of episodes must be the gradient of the mean reward"
        expect_close(f"the mean estimate {name} baseline", mean, exact, look)


def _wrong(old: str, new: str) -> dict[str, str]:
    return mistake("reinforce", "reinforce.py", old, new)


_WEIGHTS = "weights = -advantage.reshape(-1) / len(actions)"

MISTAKES = (
    (
        "the score itself, without the logarithm of the sum",
        _wrong("(chosen - np.log(np.exp(s).sum(axis=1)),)", "(chosen,)"),
    ),
    (
        "the probability, not its logarithm",
        _wrong(
            "(chosen - np.log(np.exp(s).sum(axis=1)),)",
            "(np.exp(chosen) / np.exp(s).sum(axis=1),)",
        ),
    ),
    (
        "the sum goes over the rows of all episodes",
        _wrong("np.exp(s).sum(axis=1)", "np.exp(s).sum()"),
    ),
    (
        "large scores overflow",
        _wrong("        s = s - s.max(axis=1, keepdims=True)\n", ""),
    ),
    (
        "the logarithm of a probability of 0",
        _wrong(
            "chosen - np.log(np.exp(s).sum(axis=1))",
            "np.log(np.exp(chosen) / np.exp(s).sum(axis=1))",
        ),
    ),
    (
        "the largest score of all rows is subtracted in the array itself",
        _wrong("s = s - s.max(axis=1, keepdims=True)", "s -= s.max(axis=1, keepdims=True)"),
    ),
    (
        "the gradient of the chosen score alone",
        _wrong("(one_hot - probabilities(s))", "one_hot"),
    ),
    (
        "the gradient has the sign of a loss",
        _wrong("(one_hot - probabilities(s))", "(probabilities(s) - one_hot)"),
    ),
    (
        "the gradient forgets gy",
        _wrong("(gy[:, None] * (one_hot", "(1.0 * (one_hot"),
    ),
    (
        "the gradient is float64",
        _wrong("np.eye(s.shape[1], dtype=s.dtype)", "np.eye(s.shape[1])"),
    ),
    (
        "every move counts the whole reward",
        _wrong(
            "    return found\n", "    return np.repeat(found[:, :1], found.shape[1], axis=1)\n"
        ),
    ),
    (
        "the rewards up to a step, not from the step on",
        _wrong("for t in reversed(range(rewards.shape[1]))", "for t in range(rewards.shape[1])"),
    ),
    (
        "the discount is forgotten",
        _wrong("rewards[:, t] + discount * later", "rewards[:, t] + later"),
    ),
    (
        "the baseline has the episode itself",
        _wrong("(found.sum(axis=0) - found) / (len(found) - 1)", "found.mean(axis=0) + 0 * found"),
    ),
    (
        "the baseline is the mean over the steps",
        _wrong(
            "(found.sum(axis=0) - found) / (len(found) - 1)",
            "found.mean(axis=1)[:, None] + 0 * found",
        ),
    ),
    (
        "the others are divided by all episodes",
        _wrong("/ (len(found) - 1)", "/ len(found)"),
    ),
    (
        "the loss goes to smaller rewards",
        _wrong(_WEIGHTS, "weights = advantage.reshape(-1) / len(actions)"),
    ),
    (
        "the mean goes over the moves",
        _wrong(_WEIGHTS, "weights = -advantage.reshape(-1) / actions.size"),
    ),
    (
        "the moves of the episodes are mixed up",
        _wrong("-advantage.reshape(-1)", "-advantage.T.reshape(-1)"),
    ),
    (
        "the advantage is forgotten",
        _wrong(_WEIGHTS, "weights = -np.ones(actions.size) / len(actions)"),
    ),
)
