"""The backward pass: from a result to the leaves.

Step 22: as_variable and check_path are given. Write grad and sweep. backward gets the option
enable_double_backprop, and calls sweep; run_backward calls check_path, and leaves out what no path
leads to; write_to_leaves writes grad_var too.
"""

import mynode
import numpy as np


def grad(outputs, inputs, grad_outputs=None, *, enable_double_backprop=False):
    """The gradients of outputs with respect to leaves, as Variables; no grad is written.

    None stands for a leaf to which no path leads from the outputs: the gradient is zero.
    """
    raise NotImplementedError("step 22: fill the table, call sweep, take the leaves' gradients")


def as_variable(g):
    """An array as a Variable that wants no gradient; a Variable as it is."""
    return g if isinstance(g, mynode.Variable) else mynode.Variable(g, requires_grad=False)


def sweep(outputs, gradients, double):
    """Run backward of all operations behind the outputs, by falling rank."""
    raise NotImplementedError("step 22: the loop of backward; set function.gives_variables")


def check_path(function, i, gx):
    """A gradient to be differentiated again is a Variable: an array would cut the graph."""
    if function.gives_variables and not isinstance(gx, mynode.Variable):
        raise TypeError(
            f"{type(function).__name__}.backward: the gradient of input {i} is an array, so no "
            "path leads back; compute with Variables"
        )
