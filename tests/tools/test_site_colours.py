"""The colours of the site and of its course pages: what a reader uses is seen, in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from contrast import contrast

ROOT = Path(__file__).resolve().parents[2]
SHEETS = (
    ROOT / "docs" / "look.css",
    ROOT / "tools" / "browser_site" / "page_files" / "course.css",
)
THEMES = ("default", "slate")
TEXT = 4.5
"""The least contrast of text with its background: WCAG 2.2, level AA."""
PART = 3.0
"""The least contrast of the border or the area of a control with the page."""
PAGE = "var(--md-default-bg-color)"

Rules = list[tuple[list[str], dict[str, str]]]


def rules() -> Rules:
    """The selectors and the declarations of each rule of the two style sheets, in order."""
    text = "\n".join(sheet.read_text(encoding="utf-8") for sheet in SHEETS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found: Rules = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        pairs = [line.split(":", 1) for line in body.split(";") if ":" in line]
        declarations = {name.strip(): value.strip() for name, value in pairs}
        found.append(([one.strip() for one in selectors.split(",\n")], declarations))
    return found


RULES = rules()


def declared(*selectors: str) -> dict[str, str]:
    """The declarations of all rules with one of the selectors; later rules win."""
    found: dict[str, str] = {}
    for ones, declarations in RULES:
        if set(selectors) & set(ones):
            found.update(declarations)
    return found


def colour(value: str, theme: str) -> str:
    """The colour ``#rrggbb`` of a value in a theme; the last word of ``1px solid red`` counts."""
    variables = declared(":root", f'[data-md-color-scheme="{theme}"]')
    while "var(" in value:
        value = re.sub(r"var\((--[\w-]+)(?:, [^()]*)?\)", lambda m: variables[m[1]], value)
    last = value.split()[-1]
    short = re.fullmatch(r"#(\w)(\w)(\w)", last)
    return "#" + "".join(2 * digit for digit in short.groups()) if short else last


def check_button(*selectors: str, theme: str) -> None:
    """A button has text that is read, and a border or an area that is seen."""
    found = declared(*selectors)
    border = found.get("border-color", found["border"])
    area, page = colour(found["background"], theme), colour(PAGE, theme)
    assert contrast(colour(found["color"], theme), area) >= TEXT, (selectors, theme)
    seen = max(contrast(area, page), contrast(colour(border, theme), page))
    assert seen >= PART, (selectors, theme)


HOVER = ":hover:not(:disabled)"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "selectors",
    [
        (".tn-button",),
        (".tn-button", f".tn-button{HOVER}"),
        (".tn-button", ".tn-run"),
        (".tn-button", ".tn-run", f".tn-button{HOVER}", f".tn-run{HOVER}"),
        (".tn-file select",),
        (".md-typeset .md-button", ".md-typeset .md-button--primary"),
    ],
)
def test_a_button_is_seen_and_read(selectors: tuple[str, ...], theme: str) -> None:
    check_button(*selectors, theme=theme)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("part", "name", "least"),
    [
        (".tn-editor", "border", PART),
        (".tn-editor:focus-within", "border-color", PART),
        (".tn-button:focus-visible", "outline", PART),
        (".tn-count", "color", TEXT),
        (".tn-yes", "color", TEXT),
        (".tn-no", "color", TEXT),
        ('.tn-bar[data-state="failed"] .tn-state', "color", TEXT),
        (".md-typeset .tn-error", "border-left", PART),
        (".md-typeset .md-button", "color", TEXT),
    ],
)
def test_a_part_of_a_course_page_is_seen(part: str, name: str, least: float, theme: str) -> None:
    assert contrast(colour(declared(part)[name], theme), colour(PAGE, theme)) >= least


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", ["primary", "accent", "default", "code", "footer"])
def test_text_on_each_kind_of_area_is_read(kind: str, theme: str) -> None:
    """Material lays text of the one colour on areas of the other colour."""
    text = colour(f"var(--md-{kind}-fg-color)", theme)
    area = colour(f"var(--md-{kind}-bg-color)", theme)
    assert contrast(text, area) >= TEXT
