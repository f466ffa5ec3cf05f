"""The right engine of the hunt of the elective compile: a small compiler of array functions."""

import numpy as np

FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "exp": np.exp,
    "maximum": np.maximum,
}


class Line:
    """A line of a record: an input, a constant, or a function of earlier lines."""

    def __init__(self, name, arguments, value):
        self.name = name
        self.arguments = arguments
        self.value = value  # for the arrays that were recorded


class Record:
    """What a function applies, in order."""

    def __init__(self):
        self.lines = []

    def append(self, name, arguments, value):
        self.lines.append(Line(name, arguments, value))
        return Traced(self, len(self.lines) - 1)

    def number(self, value):
        if isinstance(value, Traced):
            return value.number
        return self.append("constant", (), value).number


class Traced:
    """What the recorded function gets in place of an array."""

    __array_ufunc__ = None  # array + traced calls traced.__radd__

    def __init__(self, record, number):
        self.record = record
        self.number = number

    def __bool__(self):
        raise TypeError("a decision by a value cannot be recorded")

    def __add__(self, other):
        return apply("add", self, other)

    def __radd__(self, other):
        return apply("add", other, self)

    def __sub__(self, other):
        return apply("sub", self, other)

    def __rsub__(self, other):
        return apply("sub", other, self)

    def __mul__(self, other):
        return apply("mul", self, other)

    def __rmul__(self, other):
        return apply("mul", other, self)

    def __truediv__(self, other):
        return apply("div", self, other)

    def __rtruediv__(self, other):
        return apply("div", other, self)

    def __neg__(self):
        return apply("neg", self)


def apply(name, *arguments):
    """A function of arrays at once; of traced values, a line of the record."""
    traced = [one for one in arguments if isinstance(one, Traced)]
    if not traced:
        return FUNCTIONS[name](*arguments)
    record = traced[0].record
    numbers = tuple(record.number(one) for one in arguments)
    value = FUNCTIONS[name](*(record.lines[number].value for number in numbers))
    return record.append(name, numbers, value)


def exp(x):
    return apply("exp", x)


def maximum(a, b):
    return apply("maximum", a, b)


def improved(lines):
    """For each line the line to read in its place: equal lines are computed once."""
    place = []
    known = {}
    for number, line in enumerate(lines):
        arguments = tuple(place[one] for one in line.arguments)
        line.arguments = arguments
        key = (line.name, arguments)
        if line.name in ("input", "constant"):
            place.append(number)
        elif simpler(line, lines) is not None:
            place.append(simpler(line, lines))
        elif key in known:
            place.append(known[key])
        else:
            known[key] = number
            place.append(number)
    return place


def simpler(line, lines):
    """The line that x + 0, x - 0, x * 1 and -(-x) stand for; None for others."""
    inner = lines[line.arguments[0]]
    if line.name == "neg":
        return inner.arguments[0] if inner.name == "neg" else None
    if line.name in ("add", "sub") and is_number(lines[line.arguments[1]], 0):
        return line.arguments[0]
    if line.name == "mul" and is_number(lines[line.arguments[1]], 1):
        return line.arguments[0]
    return None


def is_number(line, wanted):
    return line.name == "constant" and isinstance(line.value, int | float) and line.value == wanted


def needed(lines, result):
    """The lines that the result depends on, in order."""
    found, waiting = set(), [result]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting.extend(lines[number].arguments)
    return sorted(found)


class Plan:
    """The calls to make, with an array for each result; arrays are used again."""

    def __init__(self, lines, result):
        self.lines = lines
        self.result = result
        self.order = needed(lines, result)
        self.arrays = {}
        last = {}
        for number in self.order:
            for argument in lines[number].arguments:
                last[argument] = number
        free = {}
        for number in self.order:
            line = lines[number]
            if line.name in ("input", "constant"):
                continue
            kind = (line.value.shape, line.value.dtype)
            self.arrays[number] = free[kind].pop() if free.get(kind) else np.empty(*kind)
            for argument in set(line.arguments):
                if argument in self.arrays and last[argument] == number:
                    array = self.arrays[argument]
                    free.setdefault((array.shape, array.dtype), []).append(array)

    def run(self, inputs):
        values = {}
        arrays = iter(inputs)
        given = {number: next(arrays) for number, line in enumerate(self.lines) if is_input(line)}
        for number in self.order:
            line = self.lines[number]
            if line.name == "input":
                values[number] = given[number]
            elif line.name == "constant":
                values[number] = line.value
            else:
                arguments = (values[one] for one in line.arguments)
                values[number] = FUNCTIONS[line.name](*arguments, out=self.arrays[number])
        return np.array(values[self.result])


def is_input(line):
    return line.name == "input"


class Compiled:
    """A function that is recorded once for each signature."""

    def __init__(self, function):
        self.function = function
        self.plans = {}
        self.recorded = 0

    def __call__(self, *arguments):
        key = tuple(signature(one) for one in arguments)
        if key not in self.plans:
            self.plans[key] = self.record(arguments)
        return self.plans[key].run([one for one in arguments if isinstance(one, np.ndarray)])

    def record(self, arguments):
        self.recorded += 1
        record = Record()
        traced = [
            record.append("input", (), one) if isinstance(one, np.ndarray) else one
            for one in arguments
        ]
        result = record.number(self.function(*traced))
        place = improved(record.lines)
        return Plan(record.lines, place[result])


def signature(argument):
    """All that a plan depends on."""
    if isinstance(argument, np.ndarray):
        return argument.shape, argument.dtype
    return argument


def compiled(function):
    return Compiled(function)
