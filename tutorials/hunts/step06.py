"""Bug hunt 06: an engine with a wrong order, wrong ranks, and gradients that get lost."""

from tinynode_course.mynode import reference

ENGINE = reference("06")

_BACKPROP = "core/backprop.py"
_FUNCTION = "core/function_node.py"
_VARIABLE = "core/variable.py"
_ARITHMETIC = "functions/arithmetic.py"

BUGS = (
    (
        "backward takes operations in the order in which it met them",
        _BACKPROP,
        "(-function.rank, len(seen), function)",
        "(len(seen), -function.rank, function)",
    ),
    (
        "backward begins with the operations that are next to the leaves",
        _BACKPROP,
        "(-function.rank,",
        "(function.rank,",
    ),
    (
        "an operation that is reached in two ways runs twice",
        _BACKPROP,
        "        seen.add(function)\n",
        "",
    ),
    (
        "the last gradient wins where two arrive",
        _BACKPROP,
        "gx if x.grad is None else x.grad + gx",
        "gx",
    ),
    (
        "a gradient is added into an array that another box holds too",
        _BACKPROP,
        "gx if x.grad is None else x.grad + gx",
        "gx if x.grad is None else np.add(\n"
        "            x.grad, gx, out=x.grad if isinstance(x.grad, np.ndarray) else None\n"
        "        )",
    ),
    (
        "a gradient that the user has set on the result is ignored",
        _BACKPROP,
        "if y.grad is None:",
        "if True:",
    ),
    (
        "a gradient with another shape than its box",
        _BACKPROP,
        "np.ones_like(y.array)",
        "np.array(1.0)",
    ),
    (
        "the rank of an operation whose inputs have different ranks",
        _FUNCTION,
        "max(x.rank for x in inputs)",
        "min(x.rank for x in inputs)",
    ),
    (
        "the rank of an operation follows its first input",
        _FUNCTION,
        "max(x.rank for x in inputs)",
        "inputs[0].rank",
    ),
    ("results have the rank of the leaves", _FUNCTION, "self.rank + 1", "self.rank"),
    (
        "the second output of an operation does not know its creator",
        _FUNCTION,
        "for y in outputs:",
        "for y in outputs[:1]:",
    ),
    (
        "a forward that returns no tuple is not refused",
        _FUNCTION,
        "if not isinstance(results, tuple):",
        "if results is None:",
    ),
    (
        "the array of a result is a plain number, for inputs without an axis",
        _FUNCTION,
        "Variable(np.asarray(result))",
        "Variable(result)",
    ),
    (
        "the gradients of a product",
        _ARITHMETIC,
        "return gz * y, gz * x",
        "return gz * x, gz * y",
    ),
    ("a sign in a gradient", _ARITHMETIC, "return gz, -gz", "return gz, gz"),
    (
        "a number beside a box of 32 bits makes the result one of 64 bits",
        _ARITHMETIC,
        "np.full(x.array.shape, y, np.result_type(x.array, y))",
        "np.full(x.array.shape, y, np.float64)",
    ),
    (
        "a number before a minus sign",
        "core/operators.py",
        "mynode.subtract(other, self)",
        "mynode.subtract(self, other)",
    ),
    (
        "square forgets the gradient that comes from above",
        "functions/exponential.py",
        "gy * 2.0 * x",
        "2.0 * x",
    ),
    (
        "a gradient of exp that is right near 0 only",
        "functions/exponential.py",
        "gy * np.exp(x)",
        "gy * (1.0 + x)",
    ),
    (
        "cleargrad leaves the gradient there",
        _VARIABLE,
        "        self.grad = None\n\n    def backward(self):",
        "        pass\n\n    def backward(self):",
    ),
)
