"""The loss of a classifier."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable


class SoftmaxCrossEntropy(FunctionNode):
    """loss = -the mean of log(p[right class]), with p = softmax(x).   gx = (p - one_hot) / n

    x: (n, classes), labels: (n), integers -> loss: ()
    """

    def forward(self, inputs):
        x, labels = inputs
        self.retain_inputs((0, 1))
        losses = -log_softmax(x)[np.arange(len(labels)), labels]
        return (losses.sum() / max(len(labels), 1),)

    def backward(self, target_input_indexes, grad_outputs):
        (gloss,) = grad_outputs
        x, labels = self.get_retained_inputs()
        gx = np.exp(log_softmax(x))
        gx[np.arange(len(labels)), labels] -= 1
        return gx * (gloss / max(len(labels), 1)), None


def log_softmax(x):
    """log(p) of the classes, for an array of scores."""
    shifted = x - x.max(axis=1, keepdims=True)  # so that exp never overflows
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def softmax_cross_entropy(x, labels):
    """The mean of -log(p[label]); the scores x make the probabilities p."""
    if not isinstance(labels, Variable):
        labels = Variable(np.asarray(labels))
    return SoftmaxCrossEntropy().apply((x, labels))[0]
