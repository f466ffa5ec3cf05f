"""Pictures of a graph. ``text`` draws with characters: ``x.node <- Multiply <- y.node``."""

from tinynode.show.text_picture import text

__all__ = ["text"]
