"""Drills of no gradient and unchaining: settings, targets, cuts, backward again."""

import numpy as np

from tinynode_course.drilling import raised


def draw_mode(rng):
    return {"blocks": [int(b) for b in rng.integers(0, 3, 6)], "x": rng.normal(size=())}


def drill_mode(work, inputs):
    """no_backprop_mode records nothing, also in blocks in blocks and after an error"""
    x = work.Variable(np.asarray(inputs["x"]))
    found = []

    def look():
        y = x * x
        found.append(
            [y.array, y.creator_node is None, y.requires_grad, work.config.enable_backprop]
        )

    for kind in inputs["blocks"]:
        with work.no_backprop_mode():
            look()
            if kind == 1:
                with work.no_backprop_mode():
                    look()
                look()
            if kind == 2:
                found.append(raised(lambda: _fail(work), KeyError))
                look()
        look()
    found.append(raised(lambda: _fail(work), KeyError))
    look()
    return found


def _fail(work):
    with work.no_backprop_mode():
        raise KeyError


def draw_targets(rng):
    wishes = rng.permutation([[False, False, False], *rng.integers(0, 2, (5, 3)).tolist()])
    return {"x": rng.normal(size=2), "wishes": wishes.astype(bool).tolist()}


def drill_targets(work, inputs):
    """backward asks for wanted gradients only; integers and numbers want none"""
    found = []

    class Sum(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] + inputs[1] + inputs[2],)

        def backward(self, target_input_indexes, grad_outputs):
            found.append(list(target_input_indexes))
            g = grad_outputs[0]
            return tuple(g * (i + 1.0) if i in target_input_indexes else None for i in range(3))

    for wishes in inputs["wishes"]:
        xs = [work.Variable(inputs["x"].copy(), requires_grad=wish) for wish in wishes]
        y = Sum().apply(tuple(xs))[0]
        found += [y.requires_grad, y.creator_node is None]
        if y.requires_grad:
            y.grad = np.ones(2)
            y.backward()
        found.append([x.grad for x in xs])
        z = xs[0] * xs[1]
        if z.creator_node is not None:
            targets = tuple(place for place in (0, 1) if wishes[place])
            found.append(list(z.creator_node.backward(targets, (np.ones(2),))))
    whole = work.Variable(np.array([1, 2]))
    x = work.Variable(inputs["x"].copy())
    nodes = (2.0 * x - 1.0).creator_node.inputs
    return [
        *found,
        whole.requires_grad,
        (whole * whole).requires_grad,
        [n.requires_grad for n in nodes],
    ]


def draw_again(rng):
    return {"x": rng.normal(size=2), "gy": rng.normal(size=2), "times": int(rng.integers(2, 5))}


def drill_again(work, inputs):
    """backward may run again: the graph stays, gradients add up, y.grad is used up"""
    x = work.Variable(inputs["x"].copy())
    y = work.sin(work.square(x) * x)
    found, held = [], []
    for _ in range(inputs["times"]):
        y.grad = gy = inputs["gy"].copy()
        y.backward()
        found += [x.grad.copy(), y.grad is None, gy]
        held.append(x.grad)  # the lesson of step 5: a later backward does not write into it
    errors = [
        raised(work.Variable(np.array(1.0)).backward, ValueError),
        raised(y.backward, ValueError),
    ]
    one = work.square(work.Variable(np.array([3.0])))
    return [*found, held, errors, raised(one.backward)]


def draw_unchain(rng):
    return {
        "numbers": rng.normal(size=9),
        "window": int(rng.integers(2, 5)),
        "w": float(rng.uniform(0.4, 0.9)),
    }


def drill_unchain(work, inputs):
    """Windows of truncated backpropagation: values flow, gradients stay in the window"""
    found = []
    for window in (inputs["window"], 100):
        w, h = (
            work.Variable(np.asarray(inputs["w"])),
            work.Variable(np.array(0.0), requires_grad=False),
        )
        for step, number in enumerate(inputs["numbers"]):
            if step % window == 0:
                h.unchain_backward()
            h = work.tanh(w * h + float(number))
        h.backward()
        found += [h.array, w.grad]
    x = work.Variable(np.asarray(inputs["w"]))
    a = work.tanh(x)
    b = work.square(a)
    c = a * b
    a.unchain()
    c.backward()
    found += [x.grad is None, a.grad, [v.creator_node is None for v in (a, b, c)]]
    a = work.tanh(x)
    b = work.square(a)
    c = a * b
    c.unchain_backward()
    return [*found, [v.creator_node is None for v in (a, b, c)], c.array]
