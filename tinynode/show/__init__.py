"""What happens inside, as text: the graph, and what the device's kernels did.

``text`` draws a graph with characters: ``x.node <- Multiply <- y.node``. ``fallbacks`` is the
table of the kernels that ran, and of the functions that had none.
"""

from tinynode.show.fallbacks import fallbacks
from tinynode.show.text_picture import text

__all__ = ["fallbacks", "text"]
