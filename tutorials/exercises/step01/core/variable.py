"""What a user holds: an array, and where it came from.

Step 1: write the class Variable. The page of step 1 shows the class.
"""


class Variable:
    """A box around an array. It remembers the operation that computed it."""

    def __init__(self, array, *, name=None):
        raise NotImplementedError("step 1: set self.array, self.name and self.creator_node")
