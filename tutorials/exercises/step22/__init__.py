from mynode.core.backprop import grad
from mynode.functions.trigonometric import cos
