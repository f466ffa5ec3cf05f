"""Mkdocs's hook: adds the files that programs make to the site, and typesets formulas.

Requirement: ``mkdocs build`` alone builds the site from a fresh clone, and writes nothing into
folders of the repository. ``tools/docs_pages.py`` makes the files; mkdocs gets them from memory.
The folder ``.cache`` spares ``mkdocs serve`` to run all programs again after each change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "docs"
sys.path.insert(0, str(ROOT))  # the command mkdocs does not search the current folder

from tools import (  # noqa: E402
    docs_math,
    docs_pages,
    function_pages,
    habit_tables,
    microgpt_page,
    minutes_table,
    page_policy,
    search_words,
    source_pages,
)


@event_priority(100)  # before the plugin that redirects to these files
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Bring the made files up to date, in a process that sees today's tinynode, and add them."""
    command = [sys.executable, "-B", "-m", "tools.docs_pages", str(CACHE)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise PluginError("a program of the site stopped with an error")
    for path in sorted(CACHE.glob("*.json")):
        for name, text in json.loads(path.read_text(encoding="utf-8"))["files"].items():
            files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in what programs make: tables, and the texts of microgpt; typeset formulas."""
    if function_pages.INDEX in markdown:
        markdown = markdown.replace(function_pages.INDEX, function_pages.index())
    if microgpt_page.MARK in markdown:
        markdown = microgpt_page.with_texts(markdown, docs_pages.made_texts(CACHE))
    markdown = minutes_table.with_table(markdown)
    return docs_math.typeset(habit_tables.with_tables(markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the source into a page of ``source/``; let a family of functions list functions only."""
    if page.file.src_uri.startswith("source/"):
        return source_pages.with_source(html)
    if page.file.src_uri.startswith(f"{function_pages.FOLDER}/"):
        for title in page.toc:
            for entry in title.children:
                entry.children = []
        return function_pages.without_classes_in_search(html)
    return html


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Give the page its Content-Security-Policy."""
    return page_policy.with_policy(output)


@event_priority(-100)  # after the plugin that writes the index
def on_post_build(config: MkDocsConfig) -> None:
    """Add names and synonyms to the index of the search."""
    try:
        search_words.add_to_site(Path(config.site_dir))
    except search_words.SearchError as error:
        raise PluginError(str(error)) from None
