"""Texts as numbers: bytes first, then a new token for the most frequent pair, again and again.

Step 20: merge and learn_pairs are yours. The page shows Tokenizer.
"""

from collections import Counter
from itertools import pairwise


def merge(tokens, pair, new):
    """The tokens, with the token new in place of the pair, from left to right."""
    raise NotImplementedError("step 20: merge")


def learn_pairs(text, count):
    """At most count pairs of tokens of a text, the first one to be merged in front.

    Pair i becomes token 256 + i. Of two pairs of the same frequency, the one that comes first in
    the text is taken. No pair is taken that comes only once.

    Source: Gage, A New Algorithm for Data Compression, 1994; Sennrich, Haddow and Birch, Neural
    Machine Translation of Rare Words with Subword Units, 2016.
    """
    raise NotImplementedError("step 20: learn_pairs")


class Tokenizer:
    """Texts to tokens and back: tokens 0 to 255 are bytes, token 256 + i is pair i.

    decode(encode(text)) is the text, for every text.
    """

    def __init__(self, pairs):
        raise NotImplementedError("step 20: Tokenizer.__init__")

    @property
    def size(self):
        """The number of different tokens."""
        raise NotImplementedError("step 20: Tokenizer.size")

    def encode(self, text):
        """The tokens of a text: its bytes, then pair after pair merged, in the learned order."""
        raise NotImplementedError("step 20: Tokenizer.encode")

    def decode(self, tokens):
        """The text of tokens. Bytes that are no text become the sign U+FFFD."""
        raise NotImplementedError("step 20: Tokenizer.decode")
