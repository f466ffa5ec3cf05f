"""Pictures of graphs of the learner's package, at each form of the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode_course import reading, slides, sources, use_mynode
from tinynode_course.cells import Output
from tinynode_course.pictures import backward_film, fit_of, graph_of


@pytest.mark.parametrize("stage", ["05", "13"])
def test_a_graph_has_a_box_for_each_variable_and_operation(stage: str) -> None:
    use_mynode(stage)
    import mynode

    x = mynode.Variable(np.array(3.0), name="x")
    a = mynode.square(x)
    y = mynode.sin(x) * a
    y.backward()
    diagram = graph_of(y, title="y", notes={y.creator_node: "visit 1"})
    functions = {node.label: node for node in diagram.nodes if node.kind == "function"}
    assert list(functions) == ["Sin", "Square", "Multiply"]
    assert functions["Multiply"].facts == ("visit 1",)
    variables = [node for node in diagram.nodes if node.kind == "variable"]
    assert len(variables) == 4
    (leaf,) = [node for node in variables if "leaf" in node.marks]
    assert leaf.label == "x"
    assert leaf.facts == ("3", "gradient -8.063")
    assert sum("gone" in node.marks for node in variables) == (stage == "13")


def test_a_leaf_alone_and_a_long_chain_can_be_drawn() -> None:
    use_mynode("05")
    import mynode

    y = mynode.Variable(np.zeros((2, 3)))
    assert [node.label for node in graph_of(y).nodes] == ["shape (2, 3)"]
    for _ in range(2000):
        y = mynode.negative(y)
    assert len(graph_of(y).nodes) == 4001


def test_data_are_points_and_functions_are_curves() -> None:
    plot = fit_of([0.0, 1.0], [1.0, 2.0], {"flat": lambda x: 0.5, "line": lambda x: x + 1.0})
    data, flat, line = plot.figure.curves
    assert (data.joined, data.xs, data.ys) == (False, (0.0, 1.0), (1.0, 2.0))
    assert set(flat.ys) == {0.5} and flat.joined
    assert line.ys[-1] == 2.0
    assert "line" in plot.to_text()


def test_a_film_of_backward_has_a_picture_for_each_visit() -> None:
    use_mynode("06")
    import mynode

    x = mynode.Variable(np.array(3.0), name="x")
    a = mynode.square(x)
    film = backward_film(mynode.square(a) + a, title="a < b")
    texts = [text for text, _ in film.frames]
    assert texts[-1] == "Square has sent gradients: x has 114"
    assert len(texts) == 3
    last = film.frames[-1][1]
    assert sum("visit" in fact for node in last.nodes for fact in node.facts) == 3
    assert film._repr_html_().startswith("<iframe srcdoc=")
    assert str(film).splitlines()[0] == "a < b"
    film = backward_film(x + x)
    assert x.grad == 116.0, "backward is as before the film, and adds"
    assert len(film.frames) == 1
    use_mynode("09")
    import mynode as later

    film = backward_film(later.square(later.square(later.Variable(np.array(3.0)))))
    assert len(film.frames) == 2


def saved_pictures(folder: Path) -> dict[str, tuple[Path, str]]:
    """Saved pages by name, each with a text that a reader must see."""
    use_mynode("06")
    import mynode

    film = backward_film(mynode.square(mynode.Variable(np.array(3.0), name="x")), title="a < b")
    x = tn.asarray([1.0, -2.0], requires_grad=True, name="x")
    with tn.show.record() as recorded:
        tn.functions.sum(x * x).backward()
    step = sources.find("01")
    reader = reading.Reader(step, None, False, folder)  # type: ignore[arg-type]
    for picture in (film, recorded, x):
        reader._save(folder, Output(html=picture._repr_html_()))
    recorded.save(folder / "film.html")
    (folder / "slides.html").write_text(slides.document("Part A", ["<h1>One</h1>", "<p>Two</p>"]))
    return {
        "film of mynode": (reader.saved[0], "Square has sent gradients: x has 6"),
        "film": (reader.saved[1], "Multiply computes"),
        "card": (reader.saved[2], "gradient: kept"),
        "saved film": (folder / "film.html", "Multiply computes"),
        "slides": (folder / "slides.html", "Two"),
    }


@pytest.mark.slow
def test_saved_pictures_can_be_read_in_the_dark_without_scripts(
    browser: Any, tmp_path: Path
) -> None:
    context = browser.new_context(color_scheme="dark", java_script_enabled=False)
    for name, (path, words) in saved_pictures(tmp_path).items():
        page = context.new_page()
        page.goto(path.as_uri())
        frame = page.frames[-1]
        frame.wait_for_load_state()
        assert words in frame.locator("body").inner_text(), (
            name
        )  # texts without a box are left out
        images = [image.bounding_box() for image in frame.locator("img").all()]
        assert all(box["width"] > 20 and box["height"] > 10 for box in images), name
        assert images or name != "film of mynode"
        page.close()
    context.close()
