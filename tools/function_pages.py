"""The reference of functions: a page for each family, made from the sources.

Requirement: a function and its FunctionNode classes are a single entry, and no list of names is
kept by hand. So the pages are made from the syntax trees of ``tinynode/functions``. A class
belongs to the nearest function that uses the class. ``mkdocstrings`` fills in the docstrings. The
page ``docs/reference/functions.md`` gets the index in place of ``INDEX``.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = Path(__file__).resolve().parent.parent / "tinynode" / "functions"
FOLDER = "reference/functions"
INDEX = "<!-- the families of functions -->"


class Family(NamedTuple):
    """A page of the reference.

    Attributes:
        name: the name of the page's file.
        title: the heading.
        modules: the files of ``tinynode/functions`` with the functions.
        words: other words for these functions, for the search.
    """

    name: str
    title: str
    modules: tuple[str, ...]
    words: str = ""


FAMILIES = (
    Family("arithmetic", "Arithmetic", ("arithmetic", "masking")),
    Family("comparisons", "Comparisons, tests and bounds", ("comparison",)),
    Family("bits-and-logic", "Bits and logic", ("bitwise",), "and, or, not, xor, shift"),
    Family(
        "exponentials", "Exponentials, logarithms, powers", ("exponential", "gaussian", "logistic")
    ),
    Family("special", "Special functions", ("special",), "gamma, error function, erf, psi"),
    Family("trigonometry", "Trigonometry", ("trigonometric",)),
    Family("statistics", "Statistics and sums", ("statistical",), "reduction, average, cumsum"),
    Family("shapes", "Shapes", ("shapes",), "transpose, view, flatten, unsqueeze, broadcasting"),
    Family("joining", "Joining and reordering", ("manipulation",), "concatenate, cat, chunk"),
    Family(
        "indexing",
        "Indexing",
        ("indexing", "scattering"),
        "gather, slice, index_select, scatter, one-hot, topk",
    ),
    Family("searching", "Searching and sorting", ("searching",), "mask"),
    Family("products", "Products", ("products",), "dot, bmm, inner product, contraction"),
    Family(
        "linear-algebra",
        "Linear algebra",
        ("linalg", "cofactors", "decompositions", "triangular"),
        "inverse, norm",
    ),
    Family("complex", "Complex numbers", ("complex_numbers",), "conjugate, Wirtinger"),
    Family("fourier", "Fourier transforms", ("fft",), "spectrum, frequencies, DFT"),
    Family("activations", "Activations", ("activation", "rectifiers"), "nonlinearity, swish"),
    Family(
        "losses",
        "Losses",
        ("cross_entropies", "loss", "ctc_losses"),
        "cosine, CrossEntropyLoss, BCEWithLogitsLoss, MSELoss, L1Loss, logistic loss, criterion",
    ),
    Family(
        "convolution", "Convolution", ("convolution", "volumes"), "im2col, deconvolution, filters"
    ),
    Family("pooling", "Pooling", ("pooling",)),
    Family("resizing", "Other sizes", ("resizing",), "interpolate, upsample, adaptive pooling"),
    Family("normalisation", "Normalisation", ("normalization",), "batchnorm, layernorm"),
    Family(
        "layers",
        "Linear layers, embedding, dropout, attention",
        ("network", "draws"),
        "dense, fully connected, self-attention, transformer",
    ),
    Family("random-bits", "Random bits", ("keyed",), "Threefry, key, PRNG, counter-based"),
    Family("data-types", "Data types, copies, devices", ("data_types",), "cast, clone"),
)


class Entry(NamedTuple):
    """A function and its classes; ``function`` is empty for a class that no function uses."""

    module: str
    function: str
    classes: tuple[str, ...]
    summary: str

    @property
    def name(self) -> str:
        """The heading: the function, or else the class."""
        return self.function or self.classes[0]


@functools.cache
def exported() -> set[str]:
    """The names in ``__all__`` of all files, without the module ``linalg``."""
    return set().union(*[names_in(path.stem) for path in FUNCTIONS.glob("*.py")]) - {"linalg"}


def names_in(module: str) -> set[str]:
    """The names in ``__all__`` of a file, without those that ``+=`` adds."""
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


@functools.cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a file of ``tinynode/functions``."""
    return ast.parse((FUNCTIONS / f"{module}.py").read_text(encoding="utf-8"))


def entries(family: Family) -> Iterator[Entry]:
    """The entries of a family, in the order of the sources."""
    public = exported()
    for module in family.modules:
        yield from entries_of(module, public)


def entries_of(module: str, public: set[str]) -> Iterator[Entry]:
    """The entries of a file: its public functions, with the classes that they use."""
    definitions = {
        node.name: node
        for node in tree_of(module).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    functions = [
        n for n, d in definitions.items() if isinstance(d, ast.FunctionDef) and n in public
    ]
    classes = [
        name
        for name, node in definitions.items()
        if isinstance(node, ast.ClassDef) and (name in public or _is_result(name))
    ]
    owners: dict[str, str] = {}
    reached = {function: [function] for function in functions}
    while any(reached.values()):  # a step further from all functions: the nearest one owns a class
        for function, names in reached.items():
            found = [n for name in names for n in _used(definitions[name], definitions)]
            reached[function] = [n for n in found if n not in owners and n not in functions]
            owners.update(dict.fromkeys(reached[function], function))
    for function in functions:
        own = tuple(name for name in classes if owners.get(name) == function)
        yield Entry(module, function, own, _summary(definitions[function]))
    for name in classes:
        if name not in owners:
            yield Entry(module, "", (name,), _summary(definitions[name]))


def _is_result(name: str) -> bool:
    """A named tuple of several outputs, such as ``QrResult``."""
    return name.endswith("Result") and not name.startswith("_")


def _used(node: ast.AST, definitions: Collection[str]) -> list[str]:
    """The definitions of the same file that a definition names, in the order of the text."""
    found = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    return [name for name in dict.fromkeys(found) if name in definitions]


def _summary(node: ast.ClassDef | ast.FunctionDef) -> str:
    """The first line of a docstring."""
    return (ast.get_docstring(node) or "").partition("\n")[0]


def pages() -> dict[str, str]:
    """The pages of the families, by their place on the site."""
    return {f"{FOLDER}/{family.name}.md": page(family) for family in FAMILIES}


def page(family: Family) -> str:
    """The page of a family: a table of the names, then the entries."""
    found = list(entries(family))
    prefix = {"linear-algebra": "F.linalg", "fourier": "F.fft"}.get(family.name, "F")
    lines = ["---", "search:", "  boost: 2", "---", "", f"# {family.title}", ""]
    lines += [
        f"The functions are in `{prefix}`, after `import tinynode.functions as F`. Below each"
    ]
    lines += ["function are its FunctionNode classes, for readers of graphs.", ""]
    if family.words:
        lines += [f"Other names and related words: {family.words}.", ""]
    lines += ['<div class="index" markdown>', "", "| function | meaning |", "|---|---|"]
    for entry in found:
        target = f"tinynode.functions.{entry.module}.{entry.name}"
        lines.append(f"| [`{entry.name}`](#{target}) | {_cell(entry.summary)} |")
    lines += ["", "</div>", "", '<div class="formulas" markdown>', ""]
    for entry in found:
        lines += _block(entry.module, entry.name, 2)
        for name in entry.classes if entry.function else ():
            lines += _block(entry.module, name, 3)
    return "\n".join([*lines, "</div>", ""])


def _block(module: str, name: str, level: int) -> list[str]:
    return [
        f"::: tinynode.functions.{module}.{name}",
        "    options:",
        f"      heading_level: {level}",
        "      merge_init_into_class: false",
        "      show_root_full_path: false",
        "      members: []" if name[0].isupper() else f"      toc_label: {name}",
        "",
    ]


def without_classes_in_search(html: str) -> str:
    """The HTML of a page, with a mark for the search at each class below its function."""
    below = re.compile(r'<div class="doc doc-object doc-class">(?=\s*<h3)')
    return below.sub('<div class="doc doc-object doc-class" data-search-exclude>', html)


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def index() -> str:
    """The table of all families and functions, for the page of the reference."""
    lines = ["| family | functions |", "|---|---|"]
    for family in FAMILIES:
        place = f"functions/{family.name}.md"
        names = [
            f"[`{e.name}`]({place}#tinynode.functions.{e.module}.{e.name})"
            for e in entries(family)
            if e.function
        ]
        lines.append(f"| [{family.title}]({place}) | {', '.join(names)} |")
    return "\n".join(lines)
