"""A whole GPT, small enough to read: it learns to spell, and invents names of villages.

python tutorials/examples/microgpt.py

Read from the top: the names, the letters as numbers, the weights, the model, the loss, the
training, the invention of names. Two neighbours have the same model: microgpt_scalars.py has a
Variable for each number, and microgpt_compiled.py compiles the training step.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the names: each is a first part and a last part; every tenth name is held out of the training
FIRST = """alder ash beech birch black broad brook clear crow elder elm fern fox green hazel high
holly king long maple marsh north oak otter owl raven red rose south stone swan thorn west white
wild willow wolf"""
LAST = """bridge burn bury by cote dale den field ford gate ham haven hill hurst mead mill ton well
wick wood"""

names = [first + last for first in FIRST.split() for last in LAST.split()]
np.random.default_rng(0).shuffle(names)
held_out = names[::10]
train = [name for name in names if name not in held_out]

# 2. the letters as numbers: a dot stands before each name and behind it
letters = sorted({".", *"".join(names)})


def encode(name):
    """The numbers of a name with dots: ``.elmham`` is read, and ``elmham.`` has the answers."""
    numbers = np.array([letters.index(letter) for letter in f".{name}."])
    return numbers[:-1], numbers[1:]


# 3. the weights: random numbers near 0, so at first the model takes all letters as equally likely
SIZE, HEADS, HIDDEN = 16, 2, 32  # numbers for each letter; attention heads; numbers inside the MLP
LONGEST = max(map(len, names)) + 1
SHAPES = {
    "letter": (len(letters), SIZE),  # a row for each letter
    "place": (LONGEST, SIZE),  # a row for each place in a name
    "to_query": (SIZE, SIZE),
    "to_key": (SIZE, SIZE),
    "to_value": (SIZE, SIZE),
    "join": (SIZE, SIZE),
    "up": (SIZE, HIDDEN),
    "down": (HIDDEN, SIZE),
    "score": (SIZE, len(letters)),
}


def new_weights(seed=0):
    """A Variable for each matrix."""
    rng = np.random.default_rng(seed)
    return {
        name: tn.Variable(rng.normal(0, 0.08, shape), name=name) for name, shape in SHAPES.items()
    }


# 4. the model: from the T letters read so far to the scores of the letter behind each of them
def gpt(weights, numbers):
    x = weights["letter"][numbers] + weights["place"][: len(numbers)]  # (T, SIZE)
    answer = attention(weights, normalised(x))
    x = x + answer
    thought = mlp(weights, normalised(x))
    x = x + thought
    return normalised(x) @ weights["score"]  # (T, letters)


def normalised(x):
    """Each row, divided by the root of its mean square."""
    return x / F.sqrt(F.mean(x * x, axis=1, keepdims=True) + 1e-5)


def attention(weights, x):
    """Each place asks the places up to itself, and gets a mean of their values."""
    query = x @ weights["to_query"]
    key = x @ weights["to_key"]
    value = x @ weights["to_value"]
    width = SIZE // HEADS
    answers = []
    for start in range(0, SIZE, width):
        part = slice(start, start + width)
        answers.append(head(query[:, part], key[:, part], value[:, part]))
    return F.concat(answers, axis=1) @ weights["join"]


def head(query, key, value):
    """The share of a value in the mean grows with the product of its key and the query."""
    match = query @ key.T * query.shape[1] ** -0.5  # (T, T)
    past = np.tri(len(query), dtype=bool)  # the causal mask: row i reads columns 0 to i
    share = F.softmax(F.where(past, match, -np.inf), axis=1)  # the sum of each row is 1
    return share @ value


def mlp(weights, x):
    """Two layers, for each place by itself."""
    hidden = x @ weights["up"]
    positive = F.relu(hidden)
    return positive @ weights["down"]


# 5. the loss: the mean of -log(probability) of the right letters
def loss_of(weights, name):
    numbers, answers = encode(name)
    scores = gpt(weights, numbers)
    return F.softmax_cross_entropy(scores, answers)


def mean_loss(weights, some_names):
    """The mean loss over some names."""
    with tn.no_grad():
        return float(np.mean([loss_of(weights, name).item() for name in some_names]))


# 6. the training: in each step, one name, its gradients, and a step of Adam
def training(weights, steps, loss_of=loss_of, lr=0.01):
    """Train the weights; gives the number and the loss of each step."""
    rng = np.random.default_rng(1)
    optimizer = nn.Adam(weights.values(), lr=lr, betas=(0.9, 0.99))
    for step in range(1, steps + 1):
        optimizer.lr = lr * (1 - (step - 1) / steps)  # the rate falls to 0
        loss = loss_of(weights, rng.choice(train))
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        yield step, loss.item()


# 7. the invention of a name: draw a letter by its probability, read it, draw the next letter
def invent(weights, rng):
    name = ""
    while len(name) < LONGEST:
        numbers, _ = encode(name)
        with tn.no_grad():
            probabilities = F.softmax(gpt(weights, numbers)[-1])
        letter = rng.choice(letters, p=tn.to_host(probabilities))
        if letter == ".":
            break
        name += letter
    return name


def report(weights, step, rng):
    """A line: a bar for the loss on held-out names, and inventions; a * marks a new name."""
    loss = mean_loss(weights, held_out)
    inventions = [invent(weights, rng) for _ in range(4)]
    marked = [name if name in train else f"{name}*" for name in inventions]
    print(f"{step:4}  {loss:.2f} {'#' * round(8 * loss):27} {' '.join(marked)}", flush=True)


def main(steps=3000, every=300):
    weights, rng = new_weights(), np.random.default_rng(2)
    size = sum(matrix.size for matrix in weights.values())
    print(f"{len(train)} names for the training, {len(held_out)} held out, {size} weights")
    print(f"step  loss on held-out names (a guess: {np.log(len(letters)):.2f}), inventions")
    for step, _ in training(weights, steps):
        if step in (1, every // 5) or step % every == 0:
            report(weights, step, rng)
    inventions = [invent(weights, rng) for _ in range(100)]
    new = [name for name in inventions if name not in train]
    right = [name for name in new if name in held_out]
    print(f"of 100 inventions, {len(new)} are new: no name of the training;")
    print(f"{len(right)} of them are names held out: {' '.join(right)}")


if __name__ == "__main__":
    main()
