"""Planted bugs in operations are refused, also long after their lesson."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked_examiner import events_of

from tinynode_course import mynode, sources

SUM = ("core/backprop.py", "x.grad + gx", "np.add(x.grad, gx, out=x.grad)")
USES = (
    "core/backprop.py",
    "gradients[node] + gx",
    "np.add(gradients[node], gx, out=gradients[node])",
)

BUGS = {
    "the sum of gradients is no new array": [
        (key, *SUM) for key in ("05", "07", "12", "21", "26")
    ],
    "the sum over uses is no new array": [("12", *USES)],
    "relu writes into its input": [
        ("09", "functions/activation.py", "np.maximum(x, 0)", "np.maximum(x, 0, out=x)"),
    ],
    "the loss writes into the scores": [
        (
            "09",
            "functions/cross_entropy.py",
            "shifted = x - x.max(axis=1, keepdims=True)",
            "x -= x.max(axis=1, keepdims=True); shifted = x",
        ),
    ],
    "the backward of exp writes into the gradient": [
        (key, "functions/exponential.py", "gy * np.exp(x)", "np.multiply(gy, np.exp(x), out=gy)")
        for key in ("04", "09")
    ],
    "the backward of square gives float64": [
        ("07", "functions/exponential.py", "gy * 2.0 * x", "gy * np.full(x.shape, 2.0) * x"),
    ],
    "sums are computed in float64": [
        (
            "07",
            "functions/statistical.py",
            "x.sum(axis=self.axes, keepdims=self.keepdims)",
            "x.astype(float).sum(axis=self.axes, keepdims=self.keepdims)",
        ),
    ],
    "the backward of an earlier step has a wrong sign": [
        (key, "functions/exponential.py", "gy * np.exp(x)", "-gy * np.exp(x)")
        for key in ("09", "11")
    ],
    "the loss of float32 is float64": [
        (
            "09",
            "functions/cross_entropy.py",
            "losses.sum() / max",
            "losses.astype(float).sum() / max",
        ),
    ],
}


def cases() -> list[tuple[str, str, str, str, str]]:
    return [(what, *bug) for what, bugs in BUGS.items() for bug in bugs]


@pytest.mark.parametrize(
    ("what", "key", "path", "old", "new"), cases(), ids=[f"{c[1]}-{c[0]}" for c in cases()]
)
def test_a_bug_is_refused(
    what: str, key: str, path: str, old: str, new: str, tmp_path: Path
) -> None:
    step = sources.find(key)
    wrong = mynode.mistake(key, path, old, new)
    mynode.write_files(mynode.reference(key) | wrong, tmp_path / mynode.NAME)
    events = events_of(step, tmp_path / step.work)
    assert "failed" in [event["event"] for event in events], what
