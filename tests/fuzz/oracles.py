"""Who computes a program: tinynode's backends and compiled functions, and PyTorch.

The reference is tinynode on NumPy, eagerly. Rounding differs between oracles, so the tolerance is
measured. The reference runs once more, and multiplies the result of each step by 1 + noise. The
change of the results tells how far rounding can reach; a discontinuity between two branches, too.

A *wide* program has values of the whole range, and is compared element by element; see
``compare_elements``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest
from fast_kernels import force_kernels, set_limits
from fuzz.derivatives import derivatives
from fuzz.programs import Program, Var

import tinynode as tn

Found = list[list[Any]]
"""Results, gradients and second gradients, as NumPy arrays; None for zeros."""

NOISE = 8
"""Units in the last place: the noise of each step, and the unit of the least tolerance."""


class RefusedError(Exception):
    """The oracle's library does not have what the program asks for."""


def hosts(found: list[list[Any]]) -> Found:
    return [[None if x is None else tn.to_host(x.array) for x in group] for group in found]


def namespace(
    device: str, is_wide: bool = False, sign: float = 1.0, seed: int = 7
) -> dict[str, Any]:
    """The globals of a program's text."""
    place = tn.get_device(device)

    def array(values: Any, dtype: Any = None) -> Any:
        return place.from_host(np.array(values, dtype=dtype))

    return {"F": tn.functions, "np": np, "array": array, "noisy": Noisy(is_wide, sign, seed)}


def eager(
    program: Program, device: str, moved: float = 0.0, noisy: float = 0.0, seed: int = 7
) -> Found:
    known = namespace(device, program.is_wide, noisy, seed)
    function = program.function(known, noisy=noisy != 0)
    flags = [one.requires_grad for one in program.inputs]
    arrays = [one.host(moved) for one in program.inputs]
    return hosts(derivatives(function, arrays, flags, device))


def reference(program: Program) -> Found:
    return eager(program, "numpy")


class Noisy:
    """x (1 + noise), with a noise of a few units in the last place of the dtype.

    Args:
        is_wide: True to move x also by a few of the smallest numbers, so that 0 gets a sign: a
            kink or a pole at 0 is then a discontinuity.
        sign: 1, or -1 for the noise in the other direction.
        seed: draws other noise.
    """

    def __init__(self, is_wide: bool = False, sign: float = 1.0, seed: int = 7) -> None:
        self.rng = np.random.default_rng(seed)
        self.is_wide = is_wide
        self.signs = [-sign, sign]

    def __call__(self, x: Any) -> Any:
        if not isinstance(x, tn.Variable) or x.dtype.kind != "f":
            return x
        size = NOISE * np.finfo(x.dtype).eps
        factor = 1 + size * self.rng.choice(self.signs, x.shape)
        moved = x * np.asarray(factor, x.dtype)
        if not self.is_wide:
            return moved
        smallest = NOISE * np.finfo(x.dtype).smallest_subnormal
        return moved + np.asarray(smallest * self.rng.choice(self.signs, x.shape), x.dtype)


# --- the oracles: each takes a program --------------------------------------------------------


def fast(program: Program) -> Found:
    return eager(program, "fast")


def forced_fast(program: Program) -> Found:
    with every_limit_forced():
        return eager(program, "fast")


def strict(program: Program) -> Found:
    """array_api_strict, without float16, and without the indices that the standard leaves open."""
    if "float16" in {*program.dtypes, *[str(one.dtype) for one in program.constants]}:
        raise RefusedError("float16")
    try:
        return eager(program, "strict")
    except (IndexError, TypeError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        is_known = isinstance(error, IndexError) or OTHER_OPERAND in str(error)
        if is_known and "array_api_strict" in frames[-1].filename:
            raise RefusedError(str(error)) from None
        raise


OTHER_OPERAND = "got <class 'tinynode.core.variable.Variable'>"
"""array_api_strict's arrays on the left of an operator refuse a Variable on the right."""


def compiled(program: Program, device: str) -> Found:
    """A compiled function. The first call records, on other values; the second call plans."""
    if any(one.dtype == bool for one in program.constants):
        raise RefusedError("a mask as an index: the result's shape depends on values")
    function = tn.compile(program.function(namespace(device)))
    flags = [one.requires_grad for one in program.inputs]
    other = [one.host(0.01) for one in program.inputs]
    derivatives(function, other, flags, device)
    return hosts(derivatives(function, [one.host() for one in program.inputs], flags, device))


def compiled_numpy(program: Program) -> Found:
    return compiled(program, "numpy")


def compiled_fast(program: Program) -> Found:
    return compiled(program, "fast")


def forced_compiled_fast(program: Program) -> Found:
    with every_limit_forced():
        return compiled(program, "fast")


ROUNDED = {"layer_norm", "batch_norm"}
"""PyTorch's derivatives are rounded differences of large numbers, where the exact ones are 0."""
OUT_OF_RANGE = {"acosh", "asinh", "atan2", "rms_norm", "std", "prod"}
"""PyTorch's formulas leave the range: squares of operands, a product divided by a factor."""
HOMOGENEOUS = {"atan2", "hypot"}
"""Derivatives near 0 are huge, and cancel where both operands are of one origin."""
CHOICES = {"maximum", "minimum"}
"""Functions that choose an operand."""
TAILS = {
    "softmax",
    "log_softmax",
    "softmax_cross_entropy",
    "logsumexp",
    "scaled_dot_product_attention",
    "sigmoid",
    "log_sigmoid",
    "tanh",
    "silu",
    "gelu",
    "softplus",
    "logaddexp",
    "elu",
    "selu",
    "expm1",
    "glu",
    "erf",
}
"""PyTorch's derivatives are rounded to a unit of the number 1."""
PRODUCTS = {
    "conv2d",
    "conv_transpose2d",
    "matmul",
    "linear",
    "einsum",
    "tensordot",
    "vecdot",
    "avg_pool2d",
    "sum",
    "mean",
    "sum_to",
    "var",
    "std",
    "cumulative_sum",
    "cumulative_prod",
    "prod",
    "scaled_dot_product_attention",
    "batch_norm",
    "layer_norm",
    "rms_norm",
    "mean_squared_error",
    "softmax_cross_entropy",
}
"""Sums of many terms: the order decides whether infinities meet, and give NaN."""


SIGN_OF_ZERO = {"remainder", "clip", "maximum", "minimum", "max", "min"}
"""Functions whose zero may have either sign: the standard leaves it open, or PyTorch differs."""


def torch(program: Program) -> Found:
    """The same program on PyTorch's functions, with PyTorch's gradients."""
    from fuzz import torch_functions

    if program.is_wide and (ROUNDED | OUT_OF_RANGE) & program.functions:
        raise RefusedError("a function that is not right over the whole range")
    if SIGN_OF_ZERO & program.functions and {"copysign", "atan2"} & program.functions:
        raise RefusedError("the sign of a zero, where +0 and -0 meet or a remainder is 0")
    if "atan2" in program.functions and "float16" in program.dtypes:
        raise RefusedError("PyTorch's second derivatives divide by squares that are 0 in float16")
    return torch_functions.run(program)


@contextlib.contextmanager
def every_limit_forced() -> Iterator[None]:
    """Kernels run at any size, on two threads, and every array counts as large in plans."""
    with pytest.MonkeyPatch.context() as patch:
        force_kernels(patch)
        set_limits(patch, copied_bytes=0)
        yield


Oracle: TypeAlias = Callable[[Program], Found]

ORACLES: dict[str, Oracle] = {
    "every kernel of fast": forced_fast,
    "compiled on numpy": compiled_numpy,
    "strict": strict,
    "compiled, every kernel of fast": forced_compiled_fast,
    "fast": fast,
    "compiled on fast": compiled_fast,
}
TURNS = tuple(ORACLES)
if importlib.util.find_spec("torch") is not None:
    ORACLES["PyTorch"] = torch


def oracles_of(chunk: int) -> dict[str, Oracle]:
    """One way to run tinynode, and PyTorch: chunks of programs take turns."""
    names = [TURNS[chunk % len(TURNS)], "PyTorch"]
    return {name: ORACLES[name] for name in names if name in ORACLES}


def check_one(program: Program, found: Found, expected: Found, who: str) -> int:
    """Compare with the least tolerance, or else with the measured tolerance."""
    if program.is_wide:
        runs = [expected, *[eager(program, "numpy", noisy=sign) for sign in (1.0, -1.0)]]
        if who == "PyTorch":  # second gradients overflow there, and gradients at NaN differ
            found = found[: 1 if gradients_at_nan_differ(program) else 2]
        elif HOMOGENEOUS & program.functions:
            found = found[:1]
        try:
            return compare_elements(found, runs, who, program.functions)
        except AssertionError:  # two equal elements may have had equal noise
            runs += [eager(program, "numpy", noisy=1.0, seed=seed) for seed in range(8, 16)]
            return compare_elements(found, runs, who, program.functions)
    try:
        return compare(found, expected, least_tolerances(program, expected), who)
    except AssertionError:
        return compare(found, expected, tolerances(program, expected), who)


def check(program: Program, oracles: dict[str, Oracle]) -> Counter[str]:
    """Compare oracles with the reference; the number of comparisons of each oracle.

    Raises:
        AssertionError: an oracle differs; a note has the program as a script.
    """
    who = "eager"
    counts: Counter[str] = Counter()
    if program.is_wide and reads_computed_sign(program):
        return counts
    try:
        expected = reference(program)
        for who, oracle in oracles.items():
            if who == "PyTorch" and not program.is_wide and is_singular(expected):
                continue  # at a pole or a kink libraries choose NaN, 0 or a one-sided derivative
            with contextlib.suppress(RefusedError):
                counts[who] += check_one(program, oracle(program), expected, who)
    except Exception as error:
        error.add_note(f"{who}: the program as a script:\n\n{program.script(who)}")
        raise
    return counts


def reads_computed_sign(program: Program) -> bool:
    """True if ``copysign`` reads a computed sign: that of a NaN or of a zero may be either."""
    names = {one.name for one in program.inputs}
    signs = [step.args[1] for step in program.steps if step.function == "copysign"]
    return any(isinstance(sign, Var) and sign.name not in names for sign in signs)


def is_singular(found: Found) -> bool:
    """True if an array has a NaN: no input has any, so a derivative is infinite or undefined."""
    arrays = [y for ys in found for y in ys if y is not None and y.dtype.kind == "f"]
    return any(bool(np.isnan(y).any()) for y in arrays)


# --- comparison ---------------------------------------------------------------------------------


def tolerances(program: Program, expected: Found) -> list[list[float]]:
    """How far each array may differ, by runs with noise; infinity where nothing can be said."""
    found = least = least_tolerances(program, expected)
    for seed in range(7, 10):  # of one draw, the noise of an array may be small by chance
        noisy = eager(program, "numpy", noisy=1.0, seed=seed)
        groups = zip(expected, noisy, least, found, strict=True)
        found = [list(map(_larger_tolerance, *group)) for group in groups]
    return found


def _larger_tolerance(one: Any, other: Any, least: float, before: float) -> float:
    return max(before, _tolerance(one, other, least))


def least_tolerances(program: Program, expected: Found) -> list[list[float]]:
    """Some units in the last place of each array's largest element."""
    eps = max(np.finfo(d).eps for d in (*program.dtypes, "float64") if d.startswith("float"))
    return [[100 * float(eps) * _scale(one) for one in group] for group in expected]


def _scale(array: Any) -> float:
    if array is None:
        return 1.0
    if array.dtype.kind != "f" or not np.all(np.isfinite(array)):
        return 0.0
    return max(1.0, float(np.max(np.abs(array), initial=0.0)))


def _tolerance(one: Any, other: Any, least: float) -> float:
    if one is None or other is None:
        return least if one is other else np.inf
    if one.dtype.kind != "f" or not one.size:
        return 0.0 if np.array_equal(one, other) else np.inf
    if one.shape != other.shape or not np.all(np.isfinite(one) & np.isfinite(other)):
        return np.inf
    difference = float(np.max(np.abs(one.astype(float) - other)))
    tolerance = least + 10 * difference
    return tolerance if tolerance < 0.3 * _scale(one) else np.inf


TITLES = ("result", "gradient", "second gradient")


def compare(found: Found, expected: Found, allowed: list[list[float]], who: str) -> int:
    """Compare shapes, dtypes and values; the number of comparisons.

    Raises:
        AssertionError: they differ; the message names the array and the oracle.
    """
    count = 0
    for title, ours, theirs, limits in zip(TITLES, found, expected, allowed, strict=True):
        if np.inf in limits and len(ours) != len(theirs):
            continue
        assert len(ours) == len(theirs), f"{who}: {len(ours)} {title}s for {len(theirs)}"
        for i, (one, other, limit) in enumerate(zip(ours, theirs, limits, strict=True)):
            count += limit < np.inf
            _compare_arrays(one, other, limit, f"{who}: {title} {i}")
    return count


def _compare_arrays(one: Any, other: Any, limit: float, what: str) -> None:
    if one is None and other is None:
        return
    one = np.zeros_like(other) if one is None else one
    other = np.zeros_like(one) if other is None else other
    assert one.shape == other.shape, f"{what} has shape {one.shape}, not {other.shape}"
    assert one.dtype == other.dtype, f"{what} has dtype {one.dtype}, not {other.dtype}"
    if limit == np.inf or not one.size:
        return
    if one.dtype.kind != "f":
        assert np.array_equal(one, other), f"{what} is\n{one}\nnot\n{other}"
        return
    with np.errstate(all="ignore"):
        worst = np.max(np.abs(one.astype(float) - other))
    assert worst <= limit, f"{what} differs by {worst:.3g} > {limit:.3g}:\n{one}\nnot\n{other}"


# --- values of the whole range -------------------------------------------------------------------


def gradients_at_nan_differ(program: Program) -> bool:
    """True if PyTorch may give another gradient at a NaN.

    At a NaN, PyTorch's ``minimum`` gives the gradient to both operands, as if neither were larger.
    """
    watch = NaNWatch()
    arrays = [one.host() for one in program.inputs]
    for array in arrays:
        watch(tn.Variable(array))
    if not watch.seen and CHOICES & program.functions:
        function = program.function(namespace("numpy") | {"noisy": watch}, noisy=True)
        with np.errstate(all="ignore"):
            function(*[tn.Variable(array) for array in arrays])
    return watch.seen


class NaNWatch:
    """Sees the values of a program that passes them as to ``Noisy``, and returns them.

    Attributes:
        seen: True after the first NaN.
    """

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, x: Any) -> Any:
        if isinstance(x, tn.Variable) and x.dtype.kind == "f":
            self.seen = self.seen or bool(np.isnan(x.array).any())
        return x


def compare_elements(found: Found, runs: list[Found], who: str, functions: set[str]) -> int:
    """Compare the elements that noise changes little; the number of compared arrays.

    NaN and infinities stand at equal places. PyTorch adds up gradients in another order, which
    counts where x - x cancels. PyTorch is compared where its results are finite: at other places
    it may be wrong, as behind a mask.

    Args:
        found: what an oracle found.
        runs: what the reference found, and found with noise in two directions.
        who: the name of the oracle.
        functions: the names of the program's functions.

    Raises:
        AssertionError: they differ; the message names the array and the oracle.
    """
    count, is_torch = 0, who == "PyTorch"
    for title, *groups in zip(TITLES, found, *runs, strict=False):
        if len({len(group) for group in groups}) > 1:
            continue  # noise decided whether a graph exists
        for i, (one, other, *moved) in enumerate(zip(*groups, strict=True)):
            if one is None or other is None or any(x is None for x in moved):
                continue
            what = f"{who}: {title} {i}"
            assert one.shape == other.shape, f"{what} has shape {one.shape}, not {other.shape}"
            assert one.dtype == other.dtype, f"{what} has dtype {one.dtype}, not {other.dtype}"
            if is_torch and functions & PRODUCTS and one.dtype.kind != "f":
                continue  # made of a NaN, perhaps
            is_rough = functions & TAILS or (is_torch and "subtract" in functions)
            wrong = differences(one, other, moved, 1.0 if is_rough else 0.0, is_torch)
            if functions & PRODUCTS and one.dtype.kind == "f":
                wrong &= np.isfinite(one) & np.isfinite(other)
            assert not wrong.any(), f"{what} differs at {np.argwhere(wrong)}:\n{one}\nnot\n{other}"
            count += 1
    return count


def differences(one: Any, other: Any, moved: list[Any], least: float, is_torch: bool) -> Any:
    """True for the elements of ``one`` that differ from ``other`` by more than noise.

    Args:
        one: an array that an oracle found.
        other: the array of the reference.
        moved: the arrays of the reference with noise.
        least: the unit of rounding is at least that of this number.
        is_torch: True to compare where ``one`` is finite alone.
    """
    if other.dtype.kind != "f":
        return (one != other) & np.all([x == other for x in moved], axis=0)
    limits = np.finfo(other.dtype)
    one, other, *moved = [np.asarray(x, np.longdouble) for x in (one, other, *moved)]
    # a backward adds up terms that cancel, in any order: the largest element tells their size
    least = 1.0 if limits.bits == 16 else least
    size = np.max(np.abs(other), where=np.isfinite(other), initial=least)
    with np.errstate(all="ignore"):
        reach = np.max([np.where(x == other, 0, np.abs(x - other)) for x in moved], axis=0)
        allowed = 100 * limits.eps * size + 100 * reach
        is_steady = (reach <= 0.003 * np.abs(other)) | (np.isnan(other) & np.isnan(moved).all(0))
        is_close = np.abs(one - other) <= allowed + 100 * limits.smallest_subnormal
    is_same = (one == other) | (np.isnan(one) & np.isnan(other)) | is_close
    if is_torch:
        return is_steady & ~is_same & np.isfinite(one)
    # a net marks the functions before a mask whatever their values are, and keeps more zeros
    return is_steady & ~is_same & ~(np.isnan(other) & np.isfinite(one))
