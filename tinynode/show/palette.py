"""The colours of films, graph pictures, plots, and cards of Variables.

Requirement: one colour has one meaning in all pictures. Forward is blue; backward is orange and
dashed. Positive numbers are green; negative numbers are purple; nan and inf are red. The
colour-blind can tell the colours of each pair apart. Texts have a contrast of at least 4.5, and
marks a contrast of at least 3 (WCAG 2.2, level AA).

A film's page has the same colours in its style sheet; a test compares the two.

Source: Okabe, Ito, Color Universal Design, 2008 (series of plots, and ``EITHER`` by hue).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Marks:
    """The colours with a meaning, as ``#rrggbb``.

    Attributes:
        forward: what forward computes, and arrays retained for backward.
        backward: what backward computes, and gradients.
        update: the steps of optimizers, and iterations.
        plus: numbers above 0.
        minus: numbers below 0.
        bad: nan and inf.
    """

    forward: str
    backward: str
    update: str
    plus: str
    minus: str
    bad: str


@dataclass(frozen=True)
class Theme(Marks):
    """The colours of a picture with its own background.

    Attributes:
        panel: the background.
        raised: the background of a box.
        line: frames and grids.
        text: texts.
        quiet: texts of less weight, and plain arrows.
        forward_tint: the background of a function of forward.
        backward_tint: the background of a function of backward.
        update_tint: the background of an optimizer's step.
    """

    panel: str
    raised: str
    line: str
    text: str
    quiet: str
    forward_tint: str
    backward_tint: str
    update_tint: str


LIGHT = Theme(
    forward="#0067a8",
    backward="#ad4500",
    update="#7a5c00",
    plus="#007a4d",
    minus="#7d2d9b",
    bad="#c2002f",
    panel="#ffffff",
    raised="#f6f8fa",
    line="#d5dbe3",
    text="#18202b",
    quiet="#566273",
    forward_tint="#dcecf8",
    backward_tint="#fdead9",
    update_tint="#f7edcc",
)
DARK = Theme(
    forward="#62b8f2",
    backward="#ffa04d",
    update="#e3bd4a",
    plus="#42c88c",
    minus="#c882f0",
    bad="#ff7088",
    panel="#171c23",
    raised="#1e252e",
    line="#323c49",
    text="#e7ecf2",
    quiet="#9dabbb",
    forward_tint="#143249",
    backward_tint="#43270f",
    update_tint="#3a3010",
)
EITHER = Marks(
    forward="#0072b2",
    backward="#d55e00",
    update="#a07800",
    plus="#169e6a",
    minus="#a55acd",
    bad="#e02050",
)
"""For a picture on a page whose background is not known: light or dark."""

FRAME = "#999999"
"""A frame on such a page."""

SERIES_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#c9689c", "#a68300", "#2e8fc9", "#000000")
SERIES_DARK = ("#56b4e9", "#e69f00", "#00b98a", "#cc79a7", "#f0e442", "#d55e00", "#ffffff")
"""The curves and bars of a plot, in order: without a meaning, and repeated by dashes and marks."""


def _by_name(theme: Theme, series: Sequence[str]) -> dict[str, str]:
    return asdict(theme) | {f"series{number}": colour for number, colour in enumerate(series)}


COLOURS = {"light": _by_name(LIGHT, SERIES_LIGHT), "dark": _by_name(DARK, SERIES_DARK)}
"""The colours by theme and name, as drawings name them: ``forward``, ``panel``, ``series0``."""

SHADES = 8
"""The steps of a colour scale: from 0, without colour, to the largest absolute value."""

BEHIND_TEXT = 0.42
"""The opacity of the strongest shade behind a number: the number stays readable."""


def heat_opacity(shade: int) -> float:
    """The opacity of a shade, 0 to ``SHADES``, in a heat map: small numbers are visible too."""
    return float((shade / SHADES) ** 0.75)


def shade_look(shade: int | None, plus: str = "plus") -> tuple[str, float]:
    """The name of the colour, and the opacity, of a shade from -SHADES to SHADES; None is nan."""
    if shade is None:
        return "bad", 1.0
    return "minus" if shade < 0 else plus, heat_opacity(abs(shade))


def red_green_blue(colour: str) -> tuple[int, int, int]:
    """The three numbers, 0 to 255, of a colour ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def translucent(colour: str, opacity: float) -> str:
    """A colour ``#rrggbb`` with an opacity from 0 to 1, for CSS."""
    red, green, blue = red_green_blue(colour)
    return f"rgba({red},{green},{blue},{opacity:.2f})"
