"""Write docs/film.html: the film of the program in docs/films.md, for the site.

    python -m tools.docs_film

Requirement: the page on the site equals the page of a reader's own run. So the program is read
from docs/films.md. Only the seconds are left out, since seconds differ from run to run.
"""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

from tinynode.show.page import page

DOCS = Path(__file__).resolve().parent.parent / "docs"


def program() -> str:
    """The first Python block of docs/films.md, without the last lines for saving and printing."""
    text = (DOCS / "films.md").read_text(encoding="utf-8")
    block = text.partition("\n```python\n")[2].partition("\n```\n")[0]
    return block.partition("\nfilm.save(")[0] + "\n"


def film_data() -> dict[str, Any]:
    """The data of the page's film, without times."""
    names: dict[str, Any] = {"__name__": "__main__"}
    source = program()
    path = DOCS / "films.py"  # the film's name of the file; the lines come from the cache
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    exec(compile(source, str(path), "exec"), names)
    data: dict[str, Any] = names["film"].data()
    for step in data["steps"]:
        step["seconds"] = None
    return data


def main() -> None:
    target = DOCS / "film.html"
    target.write_text(page(film_data()), encoding="utf-8")
    print(f"wrote {target.name}, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
