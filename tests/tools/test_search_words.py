"""The words that the build adds to the index of the site's search."""

from __future__ import annotations

from typing import Any

import pytest

from tools import search_words


def index_of(*titles: str) -> dict[str, Any]:
    """An index with an entry for each title, and for each address of the table."""
    places = [*titles, *search_words.SYNONYMS]
    docs = [{"location": place, "title": place, "text": ""} for place in places]
    return {"config": {"fields": {"title": {"boost": 1000.0}}}, "docs": docs}


def test_names_are_found_by_their_parts() -> None:
    made = search_words.with_words(index_of("softmax_cross_entropy", "Losses", "a_b and c_d"))
    names = {entry["title"]: entry.get("names") for entry in made["docs"]}
    assert names["softmax_cross_entropy"] == "softmax cross entropy"
    assert (names["Losses"], names["a_b and c_d"]) == (None, "a b c d")
    assert made["config"]["fields"].keys() == {"title", "names", "synonyms"}


def test_synonyms_belong_to_pages_that_exist() -> None:
    made = search_words.with_words(index_of())
    with_words = {entry["location"] for entry in made["docs"] if entry.get("synonyms")}
    assert with_words == search_words.SYNONYMS.keys()
    broken = index_of()
    broken["docs"] = [one for one in broken["docs"] if one["location"] != "overfitting/"]
    with pytest.raises(search_words.SearchError, match="overfitting/"):
        search_words.with_words(broken)
