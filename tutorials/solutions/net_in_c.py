"""Solution of exercise net_in_c."""

import re

NAME = re.compile(r"(?<![\w.@])[A-Za-z_][\w@]*\b(?!\()")


def names_in(expression):
    """The names that an expression reads: {"x", "w@GRAD"} for "exp(x) * w@GRAD"."""
    return set(NAME.findall(expression))


def needed_lines(lines, outputs):
    """The lines that some output needs, in the same order."""
    wanted, kept = set(outputs), []
    for line in reversed(lines):
        name, expression = line.split(" = ")
        if name in wanted:
            wanted |= names_in(expression)
            kept.append(line)
    return kept[::-1]


def loop_of(lines, inputs, outputs):
    """The text of the C function ``loop``: a single loop that computes the outputs."""
    lines = needed_lines(lines, outputs)
    read = set().union(*[names_in(line.split(" = ")[1]) for line in lines])
    arrays = [f"const double *restrict {x}_in" for x in inputs]
    arrays += [f"double *restrict {y}_out" for y in outputs]
    body = [f"const double {x} = {x}_in[i];" for x in inputs if x in read]
    body += [f"const double {line};" for line in lines]
    body += [f"{y}_out[i] = {y};" for y in outputs]
    text = [f"void loop({', '.join(arrays)}, long n) {{"]
    text += ["    for (long i = 0; i < n; i++) {"]
    text += [f"        {statement}" for statement in body]
    text += ["    }", "}"]
    return "\n".join(text).replace("@", "_") + "\n"


def bytes_of(lines, inputs, outputs):
    """The bytes through memory for an element: line by line as NumPy, and in a single loop."""
    lines = needed_lines(lines, outputs)
    reads = [names_in(line.split(" = ")[1]) for line in lines]
    separate = sum(len(names) + 1 for names in reads)
    together = len(set().union(*reads) & set(inputs)) + len(outputs)
    return 8 * separate, 8 * together


def gradient_lines():
    """Lines for z = tanh(x * w + b) and its gradients, from the inputs x, w, b and z@GRAD."""
    return [
        "t = x * w + b",
        "z = tanh(t)",
        "b@GRAD = z@GRAD * (1.0 - z * z)",
        "x@GRAD = b@GRAD * w",
        "w@GRAD = b@GRAD * x",
    ]


if __name__ == "__main__":  # python net_in_c.py
    three = ["a = x * x", "b = x + w", "c = tanh(a) * w"]
    print("a and c are expected:", needed_lines(three, ["c"]))
    print(loop_of(three, ["x", "w"], ["c"]))
    print("(40, 24) is expected:", bytes_of(three, ["x", "w"], ["c"]))
    gradients = ["z", "x@GRAD", "w@GRAD", "b@GRAD"]
    print(loop_of(gradient_lines(), ["x", "w", "b", "z@GRAD"], gradients))
