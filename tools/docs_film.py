"""Write docs/film.html: the film that docs/films.md makes, to look at on the site.

    python -m tools.docs_film

Requirement: the page on the site is what a reader's own run gives. So the program is read off the
page, and only the seconds, which differ from run to run, are left out.
"""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

from tinynode.show.page import page

DOCS = Path(__file__).resolve().parent.parent / "docs"


def program() -> str:
    """The first Python block of docs/films.md, without its last lines, which save and print."""
    text = (DOCS / "films.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].partition("\nfilm.save(")[0] + "\n"


def film_data() -> dict[str, Any]:
    """The data of the page's film, without times."""
    names: dict[str, Any] = {"__name__": "__main__"}
    source = program()
    path = DOCS / "films.py"  # what the film calls the file; the lines come from the cache
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
