from mynode.functions.exponential import sqrt
from mynode.functions.normalization import layer_norm
from mynode.functions.statistical import var
