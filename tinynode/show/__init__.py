"""Pictures of the graph, films of its computation, plots, and a table of kernels.

``text`` draws a graph with characters: ``x.node <- Multiply <- y.node``. ``graph`` draws a
picture. ``record`` films forward and backward steps; ``watch`` adds pictures of predictions.
``fallbacks`` is the table of the kernels in use, and of the functions without a kernel. ``c`` is
the C of a compiled function.
"""

from tinynode.show import explain as explain  # the methods of Variable call them
from tinynode.show import variable_html as variable_html
from tinynode.show.c_code import CCode, c
from tinynode.show.diagram import Diagram
from tinynode.show.fallbacks import fallbacks
from tinynode.show.film import Film
from tinynode.show.graph_picture import graph
from tinynode.show.matrix_plot import matrix
from tinynode.show.plots import Plot, bars, histogram, lines, points, training_curves
from tinynode.show.recorder import record
from tinynode.show.text_picture import text
from tinynode.show.watching import watch

__all__ = [
    "CCode",
    "Diagram",
    "Film",
    "Plot",
    "bars",
    "c",
    "fallbacks",
    "graph",
    "histogram",
    "lines",
    "matrix",
    "points",
    "record",
    "text",
    "training_curves",
    "watch",
]
