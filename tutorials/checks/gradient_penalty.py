"""Checks of the capstone: the loss by a formula, its gradient by differences, two devices."""

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
    "check_without_penalty": Hint(
        "A sum over examples is no mean. By what do you divide?",
        "total / x.shape[0].",
    ),
    "check_formula": Hint(
        "Which length is punished, for each example, and with which power?",
        "the mean of c_i + weight |dc_i/dx_i|^2.",
    ),
    "check_gradient": Hint(
        "The loss has a gradient inside. Does the graph of this gradient exist?",
        "tn.grad([total], [inputs], enable_double_backprop=True).",
    ),
    "check_left_alone": Hint(
        "Which call writes gradients into leaves, and which only returns them?",
        "tn.grad returns; inputs = tn.asarray(x, requires_grad=True).",
    ),
    "check_training": Hint(
        "The slopes stay as steep as without. Does the penalty reach the parameters?",
        "(total + weight * F.sum(slope * slope)) / n.",
    ),
    "check_devices": Hint(
        "Which line of yours names a device or NumPy?",
        "F and tn only: x knows where it is.",
    ),
}

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [0.0, 1.0, 1.0], [-2.0, 0.5, 0.0]])
T = np.array([0, 1, 1, 0])
LOOK = "It is the mean of c_i + weight * |dc_i/dx_i|^2: both parts are divided by n."


def on(device, data):
    """NumPy data on a device."""
    return tn.asarray(data.copy(), device=device, requires_grad=False)


def bent(device):
    """A model with a tanh, the same one each time."""
    tn.seed(3)
    with tn.using_device(device):
        return nn.Sequential(
            nn.Linear(3, 5, dtype="float64"), F.tanh, nn.Linear(5, 2, dtype="float64")
        )


def straight():
    """A model without anything bent, for which there is a formula."""
    tn.seed(4)
    return nn.Linear(3, 2, dtype="float64", device="numpy")


def loss_of(work, model, weight, device="numpy"):
    """The learner's loss."""
    with tn.using_device(device):
        return work.penalized_cross_entropy(model, on(device, X), on(device, T), weight)


def check_without_penalty(work):
    """With weight 0 it is the mean cross entropy."""
    model = bent("numpy")
    loss = loss_of(work, model, 0.0)
    expected = F.softmax_cross_entropy(model(on("numpy", X)), on("numpy", T))
    is_variable = isinstance(loss, tn.Variable)
    expect_true("the loss is a Variable", is_variable, "Return it as it is: no float, no array.")
    look = "The sum of all cross entropies is to be divided by their number."
    expect_close("the loss for weight 0", loss.array, expected.array, look)


def check_formula(work):
    """For a linear model it is what the formula says."""
    model = straight()
    w, b = model.weight.array, model.bias.array
    scores = X @ w.T + b
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    slopes = (p - np.eye(2)[T]) @ w  # dc/dx = W^T (p - the right class)
    entropies = -np.log(p[np.arange(4), T])
    for weight in 0.5, 3.0:
        expected = np.mean(entropies + weight * np.sum(slopes**2, axis=1))
        loss = loss_of(work, model, weight)
        expect_close(f"the loss of a linear model for weight {weight}", loss.array, expected, LOOK)


def check_gradient(work):
    """Its gradient reaches the parameters, and is right."""
    model = bent("numpy")
    loss = loss_of(work, model, 2.0)
    model.cleargrads()
    loss.backward()
    rng = np.random.default_rng(5)
    for name, parameter in model.named_parameters():
        direction = rng.normal(size=parameter.shape)
        data, ends = parameter.array, []
        for eps in (1e-5, -1e-5):
            with tn.using_device("numpy"):
                parameter.array = data + eps * direction
            ends.append(float(loss_of(work, model, 2.0)))
        with tn.using_device("numpy"):
            parameter.array = data
        look = "Does the graph of the gradient exist? See Break it on the page."
        if parameter.grad is None:
            raise CheckFailed(f"the gradient of {name}", "an array", "None", look)
        expected = (ends[0] - ends[1]) / 2e-5
        got = np.sum(parameter.grad * direction)
        expect_close(f"the slope along a direction of {name}", got, expected, look, rtol=1e-5)


def check_left_alone(work):
    """x and the parameters are left as they are."""
    model = bent("numpy")
    x = on("numpy", X)
    work.penalized_cross_entropy(model, x, on("numpy", T), 1.0)
    look = "tn.grad returns gradients and writes none; total.backward() writes into all leaves."
    expect_true("x.grad is None afterwards", x.grad is None, look)
    expect_equal("x.requires_grad afterwards", x.requires_grad, False, look)
    for name, parameter in model.named_parameters():
        expect_true(f"{name}.grad is None afterwards", parameter.grad is None, look)


def check_training(work):
    """Training with it makes the slopes smaller."""
    lengths = {}
    for weight in 0.0, 1.0:
        model = bent("numpy")
        optimizer = nn.Adam(model, lr=0.05)
        for _ in range(60):
            loss = loss_of(work, model, weight)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
        x = tn.asarray(X, device="numpy", requires_grad=True)
        margin = model(x)
        (slope,) = tn.grad([F.sum(margin[:, 0] - margin[:, 1])], [x])
        lengths[weight] = float(F.mean(F.sum(slope * slope, axis=1)))
    look = "If both are the same, the penalty does not reach the parameters."
    smaller = lengths[1.0] < 0.7 * lengths[0.0]
    expect_true("the slopes are smaller with the penalty than without", smaller, look)


def check_devices(work):
    """It runs on fast as on numpy."""
    results = []
    for device in "numpy", "fast":
        model = bent(device)
        try:
            loss = loss_of(work, model, 2.0, device)
            loss.backward()
        except Exception as error:
            got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            look = "Name no device, and use no NumPy: x knows where it is."
            raise CheckFailed(f"the loss on {device}", "a gradient", got, look) from error
        expect_equal("the device of the loss", str(loss.device), device, "Stay where x is.")
        results.append(tn.to_host(model[0].weight.grad))
    expect_close("the gradient on fast", results[1], results[0], "It is the same code.")


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("no double backprop", _SOLUTION.replace(", enable_double_backprop=True", "")),
    (
        "only the penalty is divided by n",
        _SOLUTION.replace(
            "(total + weight * F.sum(slope * slope)) / x.shape[0]",
            "total + weight * F.sum(slope * slope) / x.shape[0]",
        ),
    ),
    (
        "the mean is taken before the gradient",
        _SOLUTION.replace(', reduction="sum"', "").replace(
            "(total + weight * F.sum(slope * slope)) / x.shape[0]",
            "total + weight * F.sum(slope * slope) / x.shape[0]",
        ),
    ),
    (
        "the lengths are not squared",
        _SOLUTION.replace("F.sum(slope * slope)", "F.sum(F.sqrt(F.sum(slope * slope, axis=1)))"),
    ),
    (
        "backward in place of grad",
        _SOLUTION.replace(
            "(slope,) = tn.grad([total], [inputs], enable_double_backprop=True)",
            "total.backward(enable_double_backprop=True)\n    slope = inputs.grad_var",
        ),
    ),
    (
        "the slope's array is taken, not the Variable",
        _SOLUTION.replace("F.sum(slope * slope)", "F.sum(tn.asarray(slope.array) ** 2)"),
    ),
    (
        "the device is named",
        _SOLUTION.replace(
            "tn.asarray(x, requires_grad=True)",
            "tn.asarray(tn.to_host(x.array), device='numpy', requires_grad=True)",
        ),
    ),
)
