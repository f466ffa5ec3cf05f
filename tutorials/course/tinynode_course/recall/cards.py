"""The questions of parts A, B and C: the engine, arrays, and memory."""

from __future__ import annotations

from tinynode_course.recall.card import Card

YES_NO = ("yes", "no")
SMALL = ("2", "3", "4", "5")
SIZES = ("2", "3", "4", "5", "6")
ELEMENTWISE = ("exp", "tanh", "sqrt", "sin", "log")

ENGINE = (
    Card(
        "graph_size",
        "01",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = {formula}",
        "How many operations has the graph of y?",
        "len(film.forward())",
        "Each operation that runs is a node of the graph: {answer}.",
        {"a": SMALL, "formula": ("x * x + x", "x * x * x + x", "x * x", "F.exp(x * x) + x * x")},
    ),
    Card(
        "creator",
        "01",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = {formula}",
        "Which operation is the creator of y?",
        "type(y.creator_node).__name__",
        "The last operation made y: {answer}.",
        {"a": SMALL, "formula": ("x * x + x", "(x + x) * x", "F.exp(x + x)", "F.exp(x) * x")},
        ("Add", "Multiply", "Exp"),
    ),
    Card(
        "product_rule",
        "02",
        "x = tn.asarray({a}.0, requires_grad=True)\n"
        "w = tn.asarray({b}.0, requires_grad=True)\n"
        "y = x * w\ny.backward()",
        "Which gradient does the backward of the product give to x?",
        "float(x.grad)",
        "y = x * w, so dy/dx = w = {answer}.",
        {"a": ("2", "4", "6"), "b": ("3", "5", "7")},
    ),
    Card(
        "chain_rule",
        "02",
        "x = tn.asarray({a}.0, requires_grad=True)\nu = {b} * x\ny = u * u\ny.backward()",
        "What is the derivative of y with respect to x?",
        "float(x.grad)",
        "dy/du = 2 u, du/dx = {b}: the product is 2 * u * {b} = {answer}.",
        {"a": ("1", "2", "3"), "b": SMALL},
    ),
    Card(
        "central_difference",
        "03",
        "def f(x):\n    return x * x * x\n\n\neps = 1.0\n"
        "slope = (f({a} + eps) - f({a} - eps)) / (2 * eps)",
        "What is slope?",
        "slope",
        "(({a} + 1)^3 - ({a} - 1)^3) / 2 = {answer}. "
        "The derivative is 3 * {a}^2, and the error is eps^2.",
        {"a": ("1", "2", "3", "10")},
    ),
    Card(
        "best_eps",
        "03",
        "x = {a}.0  # float64\nerrors = {}\n"
        "for eps in ({eps}):\n"
        "    slope = (np.exp(x + eps) - np.exp(x - eps)) / (2 * eps)\n"
        "    errors[eps] = abs(slope - np.exp(x))",
        "Which eps of the loop has the smallest error?",
        'f"{min(errors, key=errors.get):.0e}"',
        "A large eps bends, a small eps rounds. Of these three, {answer} is the best.",
        {
            "a": ("1", "2", "3"),
            "eps": ("1e-1, 1e-3, 1e-5", "1e-1, 1e-5, 1e-13", "1e-1, 1e-3, 1e-13"),
        },
        ("1e-01", "1e-03", "1e-05", "1e-13"),
    ),
    Card(
        "first_backward",
        "04",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = {formula}\ny.backward()",
        "Whose backward runs first?",
        "film.backward()[0]",
        "Backward begins at the creator of y: {answer}.",
        {
            "a": SMALL,
            "formula": ("F.exp(F.tanh(x)) * x", "F.tanh(F.exp(-x) * x)", "F.exp(F.tanh(x * x))"),
        },
        ("Exp", "Tanh", "Multiply"),
    ),
    Card(
        "slope_of_a_loss",
        "04",
        "w = tn.asarray({w}.0, requires_grad=True)\n"
        "loss = (w * {x}.0 - {t}.0) ** 2\nloss.backward()",
        "What is w.grad?",
        "float(w.grad)",
        "2 * (w * x - t) * x = 2 * ({w} * {x} - {t}) * {x} = {answer}.",
        {"w": ("1", "2", "3"), "x": ("2", "3"), "t": ("1", "5")},
    ),
    Card(
        "two_uses",
        "05",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = x * x + {b} * x\ny.backward()",
        "What is x.grad?",
        "float(x.grad)",
        "x is used three times. The gradients add: {a} + {a} + {b} = {answer}.",
        {"a": SMALL, "b": ("3", "7", "10")},
    ),
    Card(
        "sum_of_copies",
        "05",
        "x = tn.asarray(1.0, requires_grad=True)\nu = {b} * x\ny = {sum}\ny.backward()",
        "What is x.grad?",
        "float(x.grad)",
        "Each use of u adds its gradient, then {b} multiplies the sum: {answer}.",
        {"b": SMALL, "sum": ("u + u", "u + u + u", "u + u + u + u")},
    ),
    Card(
        "next_of_two",
        "06",
        "x = tn.asarray({a}.0, requires_grad=True)\n{uses}y = u + v\ny.backward()",
        "The backward of Add has run. Whose backward runs next?",
        "'{f}' if film.backward()[1] == '{f}'.title() else 'multiply'",
        "The gradient of an input is complete after all its uses. "
        "The rank of {answer} is higher, so {answer} is next.",
        {
            "a": ("1", "2", "3"),
            "f": ELEMENTWISE,
            "uses": (
                "u = x * 2\nv = F.{f}(u)\n",
                "v = x * 2\nu = F.{f}(v)\n",
                "u = F.{f}(x)\nv = u * 2\n",
                "v = F.{f}(x)\nu = v * 2\n",
            ),
        },
        ("{f}", "multiply"),
    ),
    Card(
        "rank",
        "06",
        "x = tn.asarray(1.0, requires_grad=True)\nu = x * x\nv = {v}\ny = u + v",
        "The rank of a leaf is 0. What is the rank of y?",
        "y.node.rank",
        "A function has the largest rank of its inputs, its output has one more: {answer}.",
        {"v": ("F.exp(u)", "F.exp(F.exp(u))", "x * 3", "F.exp(F.tanh(F.exp(u)))")},
    ),
)

ARRAYS = (
    Card(
        "gradient_shape",
        "07",
        "x = tn.asarray(np.ones(({n}, {m}), 'float32'))\n"
        "b = tn.asarray(np.ones({shape}, 'float32'), requires_grad=True)\n"
        "F.sum(x * b).backward()",
        "What is the shape of b.grad?",
        "str(b.grad.shape)",
        "A gradient has the shape of its variable: {answer}.",
        {"n": ("4", "5"), "m": ("2", "3"), "shape": ("({m},)", "({n}, 1)", "(1, {m})", "(1, 1)")},
    ),
    Card(
        "gradient_of_repeated",
        "07",
        "x = tn.asarray(np.ones(({n}, {m}), 'float32'))\n"
        "b = tn.asarray(np.zeros({shape}, 'float32'), requires_grad=True)\n"
        "F.sum(x + b).backward()",
        "All elements of b.grad are the same number. Which number?",
        "float(b.grad.flat[0])",
        "Each element of b was used {answer} times, so {answer} ones are added.",
        {"n": SIZES, "m": ("7", "8"), "shape": ("{m}", "({n}, 1)", "(1, {m})", "()")},
    ),
    Card(
        "broadcast_shape",
        "07",
        "y = np.ones(({n}, 1)) * np.ones({m})",
        "What is the shape of y?",
        "str(y.shape)",
        "Shapes meet from the right. An axis of length 1 is repeated: {answer}.",
        {"n": SIZES, "m": SIZES},
    ),
    Card(
        "linear_size",
        "08",
        "layer = nn.Linear({n}, {m})",
        "How many numbers does the layer learn?",
        "sum(parameter.size for parameter in layer.parameters())",
        "{n} * {m} weights and {m} biases: {answer}.",
        {"n": ("3", "5", "10"), "m": SIZES},
    ),
    Card(
        "weight_gradient_shape",
        "08",
        "x = np.ones(({batch}, {n}), 'float32')\n"
        "w = nn.Parameter(np.ones(({n}, {m}), 'float32'))\n"
        "F.sum(x @ w).backward()",
        "What is the shape of w.grad?",
        "str(w.grad.shape)",
        "The gradient is x.T @ gy, with the shape of w: {answer}. The batch is summed.",
        {"batch": ("8", "16", "32"), "n": ("3", "4"), "m": ("2", "5")},
    ),
    Card(
        "sgd_step",
        "09",
        "w = nn.Parameter(np.asarray({w}.0, 'float32'))\noptimizer = nn.SGD([w], lr={lr})\n"
        "(w * w).backward()\noptimizer.update()",
        "What is w after the update?",
        "float(w.array)",
        "The gradient is 2 w. SGD subtracts {lr} * 2 * {w}: {answer}.",
        {"w": ("1", "2", "3", "10"), "lr": ("0.1", "0.25", "0.5")},
    ),
    Card(
        "cross_entropy_gradient",
        "09",
        "logits = tn.asarray(np.zeros((1, {k}), 'float32'), requires_grad=True)\n"
        "F.softmax_cross_entropy(logits, np.array([0])).backward()",
        "What is the gradient of the first logit, which belongs to the label?",
        "float(logits.grad[0, 0])",
        "Softmax minus one-hot: 1/{k} - 1 = {answer}.",
        {"k": ("2", "4", "5", "10")},
    ),
    Card(
        "kept_epoch",
        "10",
        "train = [0.9, 0.5, 0.3, 0.2, 0.1]\nvalidation = {losses}",
        "Which epoch does early stopping keep? The first epoch is 1.",
        "1 + validation.index(min(validation))",
        "The validation loss is smallest in epoch {answer}. "
        "After that the network learns by heart.",
        {
            "losses": (
                "[1.0, 0.7, 0.6, 0.8, 0.9]",
                "[1.0, 0.6, 0.7, 0.8, 0.9]",
                "[1.0, 0.9, 0.8, 0.7, 0.9]",
            )
        },
    ),
    Card(
        "he_scale",
        "10",
        "scale = (2 / {n}) ** 0.5",
        "A layer has {n} inputs, and relu follows. Which standard deviation do He's weights have?",
        "scale",
        "sqrt(2 / inputs) = sqrt(2 / {n}) = {answer}: relu halves the squares.",
        {"n": ("2", "8", "32", "50", "200")},
        is_shown=False,
    ),
)

MEMORY = (
    Card(
        "alive",
        "11",
        "import weakref\n\nx = tn.asarray(1.0, requires_grad=True)\ny = F.exp(x)\n{use}\n"
        "watched = weakref.ref(y)\ndel y",
        "Is the Variable alive after del y?",
        "'no' if watched() is None else 'yes'",
        "A Variable lives as long as a name or a container holds it. Nodes of a graph hold "
        "other nodes, not Variables. So: {answer}.",
        {"use": ("z = y * 2", "z = y", "z = [y, x]", "z = F.exp(y)")},
        YES_NO,
    ),
    Card(
        "kept",
        "12",
        "x = tn.asarray([{a}.0, 2.0], requires_grad=True)\ny = F.{f}(x)",
        "What does {f} keep for its backward?",
        "film.kept(film.forward()[0])",
        "The formula of the gradient needs it: {f} keeps {answer}.",
        {"a": SMALL, "f": ("exp", "log", "sin", "sqrt", "square", "sum")},
        ("its input", "its output", "both", "nothing"),
    ),
    Card(
        "kept_by_operators",
        "12",
        "x = tn.asarray([{a}.0, 2.0], requires_grad=True)\n"
        "w = tn.asarray([3.0, 4.0], requires_grad=True)\ny = x {sign} w",
        "What does the operation keep for its backward?",
        "'both inputs' if film.kept(film.forward()[0]) == 'its input' else 'nothing'",
        "The gradient of x {sign} w needs the other factor for *, and no array for + and -.",
        {"a": SMALL, "sign": ("*", "+", "-")},
        ("both inputs", "nothing"),
    ),
    Card(
        "kept_bytes",
        "12",
        "x = tn.asarray(np.ones({n}, 'float32'), requires_grad=True)\ny = F.exp(x)",
        "How many bytes does the operation keep?",
        "y.array.nbytes",
        "The output of {n} numbers, each of 4 bytes: {answer}.",
        {"n": ("10", "100", "250", "1000")},
    ),
    Card(
        "backward_twice",
        "13",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = x * x\ny.backward()\n{between}"
        "y = x * x\ny.backward()",
        "What is x.grad?",
        "float(x.grad)",
        "A leaf adds the gradients of all passes until cleargrad: {answer}.",
        {"a": SMALL, "between": ("", "x.cleargrad()\n")},
    ),
    Card(
        "no_graph",
        "13",
        "x = tn.asarray({a}.0, requires_grad=True)\nwith tn.no_grad():\n    u = x * x\n"
        "y = {formula}",
        "Does y require a gradient?",
        "'yes' if y.requires_grad else 'no'",
        "u has no graph. y has one only if another input requires a gradient: {answer}.",
        {"a": SMALL, "formula": ("u * 2", "u * x", "u + u", "u + x")},
        YES_NO,
    ),
    Card(
        "measured_error",
        "14",
        "def f(x):\n    return x * x\n\n\ndef backward(x):\n    return {k} * x  # a mistake\n\n\n"
        "numeric = (f({a} + 1e-3) - f({a} - 1e-3)) / 2e-3",
        "A gradient check compares backward({a}) with numeric. How large is the difference?",
        "abs(backward({a}) - numeric)",
        "numeric is 2 * {a}, backward gives {k} * {a}: the difference is {answer}.",
        {"a": SMALL, "k": ("3", "4", "5")},
    ),
    Card(
        "kink",
        "14",
        "def f(x):\n    return x if x > 0 else {slope} * x\n\n\n"
        "numeric = (f(0.001) - f(-0.001)) / 0.002",
        "What is numeric, the central difference at the kink?",
        "numeric",
        "The mean of the slopes on both sides: (1 + {slope}) / 2 = {answer}.",
        {"slope": ("0.0", "0.1", "0.2", "0.5")},
    ),
    Card(
        "refused",
        "15",
        "x = np.ones(({n}, {m}), 'float32')\nw = np.ones(({k}, 2), 'float32')\n"
        "try:\n    F.matmul(x, w)\nexcept Exception:\n    refused = True\nelse:\n"
        "    refused = False",
        "x has the shape ({n}, {m}), w the shape ({k}, 2). Is the product x @ w refused?",
        "'yes' if refused else 'no'",
        "The last axis of x has {m} elements, the first axis of w has {k}: {answer}.",
        {"n": ("2", "3"), "m": ("2", "3"), "k": ("2", "3")},
        YES_NO,
        is_shown=False,
    ),
)
