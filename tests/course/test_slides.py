"""Slides: made from a step, in a page that needs nothing else, with all that a lecture needs."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tinynode_course import command, slides, sources
from tinynode_course.cells import Output
from tinynode_course.mynode import Excerpt

STEP = """\
# %% [markdown]
# # Step 1: doubling
#
# **Goal.** Double a **number**.

# %%
def double(x):
    return 2 * x  # a <comment>

# %% [markdown]
# ## Predict
# What is `double(4)`?
#
# - eight
# - nine
#
# ## Run

# %%
print(double(4))

# %% [markdown]
# ## See
# A picture:

# %%
class Picture:
    def _repr_svg_(self):
        return "<svg><circle r='9'/></svg>"

    def __str__(self):
        return "in text"


Picture()

# %%
class Film:
    def _repr_html_(self):
        return '<iframe srcdoc="a film" style="width: 100%; height: 720px"></iframe>'


Film()

# %% [markdown]
# ## Break it
# Too much:

# %%
print(double("a"))

# %% [markdown]
# ## Exercise
# Write it.
#
#     python -m tinynode.learn start 01
"""


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two parts, and a folder to work in."""
    folder = tmp_path / "tutorials"
    folder.mkdir()
    (folder / "step01_first.py").write_text(STEP)
    (folder / "step07_second.py").write_text("# %% [markdown]\n# # Step 7: bad\n\n# %%\n1 / 0\n")
    monkeypatch.setattr(sources, "tutorials", lambda: folder)
    monkeypatch.chdir(tmp_path)
    return folder


def texts(page: str) -> list[str]:
    """The text of each slide."""
    found = re.findall(r"<section>(.*?)</section>", page, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", " ", one)) for one in found]


@pytest.mark.slow
def test_slides_of_all_parts(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["slides", "--folder", "out"]) == 1  # of step 7
    said = capsys.readouterr().out
    assert "wrote out/slides-a.html" in said and "step07_second.py stopped" in said
    page = Path("out/slides-a.html").read_text()
    found = texts(page)
    starts = ["Step 1: doubling", "Step 1 New", "Step 1 Predict", "Step 1 Run"]
    starts += ["Step 1 See", "Step 1 See", "Step 1 Break", "Step 1 Exercise"]
    for text, start in zip(found, starts, strict=True):
        assert " ".join(text.split()).startswith(start)
    assert "a <comment>" in found[1] and "What is" in found[2] and "8" in found[3]
    assert "<svg><circle" in page and "in text" not in found[4]
    assert "start 01" in found[7]
    assert not re.search(r"https?://|src=|href=", page)


def test_parts_are_chosen_by_letter_title_or_step(course: Path) -> None:
    parts = slides.parts()
    assert list(parts) == ["A. A scalar engine", "B. Arrays, and a network of your own"]
    for text in ("b", "B", "B. Arrays, and a network of your own", "7"):
        assert [step.key for step in slides.chosen_steps(text)] == ["07"]
    with pytest.raises(slides.CommandError, match=r"no part and no step 'X'.*A scalar"):
        slides.chosen_steps("X")


def test_text_becomes_html() -> None:
    text = "A **bold** `x < y`, a [link](page.md).\n\n1. one\n2. two\n   more\n\n    code <1>"
    text += "\n\n| a | b |\n|---|---|\n| 1 | `2` |"
    made = slides.in_html(text)
    assert "<b>bold</b> <code>x &lt; y</code>, a link." in made
    assert "<ol><li>one</li><li>two more</li></ol>" in made
    assert "<pre>code &lt;1&gt;</pre>" in made
    assert "<td>a</td><td>b</td>" in made and "---" not in made


def test_formulas_are_typeset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert (
        slides.in_html("Let $x^2 < 1$, `$a$`.") == "<p>Let <i>x² &lt; 1</i>, <code>$a$</code>.</p>"
    )
    monkeypatch.undo()
    pytest.importorskip("latex2mathml")
    assert "<p>Let <math" in slides.in_html("Let $x^2$.")


def test_code_is_coloured_line_by_line() -> None:
    made = slides.coloured('def f():\n    """Two\n    lines."""\n    return 1  # a <b>\n')
    lines = made.splitlines()
    assert lines[0] == '<i class="k">def</i> f():'
    assert lines[2] == '<i class="s">    lines.&quot;&quot;&quot;</i>'
    assert lines[3].endswith('<i class="n">1</i>  <i class="c"># a &lt;b&gt;</i>')
    assert slides.coloured("x = (") == "x = ("


def test_new_lines_are_marked_and_long_code_is_cut() -> None:
    made = slides.code_block(Excerpt("core/variable.py", "a = 1\nb = 2", (2,)))
    assert '<span class="new">b = ' in made and "mynode/core/variable.py" in made
    long = "\n".join(f"x{number}" for number in range(1, 31))
    made = slides.code_block(Excerpt("core/variable.py", long, (20,)))
    assert re.findall(r"x\d+|\.\.\.", made) == [
        "x1",
        "...",
        *(f"x{n}" for n in range(17, 24)),
        "...",
    ]
    made = slides.code_block(Excerpt("", "x\n" * 99, ()))
    assert made.count("<span>x") == slides.MOST_CODE and "..." in made


def test_much_code_and_much_output_have_slides_of_their_own() -> None:
    code = Excerpt("", "x = 1\n" * (slides.MUCH_CODE + 1), ())
    assert '<pre class="code long">' in slides.code_block(code)
    few = Excerpt("", "x = 1\n" * slides.MUCH_CODE, ())
    assert '<pre class="code">' in slides.code_block(few)
    exercise = slides.Section("Exercise", ["Write it.", code])
    said, shown = slides._bodies("Exercise", exercise)
    assert "Write it." in said and "<pre" not in said and "<pre" in shown
    outputs = [Output(printed="line\n" * 15) for _ in range(3)]
    broken = slides.Section("Break it", ["Why?", code, *outputs])
    bodies = list(slides._bodies("Break it", broken))
    assert len(bodies) == 4 and "Why?" in bodies[0]
    assert all(body.count("printed") == 1 for body in bodies[1:])


@pytest.mark.slow
def test_keys_turn_over_and_each_slide_fits(course: Path, browser) -> None:
    """In a browser: no request to another host, no slide too full."""
    (course / "step07_second.py").unlink()
    command.main(["slides", "A", "--folder", "out"])
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(Path("out/slides-a.html").resolve().as_uri())
    shown = "document.querySelectorAll('section.now').length + ':' + (place + 1)"
    assert page.evaluate(shown) == "1:1"
    for key, place in (("ArrowRight", 2), ("PageDown", 3), ("ArrowLeft", 2), ("End", 8)):
        page.keyboard.press(key)
        assert page.evaluate(shown) == f"1:{place}"
    assert page.evaluate("slides.every(s => s.scrollHeight <= s.clientHeight)")
    film = page.evaluate(
        "(() => { const film = document.querySelector('iframe').getBoundingClientRect();"
        "return [film.left, film.top, film.right, film.bottom]; })()"
    )
    assert 0 < film[0] < film[2] < 1280 and 0 < film[1] < film[3] < 720, "the film is cut"
    assert film[3] - film[1] > 500, "the film does not fill the slide"
    assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") == 8
    assert len(asked) == 1
    page.close()
