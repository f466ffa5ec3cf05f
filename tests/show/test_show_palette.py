"""One palette for films, pictures, plots and cards: equal colours, and readable ones."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

import numpy
import pytest
from contrast import contrast

import tinynode as tn
from tinynode import show
from tinynode.show import palette
from tinynode.show.palette import DARK, EITHER, LIGHT, Theme

FOLDER = Path(palette.__file__).parent
WHITE, BLACK = "#ffffff", "#111111"


def css_colours(block: str) -> dict[str, str]:
    """The variables of a block of the style sheet; numbers ``r, g, b`` become ``#rrggbb``."""
    found = dict(re.findall(r"--([\w-]+): ([^;]+);", block))
    for name in ("plus", "minus"):
        found[name] = "#" + "".join(f"{int(part):02x}" for part in found[name].split(","))
    return found


@pytest.mark.parametrize(("theme", "position"), [(LIGHT, 0), (DARK, 1)])
def test_a_film_has_the_colours_of_the_palette(theme: Theme, position: int) -> None:
    css = (FOLDER / "page" / "files" / "style.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[position]
    colours = css_colours(block)
    expected = {name.replace("_", "-"): c for name, c in dataclasses.asdict(theme).items()}
    assert {name: colours[name] for name in expected} == expected


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_texts_and_marks_have_the_contrast_of_level_aa(theme: Theme) -> None:
    for back in (theme.panel, theme.raised):
        for ink in (theme.text, theme.quiet, theme.forward, theme.backward, theme.bad):
            assert contrast(ink, back) >= 4.5, (ink, back)
        for mark in (theme.plus, theme.minus):
            assert contrast(mark, back) >= 3
    for tint, ink in (
        (theme.forward_tint, theme.forward),
        (theme.backward_tint, theme.backward),
    ):
        assert contrast(theme.text, tint) >= 4.5
        assert contrast(ink, tint) >= 4.5


@pytest.mark.parametrize("back", [WHITE, BLACK])
def test_marks_for_any_page_are_visible_on_white_and_on_black(back: str) -> None:
    for mark in dataclasses.astuple(EITHER):
        assert contrast(mark, back) >= 3
    text = BLACK if back == WHITE else WHITE
    for mark in (EITHER.plus, EITHER.minus, EITHER.bad):
        shade = palette.translucent(mark, palette.BEHIND_TEXT)
        assert shade.endswith(f",{palette.BEHIND_TEXT:.2f})")
        seen = [
            palette.BEHIND_TEXT * a + (1 - palette.BEHIND_TEXT) * b
            for a, b in zip(
                palette.red_green_blue(mark), palette.red_green_blue(back), strict=True
            )
        ]
        cell = "#" + "".join(f"{round(part):02x}" for part in seen)
        assert contrast(text, cell, 0.87) >= 4.5  # the text of a notebook is not fully opaque


def test_the_series_of_a_plot_are_visible_and_differ() -> None:
    for series, back in (
        (palette.SERIES_LIGHT, LIGHT.panel),
        (palette.SERIES_DARK, DARK.panel),
    ):
        assert min(contrast(colour, back) for colour in series) >= 3
        for one, other in itertools.combinations(map(palette.red_green_blue, series), 2):
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 40


def test_no_other_module_has_colours_of_its_own() -> None:
    for path in FOLDER.rglob("*.py"):
        if path.name != "palette.py":
            text = path.read_text(encoding="utf-8")
            assert not re.findall(r"#[0-9a-fA-F]{6}\b|rgba?\(\d", text), path.name


def test_the_palette_needs_no_other_module() -> None:
    assert "tinynode" not in re.sub(r'""".*?"""', "", Path(palette.__file__).read_text())


def test_pictures_and_plots_have_the_colours_of_the_palette() -> None:
    x = tn.Variable(numpy.ones(2), name="x")
    y = x * x
    picture = show.graph(y)
    for text in (picture.to_svg(), show.histogram([1.0, 2.0]).to_svg()):
        light, dark = text.split("prefers-color-scheme", 1)
        assert LIGHT.text in light and LIGHT.panel in light
        assert DARK.text in dark and DARK.panel in dark
    assert EITHER.forward in picture.to_dot() and EITHER.forward in picture.to_mermaid()


def test_opacities_grow_with_the_shade() -> None:
    opacities = [palette.heat_opacity(shade) for shade in range(palette.SHADES + 1)]
    assert opacities[0] == 0 and opacities[-1] == 1 and opacities == sorted(opacities)
