"""The table of ``docs/array-api-calls.md``: calls of other libraries, on tinynode and on peers.

Run ``python -m tools.consumer_table`` with the extras ``consumers``, ``backends`` and ``test``.
The calls stand in ``tests/support/consumer_cases.py``. A gradient counts as right if value and
gradient agree with fourth-order differences of the same call on NumPy.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # before the import of SciPy

import numpy as np

from tools import command_words

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "array-api-calls.md"
LIBRARIES = ("scipy", "scikit-learn", "array-api-extra", "xarray", "torch", "jax", "numpy")
HEAD = """# Calls of other libraries

The table shows {calls} calls of unmodified code: whether the gradient with respect to an argument
is right. The calls stand in `tests/support/consumer_cases.py`.

- Right: value and gradient agree with fourth-order finite differences of the same call on NumPy.
- Refused: an error comes at the call or in the backward pass.
- Wrong: a value or a gradient disagrees, without an error.

The calls were chosen while tinynode was built, from functions that SciPy writes for any array
library. So the counts describe these calls; another choice gives other counts.

| | right | refused | wrong |
|---|---:|---:|---:|
{counts}

Versions: {versions}.
JAX runs eagerly, with 64 bits. `python -m tools.consumer_table` makes this page.

| call | {names} |
|---|{rule}|
{rows}
"""


def of_tinynode(case: Any, weights: Callable[[Any], Any], device: str) -> tuple[float, Any]:
    """The weighted sum of the result of a call, and its gradient, on a device of tinynode."""
    import tinynode as tn

    x = tn.asarray(case.x, dtype="float64", device=device, requires_grad=True)
    xp = x.__array_namespace__()
    y = case.call(x, lambda values: xp.asarray(np.asarray(values).tolist(), dtype=xp.float64))
    total = xp.sum(y * xp.asarray(weights(y.shape).tolist(), dtype=xp.float64))
    total.backward()
    return float(total), tn.to_host(x.grad)


def of_pytorch(case: Any, weights: Callable[[Any], Any]) -> tuple[float, Any]:
    """The same on PyTorch's tensors."""
    import torch

    x = torch.tensor(case.x, dtype=torch.float64, requires_grad=True)
    y = case.call(x, lambda values: torch.tensor(np.asarray(values), dtype=torch.float64))
    total = (y * torch.tensor(weights(tuple(y.shape)))).sum()
    total.backward()
    return float(total), np.zeros_like(case.x) if x.grad is None else x.grad.numpy()


def of_jax(case: Any, weights: Callable[[Any], Any]) -> tuple[float, Any]:
    """The same on JAX's arrays."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def total(x: Any) -> Any:
        y = case.call(x, lambda values: jnp.asarray(np.asarray(values, dtype=float)))
        return (y * weights(y.shape)).sum()

    value, gradient = jax.value_and_grad(total)(jnp.asarray(case.x))
    return float(value), np.asarray(gradient)


def verdict(run: Callable[[], tuple[float, Any]], expected: tuple[float, Any]) -> str:
    """right, refused or wrong."""
    try:
        value, gradient = run()
    except Exception:
        return "refused"
    is_right = np.isclose(value, expected[0], rtol=1e-6) and np.allclose(
        gradient, expected[1], rtol=1e-5, atol=1e-7
    )
    return "right" if is_right else "wrong"


def rows_of_the_table() -> tuple[list[str], dict[str, list[str]]]:
    """The heads of the columns, and for each call the verdicts."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import consumer_cases as cases

    weights, found = cases.weights_of, {}
    for case in cases.CASES:
        expected = cases.on_numpy(case, case.x), cases.differences(case)
        found[case.name] = [
            verdict(lambda: of_tinynode(case, weights, "numpy"), expected),  # noqa: B023
            verdict(lambda: of_tinynode(case, weights, "torch"), expected),  # noqa: B023
            verdict(lambda: of_pytorch(case, weights), expected),  # noqa: B023
            verdict(lambda: of_jax(case, weights), expected),  # noqa: B023
        ]
    return ["tinynode on NumPy", "tinynode on PyTorch", "PyTorch", "JAX"], found


def page() -> str:
    """The text of the page."""
    heads, found = rows_of_the_table()
    counts = []
    for column, head in enumerate(heads):
        verdicts = [row[column] for row in found.values()]
        numbers = [str(verdicts.count(word)) for word in ("right", "refused", "wrong")]
        counts.append(f"| {head} | {' | '.join(numbers)} |")
    return HEAD.format(
        calls=len(found),
        counts="\n".join(counts),
        versions=", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        names=" | ".join(heads),
        rule="|".join(["---"] * len(heads)),
        rows="\n".join(f"| `{name}` | {' | '.join(row)} |" for name, row in found.items()),
    )


if __name__ == "__main__":
    command_words.read(__doc__)
    warnings.simplefilter("ignore")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
