"""What the graph holds of a Variable."""

import weakref


class VariableNode:
    """What the graph holds of a Variable: the shape, and no array."""

    def __init__(self, variable):
        self.name = variable.name
        self.shape = variable.array.shape
        self.requires_grad = variable.requires_grad
        self.creator_node = None
        self.rank = 0
        self._variable = weakref.ref(variable)

    def get_variable_or_none(self):
        """The Variable, while somebody holds it."""
        return self._variable()

    def unchain(self):
        """Forget the creator: backward stops here."""
        self.creator_node = None


def unchain_all(node):
    """Let a node, and all nodes that it was computed from, forget their creators."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.creator_node is not None:
            waiting += node.creator_node.inputs
            node.unchain()
