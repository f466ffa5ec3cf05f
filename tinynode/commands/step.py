"""The command ``step``: runs a script, and shows the forward and backward steps as a film.

Requirement: a single command shows a script as a page, as text or as pictures. For the reader of a
page, the command runs the script again.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tokenize
import webbrowser
from pathlib import Path
from typing import Any

from tinynode.atomic_file import check_writable
from tinynode.commands.command_line import CommandError, Parser, positive_count, positive_number
from tinynode.show.films.changes import checked_changes
from tinynode.show.films.comparison import Comparison, compare
from tinynode.show.films.film import Film, plural
from tinynode.show.films.random_states import RandomStates
from tinynode.show.films.scripts import Script, film_of_script
from tinynode.show.films.text import printable_lines
from tinynode.show.films.what_if import ScriptRuns, rerun

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
    help_text = (
        'run it again with another number, such as "3: w[0, 1] = 0"; may stand several times'
    )
    add("--change", metavar="CHANGE", action="append", default=[], help=help_text)
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
    if options.change:
        return _change(options, script, arguments)
    if options.serve:
        return _serve(options, script, arguments)
    output = options.output or f"{Path(script).stem}.html"
    path = Path(output).absolute()  # the script may go to another folder
    is_page_wanted = not options.text and (not options.memory or options.output is not None)
    if is_page_wanted:
        _check_output(output, path)
    film, status = _film_with_steps(script, arguments, most=options.most)
    if options.text:
        if sys.stdout is None or sys.stdout.closed:
            sys.stdout = sys.stderr  # the script closed its standard output
        film.walk()
        return status
    if options.memory:
        _say(str(film.memory()))
    if not is_page_wanted:
        return status
    content = plural(len(film), "step")
    if options.quiz:
        film.quiz()
        content += f" with {plural(len(film.data()['questions']), 'question')}"
    _save(film, output, path)
    _say(printable_lines(f"{content}, written to {output}"))
    if path.suffix.lower() in (".html", ".htm"):
        _open(options, path)
    return status


def _open(options: argparse.Namespace, path: Path) -> None:
    """Open a page in a browser, if wanted."""
    if not options.no_open and not webbrowser.open(path.as_uri()):
        _say(f"no browser was found here: open {path.as_uri()} in one")


def _say(text: str) -> None:
    """Print a text; to standard error if the script closed or replaced standard output.

    Raises:
        BrokenPipeError: the reader of standard output is gone.
    """
    for stream in (sys.stdout, sys.stderr, sys.__stderr__):
        if stream is None:
            continue
        try:
            print(text, file=stream, flush=True)
        except BrokenPipeError:
            raise
        except (OSError, ValueError):
            continue
        sys.stdout = stream
        return
    sys.stdout = io.StringIO()  # nobody can be told


def _film_with_steps(
    script: str, arguments: list[str], *, most: int | None, arrays: bool = False
) -> tuple[Film, int]:
    """``film_of_script``; a film without steps is an error."""
    film, status = film_of_script(_read(script), arguments, most=most, arrays=arrays)
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
    for name in ("text", "memory", "quiz", "serve", "output", "against", "change"):
        if getattr(options, name):
            raise CommandError(f"--replay tells about the steps in words: leave out --{name}.")
    film, status = _film_with_steps(script, arguments, most=options.most, arrays=True)
    found = film.replay()
    _say(str(found))
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


def _read(script: str) -> Script:
    """The script, before a run may go to another folder."""
    try:
        return Script.at(script)
    except OSError as error:
        raise CommandError(f"{script} cannot be read: {error.strerror}.") from None


def _compare(options: argparse.Namespace, script: str, arguments: list[str]) -> int:
    """Film two scripts, and show where they differ; returns 1 if they do, or if one failed.

    Both begin with the same states of the random generators. Each imports its own modules.
    """
    _refuse_options(options, "--against", ("text", "memory", "serve", "quiz", "change"))
    _check_script(options.against)
    output = options.output or f"{Path(script).stem}-against-{Path(options.against).stem}.html"
    path = _path_of_comparison(output)
    films = []
    one_failed = False
    states = RandomStates.now()
    for one in [_read(path) for path in (script, options.against)]:
        states.restore()
        runs = ScriptRuns(one, arguments, most=options.most)
        film = runs()
        if not len(film):
            raise CommandError(f"{one.name} has no steps of tinynode to compare.", status=1)
        films.append(film)
        one_failed = one_failed or runs.status != 0
    found = compare(films[0], films[1])
    _show_comparison(options, found, output, path)
    return 1 if found or one_failed else 0


def _change(options: argparse.Namespace, script: str, arguments: list[str]) -> int:
    """Run the script with changes of numbers, and show both films; returns 1 after an error."""
    _refuse_options(options, "--change", ("text", "memory", "serve", "quiz"))
    output = options.output or f"{Path(script).stem}-changed.html"
    path = _path_of_comparison(output)
    try:
        runs = ScriptRuns(_read(script), arguments, most=options.most)
        found = rerun(runs, checked_changes("--change", options.change))
    except ValueError as error:
        raise CommandError(str(error)) from None
    _show_comparison(options, found, output, path)
    return 1 if runs.status or found.note else 0


def _refuse_options(options: argparse.Namespace, title: str, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(options, name):
            raise CommandError(f"{title} shows a page of two films: leave out --{name}.")


def _path_of_comparison(output: str) -> Path:
    path = Path(output).absolute()  # a script may go to another folder
    if path.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"--output {output}: a comparison is a page, and ends in .html.")
    _check_output(output, path)
    return path


def _show_comparison(
    options: argparse.Namespace, found: Comparison, output: str, path: Path
) -> None:
    """Write the page of two films, say what differs, and open the page."""
    found.save(path)
    _say(printable_lines(f"{found}\nwritten to {output}"))
    _open(options, path)


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
    before = options.parser.given[: -len(options.words)]
    if script == "--" and words:
        script, words = words[0], ["--", *words[1:]]
    elif before and before[-1] == "--":  # Python 3.14 has left it out
        words = ["--", *words]
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
