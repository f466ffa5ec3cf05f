from mynode.nn.layers import Dropout
from mynode.nn.optimizers import AdamW
