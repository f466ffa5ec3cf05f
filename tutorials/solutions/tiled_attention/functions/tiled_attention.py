"""Attention in tiles: the weights of a few keys at a time, and no weight is kept."""

import math

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable


def tile_scores(query, key, start, causal):
    """The scores of all queries and of the keys of a tile, which begins at key start.

    query: (..., n, d), key: (..., tile, d) -> (..., n, tile). causal: query i looks at keys 0
    to i.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if causal:
        seen = np.tri(query.shape[-2], key.shape[-2], -start, dtype=bool)
        scores = np.where(seen, scores, -np.inf).astype(scores.dtype)
    return scores


class TiledAttention(FunctionNode):
    """y = softmax(q k^T / sqrt(d)) v, with the keys in tiles.

    q: (..., n, d), k: (..., m, d), v: (..., m, e) -> y: (..., n, e), and log: (..., n, 1), the
    logarithm of the sum of e^scores of each query. Kept: q, k, v, y and log, no weights.

    forward, for each tile with scores s, and with the running maximum a and the running sum t:

        a' = max(a, s)    p = e^(s - a')    t <- e^(a - a') t + sum of p    y <- e^(a - a') y + p v

    At the end, y <- y / t and log = a + log t. backward computes p = e^(s - log) again, and with
    D = the sum of gy * y over the last axis:

        gv = p^T gy    gs = p * (gy v^T - D) / sqrt(d)    gq = the sum of gs k    gk = gs^T q

    Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al.,
    FlashAttention, 2022.
    """

    def __init__(self, tile, causal):
        self.tile = tile
        self.causal = causal

    def forward(self, inputs):
        query, key, value = inputs
        largest = np.full((*query.shape[:-1], 1), -np.inf, query.dtype)
        total = np.zeros_like(largest)
        y = np.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)
        for start in range(0, key.shape[-2], self.tile):
            end = start + self.tile
            scores = tile_scores(query, key[..., start:end, :], start, self.causal)
            new = np.maximum(largest, scores.max(axis=-1, keepdims=True))
            p = np.exp(scores - new)
            shrink = np.exp(largest - new)  # the sums so far were made with the old maximum
            total = shrink * total + p.sum(axis=-1, keepdims=True)
            y = shrink * y + p @ value[..., start:end, :]
            largest = new
        self.retain_inputs((0, 1, 2))
        self.retain_outputs((0, 1))
        return y / total, largest + np.log(total)

    def backward(self, target_input_indexes, grad_outputs):
        gy = grad_outputs[0]
        if isinstance(gy, Variable):
            raise TypeError(
                "TiledAttention.backward: expected arrays, got Variables; for gradients of "
                "gradients, call scaled_dot_product_attention"
            )
        query, key, value = self.get_retained_inputs()
        y, log = self.get_retained_outputs()
        inner = (gy * y).sum(axis=-1, keepdims=True)
        gq, gk, gv = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
        for start in range(0, key.shape[-2], self.tile):
            end = start + self.tile
            k, v = key[..., start:end, :], value[..., start:end, :]
            p = np.exp(tile_scores(query, k, start, self.causal) - log)
            gs = p * (gy @ v.mT - inner) / math.sqrt(query.shape[-1])
            gq += gs @ k
            gk[..., start:end, :] = gs.mT @ query
            gv[..., start:end, :] = p.mT @ gy
        return gq, gk, gv


def tiled_attention(query, key, value, causal=False, tile=64):
    """scaled_dot_product_attention without a mask, with fewer bytes: tile keys at a time.

    query: (..., n, d), key: (..., m, d), value: (..., m, e) -> (..., n, e). The axes in front are
    equal.
    """
    return TiledAttention(tile, causal).apply((query, key, value))[0]
