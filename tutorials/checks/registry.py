"""Checks of exercise registry: names that mean functions, programs, and gradients by name."""

from contextlib import contextmanager

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    solution,
)

HINTS = {
    "check_register": Hint(
        "What should a decorated function still be after the decoration, and which facts does"
        " the registry keep?",
        "register(name, grad) returns an inner function: it puts OpInfo(function, grad) into "
        "REGISTRY and returns the function.",
    ),
    "check_taken": Hint(
        "Two authors choose one name. When do you notice, and what is written by then?",
        "if name in REGISTRY: raise ValueError with the name, before anything is written.",
    ),
    "check_run": Hint(
        "A line names its inputs. Where do you find their arrays, and where do the results go?",
        "For each operator: the inputs from the scope by name, the function, each output into"
        " the scope by name.",
    ),
    "check_again": Hint(
        "The names of the first run stand in the scope. Do they count against the second run?",
        "Only names in the program count.",
    ),
    "check_overwriting": Hint(
        "Which names may an output not have, and when must this be known?",
        "First walk: a set of all names read or written so far; an output must not be in it. "
        "Second walk: run.",
    ),
    "check_mul_and_tanh": Hint(
        "Which values does the derivative of a product need, and which the derivative of tanh?",
        "z = x y: (g y, g x). y = tanh(x): g (1 - y^2), with the output y.",
    ),
    "check_grad_op": Hint(
        "What does a gradient operator read, and what does it write?",
        "reads: inputs, outputs, the outputs' names + '@GRAD'; writes: the inputs' names + "
        "'@GRAD'.",
    ),
    "check_gradients": Hint(
        "Each part passed alone. Under which name does each result stand when the next line "
        "looks for it?",
        "run writes every output under its own name, in order.",
    ),
}


@contextmanager
def visitors(work, **types):
    """More types for one check; what it registers goes again."""
    before = dict(work.REGISTRY)
    try:
        for name, function in types.items():
            work.register(name)(function)
        yield
    finally:
        work.REGISTRY.clear()
        work.REGISTRY.update(before)


def double(x):
    return (2.0 * x,)


def sum_and_difference(a, b):
    return a + b, a - b


def raised_by_run(work, program, scope):
    """Whether run refuses the program; and whether it left the scope alone."""
    before = dict(scope)
    try:
        work.run(program, scope)
    except ValueError:
        return True, scope == before
    return False, scope == before


def check_register(work):
    """A name means a function."""
    with visitors(work):
        got = work.register("double_of_check", grad="its_grad")(double)
        look = "The inner function returns the function that it was given."
        expect_true("register(name)(function) returns the function", got is double, look)
        look = 'REGISTRY["double_of_check"] is OpInfo(function, "its_grad").'
        expect_true("the name is in REGISTRY", "double_of_check" in work.REGISTRY, look)
        info = work.REGISTRY["double_of_check"]
        expect_true("REGISTRY has an OpInfo", isinstance(info, work.OpInfo), look)
        expect_true("its function is the one registered", info.function is double, look)
        expect_equal("its grad", info.grad, "its_grad", look)
        work.register("no_gradient_of_check")(double)
        got = work.REGISTRY["no_gradient_of_check"].grad
        expect_equal("grad, if none was given", got, None, look)


def check_taken(work):
    """A name that is taken is refused."""
    with visitors(work, double_of_check=double):

        def again():
            work.register("double_of_check")(sum_and_difference)

        look = "if name in REGISTRY: raise ValueError(...), before anything is written."
        error = expect_raises("registering a name twice", ValueError, again, look)
        named = "double_of_check" in str(error)
        expect_true("the message has the name", named, "Say which name is taken.")
        kept = work.REGISTRY["double_of_check"].function is double
        expect_true("the first function is still there", kept, look)


def check_run(work):
    """A program runs, in several scopes."""
    with visitors(work, double_of_check=double, both_of_check=sum_and_difference):
        program = [
            work.Op("both_of_check", ["a", "b"], ["s", "d"]),
            work.Op("double_of_check", ["s"], ["t"]),
        ]
        look = "Find the inputs by name, call the function, write each output under its name."
        for a, b in ((1.0, 2.0), (5.0, -3.0)):
            scope = {"a": a, "b": b}
            work.run(program, scope)
            right = {"a": a, "b": b, "s": a + b, "d": a - b, "t": 2.0 * (a + b)}
            expect_equal("the scope after a run", scope, right, look)


def check_again(work):
    """A program runs twice in one scope."""
    with visitors(work, double_of_check=double):
        scope = {"a": 1.0}
        program = [work.Op("double_of_check", ["a"], ["b"])]
        work.run(program, scope)
        scope["a"] = 10.0
        look = "Only the names in the program count, not those that are in the scope already."
        refused, _ = raised_by_run(work, program, scope)
        expect_true("the second run is not refused", not refused, look)
        expect_equal("b, after the second run with a = 10", scope["b"], 20.0, look)


def check_overwriting(work):
    """A program that overwrites a variable is refused, before it runs."""
    with visitors(work, double_of_check=double):
        cases = {
            "b is written twice": [("a", "b"), ("a", "b")],
            "a is read by the first line and written by the second": [("a", "b"), ("b", "a")],
            "an operator writes what it reads": [("a", "b"), ("c", "c")],
        }
        for title, pairs in cases.items():
            program = [work.Op("double_of_check", [x], [y]) for x, y in pairs]
            refused, left_alone = raised_by_run(work, program, {"a": 1.0, "c": 2.0})
            look = "Keep a set of the names read or written so far; an output must not be in it."
            expect_true(f"run refuses this program: {title}", refused, look)
            look = "Look at all names first, and run only then: two loops."
            expect_true(f"nothing has run before that ({title})", left_alone, look)


def expect_registered(work, name, grad):
    look = "Write the decorator above its function: @register(name, grad=...)."
    expect_true(f"{name!r} is registered", name in work.REGISTRY, look)
    expect_equal(f"the gradient of {name!r}", work.REGISTRY[name].grad, grad, look)


def outputs_of(work, name, *arrays):
    try:
        got = work.REGISTRY[name].function(*arrays)
    except TypeError as error:
        look = "A gradient gets inputs, outputs, and gradients of the outputs, used or not."
        raise CheckFailed(
            f"{name!r} of {len(arrays)} arrays", "a tuple", str(error), look
        ) from None
    look = "A function returns a tuple, with one number or array for each output."
    expect_true(f"what {name!r} returns is a tuple", isinstance(got, tuple), look)
    return got


def check_mul_and_tanh(work):
    """mul, tanh and their gradients compute what they should."""
    a, b, g = np.array([2.0, -1.0]), np.array([0.5, 3.0]), np.array([10.0, 7.0])
    for name in "mul", "tanh":
        expect_registered(work, name, f"{name}_grad")
        is_registered = f"{name}_grad" in work.REGISTRY
        look = f'@register("{name}_grad") stands above the function of the gradient.'
        expect_true(f"'{name}_grad' is registered", is_registered, look)
    (y,) = outputs_of(work, "mul", a, b)
    expect_close("mul", y, a * b, "y = a b")
    got = outputs_of(work, "mul_grad", a, b, a * b, g)
    expect_equal("the number of gradients of mul", len(got), 2, "One for each input.")
    for title, one, right in (("a", got[0], g * b), ("b", got[1], g * a)):
        expect_close(f"mul_grad: the gradient of {title}", one, right, "da = g b, db = g a")
    (y,) = outputs_of(work, "tanh", a)
    expect_close("tanh", y, np.tanh(a), "y = tanh(x)")
    (gx,) = outputs_of(work, "tanh_grad", a, np.tanh(a), g)
    look = "dx = g (1 - y^2), where y is the output: the second thing that the function gets."
    expect_close("tanh_grad", gx, g * (1 - np.tanh(a) ** 2), look)


def check_grad_op(work):
    """The gradient operator has the right names."""
    cases = (
        (("mul", ["u", "v"], ["z"]), "u@GRAD, v@GRAD = mul_grad(u, v, z, z@GRAD)"),
        (("tanh", ["h"], ["y"]), "h@GRAD = tanh_grad(h, y, y@GRAD)"),
    )
    look = "It reads inputs, outputs, and the outputs' gradients; it writes the inputs' gradients."
    for arguments, right in cases:
        got = work.grad_op(work.Op(*arguments))
        if not isinstance(got, work.Op):
            raise CheckFailed("what grad_op returns", "an Op", type(got).__name__, look)
        line = f"{', '.join(got.outputs)} = {got.type}({', '.join(got.inputs)})"
        expect_equal(f"the gradient operator of {arguments}", line, right, look)

    def without():
        work.grad_op(work.Op("mul_grad", ["u", "v", "z", "g"], ["a", "b"]))

    look = "REGISTRY[op.type].grad is None for a type without a gradient."
    expect_raises("grad_op of an operator without a gradient", ValueError, without, look)


def check_gradients(work):
    """Forward program and gradient program, run one after the other."""
    scope = {"x": np.array([0.3, -1.2]), "w": np.array([2.0, 0.7])}
    forward = [work.Op("mul", ["x", "w"], ["h"]), work.Op("tanh", ["h"], ["y"])]
    work.run(forward, scope)
    scope["y@GRAD"] = np.ones(2)
    work.run([work.grad_op(op) for op in reversed(forward)], scope)
    x, w = scope["x"], scope["w"]
    slope = 1 - np.tanh(x * w) ** 2
    look = "The formulas and the names were right one by one: does run write each under its name?"
    expect_close("x@GRAD of tanh(x w)", scope["x@GRAD"], slope * w, look)
    expect_close("w@GRAD of tanh(x w)", scope["w@GRAD"], slope * x, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "a name that is taken is overwritten",
        _SOLUTION.replace("if name in REGISTRY:", "if False:"),
    ),
    (
        "the decorator returns nothing, so the function's own name is None",
        _SOLUTION.replace("        return function\n", ""),
    ),
    (
        "names are looked at while the program runs",
        _SOLUTION.replace(
            "            used.add(name)\n    for op in program:\n", "            used.add(name)\n"
        ),
    ),
    (
        "names in the scope count as written: a program runs once only",
        _SOLUTION.replace("used = set()", "used = set(scope)"),
    ),
    (
        "only names that are written twice are refused",
        _SOLUTION.replace("        used.update(op.inputs)\n", ""),
    ),
    (
        "the gradients of mul are exchanged",
        _SOLUTION.replace("return g * b, g * a", "return g * a, g * b"),
    ),
    (
        "tanh_grad takes its input for its output",
        _SOLUTION.replace("g * (1 - y * y)", "g * (1 - x * x)"),
    ),
    (
        "the gradient operator does not read the outputs",
        _SOLUTION.replace("[*op.inputs, *op.outputs, *given]", "[*op.inputs, *given]"),
    ),
)
