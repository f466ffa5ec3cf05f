from mynode.functions.products import matrix_transpose
from mynode.functions.shapes import permute_dims
