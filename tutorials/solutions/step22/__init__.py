"""mynode: a framework of my own."""

from mynode.configuration import config, no_backprop_mode, using_config
from mynode.core.backprop import grad
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.core.variable_node import VariableNode
from mynode.functions.activation import relu, softmax
from mynode.functions.arithmetic import add, divide, multiply, negative, subtract
from mynode.functions.convolution import conv2d
from mynode.functions.cross_entropy import softmax_cross_entropy
from mynode.functions.draws import dropout
from mynode.functions.exponential import exp, sigmoid, sqrt, square
from mynode.functions.loss import mean_squared_error
from mynode.functions.network import embedding, linear, scaled_dot_product_attention
from mynode.functions.normalization import layer_norm
from mynode.functions.pooling import max_pool2d
from mynode.functions.products import matmul, matrix_transpose
from mynode.functions.shapes import broadcast_to, permute_dims, reshape, sum_to
from mynode.functions.statistical import mean, sum, var
from mynode.functions.trigonometric import cos, sin, tanh
from mynode.random import seed
from mynode.type_check import InvalidType
