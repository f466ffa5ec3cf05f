"""Early stopping: the best number of a run so far, and the parameters of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tinynode.nn.checks import checked_size
from tinynode.nn.state import State
from tinynode.nn.training_log import Row, number


class EarlyStopping:
    """The best number so far, and the parameters of it."""

    def __init__(self, monitor: str, patience: int, maximize: bool) -> None:
        self.monitor = monitor
        self.patience = checked_size("Trainer: patience", patience)
        self.sign = -1.0 if maximize else 1.0
        self.best = math.inf
        self.best_epoch = 0
        self.waited = 0
        self.best_state: State = {}

    def note(self, row: Row, state: State) -> None:
        """Compare the row of an epoch with the best one."""
        value = self.sign * row[self.monitor]
        self.waited += 1
        if value < self.best:
            self.best, self.best_epoch, self.waited = value, int(row["epoch"]), 0
            self.best_state = state

    def is_over(self) -> bool:
        """True if ``patience`` epochs in a row were no better."""
        return self.waited >= self.patience

    def wait_again(self) -> None:
        """Count the epochs without a better number from 0; the best number stays."""
        self.waited = 0

    def state_dict(self) -> dict[str, Any]:
        """The best number, its epoch and parameters, and the epochs since."""
        names = ("best", "best_epoch", "waited", "best_state")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called."""
        self.best, self.best_epoch = float(state["best"]), int(state["best_epoch"])
        self.waited, self.best_state = int(state["waited"]), dict(state["best_state"])

    def __str__(self) -> str:
        if not self.best_epoch:
            return f"{self.monitor} was infinite or NaN in all epochs"
        return f"{self.monitor} {number(self.sign * self.best)} of epoch {self.best_epoch}"
