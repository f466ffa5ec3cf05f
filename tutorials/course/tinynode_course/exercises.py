"""The commands of an exercise: start, check, hint, show, take, status.

Requirement: no command overwrites the learner's work, and each command prints the next one. An
exercise is a file of the learner's, or a part of the learner's package ``mynode``.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinynode.commands.command_line import CommandError
from tinynode_course import assistants, checking, hints, mynode, places, sources
from tinynode_course.mynode import NAME, Definition
from tinynode_course.progress import (
    PROGRAM,
    Progress,
    open_progress,
    say_next,
    unused,
    write_file,
)
from tinynode_course.sources import Step

HINT_SECONDS = 30.0
"""The time limit of the checks before a hint."""

# start


def start(options: argparse.Namespace) -> int:
    """Write the stub, or add the stubs to ``mynode``."""
    mynode.refuse_stranger()
    step = sources.find_exercise(options.step)
    return _start_part(step) if step.builds else _start_file(step, options.again)


def _start_file(step: Step, again: bool) -> int:
    work = Path(step.work)
    if work.exists() and not again:
        print(f"{work} is here already, and stays as it is.")
        print(f"Check it:    {PROGRAM} check {step.key}")
        print(
            f"Begin anew:  {PROGRAM} start {step.key} --again   (keeps yours under another name)"
        )
        return 1
    progress = open_progress()
    assistants.lay_rules(progress)
    kept = _write(work, step.stub.read_text(encoding="utf-8"), again)
    if kept:
        print(f"kept your file as {kept.name}")
    print(f"wrote {work}")
    progress.note(step.key, started=True)
    print(f"\n{step.title}. Open {work} in your editor: what to do stands at its top. Then")
    print(f"  {PROGRAM} check {step.key}")
    return 0


def _start_part(step: Step) -> int:
    """Add the stubs of a step to the learner's package."""
    progress = open_progress()
    require_earlier(step, progress)
    assistants.lay_rules(progress)
    added = add_stubs(step, Path(NAME))
    for path, names in added.items():
        print(f"{NAME}/{path}: added {', '.join(names) or 'its imports'}")
    for path, task in mynode.tasks(step).items():
        print(f"{NAME}/{path}: {task}")
    if not added:
        print("No file was changed.")
    progress.note(step.key, started=True)
    print(f"\n{step.title}. The exercise stands at the end of the page. Edit {NAME}, then")
    print(f"  {PROGRAM} check {step.key}")
    return 0


def require_earlier(step: Step, progress: Progress) -> None:
    """Check that the learner's package has all earlier parts.

    Raises:
        CommandError: An earlier step was neither passed nor taken; the message has the commands.
    """
    facts = {earlier.key: progress.of(earlier.key) for earlier in mynode.earlier(step)}
    left = [key for key, one in facts.items() if not (one.get("passed") or one.get("taken"))]
    if not left:
        return
    first, *later = left
    command = "check" if facts[first].get("started") else "start"
    more = f" Then come {', '.join(later)}, in this order." if later else ""
    raise CommandError(
        f"step {step.key} builds on step {first}, which is open. Do step {first} first: "
        f"{PROGRAM} {command} {first}; or take its reference: {PROGRAM} take {first}.{more}"
    )


def add_stubs(step: Step, package: Path) -> dict[str, list[str]]:
    """Add the stubs of a step to a package; returns the added names for each changed file."""
    added = {}
    for path, stub in mynode.read_files(step.stub).items():
        file = package / path
        if not file.exists():
            write_file(file, stub)
            added[path] = list(mynode.definitions(stub))
            continue
        old = text_of(file)
        order = list(mynode.definitions(mynode.changed(step.key).get(path, "")))
        new, names = edited(path, mynode.add_stubs, old, stub, order)
        if new != old:
            write_file(file, new)
            added[path] = names
    return added


def text_of(file: Path) -> str:
    """The text of a learner's file; "" for a missing file.

    Raises:
        CommandError: The file is no UTF-8 text.
    """
    try:
        return file.read_text(encoding="utf-8") if file.exists() else ""
    except UnicodeDecodeError:
        raise CommandError(
            f"{file.as_posix()} is no UTF-8 text; save it as UTF-8 first", 1
        ) from None


def edited(path: str, edit: Any, *arguments: Any) -> Any:
    """The result of an edit of a learner's file.

    Raises:
        CommandError: The file is no Python; the message has the line.
    """
    try:
        return edit(*arguments)
    except SyntaxError as error:
        raise CommandError(
            f"{NAME}/{path}, line {error.lineno}: {error.msg}; mend this line first", 1
        ) from None


def _write(path: Path, text: str, again: bool) -> Path | None:
    """Write a new file; with ``again`` an old file gets another name."""
    kept = None
    try:
        if again and path.exists():
            kept = unused(path, "old")
            path.rename(kept)
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        where = Path.cwd()
        raise CommandError(f"{path} cannot be written in {where}: {error.strerror}", 1) from None
    return kept


# check


def work_of(step: Step) -> Path:
    """The learner's file.

    Raises:
        CommandError: The exercise was not started in this folder.
    """
    work = Path(step.work)
    if not work.is_file():
        raise CommandError(
            f"there is no {work} in this folder; begin with {PROGRAM} start {step.key}, or go to "
            "the folder in which you did"
        )
    return work


def check(options: argparse.Namespace) -> int:
    """Check the learner's work; 0 if all checks pass."""
    step = sources.find_exercise(options.step)
    work = work_of(step)
    progress = open_progress()
    reason = outgrown(step, progress)
    if reason:
        raise CommandError(reason)
    print(f"{step.title}: {NAME if step.builds else work}")
    stage = stage_of(step, progress)

    def find(event: dict[str, Any]) -> dict[str, Any]:
        return places.with_sure_place(event, step, work.absolute(), stage)

    report = checking.check(step, work.absolute(), options.seconds, find=find)
    facts = progress.of(step.key)
    attempts = facts.get("attempts")
    is_started = bool(facts.get("started")) or not step.builds or report.passed
    if not is_started:  # the package is there since an earlier step, without these stubs
        print(
            f"Step {step.key} is not started in this folder. Its stubs: {PROGRAM} start {step.key}"
        )
    progress.note(
        step.key,
        started=is_started,
        attempts=(attempts if isinstance(attempts, int) else 0) + 1,
        passed=report.passed or bool(facts.get("passed")),  # a passed step stays passed
    )
    if report.passed:
        say_next(progress, step)
    return 0 if report.passed else 1


def outgrown(step: Step, progress: Progress) -> str:
    """The reason why the checks of a step do not fit the learner's package of today, or ""."""
    if not step.builds:
        return ""
    until = getattr(step.check_module(), "UNTIL", "99")
    steps = mynode.steps_that_build()
    started = [one.key for one in steps if progress.of(one.key).get("started")]
    if not started or started[-1] <= until:
        return ""
    return (
        f"the checks of step {step.key} fit {NAME} up to step {until}; "
        f"yours has parts of step {started[-1]} already"
    )


def stage_of(step: Step, progress: Progress) -> str:
    """The last step that the learner's package has parts of, as far as the progress says."""
    keys = [one.key for one in mynode.steps_that_build()]
    started = [key for key in keys if progress.of(key).get("started")]
    return (started or [step.key])[-1]


def hint(options: argparse.Namespace) -> int:
    """Print the next hint about the failing check; after the last hint, the last one again."""
    step = sources.find_exercise(options.step)
    progress = open_progress()
    stage = stage_of(step, progress)
    failing = hints.failing(step, stage, HINT_SECONDS)
    if failing is None:
        print(f"All checks of step {step.key} pass: no hint is needed.")
        return 0
    if failing.unreadable:
        print("\n".join(failing.unreadable))
        print(f"\nMend this line first. Then: {PROGRAM} check {step.key}")
        return 0
    rungs = list(hints.ladder(step, failing, stage))
    facts = progress.of(step.key)
    seen = facts.get("hinted")
    hinted = dict(seen) if isinstance(seen, dict) else {}
    number = min(hinted.get(failing.key, 0), len(rungs) - 1)
    print(f"Hint {number + 1} of {len(rungs)} for step {step.key}. The check: {failing.title}")
    print(f"  {rungs[number]}")
    if number + 1 == len(rungs):
        print(f"That is the last hint. A solution: {PROGRAM} show {step.key}")
    total = facts.get("hints")
    is_new = hinted.get(failing.key, 0) <= number
    hinted[failing.key] = number + 1
    count = (total if isinstance(total, int) and total >= 0 else 0) + is_new
    progress.note(step.key, hints=count, hinted=hinted)
    return 0


# show and take


def show(options: argparse.Namespace) -> int:
    """Print the difference from the learner's work, or from the stub, to a solution."""
    step = sources.find_exercise(options.step)
    if not open_progress().of(step.key).get("attempts") and not options.now:
        raise CommandError(
            f"try step {step.key} first: {PROGRAM} check {step.key}. "
            f"To see a solution without a try: {PROGRAM} show {step.key} --now",
            status=1,
        )
    difference = list(_part_difference(step) if step.builds else _file_difference(step))
    for line in difference:
        print(line)
    if not difference:
        print(f"{NAME if step.builds else step.work} is the same as the solution.")
    return 0


def _file_difference(step: Step) -> Iterator[str]:
    work = Path(step.work)
    mine = work if work.is_file() else step.stub
    name = work.name if mine is work else f"{work.name} as it is at the start"
    text = mine.read_text(encoding="utf-8", errors="replace")
    return _difference(text, step.solution.read_text(encoding="utf-8"), name)


def _part_difference(step: Step) -> Iterator[str]:
    later = changed_later(step, open_progress())
    for path in mynode.changed(step.key):
        file = Path(NAME, path)
        text = text_of(file)
        new, _ = edited(path, mynode.taken, text, step.key, path, later.get(path, ()))
        yield from _difference(text, new, f"{NAME}/{path}")


def _difference(mine: str, other: str, name: str) -> Iterator[str]:
    return difflib.unified_diff(
        mine.splitlines(), other.splitlines(), name, "a solution", lineterm=""
    )


def take(options: argparse.Namespace) -> int:
    """Put the reference's definitions of a step into the learner's package."""
    step = sources.find_exercise(options.step)
    if not step.builds:
        raise CommandError(f"step {step.key} builds no part of {NAME}; see  {PROGRAM} show")
    progress = open_progress()
    require_earlier(step, progress)
    package = Path(NAME)
    record: dict[str, dict[str, str]] = {}
    texts = {path: text_of(package / path) for path in mynode.changed(step.key)}
    later = changed_later(step, progress)
    results = {
        path: edited(path, mynode.taken, old, step.key, path, later.get(path, ()))
        for path, old in texts.items()
    }
    for path, (new, names) in results.items():  # no file is written before all are edited
        file, old = package / path, texts[path]
        kept = write_file(file, new, keep=loses_work(path, old, new))
        if kept is not None:
            print(f"kept your {NAME}/{path} as {kept.name}")
        found = mynode.definitions(new)
        record[path] = {name: digest(found[name]) for name in names}
        print(f"{NAME}/{path}: took {', '.join(names) or 'its imports'}")
        left = [one for one in mynode.new_definitions(step.key, path) if one not in names]
        if left:
            print(f"{NAME}/{path}: left {', '.join(left)}, which later steps changed")
    progress.note(step.key, started=True, taken=record)
    say_next(progress, step)
    return 0


def changed_later(step: Step, progress: Progress) -> dict[str, set[str]]:
    """The definitions that later steps changed, by file: of steps that are passed or taken."""
    found: dict[str, set[str]] = {}
    for later in mynode.steps_that_build():
        facts = progress.of(later.key)
        if later.key <= step.key or not (facts.get("passed") or facts.get("taken")):
            continue
        for path in mynode.changed(later.key):
            found.setdefault(path, set()).update(mynode.new_definitions(later.key, path))
    return found


def loses_work(path: str, old: str, new: str) -> bool:
    """True if a text of a learner's definition is in the old file, and not in the new one.

    Stubs and definitions of the reference are not the learner's.
    """
    known = {one.text for one in mynode.definitions(new).values()}
    lost = [one.text for one in mynode.definitions(old).values() if one.text not in known]
    if not lost:
        return False
    for step in mynode.builders():
        for folder in (step.stub, step.part):
            file = folder / path
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            known |= {one.text for one in mynode.definitions(text).values()}
    return any(text not in known for text in lost)


def digest(definition: Definition) -> str:
    """A short digest of a definition's meaning."""
    return hashlib.sha256(definition.meaning.encode()).hexdigest()[:16]


# status


def status(options: argparse.Namespace) -> int:
    """Print whose each definition of the learner's package is."""
    mynode.refuse_stranger()
    package = Path(NAME)
    if not package.is_dir():
        raise CommandError(f"there is no {NAME} in this folder; begin with {PROGRAM} start 01")
    yours = given = total = lines = 0
    for path, owners in ownership(package, open_progress()).items():
        print(f"{NAME}/{path}")
        for definition, owner in owners:
            size = definition.end - definition.start
            print(f"  {owner:<18} {definition.name} ({size} line{'s' if size > 1 else ''})")
            total += 1
            yours += owner == "yours"
            given += owner == "given"
            lines += size if owner == "yours" else 0
    print(f"\n{yours} of {total} definitions are yours: {lines} lines. {given} were given.")
    return 0


def ownership(package: Path, progress: Progress) -> dict[str, list[tuple[Definition, str]]]:
    """Each definition of the package with its owner, by file.

    The owner is "yours", "to write" for a stub as it was added, "reference, step 11", or "given"
    for what no exercise asks for.
    """
    steps = mynode.builders()
    found: dict[str, list[tuple[Definition, str]]] = {}
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package).as_posix()
        there = edited(path, mynode.definitions, text_of(file))
        owners = [(one, _owner(one, path, steps, progress)) for one in there.values()]
        if owners:
            found[path] = owners
    return found


def _owner(one: Definition, path: str, steps: list[Step], progress: Progress) -> str:
    owner = "yours"
    is_asked = False
    for step in steps:
        taken = progress.of(step.key).get("taken")
        names = taken.get(path, {}) if isinstance(taken, dict) else {}
        if names.get(one.name) == digest(one):
            owner = f"reference, step {step.key}"
        stub = step.stub / path
        stubs = mynode.definitions(stub.read_text(encoding="utf-8")) if stub.exists() else {}
        if one.name not in stubs:
            continue
        is_open = "NotImplementedError" in stubs[one.name].text
        is_asked = is_asked or is_open
        if stubs[one.name].meaning == one.meaning:
            if is_open:
                owner = "to write"
            elif not is_asked:  # what a learner wrote in an earlier step stays the learner's
                owner = "given"
    return owner
