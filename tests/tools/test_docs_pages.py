"""The files of the site that programs make: today's programs make them, at each build."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tinynode.show.films.scripts import film_of_script
from tinynode_course import sources
from tinynode_course.sources import Step
from tools import docs_pages, microgpt_page, source_pages

ROOT = docs_pages.ROOT


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small guide that saves the number of its process in a file."""
    monkeypatch.setattr(docs_pages, "SAVED", {"guide.md": ("saved.txt",)})
    path = tmp_path / "guide.md"
    last = "import os\nopen(\"saved.txt\", 'w').write(f'{text} {os.getpid()}')\n"
    blocks = ("text = 'once'\n", last, "raise AssertionError('not for the site')\n")
    path.write_text("text\n\n".join(f"```python\n{block}```\n\n" for block in blocks))
    return path


@pytest.mark.slow
def test_the_film_is_that_of_the_page() -> None:
    guide = docs_pages.DOCS / "films.md"
    files = docs_pages.make(guide)
    page = files["film.html"]
    assert "@keyframes" in files["film.svg"] and "](film.svg)" in guide.read_text("utf-8")
    assert "x * y + x" in page and "films.py" in page and page.startswith("<!DOCTYPE html>")
    assert re.search(r'<(script|link|img|iframe)[^>]+(src|href)="?(https?:)?//', page) is None


@pytest.mark.slow
def test_the_pictures_are_those_of_the_page() -> None:
    files = docs_pages.make(docs_pages.DOCS / "pictures.md")
    assert set(files) == {"graph.svg", "double.svg"}
    assert "<title>graph of z.node</title>" in files["graph.svg"]
    assert 'class="function backward"' in files["double.svg"]
    text = (docs_pages.DOCS / "pictures.md").read_text(encoding="utf-8")
    assert all(f"]({name})" in text for name in files)


@pytest.mark.slow  # six processes
def test_programs_run_again_only_if_a_source_changed(guide: Path, tmp_path: Path) -> None:
    def saved() -> str:
        docs_pages.update(tmp_path / "cache", [guide])
        return json.loads(kept.read_text())["files"]["saved.txt"]

    kept = tmp_path / "cache" / "guide.json"
    first = saved()
    assert first.startswith("once ") and saved() == first
    guide.write_text(guide.read_text().replace("once", "twice"))
    assert saved().startswith("twice ")
    kept.write_text("{ half a fi")
    (tmp_path / "cache" / "step99_gone.json").write_text("{}")
    assert saved().startswith("twice ")
    assert sorted(os.listdir(kept.parent)) == ["guide.json", "others.json"]


def test_a_change_of_the_package_or_of_a_step_is_seen(guide: Path, tmp_path: Path) -> None:
    whole = docs_pages.digest(guide, "package")
    assert docs_pages.digest(guide, "another package") != whole
    guide.write_text(guide.read_text() + "\n")
    assert docs_pages.digest(guide, "package") != whole


def test_the_digest_of_the_package_is_that_of_its_sources() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in docs_pages.package_files()}
    expected = {"tinynode/core/variable.py", "tinynode/show/page/files/stepper.js"}
    expected |= {"backends/tinynode_fast/__init__.py", "tools/docs_pages.py"}
    assert expected <= names and not [name for name in names if name.endswith(".pyc")]


def test_a_program_that_stops_is_named(
    guide: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    guide.write_text(guide.read_text().replace("import os", "1 / 0"))
    monkeypatch.setattr(docs_pages, "programs", lambda: [guide])
    assert docs_pages.main(str(tmp_path / "cache")) == 1
    said = capsys.readouterr().err
    assert "guide.md stopped with an error" in said and "ZeroDivisionError" in said


def test_the_animation_of_the_readme_shows_todays_program(tmp_path: Path) -> None:
    script = "tutorials/examples/first_picture.py"
    command = f"python -m tinynode step --no-open --output docs/first_film.svg {script}"
    film, status = film_of_script(str(ROOT / script), [])
    film.save(tmp_path / "film.svg")
    made = (tmp_path / "film.svg").read_bytes()
    assert status == 0 and "docs/first_film.svg" in (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "docs" / "first_film.svg").read_bytes() == made, f"run {command}"


def test_every_step_and_every_saving_guide_is_a_program() -> None:
    found = [docs_pages.source(program) for program in docs_pages.programs()]
    guides = [docs_pages.DOCS / name for name in docs_pages.SAVED]
    microgpt = ROOT / "tutorials" / "examples" / "microgpt.py"
    assert found == [*(step.path for step in sources.steps()), *guides, microgpt]
    assert all(path.is_file() for path in found)


def test_the_menu_names_every_step() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for step in sources.steps():
        assert f'- "{step.title}": tutorials/{step.path.stem}.md\n' in menu


def without_film(step: Step) -> str:
    """A film has a layout of its own, and takes most of the time."""
    return ""


@pytest.mark.slow
def test_the_site_as_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("latex2mathml", reason="the extra docs is not installed")
    from tools import site_tree

    cache = tmp_path / "cache"
    cache.mkdir()
    mark = source_pages.MARK.format("tools/site_tree.py")
    made = {"tutorials/one.md": "# One\n\n$x^2$\n", "source/a.md": f"{mark}\n"}
    (cache / "one.json").write_text(json.dumps({"files": made}))
    texts = {f"microgpt_{name}.txt": f"made {name}" for name in microgpt_page.TEXTS}
    (cache / "microgpt.json").write_text(json.dumps({"files": texts}))
    monkeypatch.setattr(site_tree, "CACHE", cache)
    tree = tmp_path / "tree"
    assert site_tree.write(tree) > 30
    assert "<msup>" in (tree / "docs" / "tutorials" / "one.md").read_text()
    assert 'id="L-1"' in (tree / "docs" / "source" / "a.md").read_text()
    home = (tree / "docs" / "index.md").read_text()
    assert all(home.count(text) == 1 for text in texts.values()) and "<!-- micro" not in home
    index = (tree / "docs" / "reference" / "functions.md").read_text()
    assert "functions/losses.md#" in index and "<!-- the families" not in index
    assert (tree / "mkdocs.yml").read_bytes() == (ROOT / "mkdocs.yml").read_bytes()
    assert site_tree.main([str(tree)]) == 2
