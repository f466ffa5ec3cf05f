"""Hidden checks of the elective backward_network: a net with shared inputs, run backward."""

import numpy as np

import tinynode as tn
from tinynode import net
from tinynode_course.checks import expect_close, expect_true

LOOK = "Parts of a gradient with many readers get names of their own, and are added once."


def _net(*lines):
    forward = net.NetOp(type="hidden")
    for kind, inputs, outputs in lines:
        forward.append(net.Operator(kind, list(inputs), list(outputs)))
    return forward


def _run(network, values):
    scope = net.Scope({name: tn.Variable(np.array(value)) for name, value in values.items()})
    network.run(scope)
    return scope


def check_three_readers(work):
    """x is read three times: the gradient of x^3 + x."""
    forward = _net(
        ("mul", ("x", "x"), ("s",)), ("mul", ("s", "x"), ("c",)), ("plus", ("c", "x"), ("z",))
    )
    scope = _run(forward, {"x": [2.0, -1.0], "z@GRAD": [1.0, 10.0]})
    work.backward_net(forward, "z").run(scope)
    expect_close("x@GRAD", scope.find("x@GRAD").array, [13.0, 40.0], LOOK)


def check_no_grad(work):
    """A name in no_grad gets no gradient."""
    forward = _net(("mul", ("x", "w"), ("z",)))
    backward = work.backward_net(forward, "z", no_grad=("w",))
    names = [name for op in backward.operators for name in op.output_names]
    expect_true("x@GRAD is written", "x@GRAD" in names, LOOK)
    expect_true("w@GRAD is not written", "w@GRAD" not in names, LOOK)
