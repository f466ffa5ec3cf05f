"""mynode: a framework of my own."""

from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.functions.arithmetic import negative
from mynode.functions.exponential import exp, square
