"""The guards against NaN and infinite gradients, by the class of the function.

Requirement: an error about a NaN also says how the program avoids the NaN. The table is data:
names and sentences. So debug mode, ``explain_grad``, films and ``docs/why-nan.md`` say the same.
"""

from __future__ import annotations

from typing import Any

_POSITIVE = "where(x > 0, {0}(where(x > 0, x, 1.0)), 0.0)"
_LOG = (
    "{0}(x) is -inf at 0, NaN below 0, and the slope at 0 is infinite. Choose a safe operand "
    f"before the function: {_POSITIVE}; or write {{0}}(x + eps). For small x, log1p(x) is "
    "log(1 + x). "
    "For probabilities, log_softmax or log_sigmoid gives the logarithm at once."
)
_EDGE = (
    "{0}(x) has an infinite slope at the ends of the domain, and is NaN beyond. Clip the operand: "
    "{0}(clip(x, {1}, {2}))."
)
_DIVIDE = (
    "A divisor of 0 gives inf, and 0 / 0 gives NaN. Choose a safe divisor before the division: "
    "where(y != 0, x / where(y != 0, y, 1.0), 0.0); or add eps to a divisor that is not negative: "
    "x / (y + eps). For exp(x) / sum(exp(x)) take softmax(x). For a variance of one sample, take "
    "correction=0."
)
_EXP = (
    "{0}(x) overflows above 709 in float64, 88 in float32 and 11 in float16. Subtract the largest "
    "element before, {0}(x - max(x)); softmax, log_softmax, logsumexp and sigmoid do so by "
    "themselves. Or clip x."
)
_POWER = (
    "x**y has an infinite slope at x = 0 for y below 1, and the slope of y is x**y * log(x): NaN "
    "for x below 0. Choose a safe base before: where(x > 0, where(x > 0, x, 1.0) ** y, 0.0); or "
    "write (x + eps) ** y."
)
_PRODUCT = (
    "A product is NaN for 0 * inf, and overflows for large factors. Find the factor that is not "
    "finite, and guard the function that made the factor; or scale the factors."
)
_MATRIX = (
    "A singular matrix has no finite gradient. Add a small multiple of "
    "the unit matrix before: a + eps * eye(n)."
)
_EQUAL = (
    "Equal eigenvalues or singular values have vectors without a finite gradient. Use the values "
    "alone, or add small, different numbers to the diagonal before."
)
_SUM = (
    "A sum is NaN for inf - inf, and overflows for large terms. Find the term that is not finite; "
    "take logsumexp for a logarithm of a sum of exponentials."
)

GUARDS: dict[str, str] = {
    "Sqrt": (
        "sqrt(x) has an infinite slope at 0, and is NaN below 0. Choose a safe operand before the "
        f"function: {_POSITIVE.format('sqrt')}; or write sqrt(x + eps). For a length take "
        "linalg.vector_norm(x) or hypot(x, y); for std write sqrt(var(x) + eps)."
    ),
    "Log": _LOG.format("log"),
    "Log2": _LOG.format("log2"),
    "Log10": _LOG.format("log10"),
    "Log1p": (
        "log1p(x) is -inf at -1, NaN below -1, and the slope at -1 is infinite. Choose a safe "
        "operand before: where(x > -1, log1p(where(x > -1, x, 0.0)), 0.0)."
    ),
    "Divide": _DIVIDE,
    "Reciprocal": _DIVIDE,
    "Exp": _EXP.format("exp"),
    "Expm1": _EXP.format("expm1"),
    "Sinh": _EXP.format("sinh"),
    "Cosh": _EXP.format("cosh"),
    "Square": (
        "x * x overflows for large x. Scale x before; for a length take vector_norm or hypot."
    ),
    "Pow": _POWER,
    "PowConstant": _POWER,
    "Atan2": (
        "atan2(y, x) has no slope at (0, 0). Choose a safe pair before the function: "
        "ok = (x != 0) | (y != 0), then where(ok, atan2(where(ok, y, 0.0), where(ok, x, 1.0)), "
        "0.0)."
    ),
    "Hypot": "hypot(x, y) overflows only for huge operands. Scale the operands before.",
    "Asin": _EDGE.format("asin", "-1 + eps", "1 - eps"),
    "Acos": _EDGE.format("acos", "-1 + eps", "1 - eps"),
    "Atanh": _EDGE.format("atanh", "-1 + eps", "1 - eps"),
    "Acosh": _EDGE.format("acosh", "1 + eps", "None"),
    "ErfInv": _EDGE.format("erfinv", "-1 + eps", "1 - eps"),
    "Multiply": _PRODUCT,
    "MatMul": _PRODUCT,
    "MatMulOfTransposed": _PRODUCT,
    "Linear": _PRODUCT,
    "Prod": _PRODUCT,
    "Add": _SUM,
    "Subtract": _SUM,
    "Sum": _SUM,
    "Mean": _SUM,
    "Inv": _MATRIX,
    "Solve": _MATRIX,
    "Det": _MATRIX,
    "SlogDet": _MATRIX,
    "Cholesky": _MATRIX,
    "Eigh": _EQUAL,
    "Svd": _EQUAL,
    "Pinv": _MATRIX,
    "Qr": _MATRIX,
    "AsType": (
        "The dtype is too narrow for the number. Cast to float32 or float64, or scale before."
    ),
}
"""By the class name of a function: the reason, and the guard."""

_OTHERS = (
    "The function has no guard in the table. Keep the operands in the domain: choose a safe "
    "operand with where before the function, clip the operand, or add a small eps."
)

_ONE_OPERAND = (
    "Abs Acos Acosh Asin Asinh AsType Atan Atanh Clip Copy Cos Cosh ELU Erf ErfInv Erfc Exp Expm1 "
    "GELU Identity LGamma LeakyReLU Log Log10 Log1p Log2 LogSigmoid Negative Positive PowConstant "
    "ReLU Reciprocal SiLU Sigmoid Sin Sinh Sqrt Square Tan Tanh TanhGELU"
)
_SEVERAL_OPERANDS = (
    "Add Atan2 CopySign Divide Hypot LogAddExp Maximum Minimum Multiply Pow Subtract Where "
    "ZeroSafeMultiply"
)
ELEMENTWISE = frozenset(f"{_ONE_OPERAND} {_SEVERAL_OPERANDS}".split())
"""The class names of functions with one operand of each input for one element of the output."""


def guard_of(function: Any) -> str:
    """The reason of a NaN in a function, and the guard, in a few sentences."""
    return GUARDS.get(type(function).__name__, _OTHERS)


def has_guard(function: Any) -> bool:
    """True if the table has a guard for a function."""
    return type(function).__name__ in GUARDS


def is_elementwise(function: Any) -> bool:
    """True if an element of the output has one operand of each input."""
    return type(function).__name__ in ELEMENTWISE
