"""Drills of gradients that are Variables: derivatives of any order, gradients with a graph."""

import numpy as np

from tinynode_course.drilling import raised


def _polynomial(numbers):
    def f(x):
        y = 0.0 * x
        for number in numbers:
            y = y * x + number
        return y

    return f


def draw_derivatives(rng):
    return {
        "numbers": [float(n) for n in rng.normal(size=4)],
        "x": rng.uniform(0.5, 1.5, (2, 3)) * rng.choice([-1.0, 1.0], (2, 3)),
        "order": int(rng.integers(3, 5)),
    }


def drill_derivatives(work, inputs):
    """Derivatives of any order, of many functions; no grad is touched"""
    functions = (
        _polynomial(inputs["numbers"]),
        lambda x: 3.0 * x,
        work.sin,
        work.cos,
        work.exp,
        work.tanh,
        work.sigmoid,
        lambda x: 2.0 / work.square(x) - x,
    )
    found = []
    for f in functions:
        for dtype in ("float64", "float32"):
            x = work.Variable(inputs["x"].astype(dtype))
            x.grad = kept = np.ones_like(x.array)
            y = f(x)
            found.append(y.array)
            for _ in range(inputs["order"]):
                (y,) = work.grad([y], [x], enable_double_backprop=True)
                if y is None:  # a line's second derivative
                    break
                found += [isinstance(y, work.Variable), y.array]
            found += [kept, x.grad is kept, x.array]
    return found


def draw_grads(rng):
    return {name: rng.normal(size=3) for name in ("x", "w", "a", "b")}


def drill_grads(work, inputs):
    """grad for several outputs and leaves, with grad_outputs; None without a path; refusals"""
    x, w = work.Variable(inputs["x"]), work.Variable(inputs["w"])
    other = work.Variable(np.ones(3))
    y, z = x * w + x, work.square(w) * w
    gy, gz = work.Variable(inputs["a"]), work.Variable(inputs["b"])
    found = []
    for given in (None, [gy, gz]):
        for double in (False, True):
            grads = work.grad([y, z], [w, x, other], given, enable_double_backprop=double)
            found.append([None if one is None else one.array for one in grads])
            found.append([one is not None and one.creator_node is not None for one in grads])
    (twice,) = work.grad([y, y], [x], [gy, gz])
    (through,) = work.grad([y], [x], [gy], enable_double_backprop=True)
    (back,) = work.grad([through], [gy], [gz])
    found += [twice.array, back.array, x.grad, w.grad, gy.grad]

    class Cut(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2.0,)

        def backward(self, target_input_indexes, grad_outputs):
            (g,) = grad_outputs
            return (np.asarray(getattr(g, "array", g)) * 2.0,)

    (cut,) = Cut().apply((x,))
    found.append(work.grad([cut], [x])[0].array)
    for call in (
        lambda: work.grad([cut], [x], enable_double_backprop=True),
        lambda: work.grad([z], [y]),
    ):
        found.append(raised(call, TypeError, ValueError))
    return found


def draw_stacks(rng):
    return {
        "x": rng.normal(size=(2, 1, 3, 4)),
        "y": rng.normal(size=(3, 4, 2)),
        "v": rng.normal(size=(2, 3, 3, 2)),
    }


def drill_stacks(work, inputs):
    """Stacks of matrices, axes in another order and norms, differentiated twice"""
    found = []
    for dtype in ("float64", "float32"):
        x, y = (work.Variable(inputs[name].astype(dtype)) for name in ("x", "y"))
        gamma = work.Variable(np.arange(1.0, 5.0).astype(dtype))
        z = work.matmul(work.layer_norm(x, gamma), y)
        z = work.permute_dims(work.softmax(z), (2, 0, 3, 1))
        loss = work.sum(work.square(z) * inputs["v"].astype(dtype).transpose(2, 0, 3, 1))
        leaves = [x, y, gamma]
        grads = work.grad([loss], leaves, enable_double_backprop=True)
        found += [one.array for one in grads]
        total = 0.0
        for one in grads:
            total = work.sum(work.square(one)) + total
        total.backward()
        found.append([leaf.grad for leaf in leaves])
    return found


def draw_graphs(rng):
    return {
        "x": rng.normal(size=(4, 3)),
        "w": rng.normal(size=(2, 3)),
        "b": rng.normal(size=2),
        "row": rng.normal(size=(1, 3)),
        "g": rng.normal(size=(2, 3)),
    }


def drill_graphs(work, inputs):
    """grad_var: sums, products, shapes and broadcasting, differentiated twice"""
    found = []
    names = ("x", "w", "b", "row")
    for dtype in ("float64", "float32"):
        leaves = [work.Variable(inputs[name].astype(dtype)) for name in names]
        x, w, b, row = leaves
        y = work.tanh(work.linear(x * row - work.mean(x, axis=0), w, b))
        y = y * y / (2.0 + work.square(y)) + work.matmul(x, work.matrix_transpose(w))
        y = work.sum(y * work.broadcast_to(b, (4, 2)), axis=1, keepdims=True)
        loss = work.sum(work.square(work.reshape(y, (2, 2))))
        loss.backward(enable_double_backprop=True)
        gradients = [leaf.grad_var for leaf in leaves]
        found += [loss.array, [leaf.grad.copy() for leaf in leaves]]
        found.append([one.array for one in gradients])
        for leaf in leaves:
            leaf.cleargrad()
        found.append([leaf.grad is None and leaf.grad_var is None for leaf in leaves])
        work.sum(work.square(gradients[1]) * inputs["g"].astype(dtype)).backward()
        found.append([leaf.grad.copy() for leaf in leaves])
    return found
