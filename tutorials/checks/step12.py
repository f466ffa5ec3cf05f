"""Checks of exercise 12: the loop, step by step, and what the two models have learned."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode.learn.checks import expect_close, expect_equal, expect_true, solution

HINTS = (
    "The loop of the page: compute the loss, forget the old gradients, backward, update. "
    "float(loss) is the loss as a plain number.",
    "Both models need a bend: nn.Sequential(nn.Linear(2, 8), F.tanh, nn.Linear(8, 2)). If a loss "
    "stays where it was, draw it with tn.show.training_curves.",
    "For XOR 200 steps of nn.Adam(model, lr=0.05) are enough; for the sine 16 hidden numbers and "
    "600 steps with lr=0.02.",
)


def trained_line(work, steps):
    """The losses and the weight of a line y = w x, trained by the learner's loop from w = 0."""
    x, t = np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [3.0], [5.0]])
    line = nn.Linear(1, 1, bias=False, dtype="float64")
    line.weight.array = np.zeros((1, 1))

    def loss_of(model):
        return F.mean_squared_error(model(x), t)

    losses = work.train(line, nn.SGD(line, lr=0.05), loss_of, steps)
    w, expected = 0.0, []
    for _ in range(steps):
        expected.append(float(np.mean((w * x - t) ** 2)))
        w -= 0.05 * float(np.mean(2 * (w * x - t) * x))
    return losses, expected, float(line.weight.array[0, 0]), w


def check_one_step(work):
    """train makes one step."""
    losses, expected, weight, w = trained_line(work, 1)
    expect_true("train returns a list", isinstance(losses, list), "return losses")
    expect_equal("the number of losses after 1 step", len(losses), 1, "One append in each step.")
    is_number = isinstance(losses[0], float)
    expect_true("a loss is a plain number", is_number, "float(loss) makes one of a Variable.")
    expect_close("the loss", losses[0], expected[0], "It is that of before the update.")
    look = "After loss.backward() comes optimizer.update()."
    expect_close("the weight after the step", weight, w, look)


def check_more_steps(work):
    """train makes five steps."""
    losses, expected, weight, w = trained_line(work, 5)
    look = "The first step was right. What is left over from it in the second: the old gradients?"
    expect_equal("the number of losses after 5 steps", len(losses), 5, "One append in each step.")
    expect_close(
        "the losses of 5 steps", np.array([float(x) for x in losses]), np.array(expected), look
    )
    expect_close("the weight after them", weight, w, look)


def outputs(model, x, shape):
    """What the model gives, as an array, if it has the right shape."""
    look = "Return the model, not the losses."
    expect_true("the result is a model, which can be called", callable(model), look)
    with tn.no_backprop_mode():
        y = model(x)
    look = "The first layer's first number and the last layer's second number make the shape."
    expect_equal(f"the shape that the model makes of {x.shape}", y.shape, shape, look)
    return y.array


def check_xor(work):
    """fit_xor: the four points, with a loss below 0.05."""
    points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype="float32")
    classes = np.array([0, 1, 1, 0])
    scores = outputs(work.fit_xor(), points, (4, 2))
    loss = float(F.softmax_cross_entropy(scores, classes))
    look = (
        "About 0.69 is what a guess has: is there a bend between two layers? If the loss falls, "
        "but is not there yet: more steps, or a larger lr."
    )
    expect_true(f"the loss, {loss:.4f}, is below 0.05", loss < 0.05, look)
    expect_equal("the classes of the four points", scores.argmax(axis=1), classes, look)


def check_sine(work):
    """fit_sine: the sine, with an error below 0.001."""
    model = work.fit_sine()
    angles = np.linspace(-np.pi, np.pi, 64, dtype="float32").reshape(64, 1)
    error = float(np.mean((outputs(model, angles, (64, 1)) - np.sin(angles)) ** 2))
    look = (
        "About 0.2 is the best that a straight line can do: is there a bend between two layers? "
        "If the error falls, but is not there yet: more steps, or more hidden numbers."
    )
    expect_true(f"the mean squared error, {error:.5f}, is below 0.001", error < 0.001, look)
    between = np.linspace(-3.0, 3.0, 50, dtype="float32").reshape(50, 1)
    error = float(np.mean((outputs(model, between, (50, 1)) - np.sin(between)) ** 2))
    look = "The model is right at ANGLES alone. Train on all of them, with fewer hidden numbers."
    expect_true(f"the error between the angles, {error:.5f}, is below 0.002", error < 0.002, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the old gradients are not forgotten",
        _SOLUTION.replace("        optimizer.cleargrads()\n", ""),
    ),
    (
        "the gradients are forgotten after backward, before update",
        _SOLUTION.replace(
            "        optimizer.cleargrads()\n        loss.backward()\n",
            "        loss.backward()\n        optimizer.cleargrads()\n",
        ),
    ),
    ("the losses are Variables", _SOLUTION.replace("float(loss)", "loss")),
    ("no bend between the layers", _SOLUTION.replace(" F.tanh,", "")),
    ("too few steps", _SOLUTION.replace("200)", "5)").replace("600)", "50)")),
)
