"""Bug hunt of the elective compile: results that are right at the first call, or nearly always."""

from tinynode_course.hunts import engine

ENGINE = engine(__file__)

(_FILE,) = ENGINE

BUGS = tuple(
    (what, _FILE, old, new)
    for what, old, new in (
        (
            "the second call gives the result of the first",
            "values[number] = given[number]",
            "values[number] = line.value",
        ),
        (
            "the result of a call changes when the function is called again",
            "return np.array(values[self.result])",
            "return values[self.result]",
        ),
        (
            "a function is recorded at every call",
            "self.plans[key] = self.record(arguments)\n",
            "self.plans = {key: self.record(arguments)}\n",
        ),
        ("plans forget the dtype of an input", "argument.shape, argument.dtype", "argument.shape"),
        (
            "plans forget the lengths of the axes",
            "return argument.shape, argument.dtype",
            "return argument.ndim, argument.dtype",
        ),
        (
            "plans forget an argument that is a number",
            "    return argument\n\n\ndef compiled",
            "    return type(argument)\n\n\ndef compiled",
        ),
        (
            "two inputs arrive in another order",
            "arrays = iter(inputs)",
            "arrays = iter(inputs[::-1])",
        ),
        (
            "a decision by a value is recorded in silence",
            'raise TypeError("a decision by a value cannot be recorded")',
            "return True",
        ),
        (
            "a number before a minus sign",
            'return apply("sub", other, self)',
            'return apply("sub", self, other)',
        ),
        (
            "a number before a division sign",
            'return apply("div", other, self)',
            'return apply("div", self, other)',
        ),
        (
            "a - b and b - a count as the same line",
            "key = (line.name, arguments)",
            "key = (line.name, frozenset(arguments))",
        ),
        (
            "two functions of the same inputs count as the same line",
            "key = (line.name, arguments)",
            "key = arguments",
        ),
        (
            "a sum with 0 loses its other term",
            'line.name in ("add", "sub") and is_number(lines[line.arguments[1]], 0)',
            'line.name in ("add", "sub") and is_number(lines[line.arguments[1]], 1)',
        ),
        (
            "0 - x is taken for x - 0",
            'if line.name in ("add", "sub") and',
            'if line.name == "sub" and is_number(inner, 0):\n'
            "        return line.arguments[1]\n"
            '    if line.name in ("add", "sub") and',
        ),
        (
            "a factor of 0 is taken for a factor of 1",
            "line.value == wanted",
            "line.value in (0, wanted)",
        ),
        (
            "a minus sign gets lost",
            'if inner.name == "neg" else None',
            'if inner.name == "neg" else line.arguments[0]',
        ),
        (
            "an array is used again while its numbers are still needed",
            "last[argument] = number",
            "last.setdefault(argument, number)",
        ),
        (
            "zeros of a larger shape are dropped, and the result has the shape of x",
            "isinstance(line.value, int | float) and line.value == wanted",
            "np.all(line.value == wanted)",
        ),
        (
            "arrays of 32 and 64 bits take each other's place",
            "free.setdefault((array.shape, array.dtype), []).append(array)",
            "free.setdefault((array.shape, np.dtype('float64')), []).append(array)",
        ),
        (
            "a constant is taken for another constant",
            'return self.append("constant", (), value).number',
            'known = [n for n, one in enumerate(self.lines) if one.name == "constant"]\n'
            '        return known[0] if known else self.append("constant", (), value).number',
        ),
    )
)
