"""Start here with pairs of sequences: a Transformer that translates words, letter by letter.

python tutorials/examples/start_translation.py

Replace `pairs` with pairs of your own: rows of token numbers, filled up with PAD.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

PAD, START, END, FIRST = range(4)  # three tokens of no letter, and the first letter
LETTERS, LENGTH = 12, 8


# 1. the data: a made-up language; a word is translated backwards, into the next letters
def pairs(n, seed):
    rng = np.random.default_rng(seed)
    source, target = np.full((n, LENGTH), PAD), np.full((n, LENGTH + 2), PAD)
    for row, length in enumerate(rng.integers(3, LENGTH + 1, n)):
        word = rng.integers(0, LETTERS, length)
        source[row, :length] = word + FIRST
        target[row, : length + 2] = [START, *((word[::-1] + 1) % LETTERS + FIRST), END]
    return nn.ArrayDataset(source, target)


# 2. the model: the encoder reads the source; the decoder has the memory, and the target so far
class Translator(nn.Module):
    """source (n, length), target (n, steps) -> scores for the next token (n, steps, tokens)."""

    def __init__(self, tokens, size):
        self.source, self.target = nn.Embedding(tokens, size), nn.Embedding(tokens, size)
        self.place = nn.Embedding(LENGTH + 2, size)
        self.encoder = nn.TransformerBlock(size, 4)
        self.decoder = nn.TransformerDecoderBlock(size, 4)
        self.output = nn.Linear(size, tokens)

    def forward(self, source, target):
        return self.next(source, self.encode(source), target, nn.DecoderCache())[0]

    def encode(self, source):
        x = self.source(source) + self.place(np.arange(LENGTH))
        return self.encoder(x, key_padding_mask=source == PAD)  # True hides a place

    def next(self, source, memory, target, cache):
        """The scores behind a cache, and the longer cache."""
        x = self.target(target) + self.place(cache.own.length + np.arange(target.shape[1]))
        x, cache = self.decoder(x, memory, memory_key_padding_mask=source == PAD, cache=cache)
        return self.output(x), cache


tn.seed(0)
model = Translator(FIRST + LETTERS, 32)


# 3. the loss: each token is to be told from the tokens before it
def loss(model, source, target):
    scores = model(source, target[:, :-1]).reshape(-1, FIRST + LETTERS)
    return F.softmax_cross_entropy(scores, target[:, 1:].reshape(-1), ignore_label=PAD)


# 4. the training
optimizer = nn.Adam(model, lr=0.003)
train = nn.DataLoader(pairs(4000, seed=0), 64, shuffle=True)
trainer = nn.Trainer(model, loss, optimizer, train, compile=True)
trainer.run(10)

# 5. the result, on words that nothing was chosen by: the most probable token, again and again
source, target = pairs(500, seed=2).arrays
model.eval()
with tn.no_grad():
    memory, cache, words = model.encode(source), nn.DecoderCache(), target[:, :1]
    while words.shape[1] < target.shape[1]:
        scores, cache = model.next(source, memory, words[:, -1:], cache)
        best = tn.to_host(F.argmax(scores[:, -1], axis=-1)) * ~(words == END).any(axis=1)
        words = np.concatenate([words, best[:, None]], axis=1)
right = (words == target).all(axis=1).mean()
print(f"words translated without a mistake: {100 * right:.1f} %")
