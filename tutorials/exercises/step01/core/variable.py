"""What a user holds: an array, and where it came from.

Step 1: this file is given.
"""


class Variable:
    """A box around an array. It remembers the operation that computed it."""

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None  # the FunctionNode that computed it
