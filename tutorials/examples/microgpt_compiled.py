"""The training of microgpt.py, with a compiled loss: one line is new.

python tutorials/examples/microgpt_compiled.py

``tn.compile`` records the functions of the loss as a net, for each length of a name, and plans the
forward and the backward pass. Later steps run the plan.
"""

import time

import microgpt
from microgpt import encode, gpt, new_weights, training

import tinynode as tn
from tinynode import functions as F


@tn.compile
def compiled_loss(weights, numbers, answers):
    return F.softmax_cross_entropy(gpt(weights, numbers), answers)


def loss_of(weights, name):
    numbers, answers = encode(name)
    return compiled_loss(weights, tn.asarray(numbers), tn.asarray(answers))


def main(steps=1000):
    for title, chosen in (("eager", microgpt.loss_of), ("compiled", loss_of)):
        start = time.perf_counter()
        losses = [loss for _, loss in training(new_weights(), steps, chosen)]
        seconds = time.perf_counter() - start
        print(f"{title:8}  {seconds / steps * 1000:.1f} ms a step, last loss {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
