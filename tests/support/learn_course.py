"""A course of three small steps: an exercise in a file, and two that build mynode."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinynode_course import sources

STEP = """\
# %% [markdown]
# # Step {number}: {topic}
#
# **Goal.** Learn *little* about $x^2$, from [step 5](step05_alone.py) and [the web](https://example.org).
#
# | word | number |
# |---|---:|
# | `a|b` | 1 |
# | **bold** | 10 |

# %% [markdown]
# ## Predict
# How much is 1 + 2?

# %% [markdown]
# ## Run
# See [node.py](../source/tinynode/core/node.md).

# %%
print("it is", 1 + 2)

# %% [markdown]
# ## Exercise
# Write `join`: `python -m tinynode.learn start {key}`
"""

MYNODE = "\n# %% [markdown]\n# ## Shown\n# <!-- mynode: core/boxes.py Box -->\n"

BOX = '''\
"""Boxes."""

import math


class Box:
    """A number in a box."""

    def __init__(self, number):
        self.number = number
        self.root = math.sqrt(number)
'''

SHOW = '''

def show(box):
    """The box as text."""
    text = "box"
    if box.root > 2:
        text += " large"
    return text
'''

STUB_SHOW = '''"""Write show, and give Box an attribute name."""

from math import pi


def show(box):
    """The box as text."""
    raise NotImplementedError("step 2: show")
'''

ALONE = '''\
"""Exercise 5."""


def join(words):
    """The words in a line."""
    # a comment
    line = ""
    for word in words:
        line = line + (
            " " if line else ""
        ) + word
    return line


half = 0.5
'''

STUB = '''"""Exercise 5: write join.

And
half.
"""


def join(words):
    raise NotImplementedError
'''

CHECK = '''
from tinynode_course.checks import Hint, expect_equal

HINTS = {{"check_it": Hint("What must it be?", "it is what it is")}}
DISTRACTORS = {{"join": ("line = word",)}}

def check_it(work):
    """it works"""
    expect_equal("the value", {expression}, {expected}, "look")
'''


def write_course(folder: Path) -> Path:
    """Write the course; returns the folder of its steps."""
    steps = (("01", "boxes"), ("02", "words"), ("05", "alone"))
    texts = {
        f"step{key}_{topic}.py": STEP.format(number=int(key), key=key, topic=topic)
        for key, topic in steps
    }
    texts["step02_words.py"] += MYNODE
    named = BOX.replace("        self.root", '        self.name = "box"\n        self.root')
    texts |= {
        "solutions/step01/__init__.py": '"""Mine."""\n\nfrom mynode.core.boxes import Box\n',
        "solutions/step01/core/boxes.py": BOX,
        "exercises/step01/__init__.py": '"""Mine."""\n\nfrom mynode.core.boxes import Box\n',
        "exercises/step01/core/boxes.py": BOX.partition("    def")[0]
        + "    def __init__(self, number):\n        raise NotImplementedError\n",
        "checks/step01.py": CHECK.format(expression="work.Box(9).root", expected="3.0"),
        "solutions/step02/core/boxes.py": named + SHOW,
        "exercises/step02/core/boxes.py": STUB_SHOW,
        "checks/step02.py": CHECK.format(
            expression="work.core.boxes.show(work.Box(9))", expected="'box large'"
        ),
        "solutions/step05.py": ALONE,
        "exercises/step05.py": STUB,
        "checks/step05.py": CHECK.format(expression="work.join(['a', 'b'])", expected="'a b'"),
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def small_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The course, and a folder of the learner's to work in."""
    folder = write_course(tmp_path / "tutorials")
    monkeypatch.setattr(sources, "tutorials", lambda: folder)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder
