"""The limits of the doctor: from where on a number is a finding.

Requirement: a healthy model has no findings. So each limit lies far outside the range of models
that train, and each limit has a reason.
"""

LEAST_ROWS = 8
"""Dead ReLUs are counted from this batch size on. A healthy unit is 0 for half of the rows: all 8
rows are 0 for 1 unit of 256."""

DEAD_SHARE = 0.5
"""The share of ReLU units that are 0 for the whole batch. Usual initial weights give about 0."""

SATURATED_SLOPE = 0.05
"""An element is saturated below this share of the largest slope: a sigmoid beyond 0.987 or below
0.013, a tanh beyond 0.975. The gradient shrinks there 20 times or more."""

SATURATED_SHARE = 0.5
"""The share of saturated elements. Of normal inputs with deviation 1, a tanh saturates 3 %."""

VANISHING = 1e-5
"""A layer's gradient beside the gradient of the last layer, both per element. One learning rate
moves both layers, so the layer moves 100,000 times less."""

EXPLODING = 1e5
"""The same ratio from above."""

LARGEST_GRADIENT = 1e4
"""The norm of a layer's gradient beside the norm of its weights. A step of SGD with a learning
rate of 0.001 replaces the weights by 10 times their size."""

LARGE_UPDATE = 0.1
"""The norm of an update beside the norm of the weights, in the middle layer. About 0.001 is usual:
100 times more changes a tenth of the weights in one step."""

SMALL_UPDATE = 1e-6
"""The same ratio from below: 1,000 times less than usual, and near the rounding of float32, 6e-8.
"""
