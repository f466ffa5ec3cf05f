"""docs/film.html is what the program on docs/films.md gives today."""

from __future__ import annotations

from pathlib import Path

from tinynode.show.page import page
from tools import docs_film


def test_the_film_of_the_site_is_that_of_today() -> None:
    written = (docs_film.DOCS / "film.html").read_text(encoding="utf-8")
    assert page(docs_film.film_data()) == written, "make it again: python -m tools.docs_film"


def test_the_film_is_that_of_the_page() -> None:
    assert 'tn.show.record("x * y + x")' in docs_film.program()
    assert [step["kind"] for step in docs_film.film_data()["steps"]].count("backward") == 3


def test_the_site_links_to_it() -> None:
    assert "](film.html)" in Path(docs_film.DOCS / "films.md").read_text(encoding="utf-8")
