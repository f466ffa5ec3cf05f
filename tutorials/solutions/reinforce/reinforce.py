"""REINFORCE: the gradient of a mean reward, from samples of what was done."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.functions.statistical import sum as total


def probabilities(scores):
    """softmax over the last axis. scores: an array (..., actions) -> (..., actions)"""
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


class LogProbability(FunctionNode):
    """y_i = the logarithm of the probability of action i:   gs = gy (one-hot(action) - p)

    s: the scores (n, actions) -> y: (n). p = softmax(s). Probabilities may be too small for a
    number, so with the largest score m of a row: y = s[action] - m - log(sum of e^(s - m)).
    """

    def __init__(self, actions):
        self.actions = actions

    def forward(self, inputs):
        (s,) = inputs
        self.retain_inputs((0,))
        s = s - s.max(axis=1, keepdims=True)
        chosen = s[np.arange(len(s)), self.actions]
        return (chosen - np.log(np.exp(s).sum(axis=1)),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (s,) = self.get_retained_inputs()
        one_hot = np.eye(s.shape[1], dtype=s.dtype)[self.actions]
        return (gy[:, None] * (one_hot - probabilities(s)),)


def log_probability(scores, actions):
    """The logarithm of the probability of an action for each row: (n, actions), (n) -> (n)."""
    return LogProbability(np.asarray(actions)).apply((scores,))[0]


def returns(rewards, discount=1.0):
    """R_t = r_t + discount R_{t+1}: the rewards from each step on. (episodes, steps), the same."""
    later = np.zeros(len(rewards))
    found = np.zeros(rewards.shape)
    for t in reversed(range(rewards.shape[1])):
        later = rewards[:, t] + discount * later
        found[:, t] = later
    return found


def baseline(found):
    """For each episode, the mean of R_t of the other episodes. (episodes, steps), the same.

    Without the episode itself: else the baseline depends on the action, and the mean is wrong.
    """
    return (found.sum(axis=0) - found) / (len(found) - 1)


def policy_loss(scores, actions, advantage):
    """L = - (1 / episodes) the sum of advantage log p(action): its gradient is the estimate.

    scores: a Variable (episodes * steps, actions), actions and advantage: (episodes, steps). The
    advantage is R_t, or R_t less a baseline: a number, without a gradient. The result: ().

    Source: Williams, Simple statistical gradient-following algorithms, 1992.
    """
    chosen = log_probability(scores, actions.reshape(-1))
    weights = -advantage.reshape(-1) / len(actions)
    return total(chosen * weights)
