"""Drills of a net in C: random programs, read as the lines of the loop."""

import re

import numpy as np


def _program(rng):
    inputs = ["x", "w", "y@GRAD"][: int(rng.integers(2, 4))]
    lines, known = [], list(inputs)
    for number in range(int(rng.integers(3, 7))):
        one, other = (str(rng.choice(known)) for _ in range(2))
        form = str(
            rng.choice(
                ["{} * {}", "{} + {}", "tanh({}) * {}", "{} - 0.5 * {}", "exp({} * 0.1) + {}"]
            )
        )
        name = f"h{number}@GRAD" if rng.integers(0, 3) == 0 else f"h{number}"
        lines.append(f"{name} = {form.format(one, other)}")
        known.append(name)
    names = [line.split(" = ")[0] for line in lines]
    outputs = [str(name) for name in rng.permutation(names)[: int(rng.integers(1, 3))]]
    return [lines, inputs, outputs]


def draw_programs(rng):
    return {"programs": [_program(rng) for _ in range(10)], "values": rng.normal(size=(3, 4))}


def drill_programs(work, inputs):
    """needed_lines, bytes_of, and the loop: its results by an interpreter of the text"""
    found = []
    for lines, names, outputs in inputs["programs"]:
        found += [work.needed_lines(lines, outputs), list(work.bytes_of(lines, names, outputs))]
        text = work.loop_of(lines, names, outputs)
        found += _interpreted(text, names, inputs["values"])
    return found


STATEMENT = re.compile(r"const double (\w+) = (.+)|(\w+)\[i\] = (.+)")


def _interpreted(text, names, values):
    """The head, the statements, the lines read from memory, and the results."""
    flat = " ".join(text.split())
    head, _, rest = flat.partition("{")
    loop, _, body = rest.partition("{")
    memory = {f"{n}_in".replace("@", "_"): v for n, v in zip(names, values, strict=False)}
    scope = {"tanh": np.tanh, "exp": np.exp, **memory}
    reads, results = 0, {}
    for statement in body.split("}")[0].split(";"):
        match = STATEMENT.fullmatch(statement.strip())
        if match is None:
            continue
        reads += match[2] is not None and match[2].endswith("[i]")
        value = eval((match[2] or match[4]).replace("[i]", ""), {**scope, **results})
        results[match[1] or match[3]] = value
    outputs = {name: value for name, value in results.items() if name.endswith("_out")}
    parameters = re.findall(r"(const )?double ?\*restrict (\w+)", head)
    return [
        [list(pair) for pair in parameters],
        "long n" in head,
        "i = 0; i < n;" in loop,
        reads,
        outputs,
    ]


def draw_gradients(rng):
    return {"values": rng.normal(size=(4, 3))}


def drill_gradients(work, inputs):
    """gradient_lines: z and three gradients, with one call of tanh"""
    names = ["x", "w", "b", "z@GRAD"]
    lines = work.gradient_lines()
    outputs = ["z", "x@GRAD", "w@GRAD", "b@GRAD"]
    kept = work.needed_lines(lines, outputs)
    results = _interpreted(work.loop_of(lines, names, outputs), names, inputs["values"])[-1]
    return [results, sum(line.count("tanh(") for line in kept)]
