"""Checks of exercise backward_network: backward networks, against define-by-run gradients."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import net
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_chain": Hint(
        "In which order do the gradients of a chain come into being?",
        "reversed(forward.operators), one gradient operator for each.",
    ),
    "check_shared": Hint(
        "Two operators send a gradient to one weight. How can both have a name of their own, "
        "and who adds them?",
        "Each part gets another name, and add_all sums the parts when all have come.",
    ),
    "check_slots": Hint(
        "One variable stands twice in one operator. How many parts will come?",
        "Count slots, not operators: mul(x, x) gives two parts of x@GRAD.",
    ),
    "check_unused_output": Hint(
        "Nobody reads one of two outputs. Which gradient does the operator get for it?",
        "fill_like makes y@ZERO before the gradient operator.",
    ),
    "check_unreached": Hint(
        "Which operators can the target not feel at all?",
        "Keep an operator only if one of its outputs is in the set of needed variables.",
    ),
    "check_frozen": Hint(
        "A variable is frozen. Which gradient must still pass through its operator, and which"
        " not?",
        'A slot in no_grad gets "@EMPTY@"; an operator with all inputs in no_grad is left out.',
    ),
    "check_random": Hint(
        "Write the backward net of this small net on paper. Which line differs from yours?",
        "Keep what matters, count the readers among what is kept, then the loop of the page.",
    ),
}


def net_of(*lines):
    """A net from lines such as "y = mul(x, w)"."""
    forward = net.NetOp(type="forward")
    for line in lines:
        outputs, _, rest = line.partition(" = ")
        kind, _, inputs = rest.rstrip(")").partition("(")
        forward.append(net.Operator(kind, inputs.split(", "), outputs.split(", ")))
    return forward


def define_by_run(forward, values, target, no_grad):
    """The gradients of the inputs, by the package's define-by-run functions."""
    known = dict(values)
    for op in forward.operators:
        xs = [known[n].detach() if n in no_grad else known[n] for n in op.input_names]
        if op.type == "sin_cos":
            results = F.sin(xs[0]), F.cos(xs[0])
        else:
            results = (xs[0] * xs[1] if op.type == "mul" else xs[0] + xs[1],)
        known.update(zip(op.output_names, results, strict=True))
    names = [name for name in forward.input_names if name not in no_grad]
    return dict(zip(names, tn.grad([known[target]], [known[n] for n in names]), strict=True))


def made(work, forward, target, no_grad=()):
    """The learner's network."""
    backward = work.backward_net(forward, target, no_grad)
    if not isinstance(backward, net.NetOp):
        look = "Append the operators to a net.NetOp(), and return it."
        raise CheckFailed("what backward_net returns", "a NetOp", type(backward).__name__, look)
    return backward


def expect_gradients(work, forward, target, look, no_grad=(), seed=0):
    """The network computes what define-by-run code does, and nothing that was not asked for."""
    rng = np.random.default_rng(seed)
    values = {name: tn.Variable(rng.normal(size=3)) for name in forward.input_names}
    backward = made(work, forward, target, no_grad)
    frozen = f", no_grad {sorted(no_grad)}" if no_grad else ""
    program = "; ".join(str(op) for op in forward.operators)
    about = f"{program} (target {target}{frozen})"
    scope = net.Scope(values)
    forward.run(scope)
    scope.set(f"{target}@GRAD", np.ones(3))
    try:
        backward.run(scope)
    except tn.TinynodeError as error:
        got = f"{type(error).__name__}: {error}"
        raise CheckFailed(f"the network of {about}", "a run without an error", got, look) from None
    expected = define_by_run(forward, values, target, no_grad)
    for name in forward.input_names:
        gradient, what = f"{name}@GRAD", f"{name}@GRAD of {about}"
        if expected.get(name) is None:
            if gradient in backward.output_names:
                nowhere = (
                    f"{name} is frozen, or no path leads from it to the target but through a "
                    "variable of no_grad. Such a variable needs no gradient, nor what made it."
                )
                raise CheckFailed(what, "no such output", "it is written", nowhere)
            continue
        expect_true(f"{what} is written", gradient in backward.output_names, look)
        right = expected[name].array
        atol = 1e-12 * float(abs(right).max())
        expect_close(what, scope.find(gradient).array, right, look, rtol=1e-12, atol=atol)


def check_chain(work):
    """A chain, in inverted order."""
    forward = net_of("h = mul(x, w)", "y = plus(h, v)")
    types = [op.type for op in made(work, forward, "y").flattened()]
    look = "reversed(forward.operators), and one gradient operator for each."
    expect_equal("the types in the network of a chain", types, ["plus_grad", "mul_grad"], look)
    expect_gradients(work, forward, "y", look)


def check_shared(work):
    """A weight that two operators share, and one that three share."""
    look = "Each part of w@GRAD has a name of its own, and add_all adds them up."
    expect_gradients(work, net_of("h = mul(x, w)", "y = mul(h, w)"), "y", look)
    three = net_of("a = mul(x, w)", "b = mul(a, w)", "y = plus(b, w)")
    expect_gradients(work, three, "y", look)


def check_slots(work):
    """One variable in two slots of one operator."""
    look = "Count slots, not operators: mul(x, x) gives two parts of x@GRAD."
    expect_gradients(work, net_of("y = mul(x, x)"), "y", look)
    expect_gradients(work, net_of("h = mul(x, x)", "y = mul(h, h)"), "y", look)
    expect_gradients(work, net_of("h = plus(x, x)", "y = mul(h, x)"), "y", look)


def check_unused_output(work):
    """An output that nobody uses."""
    look = "The gradient of c does not come. Fill it with zeros, before the gradient of sin_cos."
    expect_gradients(work, net_of("s, c = sin_cos(x)", "y = mul(s, s)"), "y", look)
    expect_gradients(work, net_of("s, c = sin_cos(x)"), "c", look)


def check_unreached(work):
    """Operators that the target does not depend on."""
    look = "Keep an operator only if one of its outputs needs a gradient."
    forward = net_of("h = mul(x, x)", "p = mul(h, w)", "y = plus(h, v)", "q = mul(y, w)")
    expect_gradients(work, forward, "y", look)
    types = [op.type for op in made(work, forward, "y").flattened()]
    for kind, number in (("mul_grad", 1), ("plus_grad", 1)):
        expect_equal(f"how many {kind} there are for target y", types.count(kind), number, look)
    side = net_of("h = mul(x, w)", "s, c = sin_cos(h)", "p = mul(c, w)", "y = mul(s, w)")
    expect_gradients(work, side, "y", "p does not matter, so nor does its part of w@GRAD.")


def check_frozen(work):
    """Frozen variables."""
    look = 'A slot whose variable is in no_grad gets "@EMPTY@", and makes no part.'
    forward = net_of("h = mul(x, w)", "k = mul(h, w)", "y = plus(k, x)")
    expect_gradients(work, forward, "y", look, {"w"})
    expect_gradients(work, forward, "y", look, {"x"})
    look = "No gradient passes through h, but w is used elsewhere too."
    expect_gradients(work, forward, "y", look, {"h"})
    expect_gradients(work, net_of("h = mul(x, w)", "y = plus(h, v)"), "y", look, {"h"})
    look = "An operator whose inputs are all in no_grad is left out."
    forward = net_of("u = mul(w, w)", "h = mul(x, u)", "y = plus(h, w)")
    types = [op.type for op in made(work, forward, "y", {"w"}).flattened()]
    expect_equal("how many mul_grad there are, with w frozen", types.count("mul_grad"), 1, look)
    expect_gradients(work, forward, "y", look, {"w"})


def random_net(rng):
    """Up to eight operators on variables drawn at random; a target, and frozen ones."""
    names, lines = ["x", "w", "v"], []
    for number in range(int(rng.integers(2, 9))):
        if rng.random() < 0.3:
            lines.append(f"s{number}, c{number} = sin_cos({rng.choice(names)})")
            names += [f"s{number}", f"c{number}"]
        else:
            a, b = rng.choice(names, size=2)
            lines.append(f"t{number} = {rng.choice(['mul', 'plus'])}({a}, {b})")
            names.append(f"t{number}")
    target = str(rng.choice(names[3:]))
    others = [name for name in names if name != target]
    frozen = rng.choice(others, size=int(rng.integers(0, 3)), replace=False)
    return net_of(*lines), target, {str(name) for name in frozen}


def check_random(work):
    """A hundred nets drawn at random."""
    look = "Take this net, and write its backward network on paper."
    cases = [(*random_net(np.random.default_rng(seed)), seed) for seed in range(100)]
    for forward, target, no_grad, seed in sorted(cases, key=lambda c: len(c[0].operators)):
        expect_gradients(work, forward, target, look, no_grad, seed)  # short nets first


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "nothing is renamed",
        _SOLUTION.replace('if readers[name] > 1 else ""', 'if False else ""'),
    ),
    (
        "operators are counted, not slots",
        _SOLUTION.replace(
            "for op in kept for n in op.input_names if",
            "for op in kept for n in set(op.input_names) if",
        ),
    ),
    (
        "zeros for every output: the gradients that came are thrown away",
        _SOLUTION.replace("if y in needed else", "if y == target else").replace(
            "if y not in needed:", "if y != target:"
        ),
    ),
    (
        "no zeros: the gradient of an unused output is read, and nobody wrote it",
        _SOLUTION.replace('f"{y}@GRAD" if y in needed else f"{y}@ZERO"', 'f"{y}@GRAD"'),
    ),
    (
        "all operators are kept",
        _SOLUTION.replace("if wanted and not needed.isdisjoint(op.output_names):", "if wanted:"),
    ),
    (
        "frozen variables are frozen in the end only: their parts are computed",
        _SOLUTION.replace("if wanted and not", "if not").replace(
            '        if name in no_grad:\n            return "@EMPTY@"\n', ""
        ),
    ),
    (
        "what is behind a frozen variable is kept, and gets a gradient of zeros",
        _SOLUTION.replace("needed.update(wanted)", "needed.update(op.input_names)")
        .replace("if y in needed else", "if y in parts or y == target else")
        .replace("if y not in needed:", "if y not in parts and y != target:"),
    ),
    (
        "readers are counted in the whole net: a sum waits for parts that never come",
        _SOLUTION.replace(
            "for n in op.input_names if n not in no_grad", "for n in op.input_names"
        ).replace("for op in kept for n", "for op in forward.operators for n"),
    ),
    (
        "the sum stands after the first part",
        _SOLUTION.replace("if len(parts[name]) == readers[name] > 1", "if len(parts[name]) == 2"),
    ),
    (
        "the operators keep their order",
        _SOLUTION.replace("for op in kept:", "for op in reversed(kept):"),
    ),
)
