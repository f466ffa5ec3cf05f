"""Drills of attention with heads: stacks of matrices, masks, heads, a block."""

import importlib

import numpy as np

from tinynode_course.drilling import draw_parameters, gradients, parameters_of, raised


def draw_matmul(rng):
    n, k, m, many = (int(number) for number in rng.integers(2, 5, 4))
    shapes = [
        ((n, k), (k, m)),
        ((many, n, k), (many, k, m)),
        ((many, n, k), (k, m)),
        ((many, 1, n, k), (3, k, m)),
    ]
    pairs = [[rng.normal(size=left), rng.normal(size=right)] for left, right in shapes]
    return {"pairs": pairs, "gys": [rng.normal(size=(x @ y).shape) for x, y in pairs]}


def drill_matmul(work, inputs):
    """matmul of stacks: values, gradients, dtypes; wrong shapes are refused"""
    found = []
    for dtype in ("float64", "float32"):
        for pair, gy in zip(inputs["pairs"], inputs["gys"], strict=True):
            arrays = [one.astype(dtype) for one in pair]
            found.append(gradients(work, work.matmul, arrays, gy.astype(dtype)))
    x = work.Variable(inputs["pairs"][1][0])
    wrong = work.Variable(np.ones((x.array.shape[-1] + 1, 2)))
    vector = work.Variable(np.ones(x.array.shape[-1]))
    kind = work.Variable(np.ones((x.array.shape[-1], 2), np.float32))
    for other in (wrong, vector, kind):
        found.append(raised(lambda other=other: work.matmul(x, other), work.InvalidType))
    return found


def draw_permute(rng):
    shape = tuple(int(number) for number in rng.permutation([2, 3, 4, 5]))
    orders = [tuple(int(i) for i in rng.permutation(4)) for _ in range(3)] + [(1, 2, 3, 0)]
    x = rng.normal(size=shape)
    return {
        "x": x,
        "orders": orders,
        "gys": [rng.normal(size=x.transpose(o).shape) for o in orders],
    }


def drill_permute(work, inputs):
    """permute_dims and matrix_transpose: values and gradients"""
    found = []
    for axes, gy in zip(inputs["orders"], inputs["gys"], strict=True):

        def function(x, axes=axes):
            return work.permute_dims(x, axes)

        found.append(gradients(work, function, [inputs["x"]], gy))
    return [*found, work.matrix_transpose(work.Variable(inputs["x"])).array]


def draw_attention(rng):
    n, d, e = (int(number) for number in rng.integers(3, 5, 3))
    mask = rng.integers(0, 2, (n, n)).astype(bool)
    mask[:, 0] = True
    mask[-1, 1] = False  # so that causal and mask differ
    return {
        "arrays": [rng.normal(size=(2, 3, n, size)) for size in (d, d, e)],
        "mask": mask,
        "gy": rng.normal(size=(2, 3, n, e)),
    }


def drill_attention(work, inputs):
    """Attention of stacks: plain, causal, with a mask, with both; values, gradients, dtypes"""
    attention, mask = work.scaled_dot_product_attention, inputs["mask"]
    network = importlib.import_module(f"{work.__name__}.functions.network")
    found = []
    for dtype in ("float64", "float32"):
        arrays = [one.astype(dtype) for one in inputs["arrays"]]
        gy = inputs["gy"].astype(dtype)
        for given, causal in ((None, False), (None, True), (mask, False), (mask, True)):

            def function(q, k, v, given=given, causal=causal):
                return attention(q, k, v, mask=given, causal=causal)

            found.append(gradients(work, function, arrays, gy))
        query, key = (work.Variable(one) for one in arrays[:2])
        found.append(network.attention_weights(query, key, mask, True).array)
        fewer = work.Variable(arrays[0][..., :2, :])
        found.append(network.attention_weights(fewer, key, None, True).array)
    return [*found, mask]


def draw_heads(rng):
    heads, part, length = (int(number) for number in rng.integers(2, 4, 3))
    size = heads * part
    return {
        "seed": int(rng.integers(0, 1000)),
        "heads": heads,
        "x": rng.normal(size=(2, length + 1, size)),
        "gy": rng.normal(size=(2, length + 1, size)),
        "causal": bool(rng.integers(0, 2)),
    }


def drill_heads(work, inputs):
    """MultiHeadAttention: values, gradients of all parameters, no later place; refusals"""
    nn = importlib.import_module(f"{work.__name__}.nn")
    heads, size = inputs["heads"], inputs["x"].shape[-1]
    found = []
    for causal in (True, inputs["causal"], False):
        layer = nn.MultiHeadAttention(size, heads, causal=causal)
        draw_parameters(layer, np.random.default_rng(inputs["seed"]))
        found.append(gradients(work, layer, [inputs["x"]], inputs["gy"]))
        found.append([[p.array, p.grad] for p in parameters_of(layer)])
        found.append(len(layer.parameters()))
    found.append(layer.join(layer.split(work.Variable(inputs["x"]))).array)
    found.append(raised(lambda: nn.MultiHeadAttention(size, size + 1), ValueError))
    return [*found, raised(lambda: layer(work.Variable(inputs["x"][0])), ValueError)]


def drill_block(work, inputs):
    """Block: values, gradients of all parameters and of the input"""
    nn = importlib.import_module(f"{work.__name__}.nn")
    block = nn.Block(inputs["x"].shape[-1], inputs["heads"])
    draw_parameters(block, np.random.default_rng(inputs["seed"]))
    found = gradients(work, block, [inputs["x"]], inputs["gy"])
    parts = [block.attention.heads, len({id(p) for p in block.parameters()})]
    return [*found, parts, [p.grad for p in parameters_of(block)]]


draw_block = draw_heads
