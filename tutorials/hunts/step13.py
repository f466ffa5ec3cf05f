"""Bug hunt 13: an engine that keeps too much, records too much, or forgets too early."""

from tinynode_course.mynode import reference

ENGINE = reference("13")

_BACKPROP = "core/backprop.py"
_FUNCTION = "core/function_node.py"
_CONFIGURATION = "configuration.py"

BUGS = (
    (
        "a result stays in memory until the garbage collector runs",
        _FUNCTION,
        "weakref.ref(y.node)",
        "(lambda node=y.node: node)",
    ),
    (
        "a box and its node hold each other",
        "core/variable_node.py",
        "weakref.ref(variable)",
        "lambda: variable",
    ),
    (
        "operations keep inputs that no backward reads",
        _FUNCTION,
        "pick(arrays, self._retained_input_indexes)",
        "arrays",
    ),
    (
        "operations keep outputs that no backward reads",
        _FUNCTION,
        "pick(results, self._retained_output_indexes)",
        "results",
    ),
    (
        "no_backprop_mode changes nothing",
        _FUNCTION,
        "wanted = config.enable_backprop and any(",
        "wanted = any(",
    ),
    (
        "a graph is recorded where no input wants a gradient",
        _FUNCTION,
        "        if wanted:\n",
        "        if config.enable_backprop:\n",
    ),
    (
        "a result of whole numbers wants a gradient",
        _FUNCTION,
        'wanted and y.dtype.kind == "f"',
        "wanted",
    ),
    (
        "an input that wants no gradient spoils those beside it",
        _FUNCTION,
        "any(x.requires_grad for x in inputs)",
        "all(x.requires_grad for x in inputs)",
    ),
    (
        "after an error in the block, nothing is recorded any more",
        _CONFIGURATION,
        "    try:\n        yield\n    finally:\n        config.enable_backprop = before",
        "    yield\n    config.enable_backprop = before",
    ),
    (
        "a block inside of a block",
        _CONFIGURATION,
        "before = config.enable_backprop\n",
        "before = True\n",
    ),
    (
        "backward from a leaf is not refused",
        _BACKPROP,
        "if y.creator_node is None:",
        "if y is None:",
    ),
    (
        "backward from many numbers is not refused",
        _BACKPROP,
        "y.array.size != 1:",
        "y.array.size == 0:",
    ),
    (
        "the gradient of the result is left there after backward",
        _BACKPROP,
        "y.grad = None  # used up",
        "pass",
    ),
    (
        "a second backward replaces the gradient of the first",
        _BACKPROP,
        "x.grad = gx if x.grad is None else x.grad + gx",
        "x.grad = gx",
    ),
    (
        "the last gradient wins where two arrive inside of the graph",
        _BACKPROP,
        "gx if node not in gradients else gradients[node] + gx",
        "gx",
    ),
    (
        "a leaf that wants no gradient gets one",
        _BACKPROP,
        "for i, node in enumerate(function.inputs) if node.requires_grad)",
        "for i, node in enumerate(function.inputs))",
    ),
    (
        "a box between the result and the leaves gets a gradient",
        _BACKPROP,
        "gradients.pop(output(), None)",
        "gradients.get(output(), None)",
    ),
    (
        "backward begins with the operations that are next to the leaves",
        _BACKPROP,
        "(-function.rank,",
        "(function.rank,",
    ),
    (
        "a leaf of whole numbers wants a gradient",
        "core/variable.py",
        'array.dtype.kind == "f" if',
        "True if",
    ),
    (
        "unchain cuts nothing",
        "core/variable_node.py",
        '"""Forget the creator: backward stops here."""\n        self.creator_node = None',
        '"""Forget the creator: backward stops here."""',
    ),
)
