"""mynode: a framework of my own."""

from mynode.functions.trigonometric import tanh
