"""Plots: what stands where, what is said about it, and what cannot be drawn."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinynode as tn
from tinynode import show
from tinynode.show.plots.figure import host_numbers
from tinynode.show.plots.scales import make_axis

SVG = "{http://www.w3.org/2000/svg}"
DEVICES = ["numpy", "strict", "fast"]


def elements(plot: show.Plot, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(plot.to_svg()).iter(f"{SVG}{tag}"))


def texts(plot: show.Plot) -> list[str]:
    return [element.text or "" for element in elements(plot, "text")]


def curve_points(plot: show.Plot) -> list[list[tuple[float, float]]]:
    """The coordinates of each path that joins points; the samples of the legend left out."""
    found = []
    for curve in curves(plot):
        pairs = [pair.split(" ") for pair in curve.get("d", "")[1:].split("L")]
        found.append([(float(x), float(y)) for x, y in pairs])
    return found


def curves(plot: show.Plot) -> list[ElementTree.Element]:
    """The paths that join points: not filled, in the colour of a series, and no legend's."""
    lines = [e for e in elements(plot, "path") if e.get("class", "").startswith("s-series")]
    return lines[len(plot.figure.names) * any(c.joined for c in plot.figure.curves) :]


def round_markers(plot: show.Plot) -> list[float]:
    """The middles, from the left, of the markers of the first curve."""
    found = [e for e in elements(plot, "rect") if e.get("class", "").endswith(" s-panel")]
    return [float(e.get("x", "")) + 3.5 for e in found]


def rectangles(plot: show.Plot) -> list[dict[str, float]]:
    """The boxes: all rectangles but the paper and the round markers."""
    kept = [e for e in elements(plot, "rect") if e.get("rx") is None]
    return [{k: float(e.get(k, "")) for k in ("x", "y", "width", "height")} for e in kept]


def canvas(plot: show.Plot) -> list[str]:
    """The middle of the plot of characters."""
    rows = [line.partition("|") for line in plot.to_text().splitlines()]
    return [row for _, bar, row in rows if bar]


def sign(points: np.ndarray) -> np.ndarray:
    return (points[:, 0] > 0).astype("int64")


XY = np.asarray([[-1.0, 0.0], [1.0, 1.0], [2.0, -1.0]])
PLOTS = {
    "training": show.training_curves({"a": [3.0, 2.0, 1.5], "b": [3.0, 2.5, 2.4]}, smoothing=0.5),
    "log": show.lines([1e-8, 1e-4, 1.0], [1e-3, 1e-9, 1e3], log_x=True, log_y=True, title="V"),
    "one point": show.lines([3.0], [4.0]),
    "constant": show.lines([1.0, 2.0], [5.0, 5.0]),
    "zero": show.training_curves([0.0, 0.0]),
    "gap": show.training_curves([1.0, math.nan, 2.0, math.inf, 3.0, 4.0]),
    "only gaps": show.training_curves([math.nan, math.inf]),
    "huge": show.lines([0, 1, 2], [1e300, -1.79e308, 1.79e308]),
    "tiny": show.lines([0, 1], [0.0, 5e-324]),
    "nearly equal": show.lines([0, 1], [1.0, 1.0 + 2.3e-16]),
    "log huge": show.lines([1, 2, 3], [5e-324, 1.0, 1.79e308], log_y=True),
    "log constant": show.lines([1, 2], [0.01, 0.01], log_y=True),
    "histogram": show.histogram(np.arange(12.0).reshape(3, 4)),
    "one value": show.histogram([7.0]),
    "matrix": show.matrix([[1.0, -2.0], [0.0, math.nan]], rows="ab", columns=["<c>", "d"]),
    "a matrix without names": show.matrix(np.arange(600.0).reshape(20, 30)),
    "bars": show.bars({"up": 3.0, "down": -1.5, "none": 0.0, "bad": math.nan}, x_label="ms"),
    "zero bars": show.bars({"a": 0}),
    "points": show.points(XY, [0, 1, 1], region=sign, title="classes"),
    "one class": show.points(XY),
    "many": show.lines(range(5), {f"name {i}": np.arange(5) * i for i in range(12)}),
}


# --- the picture -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLOTS)
def test_the_svg_is_well_formed_and_says_in_words_what_it_shows(name: str) -> None:
    root = ElementTree.fromstring(PLOTS[name].to_svg())
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title" and root[0].text
    assert root[1].tag == f"{SVG}desc" and "Horizontal axis" in (root[1].text or "")


@pytest.mark.parametrize("name", PLOTS)
def test_everything_stands_inside_of_the_picture(name: str) -> None:
    root = ElementTree.fromstring(PLOTS[name].to_svg())
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    for element in root.iter():
        for key, largest in (("x", width), ("y", height)):
            assert 0 <= float(element.get(key, 0)) <= largest
    for points in curve_points(PLOTS[name]):
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


@pytest.mark.parametrize("name", PLOTS)
def test_no_text_of_a_plot_is_wider_than_its_place(name: str) -> None:
    assert all(len(line) <= 100 for line in PLOTS[name].to_text().splitlines())


def test_the_same_plot_gives_the_same_bytes_with_short_coordinates() -> None:
    values = np.random.default_rng(0).normal(size=200)
    first, second = (show.training_curves(values).to_svg() for _ in range(2))
    assert first == second
    numbers = re.findall(r"\d+\.(\d+)", "".join(re.findall(r' d="M[^"]*"', first)))
    assert numbers and all(len(decimals) <= 2 for decimals in numbers)


def test_two_pictures_on_a_page_do_not_share_ids_and_run_nothing() -> None:
    for plot in PLOTS.values():
        svg = plot.to_svg()
        assert (
            " id=" not in svg
            and "<script" not in svg
            and "http" not in svg.replace("http://www.w3.org/2000/svg", "")
        )


def test_light_and_dark_pages_have_colours_of_their_own() -> None:
    style = elements(PLOTS["training"], "style")[0].text or ""
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for name in ("f-text", "f-quiet", "s-line", "f-panel", "s-series0", "f-series1"):
        assert len(re.findall(rf"\.{name}{{\w+:#", light)) == 1
        assert len(re.findall(rf"\.{name}{{\w+:#", dark)) == 1


def test_lines_differ_by_more_than_their_colour() -> None:
    plot = PLOTS["many"]
    looks = {(one.get("class"), one.get("stroke-dasharray")) for one in curves(plot)}
    assert len(looks) == 12
    markers = set()
    for element in [*elements(plot, "path"), *elements(plot, "rect")]:
        if element.get("class", "").endswith(" s-panel"):
            numbers = np.asarray(re.findall(r"[\d.]+", element.get("d", "")), float)
            markers.add(tuple(np.round(numbers - np.resize(numbers[:2], numbers.shape), 1)))
    assert len(markers) == 6


HOSTILE = "<script>alert('1')</script>&\"\x00\x1b[31m\nend"


@pytest.mark.parametrize(
    "plot",
    [
        show.training_curves({HOSTILE: [1, 2], "b": [2, 1]}, title=HOSTILE, y_label=HOSTILE),
        show.lines([1], {HOSTILE: [math.nan]}, x_label=HOSTILE),
        show.bars({HOSTILE: 1, "bad" + HOSTILE: math.nan}, title=HOSTILE, x_label=HOSTILE),
        show.histogram([1, 2], title=HOSTILE, x_label=HOSTILE),
        show.points(XY, [HOSTILE, "b", "b"], title=HOSTILE, y_label=HOSTILE),
    ],
)
def test_every_text_is_escaped(plot: show.Plot) -> None:
    assert not elements(plot, "script")
    assert "<script" not in plot.to_svg() and "&lt;script&gt;" in plot.to_svg()
    assert "\x1b" not in plot.to_text() and "\x00" not in plot.to_text()
    assert not any(line.strip() == "end" for line in plot.to_text().splitlines())


# --- axes ------------------------------------------------------------------------------------

ORDINARY = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(st.lists(ORDINARY, min_size=1, max_size=5))
def test_ticks_are_round_numbers_in_the_range_and_their_texts_differ(values: list[float]) -> None:
    axis = make_axis("", values)
    assert axis.low <= min(values) and axis.high >= max(values)
    numbers = [value for value, _ in axis.ticks]
    spread = axis.high - axis.low
    assert 2 <= len(numbers) <= 8 and numbers == sorted(numbers)
    assert all(axis.low - 1e-6 * spread <= value <= axis.high + 1e-6 * spread for value in numbers)
    assert len({text for _, text in axis.ticks}) == len(numbers)
    for value, text in axis.ticks:
        assert float(text) == pytest.approx(value, rel=1e-9, abs=1e-9 * spread)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_every_finite_float_has_a_place(values: list[float]) -> None:
    axis = make_axis("", values, pad=0.04)
    places = [axis.fraction(value) for value in sorted(values)]
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places) and places == sorted(places)


@given(st.lists(st.floats(5e-324, 1.7e308), min_size=1, max_size=5))
def test_every_positive_float_has_a_place_on_a_logarithmic_axis(values: list[float]) -> None:
    axis = make_axis("", values, log=True)
    places = [axis.fraction(value) for value in sorted(values)]
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks)


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0, 10], {}, "0 2 4 6 8 10"),
        ([0, 0.003], {}, "0.0000 0.0005 0.0010 0.0015 0.0020 0.0025 0.0030"),
        ([0, 3e-7], {}, "0 5.0e-08 1.0e-07 1.5e-07 2.0e-07 2.5e-07 3.0e-07"),
        ([2e6, 5e6], {}, "2.0e+06 2.5e+06 3.0e+06 3.5e+06 4.0e+06 4.5e+06 5.0e+06"),
        ([-1, 1], {}, "-1.0 -0.5 0.0 0.5 1.0"),
        ([0, 2], {"whole": True}, "0 1 2"),
        ([1e-12, 0.1], {"log": True}, "1e-12 1e-10 1e-8 1e-6 1e-4 1e-2"),
        ([1, 1e4], {"log": True}, "1 10 100 1000 10000"),
        ([1, 20], {"log": True}, "1 2 5 10 20"),
        ([2, 4], {"log": True}, "2.0 2.5 3.0 3.5 4.0"),
        ([], {}, "0.0 0.2 0.4 0.6 0.8 1.0"),
    ],
)
def test_ticks(values: list[float], options: dict[str, bool], expected: str) -> None:
    assert " ".join(text for _, text in make_axis("", values, **options).ticks) == expected


def test_a_logarithmic_axis_has_equal_steps_for_equal_factors() -> None:
    plot = show.lines([1, 10, 100, 1000], [1, 1e2, 1e4, 1e6], log_x=True, log_y=True)
    (points,) = curve_points(plot)
    steps = np.diff(np.asarray(points), axis=0)
    assert np.allclose(steps, steps[0], atol=0.11) and steps[0][0] > 0 > steps[0][1]


# --- curves ----------------------------------------------------------------------------------


def test_points_stand_where_the_numbers_say() -> None:
    (points,) = curve_points(show.lines([0, 1, 4], [10, 30, 20]))
    (x0, y0), (x1, y1), (x2, y2) = points
    assert (x1 - x0) / (x2 - x0) == pytest.approx(0.25, abs=0.01)
    assert (y0 - y2) / (y0 - y1) == pytest.approx(0.5, abs=0.01)  # y grows downwards
    assert y1 < y2 < y0


def test_a_gap_splits_a_curve_and_is_said() -> None:
    plot = PLOTS["gap"]
    assert [len(points) for points in curve_points(plot)] == [
        2
    ]  # 3.0, 4.0; the others stand alone
    assert len(round_markers(plot)) == 4
    note = "loss: 2 of 6 points are nan or inf, and left out."
    assert note in texts(plot) and f"note: {note}" in plot.to_text()
    assert "nan or inf" not in PLOTS["constant"].to_text()


def test_a_point_that_stands_alone_in_a_long_curve_is_marked() -> None:
    values = np.ones(100)
    values[[40, 42]] = math.nan
    plot = show.training_curves(values)
    x = 640 - 20 - (640 - 20 - curve_points(plot)[0][0][0]) * (99 - 41) / 99
    assert any(abs(place - x) < 0.2 for place in round_markers(plot))


def test_only_gaps_give_an_empty_plot_that_says_so() -> None:
    assert not curve_points(PLOTS["only gaps"])
    assert "note: loss: 2 of 2 points are nan or inf" in PLOTS["only gaps"].to_text()


def test_smoothing_is_the_moving_mean_of_its_formula() -> None:
    losses = [4.0, 2.0, math.nan, 6.0]
    figure = show.training_curves(losses, smoothing=0.75).figure
    raw, smooth = figure.curves
    assert raw.faint and not smooth.faint and raw.ys[:2] == (4.0, 2.0)
    mean = weight = 0.0
    for given_loss, drawn in zip(losses, smooth.ys, strict=True):
        if math.isnan(given_loss):
            assert math.isnan(drawn)
            continue
        mean, weight = 0.75 * mean + 0.25 * given_loss, 0.75 * weight + 0.25
        assert drawn == pytest.approx(mean / weight)
    assert smooth.ys[0] == pytest.approx(4.0)
    assert len(show.training_curves(losses).figure.curves) == 1


def test_a_legend_names_the_curves_if_there_are_several() -> None:
    assert {"a", "b"} <= set(texts(PLOTS["training"]))
    assert "* a" in PLOTS["training"].to_text() and "o b" in PLOTS["training"].to_text()
    assert texts(show.training_curves({"only": [1, 2]})).count("only") == 0


def test_a_long_curve_is_thinned_and_keeps_its_peaks() -> None:
    values = np.zeros(100_000)
    values[12_345], values[77_777] = 5.0, -5.0
    plot = show.training_curves(values)
    (points,) = curve_points(plot)
    heights = [y for _, y in points]
    assert len(points) < 1300 and len(plot.to_svg()) < 40_000
    middle = sorted(heights)[len(heights) // 2]
    assert (
        middle - min(heights) == pytest.approx(max(heights) - middle, abs=0.2)
        and min(heights) < middle - 50
    )


# --- boxes -----------------------------------------------------------------------------------


def test_a_histogram_counts_as_numpy_does() -> None:
    values = np.random.default_rng(1).normal(size=(20, 30))
    figure = show.histogram(values, bins=17).figure
    counts, edges = np.histogram(values, bins=17)
    assert [box.y1 for box in figure.boxes] == [count for count in counts if count]
    lefts = [edge for edge, count in zip(edges[:-1], counts, strict=True) if count]
    assert np.allclose([box.x0 for box in figure.boxes], lefts)
    assert sum(box.y1 for box in figure.boxes) == 600


def test_a_histogram_of_a_constant_and_of_numbers_with_nan() -> None:
    assert sum(box.y1 for box in show.histogram([2.0] * 9).figure.boxes) == 9
    plot = show.histogram([1.0, math.nan, 2.0, math.inf])
    assert sum(box.y1 for box in plot.figure.boxes) == 2
    assert "2 of 4 values are nan or inf" in plot.to_text()


def test_bars_have_lengths_in_proportion_and_go_both_ways() -> None:
    up, down, none = rectangles(PLOTS["bars"])
    assert up["width"] == pytest.approx(2 * down["width"], abs=0.2) and none["width"] == 0
    assert down["x"] + down["width"] == pytest.approx(up["x"], abs=0.11)
    assert up["y"] < down["y"] < none["y"]
    assert {"up: 3", "down: -1.5", "none: 0", "bad: nan"} <= set(texts(PLOTS["bars"]))
    rows = [row.strip() for row in canvas(PLOTS["bars"])]
    assert len(rows) == 4 and len(rows[0]) == pytest.approx(2 * len(rows[1]), abs=2)
    assert set(rows[0]) == {"*"} and rows[2] == rows[3] == ""
    assert "bad is nan, and has no bar." in texts(PLOTS["bars"])


def test_a_region_shows_what_the_classifier_says_everywhere() -> None:
    figure = PLOTS["points"].figure
    area = {0: 0.0, 1: 0.0}
    for box in figure.boxes:
        assert box.faint
        area[box.number] += (box.x1 - box.x0) * (box.y1 - box.y0)
        middle = (box.x0 + box.x1) / 2
        assert box.number == (middle > 0)
    whole = (figure.x.high - figure.x.low) * (figure.y.high - figure.y.low)
    assert area[0] + area[1] == pytest.approx(whole)
    assert area[1] / whole == pytest.approx(
        figure.x.high / (figure.x.high - figure.x.low), abs=0.02
    )


def test_points_stand_in_the_curve_of_their_class() -> None:
    figure = show.points(XY, ["b", "a", "b"]).figure
    assert [(c.name, c.xs, c.joined) for c in figure.curves] == [
        ("a", (1.0,), False),
        ("b", (-1.0, 2.0), False),
    ]
    assert [name for _, name in show.points(XY, [10, 9, 1.0]).figure.names] == ["1", "9", "10"]
    assert not show.points(XY).figure.names


@pytest.mark.parametrize("device", DEVICES)
def test_a_region_gets_points_as_the_classifier_needs_them(device: str) -> None:
    xy = tn.asarray(XY, dtype="float32", device=device)
    seen = []

    def classify(points: object) -> tn.Variable:
        x = tn.asarray(points, device=device)
        seen.append((type(points), x.shape, str(x.dtype), tn.config.enable_backprop))
        return tn.functions.argmax(
            x @ tn.asarray(np.eye(2, dtype="float32"), device=device), axis=1
        )

    figure = show.points(xy, [0, 1, 0], region=classify).figure
    assert seen == [(type(xy.array), (2700, 2), str(xy.dtype), False)]
    assert {box.number for box in figure.boxes} == {0, 1}
    assert tn.config.enable_backprop


# --- characters ------------------------------------------------------------------------------


def test_the_plot_of_characters() -> None:
    plot = show.lines([0, 1, 2, 3], [0, 1, 2, 3], title="a line", x_label="x", y_label="y")
    rows = canvas(plot)
    assert len(rows) == 16 and set("".join(rows)) == {" ", "*"}
    ends = [row.rindex("*") for row in rows if "*" in row]
    assert ends == sorted(ends, reverse=True) and ends[0] == 59
    lines = plot.to_text().splitlines()
    assert lines[0].strip() == "a line" and lines[1].strip() == "y" and lines[-1].strip() == "x"
    assert lines[-2].split() == ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"]
    assert str(plot) == plot.to_text()


# --- what is given ---------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_come_from_any_backend(device: str) -> None:
    x = tn.asarray([1.0, 2.0, 4.0], device=device)
    expected = show.training_curves([1.0, 2.0, 4.0]).to_svg()
    assert x.requires_grad
    for losses in (x, x.array, [x[i] for i in range(3)], [x[i].array for i in range(3)]):
        assert show.training_curves(losses).to_svg() == expected
    assert show.training_curves(x).to_svg() == expected and x.grad is None


def test_numbers_come_from_ranges_generators_and_scalars() -> None:
    assert host_numbers("f", "x", range(3)).tolist() == [0, 1, 2]
    assert host_numbers("f", "x", (i * 0.5 for i in range(3))).tolist() == [0, 0.5, 1]
    assert host_numbers("f", "x", [np.float32(1.5), 2, True]).tolist() == [1.5, 2, 1]
    assert show.bars({"a": tn.asarray(2.0), "b": np.asarray([3.0])}).figure.boxes[1].x1 == 3.0


def test_what_is_given_stays_as_it_is() -> None:
    values = np.asarray([3.0, math.nan, 1.0])
    kept = values.copy()
    show.training_curves(values, smoothing=0.5)
    show.histogram(values)
    assert np.array_equal(values, kept, equal_nan=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: show.training_curves([]), ValueError, "training_curves: losses is empty"),
        (lambda: show.training_curves({}), ValueError, "empty dict"),
        (lambda: show.training_curves({"a": [1], "b": []}), ValueError, r"losses\['b'\] is empty"),
        (lambda: show.training_curves(["a"]), TypeError, "losses must hold real numbers"),
        (lambda: show.training_curves("abc"), TypeError, "must hold real numbers"),
        (lambda: show.training_curves([1j]), TypeError, "must hold real numbers"),
        (lambda: show.training_curves([None, 1.0]), TypeError, "must hold real numbers"),
        (lambda: show.training_curves([[1], [1, 2]]), TypeError, "must hold real numbers"),
        (lambda: show.training_curves(np.ones((2, 2))), ValueError, r"shape \(2, 2\)"),
        (lambda: show.training_curves([1], smoothing=1.0), ValueError, "smoothing"),
        (lambda: show.training_curves([1, 0.0], log=True), ValueError, "is 0 at position 1.*log"),
        (lambda: show.lines([1, 2], [1]), ValueError, "'y' has 1 numbers and x has 2"),
        (lambda: show.lines([1], [1, 2]), ValueError, "'y' has 2 numbers and x has 1"),
        (lambda: show.lines([], []), ValueError, "lines: x is empty"),
        (lambda: show.lines([-1, 2], [1, 2], log_x=True), ValueError, "x is -1.*log_x=False"),
        (lambda: show.lines([1, 2], {"e": [1, 0]}, log_y=True), ValueError, "'e' is 0.*log_y"),
        (lambda: show.histogram([]), ValueError, "histogram: values is empty"),
        (lambda: show.histogram([math.nan]), ValueError, "1 entries, all nan or inf"),
        (
            lambda: show.matrix([1.0]),
            ValueError,
            r"values must have the shape \(n, m\), got \(1,\)",
        ),
        (lambda: show.matrix(np.zeros((0, 2))), ValueError, r"got \(0, 2\)"),
        (
            lambda: show.matrix([[1, 2]], columns="a"),
            ValueError,
            "columns has 1 names, expected 2",
        ),
        (lambda: show.histogram([1], bins=0), ValueError, "bins must be an int of at least 1"),
        (lambda: show.bars({}), ValueError, "bars: values is empty"),
        (lambda: show.bars([1, 2]), TypeError, "bars: values must be a dict"),
        (lambda: show.bars({"a": [1, 2]}), ValueError, r"values\['a'\] must be one number, got 2"),
        (lambda: show.points([[1, 2, 3]]), ValueError, r"shape \(n, 2\), got \(1, 3\)"),
        (lambda: show.points(np.zeros((0, 2))), ValueError, "xy is empty"),
        (lambda: show.points(XY, [1]), ValueError, "1 classes for 3 points"),
        (lambda: show.points(XY, np.ones((3, 2))), ValueError, "argmax"),
        (lambda: show.points(XY, region=lambda p: p), ValueError, "region returned.*argmax"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_logarithmic_axis_takes_nan_as_a_gap() -> None:
    plot = show.lines([1, 2, 3], [1.0, math.nan, 100.0], log_y=True)
    assert "1 of 3 points is nan or inf" in plot.to_text()


# --- files and notebooks ---------------------------------------------------------------------


def test_it_saves_what_the_suffix_says(tmp_path) -> None:
    plot = PLOTS["training"]
    plot.save(tmp_path / "a.svg")
    plot.save(str(tmp_path / "a.TXT"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == plot.to_svg() + "\n"
    assert (tmp_path / "a.TXT").read_text(encoding="utf-8") == plot.to_text() + "\n"
    with pytest.raises(ValueError, match=r"must end in \.svg, \.png or \.txt"):
        plot.save(tmp_path / "a.pdf")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.TXT", "a.svg"]


@pytest.mark.parametrize("name", ["training", "matrix", "points", "bars"])
def test_a_plot_is_saved_as_a_png(name: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    PLOTS[name].save(tmp_path / "a.png")
    height = float(ElementTree.fromstring(PLOTS[name].to_svg()).get("height", ""))
    with image.open(tmp_path / "a.png") as picture:
        assert picture.size == (1280, pytest.approx(2 * height, abs=1))
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 20


def test_a_notebook_shows_the_svg_and_a_prompt_a_short_line() -> None:
    plot = PLOTS["training"]
    assert plot._repr_svg_() == plot.to_svg()
    bundle = {"image/svg+xml": plot.to_svg(), "text/plain": plot.to_text()}
    assert plot._repr_mimebundle_(include=None, exclude=None) == bundle
    assert repr(plot) == "<Plot 'Training': print it, or save it as .svg>"


def test_the_same_arrays_go_to_matplotlib_without_fuss() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x = tn.asarray([1.0, 2.0, 4.0])
    figure, axes = pyplot.subplots()
    try:
        for drawn in (x.array, x.detach(), tn.asarray([1.0, 2.0, 4.0], requires_grad=False)):
            (line,) = axes.plot(drawn)
            assert np.asarray(line.get_ydata()).tolist() == [1.0, 2.0, 4.0]
        figure.canvas.draw()
        with pytest.raises(TypeError, match=r"x\.detach\(\)"):
            axes.plot(x)
    finally:
        pyplot.close(figure)


def test_a_matrix_shows_sign_strength_and_small_numbers() -> None:
    plot = show.matrix(
        [[4.0, -2.0], [0.0, math.nan]], rows=["up", "down"], columns=["left", "right"]
    )
    boxes = plot.figure.boxes
    assert [(box.number, box.shade, box.label) for box in boxes] == [
        (0, 1.0, "4"),
        (1, 0.5, "-2"),
        (0, 0.0, "0"),
    ]
    lines = plot.to_text().splitlines()
    assert lines[0].startswith("  up |@@@") and "+-2+" in lines[0]
    assert lines[1].startswith("down |")
    assert "1 of 4 values are nan or inf" in plot.to_text()
    svg = plot.to_svg()
    assert svg.index(">up<") < svg.index(">down<") and svg.index(">left<") < svg.index(">right<")
    large = show.matrix(np.eye(40))
    assert all(box.label == "" for box in large.figure.boxes)
    assert len(large.figure.y.ticks) <= 16
