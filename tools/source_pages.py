"""Pages with the source of tinynode and of the backends, for links from the course.

Requirement: a reader of the course opens the file of tinynode that belongs to a step, without a
checkout. A page has the highlighted source, an anchor for each line (``#L-12``), and an anchor of
each class, function and method (``#Variable.backward``). The search leaves these pages out.
Markdown would take a minute for so much HTML. So a page has a mark, and the hook of mkdocs puts
the source in the place of the mark.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("tinynode/learn", "tinynode/commands", "tinynode/show/page/files")
MARK = "<!-- source: {} -->"
LINE = '<a id="L-{}"'


def files() -> list[Path]:
    """The files that have a page."""
    found = [
        p for folder in ("tinynode", "backends") for p in sorted((ROOT / folder).rglob("*.py"))
    ]
    return [path for path in found if not name_of(path).startswith(LEFT_OUT)]


def name_of(path: Path) -> str:
    """The path in the repository."""
    return path.relative_to(ROOT).as_posix()


def place(path: Path) -> str:
    """The place of the page on the site.

    ``__init__.py`` keeps its name: the page of a folder is another page.
    """
    return f"source/{name_of(path).removesuffix('.py')}.md"


def pages() -> dict[str, str]:
    """The pages of all files, and the index, by their place on the site."""
    made = {place(path): page(path) for path in files()}
    return {**made, "source/index.md": index()}


def page(path: Path) -> str:
    """The page of a file."""
    name = name_of(path)
    up = "../" * name.count("/")
    head = f"---\ntitle: {name}\nhide: [toc]\nsearch:\n  exclude: true\n---\n\n# {name}\n\n"
    head += f"[All source files]({up}index.md)\n\n"
    return f"{head}{MARK.format(name)}\n"


def with_source(content: str) -> str:
    """The HTML of a page, with the source in place of the mark."""
    before, found, rest = content.partition(MARK.partition("{}")[0])
    name, _, after = rest.partition(" -->")
    if not found:
        return content
    text = (ROOT / name).read_text(encoding="utf-8")
    return f'{before}<div class="source">\n{highlighted(text)}\n</div>{after}'


def highlighted(text: str) -> str:
    """The source as HTML, with anchors of lines and of definitions."""
    style: HtmlFormatter[str] = HtmlFormatter(
        cssclass="highlight", linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True
    )
    made = highlight(text, PythonLexer(stripnl=False), style)
    for name, line in definitions(ast.parse(text)):
        mark = LINE.format(line)
        made = made.replace(mark, f'<a class="name" id="{name}"></a>{mark}', 1)
    return made.strip()


def definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Classes, functions and methods, with the number of their first line."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name, node.lineno
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner.lineno


def index() -> str:
    """The list of all files by folder, with the first line of each docstring."""
    lines = ["---", "search:", "  exclude: true", "---", "", "# Source", ""]
    lines += [
        "The files of tinynode and of its backends. [Read the core](../read-the-core.md) is a"
    ]
    lines += ["guided walk through the most important files."]
    folder = ""
    for path in files():
        if name_of(path.parent) != folder:
            folder = name_of(path.parent)
            lines += ["", f"## {folder}", "", "| file | content |", "|---|---|"]
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = said.partition("\n")[0].replace("``", "`").replace("|", "\\|")
        target = place(path).removeprefix("source/")
        lines.append(f"| [`{path.name}`]({target}) | {first} |")
    return "\n".join(lines) + "\n"
