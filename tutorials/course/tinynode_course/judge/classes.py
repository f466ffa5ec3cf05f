"""The command ``class``: a teacher's folder with a key, and the judgement of a class.

Requirement: 200 submissions, some hostile, in a working day of one machine, with results out
of the students' reach. Submissions run at the same time, one on each processor. Ctrl-C loses
no result: the results are files, and the next call goes on.
The walk is in ``tutorials/course/README.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tinynode
from tinynode.commands.command_line import CommandError, Parser
from tinynode.errors import printable
from tinynode.safe_files import MOST_TEXT, parse_json, read_file
from tinynode_course import grading, hunts, report
from tinynode_course.judge import gradescope, hunting, keys, one, plans, process, submission
from tinynode_course.judge.shelf import TINYNODE, Shelf, place_of
from tinynode_course.progress import write_file
from tinynode_course.recall import papers
from tinynode_course.sources import Step

NO_LOCKS = """\
This system can't keep a student's program from files and processes of yours. Judge in a container,
as docs/teaching.md says."""

SUMMARY = "judge the submissions of a class, safely"

GRACE_SECONDS = 200.0
"""Seconds after the time of a submission, before the judging process is killed."""


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    new = actions.add_parser("new", help="make a teacher's folder, with a new key")
    new.add_argument("folder", metavar="FOLDER")
    new.set_defaults(run=run_new, parser=new)
    judge = actions.add_parser("judge", help="judge submissions; again: only the changed ones")
    judge.add_argument("folder", metavar="FOLDER", help="the teacher's folder")
    judge.add_argument("submissions", metavar="SUBMISSION", nargs="+", help="a student's folder")
    judge.add_argument("--steps", metavar="KEYS", help="such as 01,02,compile; default: all")
    judge.add_argument(
        "--adapter", metavar="FILE", help="such as ours.py: gives the package ours our names"
    )
    judge.add_argument("--again", action="store_true", help="judge unchanged submissions too")
    judge.add_argument("--json", action="store_true", help="print all results as JSON")
    judge.add_argument("--csv", metavar="FILE", help="write a table for spreadsheets too")
    judge.add_argument("--html", metavar="FILE", help="write a page too")
    judge.add_argument(
        "--gradescope", metavar="FILE", help="write results.json of Gradescope, of a submission"
    )
    judge.add_argument(
        "--show-values", action="store_true", help="with --gradescope: students see the reasons"
    )
    judge.set_defaults(run=run_judge, parser=judge)
    papers.add_actions(actions)


def run_new(options: argparse.Namespace) -> int:
    """Make a folder with a key."""
    keys.new(Path(options.folder))
    print(f"wrote {Path(options.folder) / keys.NAME}: the key of the class. Keep the folder from")
    print("students, and out of repositories.")
    return 0


def run_judge(options: argparse.Namespace) -> int:
    """Judge submissions; 0 for any results."""
    if os.name != "posix":
        raise CommandError("class judge needs Linux or macOS; see docs/teaching.md", status=1)
    folder = Path(options.folder)
    key = keys.open_key(folder)
    students = submission.folders_by_name(options.submissions)
    if options.gradescope is not None and len(students) != 1:
        raise CommandError(f"--gradescope needs one submission, got {len(students)}")
    steps = _chosen(options.steps)
    adapter = options.adapter and submission.read_adapter(Path(options.adapter))
    with tempfile.TemporaryDirectory(prefix="tinynode-class-") as temporary:
        room = Room(folder, key, steps, Path(temporary), adapter, quiet=options.json)
        results = room.judge(students, options.again)
    print_results(results, options)
    if options.gradescope is not None:
        text = gradescope.results(results[0], options.show_values)
        write_file(Path(options.gradescope), text)
    return 0


def _chosen(text: str | None) -> list[Step]:
    steps = [step for step in grading.with_exercise() if plans.drills_of(step).exists()]
    if text is None:
        return steps
    wanted = text.split(",")
    missing = [key for key in wanted if key not in [step.key for step in steps]]
    if missing:
        raise CommandError(f"--steps: there is no step with drills named {missing[0]!r}")
    return [step for step in steps if step.key in wanted]


@dataclass
class Room:
    """The judgement of a class: plans once, then a process for each submission."""

    folder: Path
    key: str
    steps: Sequence[Step]
    temporary: Path
    adapter: submission.Adapter | None = None
    quiet: bool = False
    plans: dict[str, Any] = field(default_factory=dict)
    hunts: dict[str, Any] = field(default_factory=dict)

    def judge(self, students: dict[str, Path], again: bool) -> list[dict[str, Any]]:
        """Judge students with changed files; all results, in order."""
        done = {} if again else self._done(students)
        open_names = [name for name in students if name not in done]
        self._say(f"{len(done)} of {len(students)} submissions are judged already")
        if open_names:
            self._prepare()
            for name, result in self._run({name: students[name] for name in open_names}):
                done[name] = result
                self._say(f"[{len(done)}/{len(students)}] {_line(name, result)}")
        return [done[name] for name in students]

    def _say(self, text: str) -> None:
        if not self.quiet:
            print(printable(text), flush=True)

    def _stamp(self, path: Path) -> str:
        """A fingerprint of a submission, of the key, of the drills, and of the steps."""
        texts = [plans.drills_of(step) for step in self.steps]
        drills = [path.read_bytes() for path in texts]
        student = submission.read(path, grading.with_exercise(), self.adapter).digest
        wanted = ",".join(step.key for step in self.steps)
        return keys.digest(self.key, tinynode.__version__, student, wanted, *drills)

    def _done(self, students: dict[str, Path]) -> dict[str, dict[str, Any]]:
        found = {}
        for name, path in students.items():
            with suppress(OSError, ValueError):
                old = parse_json(read_file(self.folder / "results" / f"{name}.json", MOST_TEXT))
                if isinstance(old, dict) and old.get("stamp") == self._stamp(path):
                    found[name] = old
        return found

    def _prepare(self) -> None:
        """Draw the inputs, and compute the right values."""
        shelf = Shelf(self.temporary / "libraries")
        held = process.locks(shelf.libraries("numpy"))
        self._say(f"locks around the students' programs: {', '.join(held) or 'none'}")
        if len(held) < 2:
            print(NO_LOCKS, file=sys.stderr)
        for step in self.steps:
            shelf.libraries("numpy" if step.builds else "tinynode")  # before the threads
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda step: plans.plan(step, self.key, shelf), self.steps)
            self.plans = {plan.key: plan.as_json() for plan in found}
        for hunt in filter(None, map(hunts.of, self.steps)):
            self.hunts[hunt.step.key] = hunting.plan(hunt, self.key, shelf).as_json()
        self._say(f"{sum(len(plan['names']) for plan in self.plans.values())} drills are drawn")

    def _run(self, students: dict[str, Path]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The results in the order of their arrival; Ctrl-C ends all processes."""
        running: set[subprocess.Popen[bytes]] = set()
        stop = threading.Event()
        process.adopt_orphans()  # of a judging process that is killed
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            futures: dict[Future[dict[str, Any]], str] = {
                pool.submit(self._judge_one, path, running, stop): name
                for name, path in students.items()
            }
            try:
                for future in as_completed(futures):
                    name, result = futures[future], future.result()
                    keys.save(self.folder, name, result)
                    yield name, result
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in list(running):
                    _kill(worker)
                process.kill_orphans()
                raise

    def _judge_one(
        self, path: Path, running: set[subprocess.Popen[bytes]], stop: threading.Event
    ) -> dict[str, Any]:
        stamp = self._stamp(path)
        wanted = [step.key for step in self.steps]
        adapter = self.adapter and asdict(self.adapter)
        job = {
            "folder": str(path),
            "keys": wanted,
            "plans": self.plans,
            "hunts": self.hunts,
            "adapter": adapter,
        }
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "tinynode_course.judge.one"],
            cwd=self.temporary,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        running.add(worker)
        reason = ""
        try:
            out, error = worker.communicate(
                json.dumps(job).encode() + b"\n", one.TOTAL_SECONDS + GRACE_SECONDS
            )
            result: dict[str, Any] = json.loads(out)
            return {**result, "stamp": stamp}
        except subprocess.TimeoutExpired:
            reason = "the judgement took too long, and was stopped"
        except ValueError:
            last = error.decode(errors="replace").strip().splitlines()[-1:]
            reason = f"the judging process ended early: {''.join(last)[:300]}"
        finally:
            running.discard(worker)
            _kill(worker)
        return {**_empty(path.name, reason), "stamp": "" if stop.is_set() else stamp}


def _kill(worker: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.kill()
    worker.wait()


def _empty(name: str, reason: str) -> dict[str, Any]:
    """The result of a submission without a judgement."""
    return {
        "format": grading.FORMAT,
        "version": grading.VERSION,
        "tinynode": tinynode.__version__,
        "folder": name,
        "passed": False,
        "seconds": 0.0,
        "remarks": [reason],
        "steps": [],
    }


def environment() -> dict[str, str]:
    """The environment of a judging process: the same packages, from the same folders."""
    places = [place_of(name) for name in ("tinynode_course", *TINYNODE, "numpy")]
    folders = dict.fromkeys(str(place.parent) for place in places if place is not None)
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return {**kept, **process.environment(), "PYTHONPATH": os.pathsep.join(folders)}


def _line(name: str, result: dict[str, Any]) -> str:
    """A submission in a line."""
    passed = sum(step["passed"] for step in result["steps"])
    begun = sum(step["state"] != "not started" for step in result["steps"])
    said = f"{name}: {passed} of {begun} exercises pass, {result['seconds']:g} s"
    return "; ".join([said, *result["remarks"]])


def print_results(results: Sequence[dict[str, Any]], options: argparse.Namespace) -> None:
    """Print the table or JSON, and write the wanted files."""
    students = [report.student(result["folder"], result) for result in results]
    found = report.keys_of(students)
    if options.json:
        document = {"format": report.CLASS_FORMAT, "version": report.CLASS_VERSION}
        print(json.dumps({**document, "results": results}))
    else:
        for line in report.as_text(students, found):
            print(line)
    for name, text in ((options.csv, report.as_csv), (options.html, report.as_html)):
        if name is not None:
            write_file(Path(name), text(students, found))
            if not options.json:
                print(f"wrote {Path(name)}")
