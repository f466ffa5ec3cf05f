"""Pictures of the graph, films of its computation, plots, and a table of kernels.

``text`` draws a graph with characters: ``x.node <- Multiply <- y.node``. ``graph`` draws a
picture. ``record`` films forward and backward steps; ``watch`` adds pictures of predictions.
``compare`` finds the first step in which two films differ. ``what_if`` runs a program again with
another number at a step.
``link`` puts a program into a link to a page of a site; ``read_link`` reads the program.
``fallbacks`` is the table of the kernels in use, and of the functions without a kernel. ``c`` is
the C of a compiled function.
"""

import tinynode.transforms  # noqa: F401 - the package first: see late_imports
from tinynode.show.c_code import CCode, c
from tinynode.show.counts import fallbacks, transfers
from tinynode.show.films.changes import Change
from tinynode.show.films.comparison import Comparison, compare
from tinynode.show.films.differences import Difference
from tinynode.show.films.film import Film
from tinynode.show.films.recorder import record
from tinynode.show.films.replay import Replay
from tinynode.show.films.watching import watch
from tinynode.show.films.what_if import what_if
from tinynode.show.graphs import explain as explain  # the methods of Variable call these two
from tinynode.show.graphs.diagram import Diagram
from tinynode.show.graphs.picture import graph
from tinynode.show.graphs.text import text
from tinynode.show.plots import variable_html as variable_html
from tinynode.show.plots.plots import Plot, bars, histogram, lines, matrix, points, training_curves
from tinynode.show.program_link import LinkedProgram, link, read_link

__all__ = [
    "CCode",
    "Change",
    "Comparison",
    "Diagram",
    "Difference",
    "Film",
    "LinkedProgram",
    "Plot",
    "Replay",
    "bars",
    "c",
    "compare",
    "fallbacks",
    "graph",
    "histogram",
    "lines",
    "link",
    "matrix",
    "points",
    "read_link",
    "record",
    "text",
    "training_curves",
    "transfers",
    "watch",
    "what_if",
]
__dir__ = __all__.copy  # for completion
