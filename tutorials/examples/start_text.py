"""Start here with text: a small GPT that learns from a text, and writes on.

python tutorials/examples/start_text.py

Replace `text` with your own: two strings, and functions from characters to numbers and back.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

LENGTH = 48  # the characters that the model sees, and writes, at most

# 1. the data: sonnets of Shakespeare, as numbers of characters, in rows that overlap
text = nn.datasets.load_sonnets()


def rows(characters):
    """The rows and, as the answers, the next character of each character."""
    numbers = np.asarray(text.encode(characters))
    places = np.arange(0, len(numbers) - LENGTH, LENGTH // 8)[:, None] + np.arange(LENGTH)
    return nn.ArrayDataset(numbers[places], numbers[places + 1])


# 2. the model: blocks of causal attention
class GPT(nn.Module):
    """(n, length) -> scores for the next token (n, length, tokens)."""

    def __init__(self, tokens, size, blocks):
        self.token, self.place = nn.Embedding(tokens, size), nn.Embedding(LENGTH, size)
        self.blocks = [nn.TransformerBlock(size, 4, causal=True) for _ in range(blocks)]
        self.norm, self.output = nn.LayerNorm(size), nn.Linear(size, tokens)

    def forward(self, tokens):
        return self.next(tokens, [nn.KeyValueCache()] * len(self.blocks))[0]

    def next(self, tokens, caches):
        """The scores behind the caches, and the longer caches."""
        x = self.token(tokens) + self.place(caches[0].length + np.arange(tokens.shape[1]))
        longer = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block(x, cache=cache)
            longer.append(cache)
        return self.output(self.norm(x)), longer


tn.seed(0)
model = GPT(len(text.characters), 64, blocks=2)


# 3. the loss: the surprise at a character
def loss(model, tokens, answers):
    scores = model(tokens).reshape(-1, len(text.characters))
    return F.softmax_cross_entropy(scores, answers.reshape(-1))


# 4. the training
loader = nn.DataLoader(rows(text.train), 24, shuffle=True)
optimizer = nn.AdamW(model, lr=0.004)
schedule = nn.schedules.CosineSchedule(optimizer, steps=4 * len(loader))
trainer = nn.Trainer(model, loss, optimizer, loader, schedule=schedule, compile=True)
trainer.run(4)

# 5. the result, on sonnets that nothing was chosen by
result = trainer.evaluate(nn.DataLoader(rows(text.held_out), 48))
print(f"loss of a character: {result['loss']:.2f}; guessing: {np.log(len(text.characters)):.2f}")

# 6. the use, for four texts at once: the cache keeps what was read, so a step reads a character
written = new = np.tile(text.encode("My love "), (4, 1))
caches = [nn.KeyValueCache()] * len(model.eval().blocks)
with tn.no_grad():
    for key in tn.random.split(tn.random.key(0), LENGTH - new.shape[1]):
        scores, caches = model.next(new, caches)
        new = tn.to_host(tn.random.categorical(scores[:, -1] / 0.5, key=key))[:, None]
        written = np.concatenate([written, new], axis=1)
for numbers in written:
    print("...", text.decode(numbers).replace("\n", " / "))
