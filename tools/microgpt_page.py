"""The part of the home page about microgpt: its pictures, its transcript, its table of times.

    python -m tools.microgpt_page FOLDER

Requirement: every figure of the page comes from a run. So this program runs the three programs of
``tutorials/examples``, and writes the films, the curve, and texts for the page. The build of the
site puts the texts into the page, in the place of comments such as ``<!-- microgpt: table -->``.
"""

from __future__ import annotations

import contextlib
import html
import importlib
import io
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

import tinynode as tn
from tools import command_words

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "tutorials" / "examples"
PROGRAM = EXAMPLES / "microgpt.py"
SOURCES = (*sorted(EXAMPLES.glob("microgpt*.py")), Path(__file__).resolve())
"""The files that the made files depend on, beside the package."""

STEPS = 3000
NAME = "elmham"
"""The word of the films."""
PLACE = 3
"""The place of the filmed letter in the word."""
REPEATS = {"microgpt": 200, "microgpt_compiled": 200, "microgpt_scalars": 5}
"""The measured steps of each program."""

MARK = "<!-- microgpt: "
"""The start of the comments in a page."""

TEXTS = ("button", "transcript", "table", "program")


def main(folder: str) -> int:
    """Write all files into a folder."""
    for name, text in made().items():
        Path(folder, name).write_text(text, encoding="utf-8")
    return 0


def made() -> dict[str, str]:
    """The files of the page, by their names."""
    arrays, scalars, compiled = programs()
    weights = arrays.new_weights()
    losses = [loss for _, loss in arrays.training(weights, STEPS)]
    return {
        "microgpt_curve.svg": curve(arrays, losses),
        "microgpt_step.html": film_of_step(arrays, weights),
        "microgpt_letter.html": film_of_letter(arrays, scalars, weights),
        "microgpt_transcript.txt": transcript(arrays),
        "microgpt_table.txt": table(arrays, scalars, compiled),
        "microgpt_button.txt": button(),
        "microgpt_program.txt": program(),
    }


def programs() -> list[ModuleType]:
    """The three programs, imported as they import each other."""
    sys.path.insert(0, str(EXAMPLES))
    names = ("microgpt", "microgpt_scalars", "microgpt_compiled")
    return [importlib.import_module(name) for name in names]


# --- pictures ------------------------------------------------------------------------------------


def curve(arrays: ModuleType, losses: list[float]) -> str:
    """The losses of a training, and for comparison those of counted pairs of letters."""
    steps = len(losses)
    plot = tn.show.training_curves(
        {"microgpt": losses, "pairs of letters, counted": [loss_of_pairs(arrays)] * steps},
        smoothing=0.95,
        title="Watch it learn to spell",
        y_label="loss of a letter",
    )
    return saved(plot, "curve.svg")


def loss_of_pairs(arrays: ModuleType) -> float:
    """The loss on held-out names of a model that counts pairs of letters in the training.

    Each pair counts 0.1 more than it was seen, so no pair is impossible.
    """
    texts = [f".{name}." for name in arrays.train]
    pairs = Counter(text[i : i + 2] for text in texts for i in range(len(text) - 1))
    firsts = Counter(letter for text in texts for letter in text[:-1])
    found = []
    for name in arrays.held_out:
        text = f".{name}."
        for first, second in pairwise(text):
            seen = firsts[first] + 0.1 * len(arrays.letters)
            found.append(-np.log((pairs[first + second] + 0.1) / seen))
    return float(np.mean(found))


def film_of_step(arrays: ModuleType, weights: dict[str, Any]) -> str:
    """The film of a training step on arrays: forward, backward and the step of Adam."""
    optimizer = tn.nn.Adam(weights.values(), lr=0.01, betas=(0.9, 0.99))
    with tn.show.record("One training step of microgpt, on arrays") as film:
        loss = arrays.loss_of(weights, NAME)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
    return saved(film, "step.html")


def film_of_letter(arrays: ModuleType, scalars: ModuleType, weights: dict[str, Any]) -> str:
    """The folded film of a letter on scalars: the letters before are read without a gradient."""
    matrices = scalars.as_scalars(weights)
    numbers, answers = arrays.encode(NAME)
    past: list[Any] = []
    with tn.no_grad():
        for place in range(PLACE):
            scalars.gpt(matrices, numbers[place], place, past)
    title = "One letter of microgpt, on scalars: press a box"
    with tn.show.record(title, fold=True) as film:
        loss = scalars.loss_of_letter(matrices, numbers[PLACE], PLACE, past, answers[PLACE])
        loss.backward()
    return saved(film, "letter.html")


def saved(picture: Any, name: str) -> str:
    """The text of the file that a picture or a film writes."""
    with tempfile.TemporaryDirectory(prefix="tinynode-microgpt-") as folder:
        path = Path(folder, name)
        picture.save(path)
        return path.read_text(encoding="utf-8")


# --- texts ---------------------------------------------------------------------------------------


def transcript(arrays: ModuleType) -> str:
    """What microgpt.py prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        arrays.main()
    return f'<pre class="transcript"><code>{html.escape(printed.getvalue())}</code></pre>'


def table(arrays: ModuleType, scalars: ModuleType, compiled: ModuleType) -> str:
    """The three programs: functions and time of a training step with one name."""
    numbers = scalars.as_scalars(arrays.new_weights())
    flat = [number for matrix in numbers.values() for row in matrix for number in row]
    rows = [
        ("arrays", "microgpt", arrays.loss_of, arrays.new_weights(), None),
        ("scalars", "microgpt_scalars", scalars.loss_of, numbers, flat),
        ("arrays, compiled", "microgpt_compiled", compiled.loss_of, arrays.new_weights(), None),
    ]
    lines = []
    for title, name, loss_of, weights, parameters in rows:
        chosen = list(weights.values()) if parameters is None else parameters
        optimizer = tn.nn.Adam(chosen, lr=0.01, allow_missing=True)
        functions = count_functions(lambda f=loss_of, w=weights: f(w, NAME))
        seconds = time_of_step(lambda f=loss_of, w=weights: f(w, NAME), optimizer, REPEATS[name])
        lines.append(
            f"<tr><td>{title}</td><td>{name}.py</td><td>{functions:,}</td>"
            f"<td>{in_words(seconds)}</td></tr>"
        )
    head = "<th>numbers</th><th>program</th><th>functions forward</th><th>one step</th>"
    measured = (
        f"A step is forward, backward and Adam for the name {NAME}; the median of "
        f"{REPEATS['microgpt']} steps on arrays, {REPEATS['microgpt_scalars']} on scalars. "
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}."
    )
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
        f'</table><p class="small">{measured}</p>'
    )


def count_functions(run: Callable[[], Any]) -> int:
    """The functions that a call runs forward, as the graph has them."""
    with tn.hooks.TimerHook() as timer:
        run()
    return sum(row["occurrence"] for row in timer.summary().values())


def time_of_step(run: Callable[[], Any], optimizer: Any, repeats: int) -> float:
    """The median seconds of a training step, after two steps that do not count."""
    found = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        loss = run()
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        found.append(time.perf_counter() - start)
    return median(found[2:])


def in_words(seconds: float) -> str:
    """Seconds with two digits."""
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


def button() -> str:
    """The buttons: the program in the browser where the site has a page for it, and the films."""
    links = [
        ("microgpt_step.html", "Film of a step"),
        ("microgpt_letter.html", "Film of a letter"),
    ]
    if (ROOT / "docs" / "play.md").exists():
        address = tn.show.link(PROGRAM, title="microgpt: watch it learn to spell", site="")
        links.insert(0, (address, "Watch it learn in your browser"))
    first = " md-button--primary"
    made = []
    for address, title in links:
        made.append(f'<a class="md-button{first}" href="{html.escape(address)}">{title}</a>')
        first = ""
    return f'<p class="buttons">{" ".join(made)}</p>'


def program() -> str:
    """The program in Markdown."""
    name = PROGRAM.relative_to(ROOT).as_posix()
    return f'```py title="{name}"\n{PROGRAM.read_text(encoding="utf-8")}```'


def with_texts(page: str, texts: dict[str, str]) -> str:
    """A page with the made texts in their places.

    Raises:
        KeyError: A text was not made.
    """
    for name in TEXTS:
        page = page.replace(f"{MARK}{name} -->", texts[f"microgpt_{name}.txt"])
    return page


if __name__ == "__main__":
    sys.exit(main(*command_words.read(__doc__, "FOLDER")))
