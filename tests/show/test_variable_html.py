"""The card of a Variable in a notebook: texts, colours, pictures, and the height on the page."""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

import tinynode as tn
from tinynode import functions, nn
from tinynode.show.palette import BEHIND_TEXT, EITHER, SHADES, red_green_blue, translucent
from tinynode.show.plots import array_picture
from tinynode.show.plots.array_picture import heat_map, histogram, index_text, statistics


def variable(value: Any, name: str | None = None) -> tn.Variable:
    return tn.Variable(numpy.asarray(value), name=name)


def card(x: tn.Variable) -> ElementTree.Element:
    return ElementTree.fromstring(x._repr_html_())


def text_of(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def columns(x: tn.Variable) -> list[ElementTree.Element]:
    """The elements of value and gradient."""
    return list(card(x)[1])


def state(x: tn.Variable) -> str:
    return columns(x)[1].findtext("details/summary") or ""


def numbers(column: ElementTree.Element) -> list[list[str | None]]:
    return [[cell.text for cell in row] for row in column.iter("tr")]


# --- texts ---------------------------------------------------------------------------------------


def test_the_first_line_has_name_shape_dtype_device_and_creator() -> None:
    x = variable([1.0, -2.0], "x")
    y = x * 2.0
    assert text_of(card(x)[0]) == "Variable x (2,), float64 on numpy, leaf"
    assert text_of(card(y)[0]) == "Variable (2,), float64 on numpy, from Multiply, rank 1"
    y.unchain()
    assert text_of(card(y)[0]).endswith("unchained, rank 1")
    assert text_of(card(nn.Parameter(numpy.ones(1)))[0]).startswith("Parameter (1,), ")
    assert text_of(card(tn.Variable(name="e"))[0]) == "Variable e empty on numpy, leaf"


def test_the_gradient_stands_beside_the_value() -> None:
    x = variable([1.0, -2.0], "x")
    functions.sum(x * 3.0).backward()
    value, gradient = columns(x)
    assert value[0].text == "value" and numbers(value) == [["1", "-2"]]
    assert state(x) == "gradient: kept" and numbers(gradient) == [["3", "3"]]
    assert EITHER.forward in (value.get("style") or "")
    assert EITHER.backward in (gradient.get("style") or "")


def test_the_state_of_a_gradient_has_few_words_and_an_explanation() -> None:
    x = variable([1.0, 2.0], "x")
    assert state(x) == "gradient: none, not in a graph"
    y = functions.sum(x)
    assert (state(x), state(y)) == ("gradient: none yet", "gradient: none, not a leaf")
    assert "y.backward(retain_grad=True) keeps this" in text_of(columns(y)[1])
    y.backward()
    assert state(x) == "gradient: kept"
    assert "Each backward pass that reaches it adds to it." in text_of(columns(x)[1])
    x.array = numpy.ones(3)
    assert state(x) == "gradient: kept, shape (2,)"
    whole = variable([1, 2])
    assert state(whole) == "gradient: not required"
    assert "only floating dtypes have derivatives" in text_of(columns(whole)[1])
    constant = tn.Variable(numpy.ones(2), requires_grad=False)
    constant.grad = numpy.ones(2)
    assert state(constant) == "gradient: assigned"
    empty = tn.Variable()
    assert state(empty) == "gradient: none, no array" and text_of(columns(empty)[0]) == "value"


def test_a_name_is_text() -> None:
    root = card(variable([1.0], "<script>alert(1)</script>&\x00\n" + "n" * 100))
    assert text_of(root[0]).startswith("Variable <script>alert(1)</script>&\ufffd n")
    assert len(root[0][0].text or "") == 80
    assert not list(root.iter("script"))


def test_looking_changes_nothing() -> None:
    x = variable([1.0, 2.0])
    assert x._repr_html_() == x._repr_html_()
    assert x.node_or_none is None and x.grad is None


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (numpy.asarray(2.5), [["2.5"]]),
        (numpy.asarray([True, False]), [["True", "False"]]),
        (numpy.asarray([[1], [-2]]), [["1"], ["-2"]]),
        (numpy.asarray([1 + 2j]), [["1+2j"]]),
        (numpy.asarray([numpy.nan, numpy.inf, -numpy.inf]), [["nan", "inf", "-inf"]]),
        (numpy.asarray([1.5e300, -5e-324]), [["1.5e+300", "-4.941e-324"]]),
        (numpy.asarray([1.5], dtype="float16"), [["1.5"]]),
        (numpy.asarray([numpy.iinfo("int64").min]), [["-9223372036854775808"]]),
    ],
)
def test_a_few_numbers_are_shown(array: numpy.ndarray, expected: list[list[str]]) -> None:
    x = tn.Variable(array, requires_grad=False)
    assert numbers(columns(x)[0]) == expected


def test_a_small_stack_has_a_table_for_each_matrix() -> None:
    tables = list(columns(variable(numpy.arange(24).reshape(2, 3, 4)))[0].iter("table"))
    assert [numbers(table)[0] for table in tables] == [list("0123"), ["12", "13", "14", "15"]]


@pytest.mark.parametrize("shape", [(0, 3), (0, 40), (40, 40, 2, 0), (9, 0, 40)])
def test_an_array_without_elements_says_so(shape: tuple[int, ...]) -> None:
    x = variable(numpy.zeros(shape))
    assert str(shape) in text_of(card(x)[0]) and text_of(columns(x)[0]) == "valueno elements"


def test_the_colour_behind_a_number_tells_sign_and_size() -> None:
    cells = columns(variable([2.0, -1.0, 0.0, numpy.nan, 1e-9]))[0].iter("td")
    up, down, none, bad, little = (cell.get("style") or "" for cell in cells)
    assert translucent(EITHER.plus, BEHIND_TEXT) in up
    assert translucent(EITHER.minus, BEHIND_TEXT / 2) in down
    assert "background" not in none and translucent(EITHER.bad, BEHIND_TEXT) in bad
    assert translucent(EITHER.plus, BEHIND_TEXT / SHADES) in little


# --- pictures ------------------------------------------------------------------------------------


def pixels_of(file: bytes) -> numpy.ndarray:
    """A second, plain reader of PNG files: red, green, blue and opacity of each pixel."""
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, position = {}, 8
    while position < len(file):
        (length,) = struct.unpack(">I", file[position : position + 4])
        kind, data = file[position + 4 : position + 8], file[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", file[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(kind + data)
        chunks[kind] = data
        position += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), numpy.uint8)
    indexes = rows.reshape(height, width + 1)[:, 1:]
    colours = numpy.frombuffer(chunks[b"PLTE"], numpy.uint8).reshape(-1, 3)[indexes]
    opacities = numpy.frombuffer(chunks[b"tRNS"], numpy.uint8)[indexes]
    return numpy.dstack([colours, opacities])


def drawn(array: numpy.ndarray) -> tuple[numpy.ndarray, str]:
    """The pixels of a heat map, and the index of the drawn part."""
    picture, index = heat_map(array, statistics(array).largest)
    pixels = pixels_of(picture.file)
    assert pixels.shape == (picture.height, picture.width, 4)
    return pixels, index_text(index)


def test_a_small_image_looks_like_an_image() -> None:
    image = numpy.zeros((8, 8))
    image[2, 3], image[5, 6], image[7, 7] = 16.0, -8.0, numpy.nan
    pixels, index = drawn(image)
    assert pixels.shape == (80, 80, 4) and index == "[:, :]"
    cells = pixels[5::10, 5::10]
    assert (pixels == cells.repeat(10, axis=0).repeat(10, axis=1)).all()
    assert tuple(cells[2, 3]) == (*red_green_blue(EITHER.plus), 255)
    assert tuple(cells[5, 6, :3]) == red_green_blue(EITHER.minus) and cells[5, 6, 3] < 255
    assert tuple(cells[7, 7]) == (*red_green_blue(EITHER.bad), 255)
    assert (cells[..., 3] > 0).sum() == 3


@pytest.mark.parametrize(
    ("shape", "size", "index"),
    [
        ((28, 28), (84, 84), "[:, :]"),
        ((100,), (20, 300), "[:]"),
        ((1000,), (20, 286), "[::7]"),
        ((784, 100), (84, 300), "[::19, :]"),
        ((784, 10), (84, 100), "[::19, :]"),
        ((10, 784), (80, 262), "[:, ::6]"),
        ((512, 400), (80, 62), "[::13, ::13]"),
        ((16, 1, 28, 28), (84, 260), "[:3, 0, :, :]"),
        ((1, 1, 28, 28), (84, 84), "[0, 0, :, :]"),
        ((64, 3, 3, 3), (30, 268), "[:8, 0, :, :]"),
        ((2, 300, 3), (76, 64), "[:2, ::8, :]"),
    ],
)
def test_a_heat_map_fits_and_names_the_drawn_part(
    shape: tuple[int, ...], size: tuple[int, int], index: str
) -> None:
    pixels, found = drawn(numpy.ones(shape, numpy.float32))
    assert (pixels.shape[:2], found) == (size, index)
    text = text_of(columns(variable(numpy.ones(shape)))[0])
    is_all = set(index) <= set("[:0, ]") and math.prod(shape[:-2]) == 1
    assert (f"drawn: {index}" in text) is not is_all


def facts(array: numpy.ndarray) -> str:
    return ", ".join(statistics(array).facts)


def test_the_statistics_of_an_array() -> None:
    array = numpy.linspace(-1, 3, 41)
    assert facts(array) == "min -1, mean 1, max 3"
    array[:2] = numpy.nan, numpy.inf
    assert facts(array) == "min -0.8, mean 1.1, max 3, 2 nan or inf"
    assert facts(numpy.full(3, numpy.nan)) == "3 nan or inf"
    assert facts(numpy.array([123456, 2])) == "min 2, mean 6.173e+04, max 123456"
    assert facts(numpy.array([True, False, True])) == "2 of 3 are True"
    assert facts(numpy.array([3 + 4j, 0])) == "absolute values, min 0, mean 2.5, max 5"
    assert facts(numpy.array([1e308, -1e308])).startswith("min -1e+308")


def test_a_very_large_array_is_sampled_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_picture, "MOST", 100)
    array = numpy.arange(30.0 * 40).reshape(30, 40)
    assert facts(array) == "min 0, mean 499.5, max 999, all of the sample [::12, :]"
    assert statistics(array).finite.size == 120
    assert facts(numpy.ones(100)) == "min 1, mean 1, max 1"


def bar_heights(array: numpy.ndarray) -> list[int]:
    """The heights of a histogram's bars in pixels, without the ground line."""
    picture = histogram(statistics(array))
    assert picture is not None
    return (pixels_of(picture.file)[:-1, ::4, 3] > 0).sum(axis=0).tolist()


def test_the_bars_of_a_histogram() -> None:
    array = numpy.concatenate([numpy.full(30, -1.0), numpy.full(60, 1.0)])
    heights = bar_heights(array)
    assert (len(heights), heights[0], heights[-1], sum(heights)) == (24, 30, 60, 90)
    picture = histogram(statistics(array))
    assert picture is not None
    pixels = pixels_of(picture.file)
    assert tuple(pixels[-2, 0, :3]) == red_green_blue(EITHER.minus)
    assert tuple(pixels[-2, -4, :3]) == red_green_blue(EITHER.plus)
    assert picture.words == (
        "histogram of 90 elements from -1 to 1 in 24 bars, the highest near 0.9583: 60"
    )
    assert bar_heights(numpy.array([1, 2, 2, 5])) == [30, 60, 0, 0, 30]
    assert bar_heights(numpy.arange(48)) == [60] * 24
    assert sum(bar_heights(numpy.array([-1.7e308, 1.7e308]))) == 120
    for equal in (numpy.ones(5), numpy.array([False, True]), numpy.full(2, numpy.nan)):
        assert histogram(statistics(equal)) is None


@pytest.mark.parametrize("device", ["numpy", "strict", "fast"])
def test_a_large_array_is_a_heat_map_a_histogram_and_statistics(device: str) -> None:
    x = tn.asarray(numpy.arange(-1200, 1200, dtype="float32").reshape(4, 20, 30), device=device)
    value = columns(x)[0]
    heat, bars = value.iter("img")
    assert heat.get("alt") == (
        "heat map of [:2, :, :]: green above 0, purple below 0, red for nan and inf"
    )
    assert (bars.get("alt") or "").startswith("histogram of 2400 elements from -1200 to 1199")
    assert "min -1200, mean -0.5, max 1199; drawn: [:2, :, :]" in text_of(value)
    corner = value.findtext("details/pre") or ""
    assert corner.startswith("[0, :8, :10] =\n[[-1200., -1199.,") and corner.count("\n") == 8
    assert len(x._repr_html_()) < 12_000


@pytest.mark.parametrize(
    "array",
    [
        numpy.zeros((40, 40)),
        numpy.full((7, 7), numpy.nan),
        numpy.full(50, -numpy.inf),
        numpy.ones((7, 7), bool),
        numpy.ones((7, 7), "complex64"),
        numpy.full((7, 7), 255, "uint8"),
        numpy.linspace(-6e4, 6e4, 99, dtype="float16"),
        numpy.array([-1.7e308, 1.7e308] * 20),
        numpy.full((3, 1, 20), 5e-324),
        numpy.iinfo("int64").min + numpy.arange(50),
        2**60 + numpy.arange(50),
        1.0 + numpy.arange(50) % 8 * 2.0**-52,
    ],
)
def test_every_large_array_has_a_card(array: numpy.ndarray) -> None:
    x = tn.Variable(array, requires_grad=False)
    assert columns(x)[0].find("img") is not None
    assert "nan" not in text_of(columns(x)[0]).replace("nan or inf", "").partition("min")[2]


# --- the page ------------------------------------------------------------------------------------

SAFE_TAGS = {"div", "b", "span", "details", "summary", "pre", "table", "tr", "td", "img"}
SAFE_STYLES = {
    "align-items", "background", "border", "border-collapse", "border-left", "box-sizing",
    "cursor", "display", "flex-wrap", "font-family", "font-size", "gap", "line-height", "margin",
    "max-width", "opacity", "overflow", "padding", "table-layout", "text-align",
    "vertical-align", "white-space", "width",
}  # fmt: skip
"""A part of the elements and styles that JupyterLab 4 keeps in an output without trust."""


def cards() -> list[tn.Variable]:
    """Three numbers with a gradient, and large arrays."""
    x = variable([1.0, -2.0, 3.0], "x")
    functions.sum(x * x).backward()
    image = nn.Parameter(numpy.linspace(-1, 1, 784).reshape(28, 28))
    image.grad = numpy.ones((28, 28))
    return [x, variable([1.0, -2.0, 3.0]), image, variable(numpy.arange(100))]


def test_a_notebook_without_trust_keeps_all_of_a_card() -> None:
    for x in cards():
        for element in card(x).iter():
            assert element.tag in SAFE_TAGS
            allowed = {"class", "style", "title"}
            allowed |= {"src", "alt", "width", "height"} if element.tag == "img" else set()
            assert set(element.keys()) <= allowed
            style = element.get("style", "")
            assert set(re.findall(r"([\w-]+):", style)) <= SAFE_STYLES


NOTEBOOK = """
body { font: 14px/1.3077 sans-serif; margin: 0; padding: 20px; }
.light { background: #fff; color: rgba(0, 0, 0, 0.87); }
.dark { background: #111; color: rgba(255, 255, 255, 0.87); }
table { border: none; font-size: 12px; table-layout: fixed; margin: 0 auto 1em; }
td, th, tr { vertical-align: middle; text-align: right; padding: 0.5em; line-height: normal; }
tbody tr:nth-child(odd) { background: #fff; }
tbody tr:nth-child(even) { background: #f5f5f5; }
img { max-width: 100%; height: auto; }
"""
"""The styles of JupyterLab that apply to an output."""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """A page like a notebook's, with the cards."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    body = "".join(x._repr_html_() for x in cards())
    page.set_content(f'<style>{NOTEBOOK}</style><body class="light">{body}</body>')
    yield page
    page.close()


@pytest.mark.slow
def test_three_numbers_take_at_most_90_pixels(page: Any) -> None:
    boxes = [element.bounding_box() for element in page.query_selector_all(".tn-variable")]
    assert max(box["height"] for box in boxes[:2]) <= 90
    assert max(box["height"] for box in boxes) <= 180
    rows = page.query_selector_all(".tn-variable:first-child td")
    assert len({row.bounding_box()["y"] for row in rows}) == 1 and len(rows) == 6


@pytest.mark.slow
def test_a_browser_draws_the_pictures_at_their_size(page: Any) -> None:
    sizes = page.eval_on_selector_all(
        "img", "all => all.map(i => [i.naturalWidth, i.width, i.naturalHeight, i.height])"
    )
    assert len(sizes) == 5 and all(a == b and c == d > 0 for a, b, c, d in sizes)


@pytest.mark.slow
def test_the_explanation_opens_by_keyboard(page: Any) -> None:
    summary = page.query_selector("summary")
    closed = page.query_selector(".tn-variable").bounding_box()["height"]
    summary.focus()
    page.keyboard.press("Enter")
    assert page.query_selector(".tn-variable").bounding_box()["height"] > closed
    page.keyboard.press("Enter")
