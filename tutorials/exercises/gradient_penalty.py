"""Capstone exercise: a classifier that is robust to small changes of its input.

Write ``penalized_cross_entropy``: the mean cross entropy of a batch, plus ``weight`` times the
mean squared length of each input's gradient. The gradient of this loss with respect to the
parameters must be right, so double backprop is needed.

1. F.softmax_cross_entropy(scores, t, reduction="sum") is the sum of all c_i.
2. The gradient of that sum with respect to x has the gradient of c_i as its row i. x itself may
   not require a gradient: tn.asarray(x, requires_grad=True) makes a Variable that does.
3. Name no device and no NumPy: it must run on any backend.
"""

import tinynode as tn
from tinynode import functions as F


def penalized_cross_entropy(model, x, t, weight):
    """(1/n) sum over i of   c_i + weight * |dc_i/dx_i|^2,   c_i the cross entropy of input i.

    model: gives scores, (n, classes), for inputs (n, d); each row depends on its own input alone.
    x: (n, d), a Variable; t: (n), the right classes; weight: a number. Returns a 0-d Variable.
    """
    raise NotImplementedError("write penalized_cross_entropy")


if __name__ == "__main__":  # python capstone.py
    from tinynode import nn

    tn.seed(0)
    x, t = tn.asarray([[1.0, 0.0], [0.0, 1.0]]), tn.asarray([0, 1])
    model = nn.Sequential(nn.Linear(2, 4), F.tanh, nn.Linear(4, 2))
    for weight in 0.0, 1.0:
        print(weight, float(penalized_cross_entropy(model, x, t, weight)))
