"""Exercise 9: truncated backpropagation.

read_in_windows(w, numbers, window) computes h = tanh(w * h + x) for each x in numbers, beginning
with h = 0, and returns the last h, as read does in the step. But before the steps number window,
2 * window, 3 * window, ... (counted from 0) it cuts h off from its past. So behind the last h
there are at most `window` steps, and never none. The values of h stay the same.

The version below never cuts.
"""

import numpy as np
from engine09 import Variable, tanh


def read_in_windows(w, numbers, window):
    h = Variable(np.array(0.0), requires_grad=False)
    for number in numbers:
        h = tanh(w * h + number)
    return h
