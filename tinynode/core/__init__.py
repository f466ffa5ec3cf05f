"""The graph: Variables, nodes, functions, and the backward pass."""
