"""Films: the recorders, the data of a film, and its formats besides the page."""
