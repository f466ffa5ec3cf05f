"""Checks of compile: the compiled step against the eager one, and how often it is recorded."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_robust": Hint(
        "Which of two formulas holds for a small error, and which for a large one?",
        "e^2 / 2 where |e| < limit, limit (|e| - limit / 2) elsewhere; then the mean.",
    ),
    "check_compiled_robust": Hint(
        "A recorded net has shapes and no values. Which line of yours asks for a value?",
        "F.where(abs(errors) < limit, a, b) decides for all numbers; F.mean takes the place "
        "of the loop.",
    ),
    "check_losses": Hint(
        "Which four things does a step do, and in which order?",
        "cleargrads, the loss, backward, update, in an inner function with @tn.compile.",
    ),
    "check_recorded_once": Hint(
        "Which argument is different in each call, so that the step is recorded anew?",
        "np.asarray(limit) is an array; a number of Python is recorded as a constant.",
    ),
    "check_shapes": Hint(
        "How often do you compile: once for all calls, or in each call?",
        "tn.compile in make_step, outside of step.",
    ),
    "check_arguments": Hint(
        "Do the data need a gradient?",
        "x.detach() and t.detach().",
    ),
}

GUARDS = ("check_robust", "check_losses")

ERRORS = np.array([[0.3, -0.2, 2.0], [-1.5, 1.0, -4.0]])
"""One of the errors is a limit: there, |e| < limit is false."""


def reference(errors, limit):
    """robust, by functions of Variables."""
    size = abs(errors)
    return F.mean(F.where(size < limit, errors * errors / 2, limit * (size - limit / 2)))


def three_orders(f, data, limit):
    """The value of f, its gradient, and the gradient of sum(gradient^3)."""
    errors = tn.Variable(data)
    y = f(errors, limit)
    (g,) = tn.grad([y], [errors], enable_double_backprop=True)
    (h,) = tn.grad([F.sum(g * g * g)], [errors])
    return y, g, h


def expect_the_same(title, f, limit, look):
    """f has the value and the gradients of robust."""
    found = three_orders(f, ERRORS, limit)
    names = ("the value", "the first gradient", "the second gradient")
    for name, got, right in zip(names, found, three_orders(reference, ERRORS, limit), strict=True):
        what = f"{name} of {title}, limit {float(limit):g}"
        if got is None:
            raise CheckFailed(what, "a Variable", "None", look)
        expect_close(what, got.array, right.array, look, rtol=1e-12, atol=1e-14)


def check_robust(work):
    """robust has the same value and gradients as before."""
    look = "e^2 / 2 where |e| < limit, limit (|e| - limit / 2) elsewhere; then the mean."
    for limit in (1.0, 0.25, 10.0):
        expect_the_same("robust", work.robust, limit, look)


def check_compiled_robust(work):
    """robust can be compiled, with gradients to second order."""
    look = "No if, float(...) or loop over the values of Variables: F.where decides for all."
    for title, limit in (("a number", 1.0), ("an array", np.asarray(0.5))):
        try:
            expect_the_same(
                f"tn.compile(robust), limit as {title}", tn.compile(work.robust), limit, look
            )
        except tn.TinynodeError as error:
            what = "tn.compile(robust)(errors, limit)"
            raise CheckFailed(what, "a number", f"{type(error).__name__}: {error}", look) from None


class Counted:
    """A model that counts how often it is run."""

    def __init__(self, model):
        self.model = model
        self.runs = 0

    def __call__(self, x):
        self.runs += 1
        return self.model(x)


def network():
    tn.seed(3)
    return nn.Sequential(
        nn.Linear(2, 5, dtype="float64"), F.tanh, nn.Linear(5, 1, dtype="float64")
    )


def data(rows, seed=0):
    rng = np.random.default_rng(seed)
    return tn.Variable(rng.normal(size=(rows, 2))), tn.Variable(3.0 * rng.normal(size=(rows, 1)))


def train(make, optimizer_of, rows=6, steps=8):
    """The losses of some steps, the parameters after them, and how often the model ran."""
    model = network()
    counted = Counted(model)
    step = make(counted, optimizer_of(model))
    x, t = data(rows)
    losses = []
    for number in range(steps):
        loss = step(x, t, 2.0 / (1 + number))
        expect_true("step returns a Variable", isinstance(loss, tn.Variable), "Return the loss.")
        losses.append(float(loss))
    return losses, [p.array for p in model.parameters()], counted.runs


def eager_make_step(model, optimizer):
    """The step of the stub."""

    def step(x, t, limit):
        loss = reference(model(x) - t, limit)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        return loss

    return step


def sgd(model):
    return nn.SGD(model, lr=0.2, momentum=0.5)


def adam(model):
    return nn.Adam(model, lr=0.05)


def attempt(work, *arguments):
    """train, with an error of a compiled function as a failed check."""
    try:
        return train(work.make_step, *arguments)
    except tn.TinynodeError as error:
        look = "The message says what a net cannot record, and what to do in its place."
        what = "step(x, t, limit)"
        raise CheckFailed(what, "a loss", f"{type(error).__name__}: {error}", look) from None


def check_losses(work):
    """The losses are those of the eager step."""
    look = (
        "cleargrads, the loss, backward, update: all four. A difference from the 7th digit on: is "
        "limit an array of 64 bits, as np.asarray(limit) is? tn.asarray(limit) has 32."
    )
    for title, optimizer_of in (("SGD with momentum", sgd), ("Adam", adam)):
        losses, parameters, _ = attempt(work, optimizer_of)
        right, right_parameters, _ = train(eager_make_step, optimizer_of)
        expect_close(f"the losses of 8 steps of {title}", losses, right, look, rtol=1e-9)
        for got, expected in zip(parameters, right_parameters, strict=True):
            what = f"a parameter after 8 steps of {title}"
            expect_close(what, got, expected, look, rtol=1e-9, atol=1e-10)


def check_recorded_once(work):
    """The model itself runs once."""
    _, _, runs = attempt(work, sgd)
    look = "Is the step compiled? And is limit an array when it gets there?"
    expect_equal("how often the model ran in 8 steps", runs, 1, look)


def check_shapes(work):
    """Another number of rows is recorded for itself."""
    model = network()
    counted = Counted(model)
    step = work.make_step(counted, sgd(model))
    for rows in (6, 4, 6, 4):
        x, t = data(rows)
        step(x, t, 1.0)
    look = "Compile once, in make_step; not in each call of step."
    expect_equal("how often the model ran for 6, 4, 6 and 4 rows", counted.runs, 2, look)


def check_arguments(work):
    """x and t are left alone."""
    model = network()
    step = work.make_step(model, sgd(model))
    x, t = data(6)
    step(x, t, 1.0)
    look = "They are data: pass x.detach() and t.detach()."
    expect_true("x has no gradient after a step", x.grad is None, look)
    expect_true("t has no gradient after a step", t.grad is None, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the limit is passed as a number: every step is recorded anew",
        _SOLUTION.replace("np.asarray(limit)", "limit"),
    ),
    (
        "nothing is compiled",
        _SOLUTION.replace("    @tn.compile\n", ""),
    ),
    (
        "step is compiled in each call",
        _SOLUTION.replace("    @tn.compile\n", "").replace(
            "return compiled(", "return tn.compile(compiled)("
        ),
    ),
    (
        "x requires a gradient",
        _SOLUTION.replace("x.detach(), t.detach()", "x, t"),
    ),
    (
        "gradients are not cleared",
        _SOLUTION.replace("        optimizer.cleargrads()\n", ""),
    ),
    (
        "only the loss is compiled, and the update is forgotten",
        _SOLUTION.replace("        optimizer.update()\n", ""),
    ),
    (
        "an if on a value is left: right eagerly, and nothing that can be recorded",
        _SOLUTION.replace(
            "    return F.mean(F.where",
            "    if float(F.max(size)) < limit:\n"
            "        return F.mean(errors * errors / 2)\n"
            "    return F.mean(F.where",
        ),
    ),
    (
        "an error that is the limit counts as small",
        _SOLUTION.replace("F.where(size < limit", "F.where(size <= limit"),
    ),
    (
        "the sign is forgotten: large negative errors count as small ones",
        _SOLUTION.replace("F.where(size < limit", "F.where(errors < limit"),
    ),
    (
        "the slope of large errors is right, and the value is not",
        _SOLUTION.replace("limit * (size - limit / 2)", "limit * size"),
    ),
    (
        "large errors are cut off: they have no gradient",
        _SOLUTION.replace("limit * (size - limit / 2)", "limit * limit / 2"),
    ),
)
