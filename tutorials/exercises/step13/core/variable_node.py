"""What the graph holds of a Variable.

Step 13: VariableNode gets requires_grad and unchain. unchain_all is given.
"""


def unchain_all(node):
    """Let a node, and all nodes that it was computed from, forget their creators."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.creator_node is not None:
            waiting += node.creator_node.inputs
            node.unchain()
