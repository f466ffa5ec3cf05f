"""The command ``step``: runs a script, and shows the forward and backward steps as a film.

Requirement: a command shows the graph of any script, without a change of the script. The script
runs as under ``python script.py``. After an error, the film ends at the error.
"""

from __future__ import annotations

import argparse
import importlib
import linecache
import os
import sys
import tokenize
import traceback
import types
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tinynode import random
from tinynode.atomic_file import check_writable
from tinynode.commands.command_line import CommandError, Parser, positive_count, positive_number
from tinynode.learn import ENGINE
from tinynode.show.films.film import Film, plural
from tinynode.show.films.recorder import record
from tinynode.show.films.text import printable_lines

FORMATS = (".html", ".htm", ".json", ".svg", ".gif")
"""The suffixes of films."""


def add_command(commands: Any) -> None:
    """Describe the command to argparse."""
    summary = "run a script, and show its forward and backward steps one by one"
    parser = commands.add_parser("step", help=summary, description=summary)
    parser.set_defaults(run=run, parser=parser)
    parser.epilog = (
        "Options stand before or after the script. After --, all belongs to the script."
    )
    _add_options(parser)
    parser.add_argument(
        "words", metavar="SCRIPT", nargs=argparse.PARSER, help="a Python file, and what it gets"
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--text", action="store_true", help="walk through it in the terminal, by keys")
    help_text = "print who holds which bytes at which step, and what is never freed"
    add("--memory", action="store_true", help=help_text)
    help_text = "a page (.html, the default), .json, or a picture (.svg, .gif)"
    add("--output", metavar="PATH", help=help_text)
    add("--no-open", action="store_true", help="do not open the page in a browser")
    add("--serve", action="store_true", help="serve the page here: its reader edits the program")
    help_text = "with --serve, the longest run of the program; default: 60"
    add("--limit", metavar="SECONDS", type=positive_number, default=60.0, help=help_text)
    help_text = "the most steps of the film; default: 30000"
    add("--most", metavar="STEPS", type=positive_count, default=None, help=help_text)
    add("--quiz", action="store_true", help="the page asks questions about the steps")
    help_text = "film another script too, and show the first step in which the two differ"
    add("--against", metavar="OTHER", help=help_text)
    help_text = "compute each step again, and tell which steps disagree; writes no page"
    add("--replay", action="store_true", help=help_text)


def run(options: argparse.Namespace) -> int:
    """Run the script and show the film; returns 1 if the script failed."""
    script, arguments = _take_script(options)
    _check_script(script)
    _check_views(options)
    if options.replay:
        return _replay(options, script, arguments)
    if options.against is not None:
        return _compare(options, script, arguments)
    if options.serve:
        return _serve(options, script, arguments)
    output = options.output or f"{Path(script).stem}.html"
    path = Path(output).absolute()  # the script may go to another folder
    is_page_wanted = not options.text and (not options.memory or options.output is not None)
    if is_page_wanted:
        _check_output(output, path)
    film, status = _film_with_steps(script, arguments, most=options.most)
    if sys.stdout is None or sys.stdout.closed:
        sys.stdout = sys.stderr  # the script closed its standard output
    if options.text:
        film.walk()
        return status
    if options.memory:
        print(film.memory(), flush=True)
    if not is_page_wanted:
        return status
    content = plural(len(film), "step")
    if options.quiz:
        film.quiz()
        content += f" with {plural(len(film.data()['questions']), 'question')}"
    _save(film, output, path)
    print(printable_lines(f"{content}, written to {output}"), flush=True)
    is_page = path.suffix.lower() in (".html", ".htm")
    if is_page and not options.no_open and not webbrowser.open(path.as_uri()):
        print(f"no browser was found here: open {path.as_uri()} in one")
    return status


def _film_with_steps(
    script: str, arguments: list[str], *, most: int | None, arrays: bool = False
) -> tuple[Film, int]:
    """``film_of_script``; a film without steps is an error."""
    film, status = film_of_script(script, arguments, most=most, arrays=arrays)
    if not len(film):
        why = "ended before it did anything with" if status else "did nothing with"
        raise CommandError(
            f"{script} {why} tinynode in its main thread: there are no steps to show.", status=1
        )
    return film, status


def _replay(options: argparse.Namespace, script: str, arguments: list[str]) -> int:
    """Film a script, and compute each step again.

    Returns:
        1 if a step disagrees, or if no step can be computed again; or the script's own status.
    """
    for name in ("text", "memory", "quiz", "serve", "output", "against"):
        if getattr(options, name):
            raise CommandError(f"--replay tells about the steps in words: leave out --{name}.")
    film, status = _film_with_steps(script, arguments, most=options.most, arrays=True)
    found = film.replay()
    print(found, flush=True)
    return status or (0 if found.agrees else 1)


def _check_views(options: argparse.Namespace) -> None:
    """Refuse two views that exclude each other."""
    for terminal in ("text", "memory"):
        for other in ("quiz", "serve"):
            if getattr(options, other) and getattr(options, terminal):
                raise CommandError(f"--{other} needs the page: leave out --{terminal}.")
    if options.text and options.memory:
        raise CommandError("--text and --memory are two views: leave out one of them.")


def _check_script(script: str) -> None:
    if not os.path.isfile(script):
        what = "is a folder" if os.path.isdir(script) else "does not exist"
        raise CommandError(f"{script} {what}: give the path of a Python file.")


def _compare(options: argparse.Namespace, script: str, arguments: list[str]) -> int:
    """Film two scripts, and show where they differ; returns 1 if they do, or if one failed.

    Both begin with the same state of the random generators.
    """
    # here, since other commands compare nothing
    from tinynode.show.films.comparison import compare

    for name in ("text", "memory", "serve", "quiz"):
        if getattr(options, name):
            raise CommandError(f"--against shows a page of two films: leave out --{name}.")
    _check_script(options.against)
    output = options.output or f"{Path(script).stem}-against-{Path(options.against).stem}.html"
    path = Path(output).absolute()  # a script may go to another folder
    if path.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"--output {output}: a comparison is a page, and ends in .html.")
    _check_output(output, path)
    films = []
    one_failed = False
    state = random.get_state()
    for one in (script, options.against):
        random.set_state(state)
        film, status = film_of_script(one, arguments, most=options.most)
        if not len(film):
            raise CommandError(f"{one} has no steps of tinynode to compare.", status=1)
        films.append(film)
        one_failed = one_failed or status != 0
    found = compare(films[0], films[1])
    found.save(path)
    print(printable_lines(f"{found}\nwritten to {output}"), flush=True)
    if not options.no_open and not webbrowser.open(path.as_uri()):
        print(f"no browser was found here: open {path.as_uri()} in one")
    return 1 if found or one_failed else 0


def _serve(options: argparse.Namespace, script: str, arguments: list[str]) -> int:
    """Serve the page until a signal, such as Ctrl-C."""
    # here, since other commands need no server
    from tinynode.commands.step_server import private_folder

    if options.output:
        raise CommandError("--serve writes no file: leave out --output.")
    try:
        with tokenize.open(script) as file:
            text = file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise CommandError(f"{script} is no text in its encoding: {error}") from None
    with private_folder() as folder:
        return _serve_text(options, script, arguments, text, folder)


def _serve_text(
    options: argparse.Namespace, script: str, arguments: list[str], text: str, folder: Path
) -> int:
    """Serve the page of a text of the program."""
    # here, since other commands need no server
    from tinynode.commands.step_server import FilmServer, Runner

    runner = Runner(script, arguments, quiz=options.quiz, limit=options.limit, folder=folder)
    try:
        outcome = runner.run(text)
    finally:
        runner.stop()
    if outcome is None or outcome.page is None:
        told = "" if outcome is None else f"{outcome.error}\n{outcome.output}"
        sys.stderr.write(printable_lines(told))
        raise CommandError(f"{script}: there are no steps to show.", status=1)
    print(printable_lines(outcome.output), end="")
    server = FilmServer(runner, outcome.page)
    try:
        print(f"The page is at {server.address}; Ctrl-C ends the server.", flush=True)
        if not options.no_open:
            server.open_browser(folder)
        server.serve_forever()
    finally:
        server.close()
    return 0


def _take_script(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The script and its arguments; options of the command behind the script are taken out."""
    script, *words = options.words
    if script == "--" and words:
        script, words = words[0], ["--", *words[1:]]
    end = words.index("--") if "--" in words else len(words)
    parser = Parser(prog=options.parser.prog, add_help=False, allow_abbrev=False)
    _add_options(parser)
    _, arguments = parser.parse_known_args(words[:end], options)
    return script, [*arguments, *words[end + 1 :]]


def _save(film: Film, output: str, path: Path) -> None:
    try:
        film.save(path)
    except ImportError as error:
        raise CommandError(str(error), status=1) from None
    except OSError as error:
        raise CommandError(f"--output {output}: {error.strerror}", status=1) from None


def _check_output(output: str, path: Path) -> None:
    """Refuse a wrong path before the script runs."""
    if path.suffix.lower() not in FORMATS:
        raise CommandError(f"--output {output}: the path must end in {', '.join(FORMATS)}.")
    try:
        check_writable(path)
    except OSError as error:
        raise CommandError(f"--output {output}: {error.strerror}") from None


def film_of_script(
    script: str,
    arguments: Sequence[str],
    text: str | None = None,
    most: int | None = None,
    arrays: bool = False,
) -> tuple[Film, int]:
    """The film of a script run as the main program, and the exit status of the command.

    Args:
        script: the path of the script.
        arguments: the script's arguments.
        text: runs in place of the file's text.
        most: the most steps of the film.
        arrays: True to keep whole arrays.
    """
    film, status = Film(), 0
    with _as_main(script, arguments) as module:
        try:
            file = module["__file__"]
            source: bytes | str = Path(script).read_bytes() if text is None else text
            if text is not None:  # for tracebacks, and the film's lines
                linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            code = compile(source, file, "exec", dont_inherit=True)
            if Path(script).with_name(ENGINE).joinpath("__init__.py").exists():
                importlib.import_module(ENGINE)  # a film has the steps of an imported engine
            with record(os.path.basename(script), most=most, arrays=arrays) as film:
                exec(code, module)
        except BaseException as error:
            status = _status_of(error)
    return film, status


def _status_of(error: BaseException) -> int:
    """The status for an error of the script, with Python's output; 0 for ``sys.exit()``."""
    if isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    if isinstance(error, SystemExit) and not error.code:
        return 0
    if isinstance(error, SystemExit):
        if isinstance(error.code, int):
            return error.code
        print(error.code, file=sys.stderr)
        return 1
    frames = error.__traceback__
    if frames is not None:
        frames = frames.tb_next  # the first frame is in this file
    traceback.print_exception(type(error), error, frames)
    return 1


@contextmanager
def _as_main(script: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The names of a fresh main module; ``sys`` is set as for a script."""
    module = types.ModuleType("__main__")
    module.__file__ = os.path.abspath(script)
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    # in front of the old entries: the first may be the path to tinynode
    sys.path.insert(0, os.path.dirname(module.__file__))
    try:
        yield vars(module)
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path
