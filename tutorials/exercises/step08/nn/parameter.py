"""What is trained. Step 8: this file is given."""

from mynode.core.variable import Variable


class Parameter(Variable):
    """A leaf that training changes."""
