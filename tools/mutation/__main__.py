"""``python -m tools.mutation``: plant bugs, run the tests of each bug, and report.

    python -m tools.mutation --map                    once: which test runs which line
    python -m tools.mutation --all                    all rooms, hours; the next call goes on
    python -m tools.mutation --rooms core fast        some rooms
    python -m tools.mutation --since main             files changed since a commit, minutes
    python -m tools.mutation --again                  the survivors again, with today's tests
    python -m tools.mutation --report                 the table, and the survivors
    python -m tools.mutation --list --rooms core      only list the mutants

``--work FOLDER`` names the folder of the map and of the sessions. The databases are sessions of
cosmic-ray, so ``cr-html FOLDER/core.sqlite`` makes a page of all mutants. Two calls can work on
different rooms at once.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from tools.mutation import choice
from tools.mutation.fresh import copy_of_tree, run_fresh
from tools.mutation.live import NotLiveError
from tools.mutation.plan import ROOMS, Mutant, planned
from tools.mutation.session import Session
from tools.mutation.warm import (
    KILLED,
    SURVIVED,
    Verdict,
    WarmRunner,
    with_warm_suite,
)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOAL = 0.95


class Trial:
    """Tries mutants of one room or more, and writes the verdicts.

    Args:
        tree: the imported copy of the checkout.
        map: the tests of each line.
        pending: for each session, the mutants without a verdict.
    """

    def __init__(
        self,
        tree: pathlib.Path,
        tests: choice.TestMap,
        pending: list[tuple[Session, Mutant]],
    ) -> None:
        self.tree, self.tests, self.pending = tree, tests, pending
        self.clean: dict[str, bool] = {}

    def __call__(self, runner: WarmRunner) -> None:
        for number, (session, mutant) in enumerate(self.pending, 1):
            source = (self.tree / mutant.path).read_text(encoding="utf-8")
            verdict = self.verdict(runner, mutant, source)
            session.write(mutant, verdict, source)
            place = f"{mutant.path}:{mutant.start[0]} {mutant.operator.rpartition('/')[2]}"
            print(f"{number}/{len(self.pending)} {place}: {verdict.outcome} {verdict.test}")

    def verdict(self, runner: WarmRunner, mutant: Mutant, source: str) -> Verdict:
        """The verdict of the mutant's tests; a test that fails without mutants has no say."""
        tests = [one for one in self.tests.tests_of(mutant, self.tree) if one in runner.items]
        while True:
            tests = [one for one in tests if self.clean.get(one, True)]
            if not tests:
                return Verdict(SURVIVED, "no test")
            try:
                changes = runner.live.changes(mutant, source)
            except NotLiveError:
                return run_fresh(mutant, source, tests, self.tree)
            except SyntaxError:
                return Verdict(KILLED, "SyntaxError")
            verdict = runner.run(changes, tests, self.tests.seconds)
            test = verdict.test
            if verdict.outcome != KILLED or test not in runner.items or self.clean.get(test):
                return verdict
            alone = runner.run([], [test], self.tests.seconds)
            self.clean[test] = alone.outcome == SURVIVED


def changed_files(commit: str) -> set[str]:
    """The files that differ from a commit, new files included."""
    names: set[str] = set()
    for command in (
        ["git", "diff", "--name-only", commit],
        ["git", "ls-files", "--others", "--exclude-standard"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip())
        names.update(done.stdout.split())
    return names


def try_mutants(work: pathlib.Path, pending: list[tuple[Session, Mutant]]) -> None:
    """Try mutants on a copy of the checkout."""
    with tempfile.TemporaryDirectory(prefix="tree", dir=work) as folder:
        tree = pathlib.Path(folder)
        copy_of_tree(ROOT, tree)
        tests = choice.TestMap(work / "map")
        os.chdir(tree)
        sys.path[:] = [str(tree), str(tree / "backends"), *sys.path]
        files = sorted({test.partition("::")[0] for test in tests.seconds})
        trial = Trial(tree, tests, pending)
        with_warm_suite(tree, [one for one in files if (tree / one).is_file()], trial)


def report(work: pathlib.Path, rooms: list[str], with_survivors: bool) -> int:
    """Print the table in Markdown, then the survivors; exit status 1 below the goal."""
    print("| room | mutants | tested | caught | caught, % |")
    print("|---|---|---|---|---|")
    enough = True
    sessions = [(room, Session(work / f"{room}.sqlite")) for room in rooms]
    sessions = [(room, session) for room, session in sessions if session.path.exists()]
    for room, session in sessions:
        counts = session.counts()
        tested = counts.caught + counts.survived
        total = tested + counts.pending
        share = f"{100 * counts.share:.1f}" if tested else "-"
        print(f"| `{ROOMS[room]}` | {total} | {tested} | {counts.caught} | {share} |")
        enough = enough and counts.share >= GOAL
    for room, session in sessions if with_survivors else ():
        survivors = session.survivors()
        print(f"\n{room}: {len(survivors)} survivors")
        for item, result in survivors:
            spec = item.mutations[0]
            print(f"\n{item.job_id} {spec.operator_name} {spec.definition_name}")
            print(f"{spec.module_path}:{spec.start_pos[0]}")
            print("\n".join((result.diff or "").splitlines()[2:]))
    return 0 if enough else 1


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    work = ROOT / "build" / "mutation"
    add("--work", type=pathlib.Path, default=work, help="the folder of map and verdicts")
    add("--rooms", nargs="+", choices=sorted(ROOMS), default=[], help="only these rooms")
    add("--files", nargs="+", default=[], help="only these files, named from the root")
    add("--since", metavar="COMMIT", help="only files changed since a commit")
    add("--all", action="store_true", help="every room")
    add("--again", action="store_true", help="try the survivors again")
    add("--map", nargs="*", metavar="TESTS", help="make the map, or add tests to the map")
    add("--list", action="store_true", help="only list the mutants")
    add("--report", action="store_true", help="only print the table and the survivors")
    options = parser.parse_args(arguments)
    for path in options.files:
        is_in_room = any(path.startswith(f"{room}/") for room in ROOMS.values())
        if not (is_in_room and (ROOT / path).is_file()):
            parser.error(f"no room has the file {path}")
    chosen = options.all or options.rooms or options.files or options.since or options.again
    if not (chosen or options.list or options.report or options.map is not None):
        parser.error("choose mutants by --all, --rooms, --files, --since or --again")
    options.rooms = [room for room in ROOMS if room in (options.rooms or ROOMS)]
    options.rooms = [room for room in options.rooms if (ROOT / ROOMS[room]).is_dir()]
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    work: pathlib.Path = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if options.map is not None:
        return choice.make_map(ROOT, work / "map", options.map)
    if options.report:
        return report(work, options.rooms, with_survivors=True)
    if not list((work / "map").glob("*/coverage")) and not options.list:
        print("there is no map of the tests: run python -m tools.mutation --map")
        return 2
    chosen = set(options.files) | (changed_files(options.since) if options.since else set())
    is_part = bool(options.files or options.since)
    if is_part:
        options.rooms = [
            room
            for room in options.rooms
            if any(path.startswith(f"{ROOMS[room]}/") for path in chosen)
        ]
    pending: list[tuple[Session, Mutant]] = []
    for room in options.rooms:
        mutants = planned(ROOT, room)
        if options.list:
            for one in mutants:
                if not is_part or one.path in chosen:
                    print(f"{one.path}:{one.start[0]} {one.operator} {one.definition}")
            continue
        session = Session(work / f"{room}.sqlite")
        open_ones = {one.number for one in session.update(mutants)}
        if options.again:
            open_ones = {item.job_id for item, _ in session.survivors()}
        pending += [
            (session, one)
            for one in mutants
            if one.number in open_ones and (not is_part or one.path in chosen)
        ]
    if options.list:
        return 0
    if pending:
        try_mutants(work, pending)
    return report(work, options.rooms, with_survivors=bool(is_part or options.again))


if __name__ == "__main__":
    raise SystemExit(main())
