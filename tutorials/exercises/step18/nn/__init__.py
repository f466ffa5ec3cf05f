from mynode.nn.layers import Residual
from mynode.nn.normalization_layers import LayerNorm
