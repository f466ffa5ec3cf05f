"""The loss of a classifier. Step 12: the page has the formulas; the code is yours.

forward returns two arrays: the loss, and log_p. backward gets a gradient for each, the second is
None; it gives a gradient for the scores, and None for the labels.
"""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.type_check import expect, is_floating


class SoftmaxCrossEntropy(FunctionNode):
    """loss = -the mean of log(p[right class]), with p = softmax(x).   gx = (p - one_hot) / n

    x: (n, classes), labels: (n), integers -> loss: (), log_p: (n, classes), kept for backward
    """

    def check_type_forward(self, in_types):
        raise NotImplementedError("step 12: SoftmaxCrossEntropy.check_type_forward")

    def forward(self, inputs):
        raise NotImplementedError("step 12: SoftmaxCrossEntropy.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 12: SoftmaxCrossEntropy.backward")


def softmax_cross_entropy(x, labels):
    """The mean of -log(p[label]); make a Variable of labels that are an array."""
    raise NotImplementedError("step 12: softmax_cross_entropy")
