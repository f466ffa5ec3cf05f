"""Solution: the backward network, with everything."""

from collections import Counter, defaultdict

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
    needed, kept = {target}, []
    for op in reversed(forward.operators):
        wanted = [name for name in op.input_names if name not in no_grad]
        if wanted and not needed.isdisjoint(op.output_names):
            kept.append(op)
            needed.update(wanted)

    readers = Counter(n for op in kept for n in op.input_names if n not in no_grad)
    parts = defaultdict(list)
    backward = net.NetOp(type=f"{forward.type}_grad")

    def new_part(name):
        if name in no_grad:
            return "@EMPTY@"
        part = f"@RENAME@{len(parts[name])}" if readers[name] > 1 else ""
        parts[name].append(f"{name}@GRAD{part}")
        return parts[name][-1]

    for op in kept:
        given = [f"{y}@GRAD" if y in needed else f"{y}@ZERO" for y in op.output_names]
        for y in op.output_names:
            if y not in needed:
                backward.append(net.Operator("fill_like", [y], [f"{y}@ZERO"], {"value": 0.0}))
        inputs = [*op.input_names, *op.output_names, *given]
        outputs = [new_part(name) for name in op.input_names]
        backward.append(net.Operator(f"{op.type}_grad", inputs, outputs))
        for name in dict.fromkeys(op.input_names):
            if len(parts[name]) == readers[name] > 1:
                backward.append(net.Operator("add_all", parts[name], [f"{name}@GRAD"]))
    return backward
