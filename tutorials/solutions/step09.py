"""Exercise 9: truncated backpropagation."""

import numpy as np
from engine09 import Variable, tanh


def read_in_windows(w, numbers, window):
    h = Variable(np.array(0.0), requires_grad=False)
    for step, number in enumerate(numbers):
        if step % window == 0:
            h.unchain()
        h = tanh(w * h + number)
    return h
