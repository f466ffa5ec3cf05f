"""Pictures of graphs of the learner's package, at each form of the graph."""

from __future__ import annotations

import numpy as np
import pytest

from tinynode_course import use_mynode
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
