"""The page ``docs/accuracy.md``: the largest errors of tinynode, PyTorch and JAX in ulp.

Run ``python -m tools.accuracy`` with the extras ``test`` and ``peers``. The rows stand in
``tests/accuracy/rows.py`` and ``special_rows.py``. A function of PyTorch or JAX stands here, by
the name of its row.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from accuracy.allowances import comparable
from accuracy.measure import DENSE, DTYPES, constant, errors, grid, results, true_results
from accuracy.rows import ROWS, Row
from accuracy.special_rows import PREFIX, SPECIAL_ROWS, Called

from tools import command_words

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
HEAD = """# Accuracy

How far are values and derivatives from the true result? The tables show the largest error of each
function in ulp: units in the last place. Half an ulp is the best that a dtype can do. Each entry
has three numbers: the error of the value, of the first and of the second derivative. Functions
without a derivative have one number.

- The grid has {count} numbers of each sign on a logarithmic scale, from the smallest subnormal to
  the largest number, and as many up to 20. Neighbourhoods of poles, roots and branch points, and
  of thresholds of the code, are added.
- Rows of `special` are the functions of `xp.special`, with a grid of {special_count} numbers.
  Their values come from SciPy {scipy}, their derivatives from tinynode's rules.
- The true results come from mpmath {mpmath} with 250 bits.
- All columns were measured in one run on a CPU: tinynode on NumPy {numpy}, PyTorch {torch}, JAX
  {jax}. Derivatives are those of each library's own backward pass, or of `jvp` in JAX.
- `inf` says that a result is infinite or NaN although the dtype can hold the true one.
- JAX takes subnormal numbers as 0 on a CPU: `floor` of -1e-40 is -0. Such errors count as well.
- Derivatives count only if the dtype holds the true result as a normal number. At a root of a
  result, the error is counted in the ulp of the terms.
- The sign `-` says that the library has no such function for this dtype, or none is listed here.
  The second derivatives of `exp1` and `expi` take JAX more than a minute.
- At a kink, such as 6 of `relu6`, libraries choose different derivatives; that of tinynode counts.

The tests allow 4 ulp for values (8 for special functions, 2 in float16), and 8 for derivatives.
All exceptions stand in `tests/accuracy/allowances.py` and `special_allowances.py`, with a reason
each. Compiled functions on `fast` are compared with the same limits. A test fails for an
elementwise function without a row; `tests/accuracy/coverage.py` has the exceptions.

This page is written by `python -m tools.accuracy`.
"""
TF = torch.nn.functional
ONE_NAME = """floor ceil round trunc sign abs negative square reciprocal sqrt rsqrt exp expm1 log
log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc
erfinv lgamma digamma"""
TORCH: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in ONE_NAME.split()},
    "log_sigmoid": TF.logsigmoid,
    "softplus": TF.softplus,
    "silu": TF.silu,
    "gelu": TF.gelu,
    "gelu by tanh": partial(TF.gelu, approximate="tanh"),
    "elu": TF.elu,
    "selu": TF.selu,
    "relu": TF.relu,
    "relu6": TF.relu6,
    "hard_tanh": TF.hardtanh,
    "polygamma, order 1": partial(torch.polygamma, 1),
    "polygamma, order 2": partial(torch.polygamma, 2),
}
SPECIAL = jax.scipy.special
JAX: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in ONE_NAME.split() if hasattr(jnp, name)},
    "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "erf": SPECIAL.erf,
    "erfc": SPECIAL.erfc,
    "erfinv": SPECIAL.erfinv,
    "lgamma": SPECIAL.gammaln,
    "digamma": SPECIAL.digamma,
    "log_sigmoid": jax.nn.log_sigmoid,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu by tanh": partial(jax.nn.gelu, approximate=True),
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "hard_tanh": jax.nn.hard_tanh,
    "polygamma, order 1": partial(SPECIAL.polygamma, 1),
    "polygamma, order 2": partial(SPECIAL.polygamma, 2),
}
# functions of two variables, by the start of the row's name; x stands on the left or the right
OF_TWO: dict[str, tuple[Any, Any, bool]] = {
    "multiply by itself": (torch.square, jnp.square, False),
    "divide, x /": (torch.divide, jnp.divide, False),
    "remainder, x": (torch.remainder, jnp.remainder, False),
    "fmod of x": (torch.fmod, jnp.fmod, False),
    "atan2 of (x": (torch.atan2, jnp.arctan2, False),
    "add": (torch.add, jnp.add, False),
    "subtract": (torch.subtract, jnp.subtract, False),
    "multiply": (torch.multiply, jnp.multiply, False),
    "maximum": (torch.maximum, jnp.maximum, False),
    "minimum": (torch.minimum, jnp.minimum, False),
    "copysign": (torch.copysign, jnp.copysign, False),
    "hypot": (torch.hypot, jnp.hypot, False),
    "logaddexp": (torch.logaddexp, jnp.logaddexp, False),
    "divide": (torch.divide, jnp.divide, True),
    "remainder": (torch.remainder, jnp.remainder, True),
    "fmod": (torch.fmod, jnp.fmod, True),
    "atan2": (torch.atan2, jnp.arctan2, True),
}


OTHER_NAMES = {"j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1",
               "k0": "modified_bessel_k0", "k1": "modified_bessel_k1"}  # fmt: skip
"""Names of PyTorch for those of SciPy."""
DIFFERENT = ("sinc", "zeta", "polygamma", "expn")
"""Names whose functions take other arguments, or another order, in PyTorch or JAX."""

ENDLESS_IN_JAX = ("exp1", "expi")
"""Names whose second derivative takes JAX more than ten minutes."""


def special_functions_of(call: Called) -> tuple[Any, Any]:
    """A function of ``xp.special`` in PyTorch and in JAX, of x and the constant; None for none."""
    if call.name in DIFFERENT:
        return None, None
    found = [getattr(torch.special, OTHER_NAMES.get(call.name, call.name), None)]
    found.append(None if call.name in ENDLESS_IN_JAX else getattr(SPECIAL, call.name, None))
    if call.position:
        found = [None if function is None else _swapped(function) for function in found]
    return found[0], found[1]


def functions_of(row: Row) -> tuple[Any, Any]:
    """The row's function in PyTorch and in JAX, of x and the constant; None for none."""
    if isinstance(row.function, Called):
        return special_functions_of(row.function)
    if row.name in TORCH:
        return TORCH[row.name], JAX.get(row.name)
    if row.name.startswith("pow, x^"):
        power = float(row.name.removeprefix("pow, x^"))
        return partial(torch.pow, exponent=power), lambda x: jnp.power(x, power)
    if row.name.startswith("pow"):
        return _swapped(torch.pow), _swapped(jnp.power)
    if row.name.startswith("sigmoid_cross_entropy"):
        return _torch_binary, None
    for start, (of_torch, of_jax, is_swapped) in OF_TWO.items():
        if row.name.startswith(start):
            return (_swapped(of_torch), _swapped(of_jax)) if is_swapped else (of_torch, of_jax)
    return None, None


def _swapped(function: Any) -> Any:
    def call(x: Any, c: Any) -> Any:
        return function(c, x)

    return call


def _torch_binary(x: Any, t: Any) -> Any:
    return TF.binary_cross_entropy_with_logits(x, t.expand_as(x), reduction="none")


# --- results -------------------------------------------------------------------------------------


def of_torch(row: Row, function: Any, x: Any, c: Any) -> list[Any]:
    """Value, first and second derivative by PyTorch."""
    variable = torch.tensor(x, requires_grad=True)
    y = function(variable) if c is None else function(variable, torch.tensor(c))
    found = [y.detach().numpy()]
    for _ in row.exact[1:]:
        gx = None
        if y.requires_grad:
            (gx,) = torch.autograd.grad(y.sum(), variable, create_graph=True, allow_unused=True)
        y = torch.zeros_like(variable) if gx is None else gx
        found.append(y.detach().numpy())
    return found


def of_jax(row: Row, function: Any, x: Any, c: Any) -> list[Any]:
    """Value, first and second derivative by JAX."""
    ones = jnp.ones_like(x)

    def value(v: Any) -> Any:
        return function(v) if c is None else function(v, jnp.asarray(c))

    def first(v: Any) -> Any:
        return jax.jvp(value, (v,), (ones,))[1]

    def second(v: Any) -> Any:
        return jax.jvp(first, (v,), (ones,))[1]

    parts = (value, first, second)[: len(row.exact)]
    return [np.asarray(part(jnp.asarray(x))) for part in parts]


@cache
def true_results_of(row: Row, dtype: str, order: int) -> tuple[Any, Any]:
    """The true results of a row, computed once for the three libraries."""
    return true_results(row, order, *arguments(row, dtype))


def arguments(row: Row, dtype: str) -> tuple[Any, Any]:
    """The grid of a row, and its constant."""
    count = SPECIAL_COUNT if row.name.startswith(PREFIX) else DENSE
    return grid(row, dtype, count), constant(row, dtype)


def entry(row: Row, dtype: str, made: Callable[[Any, Any], list[Any]]) -> str:
    """The largest errors of a library: of value, first and second derivative."""
    x, c = arguments(row, dtype)
    try:
        found = made(x, c)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
        return "-"
    largest = []
    for order, result in enumerate(found):
        true = true_results_of(row, dtype, order)
        ulps = errors(result, true, order)
        largest.append(comparable(row, order, x, ulps, np.abs(true[0])).max())
    return " / ".join(map(written, largest))


SPECIAL_COUNT = 20
"""The numbers of each sign for ``xp.special``: mpmath takes long for Bessel functions."""


def written(number: float) -> str:
    """An error with two digits."""
    return (
        f"{number:.1f}" if number < 100 else f"{number:.0e}".replace("e+0", "e").replace("e+", "e")
    )


def line(task: tuple[int, str]) -> str:
    """The line of a row, by its number and the dtype."""
    number, dtype = task
    row = ALL_ROWS[number]
    torch_function, jax_function = functions_of(row)
    parts = [entry(row, dtype, partial(results, row))]
    for made, function in ((of_torch, torch_function), (of_jax, jax_function)):
        has = function is not None
        parts.append(entry(row, dtype, partial(made, row, function)) if has else "-")
    return f"| {row.name} | {' | '.join(parts)} |"


ALL_ROWS = [*ROWS, *SPECIAL_ROWS]


def main() -> None:
    command_words.read(__doc__)
    names = ("mpmath", "numpy", "scipy", "torch", "jax")
    counts = {"count": DENSE, "special_count": SPECIAL_COUNT}
    head = HEAD.format(**counts, **{name: version(name).partition("+")[0] for name in names})
    lines = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
        for dtype in DTYPES:
            lines += ["", f"## {dtype}", ""]
            lines += ["| function | tinynode | PyTorch | JAX |", "|---|---|---|---|"]
            for made in workers.map(line, [(number, dtype) for number in range(len(ALL_ROWS))]):
                print(f"{dtype}: {made}", flush=True)
                lines.append(made)
    PAGE.write_text(head + "\n".join(lines) + "\n")


np.seterr(all="ignore")  # in each process
warnings.simplefilter("ignore")
if __name__ == "__main__":
    main()
