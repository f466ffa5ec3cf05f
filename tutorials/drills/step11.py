"""Drills of weak references: what lives, what goes, and gradients as before."""

import weakref

import numpy as np

from tinynode_course.drilling import Quiet


def draw_alive(rng):
    return {
        "x": rng.normal(size=2),
        "kept": [bool(b) for b in rng.integers(0, 2, 8)],
        "backward": bool(rng.integers(0, 2)),
    }


def drill_alive(work, inputs):
    """Dropped Variables and graphs go at once; what the user holds stays"""
    found = []
    with Quiet():
        for backward in (inputs["backward"], not inputs["backward"]):
            leaf = work.Variable(inputs["x"].copy())
            variables, held, weak = [leaf], [], []
            for keep in inputs["kept"]:
                y = work.sin(variables[-1] * variables[0])
                variables.append(y)
                weak += [weakref.ref(y), weakref.ref(y.creator_node)]
                if keep:
                    held.append(y)
            last = variables[-1]
            del variables, y
            found.append([one() is not None for one in weak])
            if backward:
                last.grad = np.ones(2)
                last.backward()
                found.append(leaf.grad.copy())
            del last
            found.append([one() is not None for one in weak])
            held.clear()
            found.append([one() is not None for one in weak])
    return found


def draw_leaves(rng):
    return {"x": rng.normal(size=3), "w": rng.normal(size=3), "gy": rng.normal(size=3)}


def drill_leaves(work, inputs):
    """Only leaves keep a gradient, in an array of their own; a dropped leaf is skipped"""
    x, w = work.Variable(inputs["x"].copy(), name="x"), work.Variable(inputs["w"].copy())
    a = x * w
    b = work.sin(a) + x
    b.grad = gy = inputs["gy"].copy()
    b.backward()
    first = x.grad
    found = [first.copy(), w.grad.copy(), a.grad is None, gy]
    c = x + x + w
    c.grad = gy = inputs["gy"].copy()
    del w
    c.backward()
    found += [x.grad.copy(), first, gy]
    node = x.node
    facts = [node.name, node.rank, node.creator_node is None, node.get_variable_or_none() is x]
    facts += [
        type(node) is type(b.node),
        b.creator_node is b.node.creator_node,
        b.rank,
        b.node.rank,
    ]
    inner = b.creator_node
    facts += [inner.inputs[1] is x.node, inner.outputs[0]() is b.node]
    del x
    return [*found, facts, node.get_variable_or_none() is None]
