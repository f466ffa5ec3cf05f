"""mynode: a framework of my own."""

from mynode.functions.products import matmul
from mynode.type_check import InvalidType
