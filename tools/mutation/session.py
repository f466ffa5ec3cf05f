"""The session of a room: a database of cosmic-ray with mutants and verdicts.

Requirement: a run takes hours and may stop at any moment. So every verdict is written at once, and
the next run goes on with the remaining mutants. After an edit, verdicts of unchanged places stay.
"""

from __future__ import annotations

import difflib
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tools.mutation.plan import Mutant
from tools.mutation.warm import SURVIVED, Verdict


@dataclass
class Counts:
    """The mutants of a room by verdict."""

    caught: int = 0
    survived: int = 0
    pending: int = 0

    @property
    def share(self) -> float:
        """Caught mutants per tested mutant."""
        return self.caught / max(1, self.caught + self.survived)


class Session:
    """The database of a room."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def update(self, mutants: list[Mutant]) -> list[Mutant]:
        """Plan these mutants, keep known verdicts, and give the mutants without a verdict."""
        with use_db(self.path, WorkDB.Mode.create) as database:
            known = dict(database.results)
            database.clear()
            database.add_work_items([one.item for one in mutants])
            for mutant in mutants:
                if mutant.number in known:
                    database.set_result(mutant.number, known[mutant.number])
        return [one for one in mutants if one.number not in known]

    def write(self, mutant: Mutant, verdict: Verdict, source: str) -> None:
        """Add a verdict, with the change of the source."""
        changed = mutant.mutated(source) or source
        lines = difflib.unified_diff(
            source.splitlines(), changed.splitlines(), mutant.path, mutant.path, "", "", 1, ""
        )
        survived = verdict.outcome == SURVIVED
        result = WorkResult(
            worker_outcome=WorkerOutcome.NORMAL,
            output=f"{verdict.outcome} {verdict.test}".strip(),
            test_outcome=TestOutcome.SURVIVED if survived else TestOutcome.KILLED,
            diff="\n".join(lines),
        )
        with use_db(self.path, WorkDB.Mode.open) as database:
            database.set_result(mutant.number, result)

    def finished(self) -> Iterator[tuple[WorkItem, WorkResult]]:
        """Each mutant with a verdict."""
        with use_db(self.path, WorkDB.Mode.open) as database:
            yield from database.completed_work_items

    def survivors(self) -> list[tuple[WorkItem, WorkResult]]:
        """The mutants that no test caught, by file and line."""
        found = [(item, result) for item, result in self.finished() if not result.is_killed]
        return sorted(found, key=lambda one: (str(one[0].mutations[0].module_path),
                                              one[0].mutations[0].start_pos))  # fmt: skip

    def counts(self) -> Counts:
        """The numbers of the report."""
        with use_db(self.path, WorkDB.Mode.open) as database:
            killed = [result.is_killed for _, result in database.completed_work_items]
            pending = database.num_work_items - len(killed)
        return Counts(sum(killed), len(killed) - sum(killed), pending)
