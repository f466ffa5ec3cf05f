"""The bytes of a training step."""

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
    memories = {}
    for array in arrays:
        while isinstance(array.base, np.ndarray):
            array = array.base
        memories[id(array)] = array.nbytes
    return sum(memories.values())


def step_bytes(loss, optimizer):
    """The bytes that a training step needs after backward, by what they are for.

    Activations are the arrays that the operations behind the loss keep, without the parameters.
    """
    parameters = optimizer.parameters
    weights = [p.array for p in parameters]
    moments = [m for held in optimizer.moments for m in held.values()]
    return {
        "weights": bytes_of(weights),
        "gradients": bytes_of([p.grad for p in parameters if p.grad is not None]),
        "moments": bytes_of(moments),
        "activations": bytes_of(weights + kept_arrays(loss)) - bytes_of(weights),
    }
