"""What all tests share: one thread, no compiler by default, and random tests are repeatable."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# before NumPy and PyTorch are imported: each process of a run has one core, and threads that wait
# for each other made a training five times slower
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import hypothesis
import numpy
import process_wide
import pytest
import row_counts

import tinynode as tn

# a shell lets a run in the background ignore Ctrl-C, and tests send the signal to themselves
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a test that compiles C says so: a compiler for each plan of a test would take minutes
if "TINYNODE_COMPILER" not in os.environ:
    tn.global_config.compiler = "none"

# SciPy reads the setting when it is imported: its functions then take arrays of any library
os.environ["SCIPY_ARRAY_API"] = "1"

# the same examples in every run, and no time limit for one of them: machines differ
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tests")


@pytest.fixture
def without_numpy_warnings() -> Iterator[None]:
    """For tests at infinities, poles and NaN: NumPy warns of none of them."""
    with numpy.errstate(all="ignore"):
        yield


@pytest.fixture
def native_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The machine's compiler, and a folder for its libraries that all tests of a run share."""
    folder = tmp_path_factory.getbasetemp() / "native-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("TINYNODE_CACHE", str(folder))
    with tn.using_config(compiler="auto"):
        yield folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of a module; without one, or without playwright, they skip."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="the page is driven with playwright, which is not installed"
    )
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("there is no Chromium or Chrome to open the page in")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def site_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site with the course in the browser."""
    from course_site import built_site, served  # here, since few tests need the site

    with served(built_site(tmp_path_factory.getbasetemp())) as address:
        yield address


@pytest.fixture
def tab(browser: Any, site_address: str) -> Iterator[Any]:
    """A tab of a reader who has never been on the site; no request may leave the site."""
    from course_site import Tab

    context = browser.new_context()
    made = Tab(context, site_address)
    yield made
    context.close()
    assert made.local() and made.errors == []


def pytest_itemcollected(item: Any) -> None:
    process_wide.mark(item)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzzing")
    group.addoption("--programs", type=int, default=200, help="random programs (default: 200)")
    group.addoption("--fuzz-seed", type=int, default=0, help="the seed of random programs")
    group.addoption("--mutated-files", type=int, default=180, help="mutated files (default: 180)")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Who computed the random programs, and the outcomes of reading mutated files."""
    for title in ("fuzzing: compared arrays", "mutated files: outcomes"):
        counts: Counter[str] = Counter()
        for report in [one for reports in terminalreporter.stats.values() for one in reports]:
            for name, value in getattr(report, "user_properties", ()):
                if name == title.partition(":")[0] and report.when == "call":
                    counts.update(value)
        if counts:
            terminalreporter.section(title)
            terminalreporter.write_line(", ".join(f"{who}: {n}" for who, n in counts.items()))
    option = terminalreporter.config.option
    names = [one for one in option.file_or_dir if "::" in one]
    only_failed = getattr(option, "lf", False)  # missing without pytest's cache
    if not (option.keyword or only_failed or option.maxfail or names):  # else a part ran
        all_reports = [one for reports in terminalreporter.stats.values() for one in reports]
        row_counts.write(all_reports)
