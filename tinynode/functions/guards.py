"""The guards against NaN and infinite gradients: why a function makes them, and the way around.

Requirement: an error about a NaN also says how the program avoids the NaN. A function names its
sentences in the class, as ``guard``. So debug mode, ``explain_grad``, films and
``docs/why-nan.md`` say the same. A class fills in its own name where a text has ``{0}``.
"""

from __future__ import annotations

_POSITIVE = "where(x > 0, {0}(where(x > 0, x, 1.0)), 0.0)"
SQRT = (
    "sqrt(x) has an infinite slope at 0, and is NaN below 0. Choose a safe operand before the "
    f"function: {_POSITIVE.format('sqrt')}; or write sqrt(x + eps). For a length take "
    "linalg.vector_norm(x) or hypot(x, y); for std write sqrt(var(x) + eps)."
)
STD = "std(x) has no slope where all elements are equal. Write sqrt(var(x) + eps)."
LOG = (
    "{0}(x) is -inf at 0, NaN below 0, and the slope at 0 is infinite. Choose a safe operand "
    f"before the function: {_POSITIVE}; or write {{0}}(x + eps). For small x, log1p(x) is "
    "log(1 + x). "
    "For probabilities, log_softmax or log_sigmoid gives the logarithm at once."
)
LOG1P = (
    "log1p(x) is -inf at -1, NaN below -1, and the slope at -1 is infinite. Choose a safe "
    "operand before: where(x > -1, log1p(where(x > -1, x, 0.0)), 0.0)."
)
EDGE = (
    "{0}(x) has an infinite slope at the ends of the domain, and is NaN beyond. Clip the operand: "
    "{0}(clip(x, {1}, {2}))."
)
DIVISION = (
    "A divisor of 0 gives inf, and 0 / 0 gives NaN. Choose a safe divisor before the division: "
    "where(y != 0, x / where(y != 0, y, 1.0), 0.0); or add eps to a divisor that is not negative: "
    "x / (y + eps). For exp(x) / sum(exp(x)) take softmax(x). For a variance of one sample, take "
    "correction=0."
)
EXP = (
    "{0}(x) overflows above 709 in float64, 88 in float32 and 11 in float16. Subtract the largest "
    "element before, {0}(x - max(x)); softmax, log_softmax, logsumexp and sigmoid do so by "
    "themselves. Or clip x."
)
OVERFLOW = (
    "{0}(x) overflows above {1} in float64, {2} in float32 and {3} in float16. Clip x, or cast to "
    "a wider dtype."
)
SQUARE = "x * x overflows for large x. Scale x before; for a length take vector_norm or hypot."
POWER = (
    "x**y has an infinite slope at x = 0 for y below 1, and the slope of y is x**y * log(x): NaN "
    "for x below 0. Choose a safe base before: where(x > 0, where(x > 0, x, 1.0) ** y, 0.0); or "
    "write (x + eps) ** y."
)
ATAN2 = (
    "atan2(y, x) has no slope at (0, 0). Choose a safe pair before the function: "
    "ok = (x != 0) | (y != 0), then where(ok, atan2(where(ok, y, 0.0), where(ok, x, 1.0)), 0.0)."
)
LENGTH = (
    "A norm has no slope at 0, so second derivatives of a length of 0 are not finite. Write the "
    "squared length as vecdot(x, x) or sum(x * x), not as vector_norm(x)**2; or add eps to x."
)
HYPOT = "hypot(x, y) overflows only for huge operands. Scale the operands before."
PRODUCT = (
    "A product is NaN for 0 * inf, and overflows for large factors. Find the factor that is not "
    "finite, and guard the function that made the factor; or scale the factors."
)
SUM = (
    "A sum is NaN for inf - inf, and overflows for large terms. Find the term that is not finite; "
    "take logsumexp for a logarithm of a sum of exponentials."
)
SINGULAR = (
    "A singular matrix has no finite gradient. Add a small multiple of "
    "the unit matrix before: a + eps * eye(n)."
)
EQUAL_VALUES = (
    "Equal eigenvalues or singular values have vectors without a finite gradient. Use the values "
    "alone, or add small, different numbers to the diagonal before."
)
NARROW = "The dtype is too narrow for the number. Cast to float32 or float64, or scale before."
