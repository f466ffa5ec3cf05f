from mynode.core.backprop import grad
from mynode.functions.products import matrix_transpose
from mynode.functions.trigonometric import cos
