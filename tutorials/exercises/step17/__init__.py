from mynode.functions.activation import softmax
from mynode.functions.exponential import sigmoid
from mynode.functions.network import embedding, scaled_dot_product_attention
