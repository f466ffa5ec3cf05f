# %% [markdown]
# # Elective: REINFORCE on a grid
#
# **Goal.** A walker learns a way by trial and reward, on your own engine. The world has no
# gradient. You check the mean of the estimated gradients against the exact gradient.

# %%
import itertools

import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("reinforce")
from mynode import embedding, nn
from mynode.reinforce import baseline, policy_loss, probabilities, returns

SIZE, STEPS, GOAL, PIT = 3, 5, 8, 6
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])  # up, down, left, right


def step(states, actions):
    """The next states and the rewards: (n), (n) -> (n), (n)"""
    places = np.stack(np.divmod(states, SIZE), axis=1) + MOVES[actions]
    row, column = np.clip(places, 0, SIZE - 1).T
    ended = (states == GOAL) | (states == PIT)
    after = np.where(ended, states, row * SIZE + column)
    rewards = -0.1 + 1.0 * (after == GOAL) - 1.0 * (after == PIT)
    return after, np.where(ended, 0.0, rewards)


# %% [markdown]
# The grid has 3 · 3 places. The walker begins in the upper left corner, and the goal is in the
# lower right one. A pit is in the lower left one. A move costs 0.1, the goal gives 1 and the pit
# takes 1. At the goal and in the pit, the walker stays. An **episode** has 5 moves.
#
# The **policy** is a table of scores $\theta$, for each place 4. Softmax makes probabilities of
# the scores, and the walker draws its moves by them. The mean reward is
#
# $$J(\theta) = \sum_{\text{way}} p_\theta(\text{way})\, R(\text{way})$$
#
# ## Predict
# 1. How many ways of 5 moves are there? And on a large grid with 100 moves?
# 2. `step` has `clip`, `where` and integers. What does backward give for the moves?
# 3. We add 10 to all rewards. Does the gradient of $J$ change? And its estimate from a few ways?
#
# ## Run
# The sum has too many ways for large grids, so we sample. The derivative of a probability is the
# probability times the derivative of its logarithm:
#
# $$\nabla J = \sum p\, \nabla \log p\; R = \text{mean of } \nabla \log p(\text{way})\;
# R(\text{way})$$
#
# So the mean over sampled ways estimates $\nabla J$, and no derivative of the world is needed.
# $\log p(\text{way})$ is the sum over its moves. A move changes no earlier reward, so each move
# counts the rewards from its own step on, $R_t$.


# %%
def walk(table, episodes, rng):
    """Sampled ways: states, actions and rewards, each (episodes, STEPS)."""
    states, parts = np.zeros(episodes, dtype=int), []
    for _ in range(STEPS):
        limits = probabilities(table[states]).cumsum(axis=1)
        actions = np.minimum((rng.random((episodes, 1)) > limits).sum(axis=1), 3)
        after, rewards = step(states, actions)
        parts.append((states, actions, rewards))
        states = after
    return [np.stack(part, axis=1) for part in zip(*parts, strict=True)]


def estimate(weights, states, actions, advantage):
    """The estimated gradient of J, by backward: (9, 4)"""
    weights.cleargrad()
    policy_loss(embedding(states.reshape(-1), weights), actions, advantage).backward()
    return -weights.grad


EVERY_WAY = np.array(list(itertools.product(range(4), repeat=STEPS)))


def mean_reward(table):
    """J, by the sum over all 1,024 ways."""
    states, chance, total = np.zeros(len(EVERY_WAY), dtype=int), 1.0, 0.0
    for actions in EVERY_WAY.T:
        chance = chance * probabilities(table[states])[np.arange(len(states)), actions]
        states, rewards = step(states, actions)
        total = total + rewards
    return (chance * total).sum()


def exact_gradient(table, eps=1e-5):
    """The gradient of J, by small steps in the sum over all ways."""
    gradient = np.zeros(table.shape)
    for place in np.ndindex(table.shape):
        moved = np.zeros(table.shape)
        moved[place] = eps
        gradient[place] = (mean_reward(table + moved) - mean_reward(table - moved)) / (2 * eps)
    return gradient


# %% [markdown]
# The **baseline** of an episode is the mean reward of the other episodes. The advantage is $R_t$
# less the baseline: was this way better than usual? Here are the mean of 1,000 estimates from 10
# ways each, and the standard error of this mean:

# %%
table = np.random.default_rng(0).normal(size=(SIZE * SIZE, 4))
weights = nn.Parameter(table.copy(), name="scores")
exact = exact_gradient(table)


def plain(rewards):
    return returns(rewards)


def compared(rewards):
    found = returns(rewards)
    return found - baseline(found)


def study(advantage_of, shift=0.0):
    """1,000 estimates: (1000, 9, 4). shift is added to all rewards."""
    ways, found = walk(table, 10_000, np.random.default_rng(1)), []
    for start in range(0, 10_000, 10):
        states, actions, rewards = (part[start : start + 10] for part in ways)
        found.append(estimate(weights, states, actions, advantage_of(rewards + shift)))
    return np.array(found)


def report(name, estimates):
    """Prints how far the mean is from the exact gradient, and the spread of one estimate."""
    error = np.abs(estimates.mean(axis=0) - exact)
    standard = estimates.std(axis=0) / np.sqrt(len(estimates))
    ratio = (error / np.maximum(standard, 1e-9)).max()
    spread = np.sqrt(estimates.var(axis=0).sum())
    print(f"{name:14} largest error {ratio:4.1f} standard errors, spread {spread:.2f}")


report("no baseline", study(plain))
report("a baseline", study(compared))

# %% [markdown]
# Both means are right: of 36 errors, the largest is 2 to 3 standard errors. The baseline makes the
# spread smaller, at no cost. Why may it be subtracted? The probabilities of the moves add up to 1,
# so the mean of $\nabla \log p$ is 0, and 0 times a baseline is 0.
#
# ## See
# Training, with Adam. The exact mean reward $J$ is known here, so no estimate is needed to see it:


# %%
def learn(advantage_of, updates=150, shift=0.0):
    """J after each update, and the table."""
    weights = nn.Parameter(np.zeros((SIZE * SIZE, 4)), name="scores")
    optimizer, rng, curve = nn.Adam([weights], 0.1), np.random.default_rng(3), []
    for _ in range(updates):
        states, actions, rewards = walk(weights.array, 10, rng)
        optimizer.cleargrads()
        scores = embedding(states.reshape(-1), weights)
        policy_loss(scores, actions, advantage_of(rewards + shift)).backward()
        optimizer.update()
        curve.append(mean_reward(weights.array))
    return curve, weights.array


curve, learned = learn(compared)
print(f"J from {curve[0]:.2f} to {curve[-1]:.2f}; the best way has 4 moves: 1 - 0.4 = 0.60")
best = [["↑↓←→"[move] for move in row] for row in learned.argmax(axis=1).reshape(3, 3)]
best[2][0], best[2][2] = "pit", "goal"
for row in best:
    print("  ".join(f"{place:4}" for place in row))
without, _ = learn(plain)
tn.show.lines(
    range(150),
    {"a baseline": curve, "no baseline": without},
    title="Mean reward of all ways",
    x_label="update",
    y_label="J",
)

# %% [markdown]
# With these draws, the curve without a baseline rises earlier. One run proves nothing: over 20
# seeds, the median update at which $J$ passes 0.5 was 36 with and 38 without. Both find the way
# here. With larger rewards, the spread decides.
#
# ## Break it
# Add 10 to every reward. The best way is the same one. Without a baseline:

# %%
report("no baseline", study(plain, shift=10.0))
broken, _ = learn(plain, shift=10.0)
print(f"J after training: {broken[-1]:.2f}")

# %% [markdown]
# The mean of the estimates is right, and the spread is many times as large. Every way that was
# taken becomes more probable, since all rewards are positive. By chance, a bad way wins.
#
# A second mistake is harder to see: a baseline with the episode itself in the mean.


# %%
def with_itself(rewards):
    found = returns(rewards)
    return found - found.mean(axis=0)


report("with itself", study(with_itself))

# %% [markdown]
# No error, a small spread, and a wrong mean. This baseline depends on the move, so the argument
# with 0 fails: for 10 episodes the mean is 9/10 of the gradient.
#
# ## Fix it
# The baseline of an episode is made of the other episodes:

# %%
report("a baseline", study(compared, shift=10.0))
mended, _ = learn(compared, shift=10.0)
print(f"J after training: {mended[-1]:.2f}")

# %% [markdown]
# **Cost.** An estimate costs the moves that were made: 10 ways · 5 moves. The exact gradient costs
# all ways, $4^5$ here and $4^{100}$ for 100 moves. The estimate pays with its spread: to halve the
# spread takes 4 times the ways.
#
# Source: Williams, Simple statistical gradient-following algorithms for connectionist
# reinforcement learning, 1992.
#
# ## Exercise
# The exercise adds `reinforce.py` to your package. It needs steps 1 to 17. `LogProbability` is a
# FunctionNode with a backward of one line; then write `returns`, `baseline` and `policy_loss`.
#
#     python -m tinynode.learn start reinforce
#     python -m tinynode.learn check reinforce
