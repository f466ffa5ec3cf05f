"""Readable checks of the inputs of an operation.

Step 15: InvalidType is given; write the other definitions.
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
        raise NotImplementedError("step 15: keep text and value")


def text_and_value(other):
    """The text and the value of the right side of a comparison."""
    raise NotImplementedError("step 15: of an Expression, or of a plain value")


class Condition:
    """A comparison: its text, whether it holds, and the values if it does not."""

    def __init__(self, text, holds, actual):
        raise NotImplementedError("step 15: keep text, holds and actual")


class TypeInfo:
    """The type of an input: the shape, the number of axes and the dtype, as expressions."""

    def __init__(self, text, array):
        raise NotImplementedError("step 15: text, shape, ndim and dtype")


class TypeInfoTuple(tuple):
    """The types of all inputs."""

    def size(self):
        """The number of inputs."""
        raise NotImplementedError("step 15: an Expression")


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
