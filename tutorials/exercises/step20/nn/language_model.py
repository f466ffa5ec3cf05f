"""A model of language: scores for the next token at each place, and texts drawn from them.

Step 20: write the rest of GPT.forward and of draw_token. The dropout works on the output of each
block, too.
"""

import numpy as np
from mynode import random
from mynode.configuration import no_backprop_mode, using_config
from mynode.nn.layers import Dropout, Embedding, Linear
from mynode.nn.module import Module
from mynode.nn.normalization_layers import LayerNorm
from mynode.nn.transformer import Block


class GPT(Module):
    """Embeddings of tokens and of places, blocks, a norm, and a score for each next token.

    tokens: (batch, n), integers, n <= length -> scores: (batch, n, size of the vocabulary)

    Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
    """

    def __init__(self, vocabulary, length, size, heads, blocks, dropout=0.0):
        self.length = length
        self.tokens = Embedding(vocabulary, size)
        self.places = Embedding(length, size)
        self.dropout = Dropout(dropout)
        self.blocks = [Block(size, heads) for _ in range(blocks)]
        self.norm = LayerNorm(size)
        self.head = Linear(size, vocabulary)

    def forward(self, tokens):
        n = tokens.shape[1]
        if n > self.length:
            raise ValueError(f"GPT: at most {self.length} places, got {n}: give the last ones")
        x = self.dropout(self.tokens(tokens) + self.places(np.arange(n)))
        raise NotImplementedError(f"step 20: blocks, norm and head, for x of shape {x.shape}")


def draw_token(scores, temperature=1.0):
    """A token, drawn by softmax(scores / temperature). scores: (size of the vocabulary), array

    A low temperature prefers likely tokens; near 0, the likeliest one is always drawn.
    """
    scaled = (scores - scores.max()).astype("float64") / temperature
    raise NotImplementedError(f"step 20: draw_token: the softmax of {scaled}, and a draw")


def write(model, tokens, count, temperature=1.0):
    """The tokens, and count further ones, each drawn by the model that read those before."""
    tokens = list(tokens)
    with no_backprop_mode(), using_config("train", False):
        for _ in range(count):
            scores = model(np.array([tokens[-model.length :]])).array[0, -1]
            tokens.append(draw_token(scores, temperature))
    return tokens
