"""Schedules: the learning rate as a function of the number of steps.

Step 20: lr_at is yours.
"""

import math


class CosineSchedule:
    """A line up from 0 in the warm-up, then half a cosine down to min_lr.

    For t < warmup:   lr = base_lr * t / warmup
    afterwards, with s = min(1, (t - warmup) / (steps - warmup)):

        lr = min_lr + (base_lr - min_lr) * (1 + cos(pi * s)) / 2

    The schedule sets optimizer.lr at once, and at each step(), which comes after an update.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.
    """

    def __init__(self, optimizer, steps, warmup=0, min_lr=0.0):
        if not 0 <= warmup < steps:
            raise ValueError(
                f"CosineSchedule: warmup must be from 0 to steps - 1, got warmup={warmup} and "
                f"steps={steps}"
            )
        self.optimizer = optimizer
        self.base_lr = optimizer.lr
        self.steps, self.warmup, self.min_lr = steps, warmup, min_lr
        self.count = 0
        optimizer.lr = self.lr_at(0)

    def lr_at(self, t):
        """The learning rate after t steps."""
        raise NotImplementedError("step 20: CosineSchedule.lr_at")

    def step(self):
        """Count a step, and set optimizer.lr."""
        self.count += 1
        self.optimizer.lr = self.lr_at(self.count)
