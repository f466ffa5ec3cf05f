"""Texts as numbers: bytes first, then a new token for the most frequent pair, again and again.

Step 20: write the loops of merge and of learn_pairs. Tokenizer is given.
"""

from collections import Counter
from itertools import pairwise


def merge(tokens, pair, new):
    """The tokens, with the token new in place of the pair, from left to right."""
    first, second = pair
    merged, place = [], 0
    while place < len(tokens):
        raise NotImplementedError(f"step 20: do {first} and {second} stand at this place?")
    return merged


def learn_pairs(text, count):
    """At most count pairs of tokens of a text, the first one to be merged in front.

    Pair i becomes token 256 + i. Of two pairs of the same frequency, the one that comes first in
    the text is taken. No pair is taken that comes only once.

    Source: Gage, A New Algorithm for Data Compression, 1994; Sennrich, Haddow and Birch, Neural
    Machine Translation of Rare Words with Subword Units, 2016.
    """
    tokens = list(text.encode("utf-8"))
    pairs = []
    while len(pairs) < count:
        raise NotImplementedError(f"step 20: learn_pairs: the next pair of {len(tokens)} tokens")
    return pairs


class Tokenizer:
    """Texts to tokens and back: tokens 0 to 255 are bytes, token 256 + i is pair i.

    decode(encode(text)) is the text, for every text.
    """

    def __init__(self, pairs):
        self.pairs = list(pairs)
        self.pieces = [bytes([byte]) for byte in range(256)]  # the bytes of each token
        for first, second in self.pairs:
            self.pieces.append(self.pieces[first] + self.pieces[second])

    @property
    def size(self):
        """The number of different tokens."""
        return len(self.pieces)

    def encode(self, text):
        """The tokens of a text: its bytes, then pair after pair merged, in the learned order."""
        tokens = list(text.encode("utf-8"))
        for i, pair in enumerate(self.pairs):
            tokens = merge(tokens, pair, 256 + i)
        return tokens

    def decode(self, tokens):
        """The text of tokens. Bytes that are no text become the sign U+FFFD."""
        return b"".join(self.pieces[token] for token in tokens).decode("utf-8", "replace")
