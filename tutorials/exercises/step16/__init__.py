from mynode.functions.convolution import conv2d
from mynode.functions.pooling import max_pool2d
