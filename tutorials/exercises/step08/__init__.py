from mynode.functions.activation import relu
from mynode.functions.network import linear
from mynode.random import seed
