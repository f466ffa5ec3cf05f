"""The bug hunts: each bug can be caught, a stub catches nothing, and scores add up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinynode_course import command, hunter, hunts, sources
from tinynode_course.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "course_solutions" / "tinynode_course_solutions" / "hunts"
HUNTS = hunts.hunts()

ENGINE = "def double(x):\n    return 2 * x\n\n\ndef wait(n):\n    return n\n"

BUGS = """
ENGINE = {"small.py": %r}
BUGS = (
    ("a factor", "small.py", "2 * x", "3 * x"),
    ("a loop without an end", "small.py", "return n", "while n: pass"),
    ("an exit", "small.py", "return 2 * x", "import os; os._exit(3)"),
    ("a wrong value of wait", "small.py", "return n", "return n + 1"),
)
"""


def each(found: list[hunts.Hunt]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("hunt", found, ids=[hunt.step.name for hunt in found])


def bugs(hunt: hunts.Hunt) -> tuple[tuple[str, str, str, str], ...]:
    return sources.load(hunt.path, f"tinynode_hunt_{hunt.path.stem}").BUGS


def test_every_hunt_has_its_files() -> None:
    names = {f"{hunt.step.name}.py" for hunt in HUNTS}
    folder = ROOT / "tutorials" / "hunts"
    for other in (folder, folder / "stubs", SOLUTIONS):
        assert {path.name for path in other.glob("*.py")} == names
    assert {path.name for path in (folder / "engines").glob("*.py")} <= names


@each(HUNTS)
def test_every_bug_has_words_and_one_place(hunt: hunts.Hunt) -> None:
    module = sources.load(hunt.path, f"tinynode_hunt_{hunt.path.stem}")
    assert 15 <= len(module.BUGS) <= 20
    assert len({what for what, *_ in module.BUGS}) == len(module.BUGS)
    for what, path, old, new in module.BUGS:
        assert module.ENGINE[path].count(old) == 1 and old != new, f"{what}: {old}"
        compile(module.ENGINE[path].replace(old, new), path, "exec")
    text = hunt.stub.read_text(encoding="utf-8")
    assert f"plants {len(module.BUGS)} bugs" in " ".join(text.split())
    command = f"python -m tinynode.learn hunt {hunt.step.key}\n"
    assert command in text
    assert command in hunt.step.path.read_text(encoding="utf-8")


@each(HUNTS)
@pytest.mark.slow
def test_a_solution_catches_every_bug(hunt: hunts.Hunt) -> None:
    result = hunts.score(hunt, SOLUTIONS / hunt.path.name)
    assert result.broken == {} and result.lives is None
    assert hunts.SECONDS > 0 and len(result.caught) == len(result.bugs)


@each(HUNTS)
@pytest.mark.slow
def test_the_stub_passes_and_catches_nothing(hunt: hunts.Hunt) -> None:
    result = hunts.score(hunt, hunt.stub)
    assert result.counts and result.caught == {}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hunt of four bugs, and a folder of the learner's."""
    folder = tmp_path / "tutorials"
    (folder / "hunts" / "stubs").mkdir(parents=True)
    (folder / "step01_first.py").write_text("# %% [markdown]\n# # Step 1: first\n")
    (folder / "step02_second.py").write_text("# %% [markdown]\n# # Step 2: second\n")
    (folder / "hunts" / "step01.py").write_text(BUGS % ENGINE)
    (folder / "hunts" / "stubs" / "step01.py").write_text('"""Write tests."""\n')
    monkeypatch.setattr(sources, "tutorials", lambda: folder)
    monkeypatch.setattr(hunts, "LEAST_SECONDS", 0.3)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def hunt(small: Path, capsys: pytest.CaptureFixture[str]):
    """Runs the command: its status, and what it printed."""

    def run(tests: str | None = None) -> tuple[int, str]:
        if tests is not None:
            Path("hunt01.py").write_text(tests)
        capsys.readouterr()
        status = command.main(["hunt", "1"])
        out, err = capsys.readouterr()
        return status, out + err

    return run


@pytest.mark.slow
def test_the_first_call_writes_a_stub_and_the_next_asks_for_tests(hunt) -> None:
    status, said = hunt()
    assert status == 0 and "wrote hunt01.py" in said and "hunt 01" in said
    status, said = hunt()
    assert status == 1 and "has no tests yet" in said
    assert Path("hunt01.py").read_text() == '"""Write tests."""\n'
    assert Progress(Path.cwd()).of("01") == {}


DOUBLE = "def test_double(engine):\n    assert engine.double(4) == 8\n"
WAIT = "\n\ndef test_wait(engine):\n    assert engine.wait(1) == 1\n"


@pytest.mark.slow
def test_bugs_are_caught_and_the_best_score_is_kept(hunt) -> None:
    status, said = hunt(DOUBLE)
    assert status == 1 and "1 test passes" in said
    assert "caught 2 of 4 planted bugs" in said  # a wrong number, and a process that ends
    assert "One that lives: a loop without an end" in said
    status, said = hunt(DOUBLE + WAIT)
    assert status == 0 and "2 tests pass" in said and "caught 4 of 4" in said
    hunt("def test_nothing(engine): pass\n")
    assert Progress(Path.cwd()).of("01") == {"hunt": {"caught": 4, "of": 4, "runs": 3}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (
            "def test_wrong(engine):\n    assert engine.double(1) == 3\n",
            "hunt01.py, line 2: assert",
        ),
        ("def test_wrong(engine:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("def test_wrong(): pass\n", "TypeError"),
        ("def test_exit(engine): raise SystemExit\n", "SystemExit"),
        ("import os\nos._exit(0)\n", "Python ended while the tests ran"),
    ],
)
def test_tests_must_pass_on_the_right_engine(hunt, tests: str, said: str) -> None:
    status, text = hunt(tests)
    assert status == 1 and said in text and "caught" not in text
    assert Progress(Path.cwd()).of("01") == {}


def test_a_score_in_words_and_in_the_progress(hunt, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hunt()[0] == 0 and Path("hunt01.py").exists()
    module = sources.load(sources.tutorials() / "hunts" / "step01.py", "a_hunt_in_a_test")
    result = hunts.Score(module.BUGS, ["test_one"], {1: "test_one", 3: "test_one"})
    monkeypatch.setattr(hunts, "score", lambda hunt, tests: result)
    status, said = hunt()
    assert status == 1 and "1 test passes" in said and "caught 2 of 4" in said
    assert "One that lives: a loop without an end" in said
    result.caught = {1: "test_one"}
    assert "caught 1 of 4" in hunt()[1]
    assert Progress(Path.cwd()).of("01") == {"hunt": {"caught": 2, "of": 4, "runs": 2}}
    result.caught = dict.fromkeys(range(1, 5), "test_one")
    status, said = hunt()
    assert status == 0 and "lives" not in said
    result.broken = {"test_one": {"message": "AssertionError", "lines": ["hunt01.py, line 2: x"]}}
    status, said = hunt()
    assert status == 1 and "test_one fails on the right engine" in said and "line 2" in said
    result.tests, result.broken = [], {}
    assert "has no tests yet" in hunt()[1]
    assert Progress(Path.cwd()).of("01")["hunt"]["runs"] == 3


def test_a_step_without_a_hunt_names_those_with_one(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["hunt", "2"]) == 2
    assert "steps with one are: 01" in capsys.readouterr().err


def test_a_hunt_in_this_process(small: Path) -> None:
    """Fresh modules for each version, and nothing left behind."""
    tests = small / "hunt01.py"
    tests.write_text(DOUBLE + WAIT + "\n\nprinted = print\n")
    module = sources.load(sources.tutorials() / "hunts" / "step01.py", "a_hunt_in_a_test")
    events: list[dict] = []
    for number in (0, 1, 4):
        hunter.run(tests, module, number, lambda **event: events.append(event))
    results = [event for event in events if event["event"] == "result"]
    assert [list(one["failed"]) for one in results] == [[], ["test_double"], ["test_wait"]]
    assert results[0]["tests"] == ["test_double", "test_wait"]
    assert results[1]["failed"]["test_double"]["lines"] == [
        "hunt01.py, line 2: assert engine.double(4) == 8"
    ]
