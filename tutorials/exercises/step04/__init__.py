"""mynode: a framework of my own."""

from mynode.functions.arithmetic import add, multiply, subtract
