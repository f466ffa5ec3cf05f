from mynode.nn.layers import Embedding
from mynode.nn.recurrent_layers import GRUCell
