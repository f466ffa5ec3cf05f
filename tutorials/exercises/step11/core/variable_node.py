"""What the graph holds of a Variable.

Step 11: write VariableNode.
"""

import weakref


class VariableNode:
    """What the graph holds of a Variable: the shape, and no array."""

    def __init__(self, variable):
        raise NotImplementedError("step 11: name, shape, creator_node, rank, and a weak reference")

    def get_variable_or_none(self):
        """The Variable, while somebody holds it."""
        raise NotImplementedError("step 11: what the weak reference gives")
