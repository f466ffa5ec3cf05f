"""Exercise backward_network: the backward network, with all cases.

Write ``backward_net(forward, target, no_grad=())``. ``forward`` is a NetOp of operators of the
three types below. The result is a NetOp: it reads "<target>@GRAD" and variables of the forward
net, and writes "x@GRAD" for each input x outside no_grad that the target depends on. No
gradient passes through a variable of no_grad.

- A gradient operator reads inputs, outputs, and gradients of the outputs: see the page's grad_op.
- Leave out operators that the target does not depend on, and those with no input outside no_grad.
- A slot whose variable is in no_grad gets no gradient: write "@EMPTY@" there, which is skipped.
- The parts of a gradient have names of their own, and "add_all" adds them up.
- An output that the target does not depend on has no gradient. Fill it with zeros:
  Operator("fill_like", [y], [f"{y}@ZERO"], {"value": 0.0}).
"""

import tinynode as tn
from tinynode import net


@net.register_op("mul")
class Mul(tn.FunctionNode):
    """y = a b."""

    def forward(self, inputs):
        a, b = inputs
        return (a * b,)


@net.register_op("mul_grad")
class MulGrad(tn.FunctionNode):
    """From a, b, y and dL/dy: the gradients of a and b."""

    def forward(self, inputs):
        a, b, _, g = inputs
        return g * b, g * a


@net.register_op("plus")
class Plus(tn.FunctionNode):
    """y = a + b."""

    def forward(self, inputs):
        a, b = inputs
        return (a + b,)


@net.register_op("plus_grad")
class PlusGrad(tn.FunctionNode):
    """From a, b, y and dL/dy: the gradients of a and b."""

    def forward(self, inputs):
        g = inputs[3]
        return g, g


@net.register_op("sin_cos")
class SinCos(tn.FunctionNode):
    """s = sin(x), c = cos(x): two outputs."""

    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        return xp.sin(inputs[0]), xp.cos(inputs[0])


@net.register_op("sin_cos_grad")
class SinCosGrad(tn.FunctionNode):
    """From x, s, c, dL/ds and dL/dc: the gradient of x."""

    def forward(self, inputs):
        _, s, c, gs, gc = inputs
        return (gs * c - gc * s,)


def backward_net(forward, target, no_grad=()):
    """The backward network, from the gradient of the target to those of the inputs."""
    raise NotImplementedError("begin with the page's backward_by_hand")


if __name__ == "__main__":  # python backward_network.py
    forward = net.NetOp()
    forward.append(net.Operator("sin_cos", ["x"], ["s", "c"]))
    forward.append(net.Operator("mul", ["s", "s"], ["y"]))
    print(forward)
    print(backward_net(forward, "y"))
