"""The bytes of a training step.

Elective bytes: kept_arrays is given. Write bytes_of and step_bytes.
"""

import numpy as np


def kept_arrays(y):
    """The arrays that the operations behind y keep for backward, in no order."""
    found, seen, waiting = [], set(), [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        found += function.get_retained_inputs() + function.get_retained_outputs()
        waiting += [node.creator_node for node in function.inputs]
    return found


def bytes_of(arrays):
    """The bytes of memory behind the arrays, each memory once. A view has its base's memory."""
    raise NotImplementedError("elective bytes: bytes_of")


def step_bytes(loss, optimizer):
    """The bytes that a training step needs after backward, by what they are for.

    A dictionary of weights, gradients, moments and activations. Activations are the arrays that
    the operations behind the loss keep, without the parameters.
    """
    raise NotImplementedError("elective bytes: step_bytes")
