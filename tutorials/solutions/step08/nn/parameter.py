"""What is trained."""

from mynode.core.variable import Variable


class Parameter(Variable):
    """A leaf that training changes."""
