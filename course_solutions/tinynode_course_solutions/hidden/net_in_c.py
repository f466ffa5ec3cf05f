"""Hidden checks of the elective net_in_c: another net, and an input that no line reads."""

import re

import numpy as np

from tinynode_course.checks import expect_close, expect_equal, expect_true

LINES = [
    "h = x@GRAD * e",
    "unused = h * h",
    "exp1 = exp(h)",
    "q = exp1 / (exp1 + 1.0)",
    "r = q - h * q",
]
LOOK = "Print the text of loop_of for these lines, and follow each name."


def check_the_text(work):
    """The statements of the loop, in an order that C allows."""
    text = work.loop_of(list(LINES), ["e", "alone", "x@GRAD"], ["r", "q"])
    body = text.replace(" ", "").split("{", 2)[2]
    declared = re.findall(r"constdouble(\w+)=", body)
    expect_equal(
        "the declared names",
        sorted(declared),
        sorted(["e", "x_GRAD", "h", "exp1", "q", "r"]),
        LOOK,
    )
    for first, later in (("x_GRAD", "h"), ("e", "h"), ("h", "exp1"), ("exp1", "q"), ("q", "r")):
        in_order = declared.index(first) < declared.index(later)
        expect_true(f"{first} is declared before {later}", in_order, LOOK)
    expect_equal("the stores", sorted(re.findall(r"(\w+)\[i\]=", body)), ["q_out", "r_out"], LOOK)
    arrays = re.findall(r"\* ?restrict (\w+)", text)
    right = ["e_in", "alone_in", "x_GRAD_in", "r_out", "q_out"]
    expect_equal("the arrays, in order", arrays, right, LOOK)


def check_bytes(work):
    """By hand: passes with 3, 2, 2 and 3 numbers, and a loop with 2 inputs and 2 outputs."""
    got = tuple(work.bytes_of(list(LINES), ["e", "alone", "x@GRAD"], ["r", "q"]))
    expect_equal("bytes_of", got, (80, 32), LOOK)


def check_the_lines_stay(work):
    """The caller's lists are as before."""
    lines, inputs, outputs = list(LINES), ["e", "x@GRAD"], ["r"]
    work.needed_lines(lines, outputs)
    work.loop_of(lines, inputs, outputs)
    work.bytes_of(lines, inputs, outputs)
    expect_equal("the lines", lines, LINES, "Make a new list.")
    expect_equal(
        "inputs and outputs", (inputs, outputs), (["e", "x@GRAD"], ["r"]), "Make new lists."
    )


def check_the_gradient_in_one_loop(work):
    """A large argument: tanh is 1, and its gradients are 0."""
    lines = work.gradient_lines()
    known = {"x": 30.0, "w": 2.0, "b": 1.0, "z_GRAD": 3.0, "tanh": np.tanh}
    for line in work.needed_lines(lines, ["z", "x@GRAD", "w@GRAD", "b@GRAD"]):
        name, expression = line.replace("@", "_").split(" = ")
        known[name] = eval(expression, {"__builtins__": {}}, known)
    expect_close("z", known["z"], 1.0, LOOK)
    for name in ("x_GRAD", "w_GRAD", "b_GRAD"):
        expect_close(name, known[name], 0.0, LOOK)
