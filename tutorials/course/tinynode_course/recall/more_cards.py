"""The questions of parts D and E: architectures, and gradients of gradients.

A card of a step that an installation lacks is never asked.
"""

from __future__ import annotations

from tinynode_course import sources
from tinynode_course.recall.card import Card
from tinynode_course.recall.cards import ARRAYS, ENGINE, MEMORY, SMALL

ARCHITECTURES = (
    Card(
        "convolution_size",
        "16",
        "x = np.ones((1, 1, {n}, {n}), 'float32')\nw = np.ones((1, 1, {k}, {k}), 'float32')\n"
        "y = F.conv2d(x, w, stride={stride}, padding={padding})",
        "y has the shape (1, 1, s, s). What is s?",
        "y.shape[2]",
        "({n} + 2 * {padding} - {k}) // {stride} + 1 = {answer}.",
        {"n": ("8", "9", "12"), "k": ("3", "5"), "stride": ("1", "2"), "padding": ("0", "1")},
    ),
    Card(
        "filter_size",
        "16",
        "layer = nn.Conv2d({c}, {d}, {k})",
        "How many numbers does the layer learn, with its biases?",
        "sum(parameter.size for parameter in layer.parameters())",
        "{d} filters of {c} * {k} * {k} weights, and {d} biases: {answer}.",
        {"c": ("1", "3"), "d": ("4", "8", "10"), "k": ("3", "5")},
    ),
    Card(
        "through_time",
        "17",
        "w = tn.asarray({w}.0, requires_grad=True)\nh = 1.0\nfor _ in range({t}):\n    h = w * h\n"
        "h.backward()",
        "What is w.grad?",
        "float(w.grad)",
        "Each of the {t} uses of w gives w ** {t} / w, and the gradients add: {answer}.",
        {"w": ("2", "3"), "t": ("2", "3", "4")},
    ),
    Card(
        "normalised",
        "18",
        "x = np.array([[{a}.0, {b}.0]])\n"
        "y = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)",
        "What is the last number of y?",
        "float(y[0, 1])",
        "The row has mean 0 and deviation 1 afterwards. Two numbers become -1 and 1: {answer}.",
        {"a": ("1", "2", "9"), "b": ("5", "6", "7")},
    ),
    Card(
        "residual_gradient",
        "18",
        "x = tn.asarray(1.0, requires_grad=True)\ny = x\n"
        "for _ in range({n}):\n    y = y + {w} * y\ny.backward()",
        "What is x.grad?",
        "float(x.grad)",
        "Each block multiplies the gradient by 1 + {w}. After {n} blocks: {answer}.",
        {"n": ("1", "2"), "w": ("0.1", "0.5", "1.0")},
    ),
    Card(
        "scores_shape",
        "19",
        "q = np.ones(({t}, {d}))\nk = np.ones(({s}, {d}))\nscores = q @ k.T",
        "What is the shape of the scores of attention?",
        "str(scores.shape)",
        "A score for each query and each key: {answer}.",
        {"t": ("3", "4"), "s": ("5", "6"), "d": ("8", "16")},
    ),
    Card(
        "causal",
        "19",
        "mask = np.tri({t})  # row: query, column: key",
        "How many pairs of query and key does a causal mask allow, for {t} places?",
        "int(mask.sum())",
        "Place i sees i places: 1 + 2 + ... + {t} = {answer}.",
        {"t": ("3", "4", "5", "10")},
    ),
    Card(
        "merged",
        "20",
        "text = '{text}'\ntokens = text.replace('{pair}', 'X')",
        "The text begins as one token for each letter. BPE merges the pair {pair}. "
        "How many tokens are left?",
        "len(tokens)",
        "Each merge removes a token: {answer} are left.",
        {"text": ("banana", "ananas", "nanana"), "pair": ("an", "na")},
    ),
    Card(
        "cache_size",
        "21",
        "numbers = 2 * {layers} * {t} * {d}",
        "A GPT has {layers} layers of width {d}. How many numbers are in the cache of keys and "
        "values after {t} tokens?",
        "numbers",
        "A key and a value of width {d}, for each layer and token: {answer}.",
        {"layers": ("2", "4"), "t": ("10", "100"), "d": ("32", "64")},
        is_shown=False,
    ),
    Card(
        "low_rank",
        "21",
        "numbers = {r} * ({n} + {m})",
        "A matrix has the shape ({n}, {m}). How many numbers does a low-rank adaptation of rank "
        "{r} train?",
        "numbers",
        "Two factors, ({n}, {r}) and ({r}, {m}): {answer} numbers.",
        {"r": ("1", "2", "4"), "n": ("64", "128"), "m": ("32", "64")},
        is_shown=False,
    ),
)

HIGHER = (
    Card(
        "second_derivative",
        "22",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = {formula}\n"
        "(gx,) = tn.grad([y], [x], enable_double_backprop=True)\n(ggx,) = tn.grad([gx], [x])",
        "What is ggx, the second derivative?",
        "float(ggx.array)",
        "Differentiate the formula twice, then put {a} in: {answer}.",
        {"a": ("1", "2", "3"), "formula": ("x * x * x", "x * x", "x * x * x + x", "1 / x")},
    ),
    Card(
        "gradient_from_output",
        "23",
        "y = {y}  # tanh(x)\ngy = {gy}\ngx = gy * (1 - y * y)",
        "A tanh keeps its output y = {y}, and backward gets gy = {gy}. "
        "Which gradient of x comes back?",
        "gx",
        "gy * (1 - y * y) = {answer}: the output is enough.",
        {"y": ("0.5", "0.0", "-0.5", "0.8"), "gy": ("1.0", "2.0", "4.0")},
        is_shown=False,
    ),
    Card(
        "linear_twice",
        "24",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = {formula}\n"
        "(gx,) = tn.grad([y], [x], enable_double_backprop=True)\n"
        "depends = gx.requires_grad and tn.grad([gx], [x])[0] is not None",
        "Does the gradient of y with respect to x depend on x?",
        "'yes' if depends else 'no'",
        "For a linear function the gradient is constant, "
        "so its gradient None is a zero: {answer}.",
        {"a": SMALL, "formula": ("3 * x", "x * x", "x + x", "F.exp(x)", "x - 4 * x")},
        ("yes", "no"),
    ),
    Card(
        "contributions",
        "25",
        "x = tn.asarray(1.0, requires_grad=True)\ny = {formula}\ny.backward()",
        "How many times does backward add a gradient to an earlier gradient of x?",
        "int(x.grad) - 1",
        "Each use of x makes a gradient. The first is kept, the others are added: {answer}.",
        {"formula": ("x + x", "x + x + x", "(x + x) + (x + x)")},
    ),
    Card(
        "hook_calls",
        "26",
        "x = tn.asarray({a}.0, requires_grad=True)\ny = {formula}\ny.backward()",
        "A hook counts the functions of the graph, forward and backward. What is the count?",
        "len(film.forward()) + len(film.backward())",
        "Each function of the graph runs forward once and backward once: {answer}.",
        {"a": SMALL, "formula": ("x * x", "F.exp(x) * x", "F.sin(F.exp(x) * x)")},
    ),
)

ALL = (*ENGINE, *ARRAYS, *MEMORY, *ARCHITECTURES, *HIGHER)
"""The cards of the whole course, in the order of the steps."""


def of_steps(keys: set[str] | None = None) -> list[Card]:
    """The cards of these steps, or of all steps of the installation."""
    known = {step.key for step in sources.steps()}
    return [card for card in ALL if card.step in (known if keys is None else known & keys)]
