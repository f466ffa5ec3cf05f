"""Drills of the backward network: random networks, run with their gradients."""

import numpy as np

from tinynode import net

FORMS = {"mul": (2, 1), "plus": (2, 1), "sin_cos": (1, 2)}


FROZEN = [["mul", ["x", "w"], ["a"]], ["mul", ["a", "v"], ["b"]], ["plus", ["b", "x"], ["c"]]]
OFTEN = [["mul", ["x", "w"], ["a"]], ["mul", ["x", "a"], ["b"]], ["plus", ["b", "x"], ["c"]]]
OFTEN.append(["mul", ["c", "x"], ["d"]])


def draw_networks(rng):
    cases = [[FROZEN, "c", ["a"]], [OFTEN, "d", []]]
    for _ in range(20):
        lines, known = [], ["x", "w", "v"]
        for number in range(6):
            kind = str(rng.choice(list(FORMS)))
            reads, writes = FORMS[kind]
            outputs = [f"h{number}_{i}" for i in range(writes)]
            lines.append([kind, [str(rng.choice(known)) for _ in range(reads)], outputs])
            known += outputs
        fixed = [
            str(name) for name in rng.choice(known[:-1], int(rng.integers(0, 3)), replace=False)
        ]
        cases.append([lines, lines[-1][2][0], [name for name in fixed if name != lines[-1][2][0]]])
    return {"cases": cases, "values": rng.normal(size=(3, 2)), "g": rng.normal(size=2)}


def drill_networks(work, inputs):
    """Gradients of random networks, with zeros, unused parts and fixed variables"""
    found = []
    for lines, target, fixed in inputs["cases"]:
        forward = net.NetOp()
        for kind, reads, writes in lines:
            forward.append(net.Operator(kind, reads, writes))
        backward = work.backward_net(forward, target, no_grad=tuple(fixed))
        values = dict(zip(("x", "w", "v"), inputs["values"], strict=True))
        values[f"{target}@GRAD"] = inputs["g"]
        _run(work, [*forward.operators, *backward.operators], values)
        for name in ("x", "w", "v"):
            got = values.get(f"{name}@GRAD")
            found.append(None if got is None else np.asarray(got))
        kinds = [op.type for op in backward.operators]
        found.append(sorted(kinds))
    return found


def _run(work, operators, values):
    classes = {
        "mul": work.Mul,
        "mul_grad": work.MulGrad,
        "plus": work.Plus,
        "plus_grad": work.PlusGrad,
        "sin_cos": work.SinCos,
        "sin_cos_grad": work.SinCosGrad,
    }
    for op in operators:
        given = [values[name] for name in op.input_names]
        if op.type == "fill_like":
            results = (np.zeros_like(given[0]),)
        elif op.type == "add_all":
            results = (sum(given[1:], given[0]),)
        else:
            results = classes[op.type]().forward(tuple(given))
        for name, value in zip(op.output_names, results, strict=True):
            if name != "@EMPTY@":
                values[name] = value
