"""Adds words to the index of the site's search: parts of names, and synonyms.

Requirement: a whole name such as ``no_grad`` finds its section, and ``cross entropy`` finds
``softmax_cross_entropy``. The words of a newcomer find the right page, though the page has
another word. The index is a JSON file, which the reader's browser searches. Each entry gets two
fields more, which no reader sees: ``names`` has the parts of the names in its title, and
``synonyms`` has words of the table here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

SYNONYMS: dict[str, tuple[str, ...]] = {
    "getting-started/": ("install pip quick start quickstart tutorial download clone",),
    "getting-started/#save-the-model-and-use-the-model-later": ("save model load model",),
    "sharp-bits/": ("gotchas pitfalls surprises traps faq",),
    "sharp-bits/#gradients-add-up": ("accumulate twice",),
    "sharp-bits/#without-a-graph-no_grad": ("inference stop recording",),
    "sharp-bits/#the-same-numbers-again": ("reproducible reproducibility random seed",),
    "overfitting/": ("overfit generalisation generalization regularisation regularization",),
    "overfitting/#three-parts-of-the-data": ("split validation set test set train test",),
    "overfitting/#the-cures": ("weight decay weight_decay l2 regularisation",),
    "overfitting/#early-stopping": ("early stopping patience",),
    "tutorials/step02_backward_by_hand/": ("chain rule derivative of a composition",),
    "tutorials/elective_bytes/": ("memory of training activations mixed precision float16",),
    "tutorials/elective_diffusion/": ("ddpm generative model denoising draw images",),
    "tutorials/elective_experts/": ("mixture of experts moe router routing gating",),
    "tutorials/elective_reinforce/": ("reinforcement learning policy gradient agent reward rl",),
    "tutorials/elective_roofline/": ("cache blocking tiling matmul gemm blas bandwidth flops",),
    "tutorials/elective_splats/": ("gaussian splatting rendering radiance field graphics",),
    "optimizers/": ("sgd momentum rmsprop nadam adagrad adamw",),
    "optimizers/#schedules": ("scheduler learning rate decay warmup",),
    "optimizers/#clip-gradients": ("exploding gradients gradient clipping",),
    "checkpoints/": ("resume a run", "load weights"),
    "data/": ("dataset batch minibatch",),
    "data/#metrics": ("accuracy f1 precision recall confusion",),
    "data/#random-changes-of-images": ("augmentation augment",),
    "gpu/": ("cuda cupy graphics card",),
    "devices/": ("device",),
    "why-nan/": ("not a number inf infinity",),
    "debug-a-gradient/": ("gradient check wrong gradient grad is none",),
    "layers-and-training/": ("neural network mlp perceptron training loop",),
    "nets/": ("jit speed compile faster",),
    "sequences/": ("rnn gru recurrent transformer attention",),
    "films/": ("visualise visualize animation step through stepper",),
    "transforms/": ("jacobian hessian higher order derivative forward mode",),
    "from-pytorch/": ("torch pytorch migrate port",),
}
"""The words of a newcomer, by the address of the page or section that answers."""

FIELDS = {"names": {"boost": 300.0}, "synonyms": {"boost": 1e6}}
"""The weights of the fields; a title has 1e3 and a text has 1."""

NAME = re.compile(r"\w*[^\W_]_+\w+")
"""A name with an underline inside."""


class SearchError(RuntimeError):
    """The table names an address that the site does not have."""


def parts(title: str) -> str:
    """The parts of the names in a title: "softmax cross entropy" for ``softmax_cross_entropy``."""
    return " ".join(name.replace("_", " ") for name in NAME.findall(title))


def with_words(index: dict[str, Any]) -> dict[str, Any]:
    """The index with the fields ``names`` and ``synonyms``.

    Raises:
        SearchError: An address of the table is not in the index.
    """
    known = {entry["location"] for entry in index["docs"]}
    missing = sorted(SYNONYMS.keys() - known)
    if missing:
        raise SearchError(f"tools/search_words.py: the site has no {', '.join(missing)}")
    entries = []
    for entry in index["docs"]:
        more = {"names": parts(entry["title"])}
        more["synonyms"] = ", ".join(SYNONYMS.get(entry["location"], ()))
        entries.append({**entry, **{name: words for name, words in more.items() if words}})
    config = index["config"]
    return {"config": {**config, "fields": {**config["fields"], **FIELDS}}, "docs": entries}


def add_to_site(site: Path) -> None:
    """Add the words to the index of a built site."""
    path = site / "search" / "search_index.json"
    index = with_words(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")
