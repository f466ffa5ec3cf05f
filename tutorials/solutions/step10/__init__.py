"""mynode: a framework of my own."""

from mynode.configuration import config, no_backprop_mode
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.core.variable_node import VariableNode
from mynode.functions.arithmetic import add, multiply, negative, subtract
from mynode.functions.exponential import exp, square
from mynode.functions.products import matmul
from mynode.functions.trigonometric import sin, tanh
from mynode.type_check import InvalidType
