"""Checks of net_in_c: the text of the loop is read, interpreted, and compiled where a cc is."""

import ctypes
import re

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_needed_lines": Hint(
        "Go backward from the outputs. When is a line wanted, and what does it want itself?",
        "wanted = the outputs; for reversed lines: kept if its name is wanted, and then the "
        "names that it reads are wanted too.",
    ),
    "check_one_loop": Hint(
        "Which arrays come in, which go out, and how many loops does the function have?",
        "Three lists of statements in one loop: loads, lines, stores.",
    ),
    "check_the_numbers": Hint(
        "Which element does each name stand for inside of the loop?",
        "Each line computes one const double from doubles.",
    ),
    "check_what_is_read": Hint(
        "How often is one element read, and which elements does nobody need?",
        "Loads for the needed inputs only, each once; stores for the outputs only.",
    ),
    "check_the_compiled_loop": Hint(
        "What does the compiler see that a reader of the text overlooks?",
        "Types, semicolons, brackets, and pow for powers.",
    ),
    "check_bytes": Hint(
        "Which numbers go through memory in one pass per line, and which in one loop?",
        "A pass: each name read once, one written. The loop: needed inputs and outputs. Times"
        " 8 bytes.",
    ),
    "check_gradient_lines": Hint(
        "The derivative of tanh needs a value that is there already. Which?",
        "z = tanh(t): dz/dt = 1 - z^2; then times z@GRAD, then times w or x.",
    ),
}
FORM = re.compile(
    r"void loop ?\((?P<parameters>[^()]*)\) ?\{ ?for ?\(long i = 0; i < n; (?:i\+\+|\+\+i)\) ?\{"
    r"(?P<body>[^{}]*)\} ?\}"
)
STATEMENT = re.compile(r"const double (\w+) = (.+)|(\w+)\[i\] = (.+)")
FUNCTIONS = {"tanh": np.tanh, "exp": np.exp, "sqrt": np.sqrt, "fabs": np.abs}
CASES = {
    "a product": (["y = x * x"], ["x"], ["y"]),
    "a sum before a product": (["a = x + w", "b = a * a", "c = b / a"], ["x", "w"], ["c"]),
    "a line that no output needs": (
        ["a = exp(x)", "dead = sqrt(w)", "more = dead * a", "b = a - x"],
        ["x", "w"],
        ["b"],
    ),
    "two outputs": (["t = tanh(x * w)", "e = t * 0.5", "s = e + t"], ["w", "x"], ["s", "t"]),
    "names with @": (
        ["x@GRAD = y@GRAD * exp(x)", "x@GRAD@1 = x@GRAD + e"],
        ["x", "y@GRAD", "e"],
        ["x@GRAD@1"],
    ),
    "a chain of nine": (
        ["t0 = x * x", *(f"t{k} = t{k - 1} * x + 0.1" for k in range(1, 9))],
        ["x"],
        ["t8"],
    ),
}
LOOK = "Print the text of loop_of, and compare with the text at the top of the exercise."
PREFIX = "#include <math.h>\n"


def called(what, function, *arguments):
    """What the learner's code gives; an exception is a failed check."""
    try:
        return function(*arguments)
    except (NotImplementedError, CheckFailed):
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise CheckFailed(what, "a result", got, LOOK) from error


def numbers_of(inputs, n=5):
    """Some numbers for each input, all positive."""
    rng = np.random.default_rng(n)
    return {name: rng.uniform(0.25, 2.0, size=n) for name in inputs}


def by_numpy(lines, arrays):
    """Every name of the lines, computed line by line with NumPy."""
    known = {name.replace("@", "_"): array for name, array in arrays.items()}
    for line in lines:
        name, expression = line.replace("@", "_").split(" = ")
        known[name] = eval(expression, {"__builtins__": {}}, FUNCTIONS | known)
    return known


# --- the text, read and interpreted --------------------------------------------------------------


class Loop:
    """The parts of a C function with a single loop."""

    def __init__(self, what, text):
        self.what, self.text = what, text
        expect_true(f"{what}: loop_of returns a text", isinstance(text, str), LOOK)
        plain = " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S).split())
        self.expect("@" not in plain, "no @ in C", "an @", "Write _ in place of @.")
        loops = len(re.findall(r"\bfor\b", plain))
        look = "All lines stand in one loop: a number stays in a register until the next line."
        expect_equal(f"{what}: the number of loops", loops, 1, look)
        found = FORM.fullmatch(plain)
        self.expect(found, "the form `void loop(...) { for (...) { ... } }`", text, LOOK)
        self.parameters = [p.strip() for p in found["parameters"].split(",")]
        self.statements = [s.strip() for s in found["body"].split(";") if s.strip()]

    def expect(self, condition, expected, got, look):
        if not condition:
            raise CheckFailed(self.what, expected, got, look)

    def expect_parameters(self, inputs, outputs):
        expected = [f"const double *restrict {x}_in" for x in inputs]
        expected += [f"double *restrict {y}_out" for y in outputs]
        expected = [one.replace("@", "_") for one in expected] + ["long n"]
        tidy = [re.sub(r" ?\* ?", " *", parameter) for parameter in self.parameters]
        look = "First the inputs, then the outputs, then n. restrict: no two arrays overlap."
        expect_equal(f"{self.what}: the parameters", tidy, expected, look)

    def run(self, arrays, n):
        """Interpret the loop; arrays are by the names of the parameters."""
        for i in range(n):
            known = {}
            for statement in self.statements:
                found = STATEMENT.fullmatch(statement)
                form = "`const double name = ...` or `array[i] = ...`"
                self.expect(found, form, statement, LOOK)
                local, value, array, stored = found.groups()
                number = self.value(value or stored, known, arrays, i)
                if local:
                    look = "Each name of C is declared once."
                    self.expect(local not in known, f"one {local}", f"{local} twice", look)
                    known[local] = number
                else:
                    is_output = array in arrays and array.endswith("_out")
                    self.expect(is_output, "a store to an output", statement, LOOK)
                    arrays[array][i] = number

    def value(self, expression, known, arrays, i):
        element = re.compile(r"\b(\w+)\[i\]")
        for array in element.findall(expression):
            self.expect(array in arrays, "a known array", f"{array}[i]", LOOK)
        names = {f"{name}_at_i": array[i] for name, array in arrays.items()}
        text = element.sub(r"\1_at_i", expression)
        try:
            return eval(text, {"__builtins__": {}}, FUNCTIONS | names | known)
        except Exception as error:
            got = f"`{expression}`: {error}"
            look = "A line stands after the lines whose names it reads."
            raise CheckFailed(self.what, "an expression of earlier names", got, look) from None


def emitted(work, case):
    """The loop of a case."""
    return Loop(f"loop_of, {case}", called(f"loop_of, {case}", work.loop_of, *CASES[case]))


def named(arrays, end):
    return {name.replace("@", "_") + end: array for name, array in arrays.items()}


# --- the checks ----------------------------------------------------------------------------------


def check_needed_lines(work):
    """Lines that no output needs are left out."""
    look = "A line is needed if an output, or a later needed line, reads its name."
    lines = ["a = x * x", "b = a + w", "c = a * 2.0", "d = c - x@GRAD", "e = exp(b)"]
    rows = (
        (["d"], [0, 2, 3]),
        (["e"], [0, 1, 4]),
        (["a"], [0]),
        (["e", "c"], [0, 1, 2, 4]),
        (["d", "e"], [0, 1, 2, 3, 4]),
    )
    for outputs, right in rows:
        got = called("needed_lines", work.needed_lines, list(lines), outputs)
        expected = [lines[k] for k in right]
        expect_equal(f"needed_lines for the outputs {outputs}", list(got), expected, look)


def check_one_loop(work):
    """The text is a function with one loop, and the right parameters."""
    for case, (_, inputs, outputs) in CASES.items():
        emitted(work, case).expect_parameters(inputs, outputs)


def check_the_numbers(work):
    """The loop computes what NumPy computes, line by line."""
    for case, (lines, inputs, outputs) in CASES.items():
        loop = emitted(work, case)
        given = numbers_of(inputs)
        written = {y: np.full(5, np.nan) for y in outputs}
        loop.run(named(given, "_in") | named(written, "_out"), 5)
        right = by_numpy(lines, given)
        for y in outputs:
            expect_close(f"{loop.what}: {y}", written[y], right[y.replace("@", "_")], loop.text)


def check_what_is_read(work):
    """Each needed element is read once, and no other."""
    look = "An element goes to a const double once. Elements that no line needs stay in memory."
    for case, (lines, inputs, outputs) in CASES.items():
        loop = emitted(work, case)
        reads = [name for s in loop.statements for name in re.findall(r"\b(\w+_in)\[i\]", s)]
        needed = " ".join(lines if "dead" not in " ".join(lines) else ["b = exp(x) - x"])
        right = [
            x.replace("@", "_") + "_in" for x in inputs if re.search(rf"\b{x}\b(?!@)", needed)
        ]
        expect_equal(
            f"{loop.what}: the elements that are read", sorted(reads), sorted(right), look
        )
        stores = sum(bool(re.match(r"\w+\[i\] =", s)) for s in loop.statements)
        expect_equal(f"{loop.what}: the stores", stores, len(outputs), look)
        expect_true(f"{loop.what}: nothing of a dead line", "dead" not in loop.text, look)
        calls = len(re.findall(r"\b(?:tanh|exp|sqrt)\(", loop.text))
        once = {"two outputs": 1, "names with @": 1, "a line that no output needs": 1}
        expect_equal(f"{loop.what}: the calls of functions", calls, once.get(case, 0), look)


def check_the_compiled_loop(work):
    """Where a C compiler is, the compiled loop gives the same numbers."""
    for case in ("two outputs", "names with @"):
        lines, inputs, outputs = CASES[case]
        loop = emitted(work, case)
        loop.expect_parameters(inputs, outputs)
        given = numbers_of(inputs)
        written = {y: np.full(6, -7.0) for y in outputs}
        loop.run(named(given, "_in") | named(written, "_out"), 5)  # refuses other arrays
        function = compiled(loop)
        if function is None:
            return
        for y in outputs:
            written[y][:] = -7.0
        addresses = [ctypes.c_void_p(a.ctypes.data) for a in (*given.values(), *written.values())]
        function(*addresses, ctypes.c_long(5))
        right = by_numpy(lines, given)
        for y in outputs:
            expected = [*right[y.replace("@", "_")], -7.0]
            expect_close(f"{loop.what}, compiled: {y}", written[y], expected, loop.text)


def compiled(loop):
    """The compiled function, or None where no compiler works."""
    try:
        from tinynode_fast.native import build

        build.library(PREFIX + "double one(void) { return tanh(1.0); }\n", "auto")
    except Exception:  # none here: the interpreter has judged already
        return None
    try:
        function = build.library(PREFIX + loop.text, "auto").loop
    except build.NotBuiltError as error:
        raise CheckFailed(loop.what, "a text that compiles", str(error), loop.text) from None
    function.restype = None
    return function


def check_bytes(work):
    """Bytes through memory, by hand."""
    look = "A pass reads each name once, and writes one. The loop: needed inputs, and outputs."
    rows = (
        ("a product", (16, 16)),
        ("a sum before a product", (8 * (3 + 2 + 3), 24)),
        ("a line that no output needs", (8 * (2 + 3), 16)),
        ("two outputs", (8 * (3 + 2 + 3), 32)),
        ("a chain of nine", (8 * (2 + 8 * 3), 16)),
    )
    for case, right in rows:
        got = called("bytes_of", work.bytes_of, *CASES[case])
        expect_equal(f"bytes_of, {case}", tuple(got), right, look)


def check_gradient_lines(work):
    """tanh and its gradients, in one loop with one tanh."""
    look = "dz/dt is 1 - z^2. The chain rule multiplies with z@GRAD, then with w or x."
    lines = called("gradient_lines", work.gradient_lines)
    given = numbers_of(["x", "w", "b", "z@GRAD"])
    got = called("the lines of gradient_lines, with NumPy", by_numpy, lines, given)
    x, w, b, g = given.values()
    z = np.tanh(x * w + b)
    gb = g * (1.0 - z**2)
    for name, right in {"z": z, "b_GRAD": gb, "x_GRAD": gb * w, "w_GRAD": gb * x}.items():
        expect_true(f"gradient_lines has a line {name}", name in got, look)
        expect_close(f"gradient_lines: {name}", got[name], right, look)
    calls = " ".join(lines).count("tanh")
    expect_equal("gradient_lines: the calls of tanh", calls, 1, "z is tanh(t), so use z again.")


_SOLUTION = solution(__file__)
_KEPT, _LINES = "return kept[::-1]", 'f"const double {line};" for line in lines'
_WANTED = "            wanted |= names_in(expression)\n"
_SEPARATE = "sum(len(names) + 1 for names in reads)"

MISTAKES: tuple[tuple[str, str], ...] = (
    ("the lines are in reverse order", _SOLUTION.replace(_KEPT, "return kept")),
    ("no line is left out", _SOLUTION.replace(_KEPT, "return list(lines)")),
    ("only the lines of outputs", _SOLUTION.replace(_WANTED, "")),
    ("no restrict", _SOLUTION.replace("*restrict ", "*")),
    ("float", _SOLUTION.replace("double *restrict", "float *restrict")),
    ("an element too many", _SOLUTION.replace("i < n", "i <= n")),
    ("an element too few", _SOLUTION.replace("i = 0", "i = 1")),
    ("the @ stays", _SOLUTION.replace('.replace("@", "_")', "")),
    ("the @ is dropped", _SOLUTION.replace('.replace("@", "_")', '.replace("@", "")')),
    (
        "the last output alone",
        _SOLUTION.replace('= {y};" for y in outputs', '= {y};" for y in outputs[-1:]'),
    ),
    (
        "every line is stored",
        _SOLUTION.replace(
            '    body += [f"{y}_out[i] = {y};" for y in outputs]',
            '    body += [f"{line.split()[0]}_out[i] = {line.split()[0]};" for line in lines]',
        ),
    ),
    ("all inputs are read", _SOLUTION.replace(" if x in read]", "]")),
    (
        "outputs first",
        _SOLUTION.replace('arrays += [f"double', 'arrays = [f"double').replace(
            "for y in outputs]\n    body = ", "for y in outputs] + arrays\n    body = "
        ),
    ),
    (
        "names in functions are replaced",
        _SOLUTION.replace(
            _LINES, '"const double " + line.replace("x", "(x)") + ";" for line in lines'
        ),
    ),
    (
        "a loop for each line",
        _SOLUTION.replace(
            _LINES, 'f"}} for (long i = 0; i < n; i++) {{ const double {line};" for line in lines'
        ),
    ),
    (
        "expressions without brackets",
        _SOLUTION.replace(
            "    lines = needed_lines(lines, outputs)\n    read",
            "    lines = needed_lines(lines, outputs)\n"
            "    for k, line in enumerate(lines):\n"
            '        name, text = line.split(" = ")\n'
            "        for j in range(k + 1, len(lines)):\n"
            '            to, other = lines[j].split(" = ")\n'
            "            lines[j] = to + ' = ' + re.sub(rf'\\b{name}\\b(?!@)', text, other)\n"
            "    lines = needed_lines(lines, outputs)\n    read",
        ),
    ),
    ("a pass writes nothing", _SOLUTION.replace("len(names) + 1", "len(names)")),
    (
        "dead lines have passes",
        _SOLUTION.replace("    lines = needed_lines(lines, outputs)\n    reads", "    reads"),
    ),
    (
        "bytes of float32",
        _SOLUTION.replace("8 * separate, 8 * together", "4 * separate, 4 * together"),
    ),
    (
        "the loop reads all inputs",
        _SOLUTION.replace("len(set().union(*reads) & set(inputs))", "len(inputs)"),
    ),
    ("the loop reads every name", _SOLUTION.replace(" & set(inputs))", ")")),
    (
        "a name counts as often as it stands",
        _SOLUTION.replace(_SEPARATE, "sum(len(NAME.findall(line)) for line in lines)"),
    ),
    ("one minus z", _SOLUTION.replace("1.0 - z * z", "1.0 - z")),
    ("the gradient of z is forgotten", _SOLUTION.replace("z@GRAD * (", "(")),
    (
        "x and w are exchanged",
        _SOLUTION.replace("b@GRAD * w", "b@GRAD * u")
        .replace("b@GRAD * x", "b@GRAD * w")
        .replace("b@GRAD * u", "b@GRAD * x"),
    ),
    ("tanh twice", _SOLUTION.replace("1.0 - z * z", "1.0 - tanh(t) * z")),
)
