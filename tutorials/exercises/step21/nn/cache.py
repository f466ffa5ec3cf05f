"""The cache of keys and values: a new token is read once, and no old token is read again.

Step 21: write the rest of attend and of read.
"""

import numpy as np
from mynode.configuration import no_backprop_mode, using_config
from mynode.core.variable import Variable
from mynode.functions.activation import relu
from mynode.functions.network import scaled_dot_product_attention
from mynode.nn.language_model import draw_token


class KeyValueCache:
    """The keys and values of all places that a layer of attention has read, as arrays.

    keys, values: (batch, heads, length, size / heads); None before the first place.
    """

    def __init__(self):
        self.keys = None
        self.values = None

    @property
    def length(self):
        """The number of places."""
        return 0 if self.keys is None else self.keys.shape[2]

    def extend(self, keys, values):
        """Add the keys and values of new places; returns all keys and all values."""
        if self.keys is not None:
            keys = np.concatenate([self.keys, keys], axis=2)
            values = np.concatenate([self.values, values], axis=2)
        self.keys, self.values = keys, values
        return keys, values


def attend(attention, x, cache):
    """Attention of new places: they look at the places of the cache and at each other, causally.

    x: (batch, new, size) -> y: as x. The cache is extended.
    """
    query = attention.split(attention.query(x))
    key = attention.split(attention.key(x))
    value = attention.split(attention.value(x))
    keys, values = cache.extend(key.array, value.array)
    raise NotImplementedError("step 21: attend: which of all places does new place i look at?")


def read(model, tokens, caches):
    """The scores of a GPT for new tokens, which stand behind those of the caches.

    tokens: (batch, new), integers; caches: a KeyValueCache for each block
    -> scores: (batch, new, size of the vocabulary). Gradients stop at the caches.
    """
    start, new = caches[0].length, tokens.shape[1]
    if start + new > model.length:
        raise ValueError(
            f"read: the caches have {start} places, and {new} are new; the model has "
            f"{model.length} places: begin with empty caches"
        )
    x = model.tokens(tokens) + model.places(start + np.arange(new))
    raise NotImplementedError("step 21: read: each block with its cache; Block.forward helps")


def write_cached(model, tokens, count, temperature=1.0):
    """The tokens, and count further ones, with a cache for each block: the same draws as write.

    When the model has no place left, the last half of its places is read anew; write reads all.
    """
    tokens = list(tokens)
    caches = [KeyValueCache() for _ in model.blocks]
    new = tokens[-model.length :]
    with no_backprop_mode(), using_config("train", False):
        for _ in range(count):
            if caches[0].length + len(new) > model.length:
                caches = [KeyValueCache() for _ in model.blocks]
                new = tokens[-max(1, model.length // 2) :]
            scores = read(model, np.array([new]), caches).array[0, -1]
            tokens.append(draw_token(scores, temperature))
            new = tokens[-1:]
    return tokens
