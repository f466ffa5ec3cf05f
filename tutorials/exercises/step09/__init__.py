from mynode.functions.activation import relu
from mynode.functions.cross_entropy import softmax_cross_entropy
from mynode.functions.loss import mean_squared_error
from mynode.functions.network import linear
from mynode.random import seed
