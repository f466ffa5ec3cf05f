"""Readable checks of the inputs of an operation.

Step 15: the classes and text_and_value are given. Write is_floating, broadcasts, expect and
run_check.
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
    raise NotImplementedError("step 15: a Condition; reversed(shape) begins with the last axis")


def expect(*conditions):
    """Refuse the inputs at the first condition that does not hold."""
    raise NotImplementedError("step 15: raise InvalidType(condition.text, condition.actual)")


def run_check(function, arrays):
    """Call check_type_forward; the error names the operation and all inputs."""
    raise NotImplementedError("step 15: make the TypeInfos, call, and complete the message")
