from mynode.functions.cross_entropy import softmax_cross_entropy
from mynode.functions.loss import mean_squared_error
