"""mynode: a framework of my own."""

from mynode.core.variable_node import VariableNode
