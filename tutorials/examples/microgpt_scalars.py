"""The GPT of microgpt.py, with a Variable for each number: sums, products, and nothing else.

python tutorials/examples/microgpt_scalars.py

Read this file beside microgpt.py: the functions have the same names. A row is a list of Variables,
and a matrix is a list of rows. The model reads a letter at a time, and keeps the keys and values
of earlier letters. So no causal mask is needed: the list has no later letters.
"""

import time

from microgpt import HEADS, SIZE, encode, new_weights, train

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


# 1. rows and matrices of numbers
def as_scalars(weights):
    """Each matrix as a list of rows, each number a Variable: up[0][0], up[0][1], ..."""
    return {
        name: [
            [tn.Variable(number, name=f"{name}[{i}][{j}]") for j, number in enumerate(row)]
            for i, row in enumerate(tn.to_host(matrix))
        ]
        for name, matrix in weights.items()
    }


def dot(row, other):
    total = row[0] * other[0]
    for x, y in zip(row[1:], other[1:], strict=True):
        total = total + x * y
    return total


def times(row, matrix):
    """row @ matrix: a dot product for each column."""
    return [dot(row, column) for column in zip(*matrix, strict=True)]


def add(row, other):
    return [x + y for x, y in zip(row, other, strict=True)]


def total_of(row):
    total = row[0]
    for x in row[1:]:
        total = total + x
    return total


# 2. the model: from a letter, its place and what was read before to the scores of the next letter
def gpt(weights, number, place, past):
    x = add(weights["letter"][number], weights["place"][place])
    answer = attention(weights, normalised(x), past)
    x = add(x, answer)
    thought = mlp(weights, normalised(x))
    x = add(x, thought)
    return times(normalised(x), weights["score"])


def normalised(x):
    """The row, divided by the root of its mean square."""
    root = F.sqrt(dot(x, x) / len(x) + 1e-5)
    return [number / root for number in x]


def attention(weights, x, past):
    """The letter asks the letters up to itself, and gets a mean of their values."""
    query = times(x, weights["to_query"])
    key = times(x, weights["to_key"])
    value = times(x, weights["to_value"])
    past.append((key, value))
    width = SIZE // HEADS
    answers = []
    for start in range(0, SIZE, width):
        part = slice(start, start + width)
        keys, values = [key[part] for key, _ in past], [value[part] for _, value in past]
        answers += head(query[part], keys, values)
    return times(answers, weights["join"])


def head(query, keys, values):
    """The share of a value in the mean grows with the product of its key and the query."""
    match = [dot(query, key) * len(query) ** -0.5 for key in keys]
    share = softmax(match)
    return times(share, values)


def softmax(scores):
    powers = [F.exp(score) for score in scores]
    total = total_of(powers)
    return [power / total for power in powers]


def mlp(weights, x):
    """Two layers."""
    hidden = times(x, weights["up"])
    positive = [F.relu(number) for number in hidden]
    return times(positive, weights["down"])


# 3. the loss: the mean of -log(probability) of the right letters
def loss_of_letter(weights, number, place, past, answer):
    scores = gpt(weights, number, place, past)
    probabilities = softmax(scores)
    return -F.log(probabilities[answer])


def loss_of(weights, name):
    numbers, answers = encode(name)
    past = []
    losses = [
        loss_of_letter(weights, number, place, past, answer)
        for place, (number, answer) in enumerate(zip(numbers, answers, strict=True))
    ]
    return total_of(losses) / len(losses)


# 4. the training: each number has its own gradient, and its own step of Adam
def main(steps=2):
    weights = as_scalars(new_weights())
    numbers = [number for matrix in weights.values() for row in matrix for number in row]
    optimizer = nn.Adam(numbers, allow_missing=True)  # letters that are not in the name
    for name in train[:steps]:
        start = time.perf_counter()
        loss = loss_of(weights, name)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        print(f"{name}: loss {loss.item():.2f}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
