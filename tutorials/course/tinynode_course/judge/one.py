"""Judges a submission, as a program: ``python -m tinynode_course.judge.one``.

Requirement: a broken submission never stops the class. So each submission has a separate judging
process, and the end of a judging process is a sentence in the report. The process reads a line
of JSON from the standard input, the folder and the plans, and prints the result. The process
imports no file of the student's: each program of the student's runs in a child.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tinynode
from tinynode_course import grading, hunts, owners
from tinynode_course.judge import hunting, plans, process, submission
from tinynode_course.sources import Step

TOTAL_SECONDS = 400.0
"""The time for all children of a submission."""

STEP = process.ChildLimits(seconds=10.0, total=40.0)
HUNT = process.ChildLimits(seconds=10.0, total=100.0)


class Judge:
    """Judges the steps of a submission, until the time is over."""

    def __init__(self, student: submission.Submission) -> None:
        self.student = student
        self._work = student.texts()
        self._end = time.monotonic() + TOTAL_SECONDS
        self._package_is_stuck = ""

    def limits(self, usual: process.ChildLimits) -> process.ChildLimits | None:
        """The limits of the next child; None if the time is over."""
        left = self._end - time.monotonic()
        if left < 1.0:
            return None
        return dataclasses.replace(usual, total=min(usual.total, left))

    def step(self, step: Step, one: plans.StepPlan | None) -> dict[str, Any]:
        """The result of a step, as in ``check --json``."""
        result: dict[str, Any] = {"step": step.key, "title": step.title, "state": "not started"}
        result |= {"passed": False, "checks": [], "stopped": None, "read_solution": []}
        result |= {"hidden": None, "definitions": None, "same_as_reference": []}
        result |= {"attempts": 0, "hints": 0, "hunt": None}
        left_out = self.student.why_left_out(step)
        if one is not None and left_out:
            stopped = {"kind": "left out", "text": [f"{step.work}: {left_out}"]}
            return {**result, "state": "failed", "stopped": stopped}
        if one is None or not self.student.has(step):
            return result
        result |= owners.definitions_of(step, self._work)
        reasons = self._reasons(step, one)
        result["checks"] = [
            {
                "title": title,
                "passed": not reason,
                "kind": "drill",
                "text": [reason] if reason else [],
            }
            for title, reason in zip(one.titles, reasons, strict=True)
        ]
        result["passed"] = not any(reasons)
        is_begun = not step.builds or self._has_begun(step, reasons)
        result["state"] = "passed" if result["passed"] else "failed" if is_begun else "not started"
        return result

    def _has_begun(self, step: Step, reasons: Sequence[str]) -> bool:
        """True if a submission has work for a step of ``mynode``: by the texts, or by the drills.

        A numbered step is begun if work for a later step is there.
        """
        is_imported = not any("import" in reason for reason in reasons)
        if not is_imported or not all(reasons):
            return True
        if step.kind == "step" and step.key < self._work.stage:
            return True
        return owners.has_begun(step, self._work)

    def _reasons(self, step: Step, one: plans.StepPlan) -> list[str]:
        limits = self.limits(STEP)
        stuck = self._package_is_stuck if step.builds else ""
        if limits is None or stuck:
            return [stuck or "not run: the time of the submission is over"] * len(one.names)
        with tempfile.TemporaryDirectory(prefix="tinynode-work-") as folder:
            self.student.write(Path(folder), step.work)
            found = plans.outcomes(one, Path(folder), limits)
        if step.builds and found and found[0][1].startswith("at the import"):
            self._package_is_stuck = found[0][1]  # the same for each step: once is enough
        return [plans.verdict(one, place, *outcome) for place, outcome in enumerate(found)]

    def hunt(self, one: hunting.HuntPlan) -> dict[str, Any] | None:
        """The result of a hunt; None without tests."""
        if one.work not in self.student.files:
            return None
        limits = self.limits(HUNT)
        if limits is None:
            return {"caught": 0, "of": sum(map(bool, one.bugs)), "broken": ["the time is over"]}
        with tempfile.TemporaryDirectory(prefix="tinynode-work-") as folder:
            (Path(folder) / one.work).write_bytes(self.student.files[one.work])
            return hunting.score(one, Path(folder), limits)


def judged(job: dict[str, Any]) -> dict[str, Any]:
    """The result of a submission.

    Args:
        job: ``folder``, ``adapter``, and ``plans`` and ``hunts`` by the key of a step.
    """
    start = time.perf_counter()
    chosen = [step for step in grading.with_exercise() if step.key in job["keys"]]
    adapter = submission.Adapter(**job["adapter"]) if job.get("adapter") else None
    student = submission.read(Path(job["folder"]), grading.with_exercise(), adapter)
    judge = Judge(student)
    steps = []
    for step in chosen:
        one = job["plans"].get(step.key)
        result = judge.step(step, None if one is None else plans.StepPlan(**one))
        hunt = job["hunts"].get(step.key)
        if hunt is not None and hunts.of(step) is not None:
            result["hunt"] = judge.hunt(hunting.HuntPlan(**hunt))
        steps.append(result)
    begun = [one for one in steps if one["state"] != "not started"]
    return {
        "format": grading.FORMAT,
        "version": grading.VERSION,
        "tinynode": tinynode.__version__,
        "folder": student.name,
        "passed": bool(begun) and all(one["passed"] for one in begun),
        "seconds": round(time.perf_counter() - start, 2),
        "remarks": student.remarks,
        "steps": steps,
    }


def main() -> int:
    """Judge the submission of a job."""
    process.adopt_orphans()
    job = json.loads(sys.stdin.readline())
    print(json.dumps(judged(job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
