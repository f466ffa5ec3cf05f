"""Readable checks of the inputs of an operation.

Step 15: write is_floating, and the ends of expect and of run_check. The rest is given.
"""


class InvalidType(Exception):
    """An operation has refused its inputs."""

    def __init__(self, expect, actual, message=None):
        super().__init__(message or f"expected {expect}, got {actual}")
        self.expect = expect  # the condition that does not hold, as text
        self.actual = actual  # the values, as text


class Expression:
    """A value, with the text of the operations that gave it."""

    def __init__(self, text, value):
        self.text = text
        self.value = value

    def __getitem__(self, index):
        return Expression(f"{self.text}[{index}]", self.value[index])

    def __eq__(self, other):
        text, value = text_and_value(other)
        return Condition(f"{self.text} == {text}", self.value == value, f"{self.value} != {value}")

    def __ge__(self, other):
        text, value = text_and_value(other)
        return Condition(f"{self.text} >= {text}", self.value >= value, f"{self.value} < {value}")


def text_and_value(other):
    """The text and the value of the right side of a comparison."""
    if isinstance(other, Expression):
        return other.text, other.value
    return str(other), other


class Condition:
    """A comparison: its text, whether it holds, and the values if it does not."""

    def __init__(self, text, holds, actual):
        self.text = text
        self.holds = holds
        self.actual = actual

    def __bool__(self):
        return bool(self.holds)


class TypeInfo:
    """The type of an input: the shape, the number of axes and the dtype, as expressions."""

    def __init__(self, text, array):
        self.text = text
        self.shape = Expression(f"{text}.shape", array.shape)
        self.ndim = Expression(f"{text}.ndim", array.ndim)
        self.dtype = Expression(f"{text}.dtype", array.dtype)


class TypeInfoTuple(tuple):
    """The types of all inputs."""

    def size(self):
        """The number of inputs."""
        return Expression("in_types.size()", len(self))


def is_floating(in_type):
    """For use in expect: the dtype is a floating one."""
    raise NotImplementedError("step 15: a Condition about the kind of the dtype, 'f'")


def broadcasts(in_type, other):
    """For use in expect: the two shapes broadcast together."""
    left, right = in_type.shape, other.shape
    pairs = zip(reversed(left.value), reversed(right.value))  # the last axes line up
    holds = all(a == b or 1 in (a, b) for a, b in pairs)
    text = f"{left.text} broadcasts with {right.text}"
    return Condition(text, holds, f"{left.value} and {right.value}")


def expect(*conditions):
    """Refuse the inputs at the first condition that does not hold."""
    for condition in conditions:
        if not condition and not isinstance(condition, Condition):  # a plain False has no text
            raise InvalidType("every condition holds", f"one is {condition!r}")
        raise NotImplementedError("step 15: raise InvalidType(condition.text, condition.actual)")


def full_message(function, error, arrays):
    """The name of the operation, the condition and its values, and a line for each input."""
    lines = [f"{type(function).__name__}: expected {error.expect}, got {error.actual}"]
    for i, x in enumerate(arrays):
        lines.append(f"  in_types[{i}]: shape {x.shape}, {x.dtype}")
    return "\n".join(lines)


def run_check(function, arrays):
    """Call check_type_forward; the error names the operation and all inputs."""
    in_types = TypeInfoTuple(TypeInfo(f"in_types[{i}]", x) for i, x in enumerate(arrays))
    raise NotImplementedError(f"step 15: check {in_types}, and raise with the full_message")
