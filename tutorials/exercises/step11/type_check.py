"""Readable checks of the inputs of an operation."""


def broadcasts(in_type, other):
    """For use in expect: the two shapes broadcast together."""
    raise NotImplementedError("step 11: a Condition; reversed(shape) begins with the last axis")
