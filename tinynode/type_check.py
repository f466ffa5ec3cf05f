"""Readable checks of the inputs of a function.

Requirement: a passing check costs almost no time, and a failing check explains the failure. So
``check_type_forward`` first gets the arrays, in a tuple with ``size()``; the comparisons are plain
Python. After a failure ``check_type_forward`` is called again, with expressions in place of the
arrays. An expression knows the text of the operations, so the message can show
``in_types[0].shape[1] == in_types[1].shape[0]`` beside the numbers.

    class MyFunc(FunctionNode):
        def check_type_forward(self, in_types):
            expect(in_types.size() == 1, is_floating(in_types[0]), in_types[0].ndim == 2)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, SupportsIndex

from tinynode import devices
from tinynode.errors import InvalidType, dtype_name

__all__ = [
    "Expression",
    "TypeInfoTuple",
    "broadcasts",
    "expect",
    "is_floating",
    "is_integer",
]
__dir__ = __all__.copy  # for completion


class TypeInfoTuple(tuple[Any, ...]):
    """The arrays as arguments of ``check_type_forward``; ``size()`` is the number of arrays."""

    def size(self) -> int:
        return len(self)


class Expression:
    """A value with the text of the operations that made the value."""

    __hash__ = object.__hash__

    def __init__(self, text: str, value: Any) -> None:
        self.text = text
        self.value = value

    def __getattr__(self, name: str) -> Expression:
        return Expression(f"{self.text}.{name}", getattr(self.value, name))

    def __getitem__(self, index: Any) -> Expression:
        return Expression(f"{self.text}[{index}]", self.value[index])

    def __len__(self) -> int:
        return len(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        index: SupportsIndex = self.value
        return operator.index(index)

    def __add__(self, other: Any) -> Expression:
        return _combine(operator.add, "+", self, other)

    def __sub__(self, other: Any) -> Expression:
        return _combine(operator.sub, "-", self, other)

    def __mul__(self, other: Any) -> Expression:
        return _combine(operator.mul, "*", self, other)

    def __floordiv__(self, other: Any) -> Expression:
        return _combine(operator.floordiv, "//", self, other)

    def __mod__(self, other: Any) -> Expression:
        return _combine(operator.mod, "%", self, other)

    def __radd__(self, other: Any) -> Expression:
        return _combine(operator.add, "+", other, self)

    def __rsub__(self, other: Any) -> Expression:
        return _combine(operator.sub, "-", other, self)

    def __rmul__(self, other: Any) -> Expression:
        return _combine(operator.mul, "*", other, self)

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return _compare(operator.eq, "==", "!=", self, other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return _compare(operator.ne, "!=", "==", self, other)

    def __lt__(self, other: Any) -> Condition:
        return _compare(operator.lt, "<", ">=", self, other)

    def __le__(self, other: Any) -> Condition:
        return _compare(operator.le, "<=", ">", self, other)

    def __gt__(self, other: Any) -> Condition:
        return _compare(operator.gt, ">", "<=", self, other)

    def __ge__(self, other: Any) -> Condition:
        return _compare(operator.ge, ">=", "<", self, other)


class Condition(Expression):
    """A comparison: the text, the truth value, and the actual values in case of failure."""

    def __init__(self, text: str, value: bool, actual: str) -> None:
        super().__init__(text, value)
        self.actual = actual


class ExpressionTuple(tuple[Expression, ...]):
    """The expressions in place of the arrays on the second call."""

    def size(self) -> Expression:
        return Expression("in_types.size()", len(self))


def _text(value: Any) -> str:
    if isinstance(value, Expression):
        return value.text
    return _show(value)


def _show(value: Any) -> str:
    """A dtype by name, for any array library; other values by ``repr``."""
    if isinstance(value, type) or type(value).__name__.lower().find("dtype") >= 0:
        return str(getattr(value, "__name__", None) or dtype_name(value))
    return repr(value)


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Expression) else value


def _combine(function: Callable[[Any, Any], Any], sign: str, left: Any, right: Any) -> Expression:
    text = f"{_text(left)} {sign} {_text(right)}"
    return Expression(text, function(_value(left), _value(right)))


def _compare(
    function: Callable[[Any, Any], Any], sign: str, opposite: str, left: Expression, right: Any
) -> Condition:
    actual = f"{_show(left.value)} {opposite} {_show(_value(right))}"
    holds = bool(function(left.value, _value(right)))
    return Condition(f"{left.text} {sign} {_text(right)}", holds, actual)


def is_floating(in_type: Any) -> Any:
    """For use in ``expect``: the array has a real floating dtype."""
    if not isinstance(in_type, Expression):
        return devices.is_floating(in_type)
    array = in_type.value
    text = f"{in_type.text}.dtype is floating"
    return Condition(text, devices.is_floating(array), dtype_name(array.dtype))


def is_integer(in_type: Any) -> Any:
    """For use in ``expect``: the array has an integer dtype, signed or unsigned."""
    if not isinstance(in_type, Expression):
        return devices.is_integer(in_type)
    array = in_type.value
    text = f"{in_type.text}.dtype is an integer dtype"
    return Condition(text, devices.is_integer(array), dtype_name(array.dtype))


def broadcasts(in_type: Any, other: Any, last: int = 0) -> Any:
    """For use in ``expect``: the two shapes broadcast together, but for the ``last`` axes."""
    left, right = tuple(_value(in_type).shape), tuple(_value(other).shape)
    left, right = left[: len(left) - last], right[: len(right) - last]
    holds = left == right or all(
        a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right), strict=False)
    )
    if not isinstance(in_type, Expression):
        return holds
    other_text = other.text if isinstance(other, Expression) else "the other"
    text = f"{in_type.text}.shape broadcasts with {other_text}.shape"
    return Condition(text, holds, f"{left} and {right}")


def expect(*conditions: Any) -> None:
    """Refuse the inputs at the first false condition.

    Raises:
        InvalidType: names the condition and the actual values.
    """
    for condition in conditions:
        if condition:
            continue
        if isinstance(condition, Condition):
            raise InvalidType(condition.text, condition.actual)
        if isinstance(condition, Expression):
            raise InvalidType(condition.text, repr(condition.value))
        raise InvalidType("every condition holds", f"one is {condition!r}")


def run_check(function: Any, arrays: tuple[Any, ...]) -> None:
    """Run ``function.check_type_forward`` on arrays; after a failure, on expressions.

    Raises:
        InvalidType: names the function, the condition, and every input.
    """
    try:
        function.check_type_forward(TypeInfoTuple(arrays))
        return
    except InvalidType as error:
        failure = error
    expressions = [Expression(f"in_types[{i}]", array) for i, array in enumerate(arrays)]
    try:
        function.check_type_forward(ExpressionTuple(expressions))
    except InvalidType as error:
        failure = error
    except Exception:  # expressions cannot run this check: report the first failure
        pass
    try:
        message = _message(function, arrays, failure)
        raise InvalidType(failure.expect, failure.actual, message) from None
    finally:
        del failure  # the traceback holds this frame: a reference cycle


def _message(function: Any, arrays: tuple[Any, ...], failure: InvalidType) -> str:
    lines = [
        *_dtype_line(function, arrays, failure),
        f"Invalid operation is performed in: {function.label} (Forward)",
        "",
        f"Expect: {failure.expect}",
        f"Actual: {failure.actual}",
    ]
    names = function.input_names
    for i, array in enumerate(arrays):
        name = f" ({names[i]})" if i < len(names) else ""
        lines.append(f"in_types[{i}]{name}: shape {tuple(array.shape)}, {dtype_name(array.dtype)}")
    if function.type_hint:
        lines.append(f"Try: {function.type_hint}")
    return "\n".join(lines)


def _dtype_line(function: Any, arrays: tuple[Any, ...], failure: InvalidType) -> list[str]:
    """A sentence with the two dtypes and the cure, if a comparison of dtypes failed."""
    first = arrays[0].dtype if arrays else None
    others = [i for i, array in enumerate(arrays) if array.dtype != first]
    if failure.expect.count(".dtype") != 2 or not others:
        return []
    named = function.input_names
    x, y = (named[i] if i < len(named) else f"input {i}" for i in (0, others[0]))
    one, other = dtype_name(first), dtype_name(arrays[others[0]].dtype)
    subject, wanted = (x, other) if "int" not in other else (y, one)
    subject = subject if subject.isidentifier() else "x"
    return [
        f"{function.label}: {x} is {one}, {y} is {other}: cast one, such as "
        f"{subject}.astype({wanted!r})."
    ]
