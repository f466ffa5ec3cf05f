"""Drills of the registry: programs of names, refusals, gradient operators."""

from tinynode_course.drilling import raised

ENDINGS = (
    [["mul", ["x", "w"], "x"]],
    [["tanh", ["x"], "h"], ["mul", ["h", "w"], "x"]],
    [["tanh", ["x"], "h"], ["tanh", ["w"], "h"]],
    [["tanh", ["x"], "h"], ["mul", ["h", "h"], "g"]],
)


def draw_programs(rng):
    programs = [ENDINGS[int(place)] for place in rng.permutation(len(ENDINGS))]
    for _ in range(8):
        lines = []
        for number in range(4):
            known = ["x", "w", *(f"h{i}" for i in range(number))]
            kind = str(rng.choice(["mul", "tanh"]))
            operands = [str(rng.choice(known)) for _ in range(2 if kind == "mul" else 1)]
            name = f"h{number}" if rng.integers(0, 5) else str(rng.choice(known))
            lines.append([kind, operands, name])
        programs.append(lines)
    return {"programs": programs, "x": rng.normal(size=3), "w": float(rng.normal())}


def drill_programs(work, inputs):
    """Programs run twice in a scope, or are refused before any operator runs"""
    found = []
    for lines in inputs["programs"]:
        program = [work.Op(kind, operands, [name]) for kind, operands, name in lines]
        for _ in range(2):
            scope = {"x": inputs["x"].copy(), "w": inputs["w"]}
            error = raised(lambda p=program, s=scope: work.run(p, s), ValueError)
            again = "" if error else raised(lambda p=program, s=scope: work.run(p, s), ValueError)
            found += [error, again, sorted(scope)]
            found += [float(number) for value in scope.values() for number in _flat(value)]
    return found


def _flat(value):
    return value.ravel() if hasattr(value, "ravel") else [value]


def draw_gradients(rng):
    return {
        "a": rng.normal(size=3),
        "b": rng.normal(size=3),
        "g": rng.normal(size=3),
        "name": f"t{int(rng.integers(0, 99))}",
    }


def drill_gradients(work, inputs):
    """Gradient operators by names, a taken name, a type without a gradient"""
    scope = {"a": inputs["a"], "b": inputs["b"], "y@GRAD": inputs["g"], "z@GRAD": inputs["g"]}
    program = [work.Op("mul", ["a", "b"], ["y"]), work.Op("tanh", ["a"], ["z"])]
    work.run(program, scope)
    operators = [work.grad_op(op) for op in program]
    found = [[op.type, op.inputs, op.outputs] for op in operators]
    for op in operators:
        one = dict(scope)
        work.run([op], one)
        found.append([one[name] for name in op.outputs])

    def triple(x):
        return (3.0 * x,)

    def other(x):
        return (5.0 * x,)

    kept = work.register(inputs["name"])(triple) is triple
    error = raised(lambda: work.register(inputs["name"])(other), ValueError)
    one = {"a": 2.0}
    work.run([work.Op(inputs["name"], ["a"], ["c"])], one)
    no = raised(lambda: work.grad_op(work.Op(inputs["name"], ["a"], ["c"])), ValueError)
    return [*found, kept, error, one["c"], no, work.REGISTRY["mul"].grad]
