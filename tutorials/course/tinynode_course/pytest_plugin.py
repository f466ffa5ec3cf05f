"""The checks of the course as tests of pytest, on a learner's folder.

Requirement: teachers use their own tools. Each check is a test, named by the step and the title
of the check. A failure reads as in ``learn check``:

    pytest -p tinynode_course.pytest_plugin --learner ada -k "jacobians or compile"

With ``--learner-hidden`` the hidden checks are tests too. The checks of a step run once a session,
in a process of the examiner, with the time limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tinynode_course import checking, grading, hidden
from tinynode_course.progress import Progress
from tinynode_course.sources import Step


class CheckFailure(Exception):  # noqa: N818 - learners read the name
    """A check failed; the message has the lines of ``learn check``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tinynode", "the tinynode course")
    group.addoption("--learner", metavar="DIR", help="run the checks of the course on a folder")
    group.addoption("--learner-hidden", action="store_true", help="run the hidden checks too")
    group.addoption(
        "--learner-seconds", type=float, default=60.0, help="time limit of a step; default: 60"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the learner's folder, and nothing else.

    Raises:
        UsageError: There is no such folder.
    """
    folder = config.getoption("--learner")
    if folder is None:
        return
    path = Path(folder).resolve()
    if not path.is_dir():
        raise pytest.UsageError(f"--learner {folder}: there is no such folder")
    config.args[:] = [str(path)]


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the learner's folder by steps."""
    folder = parent.config.getoption("--learner")
    if folder is not None and path == Path(folder).resolve():
        return LearnersFolder.from_parent(parent, path=path)
    return None


class LearnersFolder(pytest.Directory):
    """The learner's folder."""

    def collect(self) -> Iterator[pytest.Collector]:
        """The steps with work."""
        progress = Progress(self.path)
        for step in grading.with_exercise():
            if grading.is_started(step, progress, self.path):
                yield StepCollector.from_parent(self, name=step.name, step=step)


class StepCollector(pytest.Collector):
    """The checks of a step."""

    def __init__(self, step: Step, **options: Any) -> None:
        super().__init__(**options)
        self.step = step
        self._results: dict[Path, dict[str, Any]] = {}

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each check."""
        for title in grading.titles_of(self.step.check, self.step):
            yield CheckItem.from_parent(self, name=title, title=title, file=self.step.check)
        if self.config.getoption("--learner-hidden"):
            for path in hidden.checks_of(self.step):
                for title in grading.titles_of(path, self.step):
                    name = f"hidden: {title}"
                    yield CheckItem.from_parent(self, name=name, title=title, file=path)

    def results(self, checks: Path) -> dict[str, Any]:
        """The results of a file of checks."""
        if checks not in self._results:
            work = self.path / self.step.work
            seconds = self.config.getoption("--learner-seconds")
            events = checking.events(self.step, work, seconds, checks)
            self._results[checks] = grading.fold(events, self.step)
        return self._results[checks]


class CheckItem(pytest.Item):
    """A check of a step."""

    def __init__(self, file: Path, title: str, **options: Any) -> None:
        super().__init__(**options)
        self.file = file
        self.title = title

    def runtest(self) -> None:
        """Look at the result of the check.

        Raises:
            CheckFailure: The check failed, or did not run.
        """
        collector = self.parent
        if not isinstance(collector, StepCollector):
            raise TypeError("a check belongs to a step")
        results = collector.results(self.file)
        found = [one for one in results["checks"] if one["title"] == self.title]
        for event in (*results["read_solution"], *found, results["stopped"]):
            if event is not None and not event["passed"] and event["text"]:
                raise CheckFailure("\n".join(event["text"]))
        if not found or not found[0]["passed"]:
            raise CheckFailure("The check did not run.")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The lines of ``learn check``, without a traceback."""
        if isinstance(excinfo.value, CheckFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The step and the title."""
        name = self.parent.name if self.parent is not None else ""
        return self.path, None, f"{name}: {self.name}"
