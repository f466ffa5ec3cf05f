"""Frames of a film as SVG: a picture, or an animation.

Requirement: an animation plays in an ``<img>`` of a README, without a script. So CSS shows and
hides layers at their times; a layer with equal content in several frames is written once. Without
animations, the picture is the last frame: for readers who prefer reduced motion, and in print.
Every text is escaped.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from dataclasses import asdict

from tinynode.show.films.frame_drawing import Frame
from tinynode.show.films.frame_shapes import Box, Cells, Path, Shape, Text
from tinynode.show.palette import DARK, LIGHT, heat_opacity

COLOURS: dict[str, dict[str, str]] = {"light": asdict(LIGHT), "dark": asdict(DARK)}
"""The colours of the film's page, by theme and name."""

_FONTS = """.m{font-family:ui-monospace,"SF Mono","DejaVu Sans Mono",Menlo,Consolas,monospace}
.t{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
text{white-space:pre}.b{font-weight:600}"""


def svg(frame: Frame, *, width: float, theme: str, title: str) -> str:
    """A frame as an ``<svg>`` element."""
    body = ["".join(_shape(one) for one in shapes) for shapes in frame.layers.values()]
    style = f"{_FONTS}\n{_colours(theme)}"
    return _document(frame, width, title, frame.words, style, [text for text in body if text])


def animated_svg(frames: Sequence[Frame], *, width: float, theme: str, title: str) -> str:
    """Frames as an ``<svg>`` element that plays without end."""
    times = [0.0, *itertools.accumulate(frame.seconds for frame in frames)]
    rules: dict[tuple[int, ...], str] = {}
    body = []
    for layer in _layer_order(frames):
        contents: dict[tuple[Shape, ...], list[int]] = {}
        for number, frame in enumerate(frames):
            contents.setdefault(frame.layers.get(layer, ()), []).append(number)
        for shapes, numbers in contents.items():
            text = "".join(_shape(one) for one in shapes)
            if text and len(numbers) == len(frames):
                body.append(text)
            elif text:
                name = rules.setdefault(tuple(numbers), f"k{len(rules)}")
                body.append(f'<g class="{name}">{text}</g>')
    last = len(frames) - 1
    hidden = [f".{name}" for numbers, name in rules.items() if numbers[-1] != last]
    style = [_FONTS, _colours(theme)]
    if hidden:
        style.append(f"{','.join(hidden)}{{visibility:hidden}}")
    style.append("@media (prefers-reduced-motion:no-preference){")
    style += [_keyframes(name, numbers, times) for numbers, name in rules.items()]
    style.append("}")
    return _document(frames[-1], width, title, _words(frames), "\n".join(style), body)


def _layer_order(frames: Sequence[Frame]) -> list[str]:
    """The layers of all frames in drawing order; frames of a film have the same order."""
    order: dict[str, float] = {}
    for frame in frames:
        before = -1.0
        for place, layer in enumerate(frame.layers):
            # a layer that comes late is drawn at its place in the frame
            before = order.setdefault(layer, max(before, float(place)))
    return sorted(order, key=order.__getitem__)


def _keyframes(name: str, numbers: tuple[int, ...], times: Sequence[float]) -> str:
    """The rules that show a class of layers in the frames with these numbers."""
    shown = set(numbers)
    words = []
    was_shown = None
    for number, start in enumerate(times[:-1]):
        if (number in shown) is not was_shown:
            was_shown = number in shown
            visibility = "visible" if was_shown else "hidden"
            words.append(f"{100 * start / times[-1]:.4g}%{{visibility:{visibility}}}")
    # the value of the last keyframe holds until the end
    frames = f"@keyframes {name}{{{''.join(words)}100%{{visibility:{visibility}}}}}"
    return f"{frames}.{name}{{animation:{name} {_n(times[-1])}s step-end infinite}}"


def _words(frames: Sequence[Frame]) -> str:
    """A text for screen readers: the sentences of the first 20 frames."""
    words = [frame.words for frame in frames[:20]]
    more = " And more." if len(frames) > 20 else ""
    return f"An animation of {len(frames)} pictures. {' '.join(words)}{more}"


def _document(
    frame: Frame, width: float, title: str, words: str, style: str, body: list[str]
) -> str:
    height = width * frame.height / frame.width
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_n(width)}" '
            f'height="{_n(height)}" viewBox="0 0 {_n(frame.width)} {_n(frame.height)}">',
            f"<title>{html.escape(title)}</title>",
            f"<desc>{html.escape(words)}</desc>",
            f"<style>{style}</style>",
            *body,
            "</svg>\n",
        ]
    )


def _colours(theme: str) -> str:
    """The rules of the colours; "auto" follows the reader's preference."""
    rules = _rules(COLOURS["dark" if theme == "dark" else "light"])
    if theme == "auto":
        rules += f"\n@media (prefers-color-scheme:dark){{{_rules(COLOURS['dark'])}}}"
    return rules


def _rules(colours: dict[str, str]) -> str:
    """A class for fills and a class for strokes of each colour."""
    return "".join(
        f".f-{name}{{fill:{colour}}}.s-{name}{{stroke:{colour}}}"
        for name, colour in colours.items()
    )


# --- shapes --------------------------------------------------------------------------------------


def _shape(shape: Shape) -> str:
    if isinstance(shape, Box):
        return _box(shape)
    if isinstance(shape, Path):
        return _path(shape)
    return _text(shape) if isinstance(shape, Text) else _cells(shape)


def _box(box: Box) -> str:
    radius = f' rx="{_n(box.radius)}"' if box.radius else ""
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    return f"<rect {_look(box)}{place}{radius}/>"


def _path(path: Path) -> str:
    words = [f"M{_numbers(path.points[0])}"]
    for point in path.points[1:]:
        words.append(f"{'L' if len(point) == 2 else 'C'}{_numbers(point)}")
    return f'<path {_look(path)}d="{"".join(words)}{"Z" if path.is_closed else ""}"/>'


def _text(text: Text) -> str:
    classes = ["m" if text.is_mono else "t", *(["b"] if text.is_bold else [])]
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    return (
        f'<text class="{" ".join(classes)} f-{text.colour}"{_opacity(text.opacity)} '
        f'font-size="{_n(text.size)}" x="{_n(text.x)}" y="{_n(text.y)}"{anchor}>'
        f"{html.escape(text.text)}</text>"
    )


def _cells(cells: Cells) -> str:
    """A heat map: a path for each shade, with a horizontal line for equal neighbours."""
    paths: dict[int | None, list[str]] = {}
    ends: dict[int | None, tuple[int, int]] = {}
    for row in range(cells.rows):
        x = 0
        shades = cells.shades[row * cells.columns : (row + 1) * cells.columns]
        for shade, group in itertools.groupby(shades):
            length = len(list(group))
            old_x, old_row = ends.get(shade, (0, 0))
            if shade != 0:
                paths.setdefault(shade, []).append(f"m{x - old_x} {row - old_row}h{length}")
                ends[shade] = (x + length, row)
            x += length
    across, down = cells.width / cells.columns, cells.height / cells.rows
    place = f"translate({_n(cells.x)} {_n(cells.y + down / 2)}) scale({across:.4g} {down:.4g})"
    inside = []
    for shade, words in paths.items():
        colour, opacity = shade_look(shade)
        inside.append(f'<path class="s-{colour}"{_opacity(opacity)} d="{"".join(words)}"/>')
    return f'<g fill="none" transform="{place}">{"".join(inside)}</g>'


def shade_look(shade: int | None) -> tuple[str, float]:
    """The colour and the opacity of a shade; small numbers are visible too."""
    if shade is None:
        return "bad", 1.0
    colour = "minus" if shade < 0 else "plus"
    return colour, heat_opacity(abs(shade))


def _look(shape: Box | Path) -> str:
    """The attributes of fill, stroke and opacity."""
    classes = [f"f-{shape.fill}"] if shape.fill else []
    words = "" if shape.fill else 'fill="none" '
    if shape.stroke:
        classes.append(f"s-{shape.stroke}")
        words += f'stroke-width="{_n(shape.line)}" '
        if shape.dash:
            words += f'stroke-dasharray="{_numbers(shape.dash)}" '
    return f'class="{" ".join(classes)}" {words}{_opacity(shape.opacity).lstrip()} '


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' opacity="{opacity:.3g}"'


def _numbers(numbers: Sequence[float]) -> str:
    return " ".join(_n(number) for number in numbers)


def _n(number: float) -> str:
    """A number with at most 2 decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
