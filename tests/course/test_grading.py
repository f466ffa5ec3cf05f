"""What a teacher uses: results as JSON, hidden checks, tests of pytest, the table, templates."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked_examiner import events_of

import tinynode
from tinynode_course import (
    checking,
    command,
    examiner,
    exercises,
    grading,
    hidden,
    mynode,
    report,
    sources,
    templates,
)
from tinynode_course.progress import Progress
from tinynode_course.sealed import Seal
from tinynode_course.sources import Step

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = [(step, path) for step in sources.steps() for path in hidden.checks_of(step)]

STUB = '"""Exercise 1."""\n\n\ndef triple(x):\n    raise NotImplementedError\n\n\nhalf = None\n'
SOLUTION = "def triple(x):\n    return 3 * x\n\n\ndef half(x):\n    return x / 2\n"
CHECK = '''
from tinynode_course.checks import expect_equal, solution


def check_triple(work):
    """triple(x) is three times x"""
    expect_equal("triple of 2", work.triple(2.0), 6.0, "think of x + x + x")

def check_half(work):
    """half(x) is x / 2"""
    assert solution(__file__)  # the checks may read it
    expect_equal("half of 8", work.half(8.0), 4.0, "divide")
'''
ALLOWED = "    assert solution(__file__)  # the checks may read it\n"
MORE = CHECK.replace("2.0), 6.0", "5.0), 15.0").replace(ALLOWED, "")
READS = "from pathlib import Path\nexec(Path({!r}).read_text())\n"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of a step with hidden checks, and a folder of the learner's."""
    folder = tmp_path / "tutorials"
    more = tmp_path / "course_solutions" / "tinynode_course_solutions" / "hidden"
    for name in (folder / "exercises", folder / "checks", folder / "solutions", more):
        name.mkdir(parents=True)
    for number, title in (("01", "first"), ("02", "second")):
        text = f"# %% [markdown]\n# # Step {int(number)}: {title}\n#\n# **Goal.** Triple.\n"
        text += (
            f"#\n# ## Exercise\n# Write triple.\n#\n#     python -m tinynode.learn start {number}"
        )
        (folder / f"step{number}_{title}.py").write_text(text)
    (folder / "exercises" / "step01.py").write_text(STUB)
    (folder / "checks" / "step01.py").write_text(CHECK)
    (folder / "solutions" / "step01.py").write_text(SOLUTION)
    (more / "step01.py").write_text(MORE)
    monkeypatch.setattr(sources, "tutorials", lambda: folder)
    (tmp_path / "ada").mkdir()
    monkeypatch.chdir(tmp_path / "ada")
    return folder


def events_here(
    step: Step, work: Path, seconds: float, checks: Path | None = None
) -> Iterator[dict]:
    """The events of an examination in this process, without the seal."""
    stream = io.StringIO()
    examiner.Examiner(work, checks or step.check, stream).run()
    yield from (json.loads(line) for line in stream.getvalue().splitlines())
    yield {"event": "end"}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examinations in this process, without bytecode, as in a real one."""
    monkeypatch.setattr(checking, "events", events_here)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture
def learn(course: Path, capsys: pytest.CaptureFixture[str]):
    """Runs a command: its status, and what it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = command.main(arguments)
        out, err = capsys.readouterr()
        return status, out + err

    return run


def results(said: str) -> dict:
    """The only step with an exercise."""
    document = json.loads(said)
    assert (document["format"], document["version"]) == ("tinynode-course-check", 1)
    assert document["tinynode"] == tinynode.__version__ and document["folder"] == "ada"
    (step,) = document["steps"]
    assert document["passed"] is step["passed"]
    return step


# check --json and check all


def test_results_as_json(learn, quick) -> None:
    Path("step01.py").write_text(SOLUTION.replace("/ 2", "/ 3"))
    before = sorted(os.listdir())
    status, said = learn("check", "1", "--json")
    one = results(said)
    assert status == 1 and one["step"] == "01" and one["state"] == "failed"
    assert one["title"] == "Step 1: first"
    right, wrong = one["checks"]
    assert right["passed"] and right["title"] == "triple(x) is three times x"
    assert (wrong["kind"], wrong["expected"], wrong["got"]) == (
        "wrong",
        "4.0",
        "2.6666666666666665",
    )
    assert wrong["lines"] == ["step01.py, line 5: def half(x):"]
    assert wrong["text"][0] == "Not yet: half of 8"
    assert one["definitions"] == {"own": 1, "same as reference": 1, "taken": 0, "to write": 0}
    assert one["same_as_reference"] == ["triple"]
    assert one["hidden"] is None and one["read_solution"] == [] and one["stopped"] is None
    assert sorted(os.listdir()) == before


def test_hidden_checks_where_asked_for(learn, quick) -> None:
    Path("step01.py").write_text(
        "def triple(x):\n    return 6.0\n\n\ndef half(x):\n    return 4.0\n"
    )
    status, said = learn("check", "all", "--json", "--hidden")
    one = results(said)
    assert status == 0 and one["state"] == "passed"
    assert [check["passed"] for check in one["hidden"]["checks"]] == [False, True]
    status, said = learn("check", "all", "--hidden")
    assert status == 0 and "passed          01  2 of 2 checks, 1 of 2 hidden" in said
    status, said = learn("check", "1", "--hidden")
    assert status == 1 and "All 2 checks pass" in said and "Not yet: triple of 2" in said


def test_hidden_checks_that_are_not_installed(
    learn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hidden, "folders", list)
    status, said = learn("check", "all", "--hidden")
    assert status == 2 and "no hidden checks are installed" in said


def test_an_untouched_stub_is_not_started(learn) -> None:
    learn("start", "1")
    status, said = learn("check", "all", "--json")
    assert status == 1 and results(said)["state"] == "not started"
    Path("step01.py").write_text(STUB + "\nx = 1\n")
    assert results(learn("check", "all", "--json")[1])["state"] == "failed"


def test_a_folder_without_work(learn) -> None:
    status, said = learn("check", "all", "--json")
    assert status == 1 and results(said)["state"] == "not started"
    status, said = learn("check", "all")
    assert status == 1 and "0 of 0 exercises pass" in said and "start 01" in said
    status, said = learn("check", "1", "--json")
    assert status == 2 and "there is no step01.py" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "kind"),
    [("1 / 0\n", "error"), ("import os\nos._exit(3)\n", "crash"), ("raise SystemExit", "error")],
)
def test_work_that_stops(learn, code: str, kind: str) -> None:
    Path("step01.py").write_text(code)
    one = results(learn("check", "1", "--json")[1])
    assert not one["passed"] and one["stopped"]["kind"] == kind and one["stopped"]["text"]
    assert [check["kind"] for check in one["checks"]] == ["not run"] * 2


def test_a_step_that_outgrew_its_checks(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("step01.py").write_text(SOLUTION)
    progress = Progress(Path.cwd())
    monkeypatch.setattr(exercises, "outgrown", lambda step, progress: "too late")
    one = grading.graded(sources.find("1"), progress, 5.0, False)
    assert (one["state"], one["passed"], one["checks"]) == ("failed", False, [])
    progress.note("01", passed=True, attempts=3)
    one = grading.graded(sources.find("1"), progress, 5.0, False)
    assert (one["state"], one["passed"], one["attempts"]) == ("passed earlier", True, 3)


# a read of the solution


def test_a_seal_knows_who_reads(tmp_path: Path) -> None:
    """By the innermost frame that is of the checks, or of the learner's."""
    sealed, checks = tmp_path / "solutions", tmp_path / "checks.py"
    sealed.mkdir()
    (sealed / "step01.py").write_text("")
    seen: list[str] = []

    def line(frame: types.FrameType) -> list[str]:
        return ["the line"] if frame.f_code.co_filename == "learner.py" else []

    seal = Seal([sealed], checks, line)
    for file, inner in ((str(checks), "hook(*event)"), ("learner.py", "hook(*event)")):
        for event in (
            ("open", (str(tmp_path / "other.py"), "r", 0)),
            ("open", (3, "r", 0)),
            ("import", ("solutions", str(sealed))),
            ("open", (str(sealed / "step01.py"), "r", 0)),
        ):
            exec(compile(inner, file, "exec"), {"hook": seal.hook, "event": event})
        seen.append(str(len(seal.broken)))
    assert seen == ["0", "1"]
    assert seal.broken == [{"path": "solutions/step01.py", "lines": ["the line"]}]
    seal.hook("subprocess.Popen", ("cat", ["cat", str(sealed / "x")], None, None))
    seal.hook("subprocess.Popen", ("python", ["-m", "tinynode.learn", "show", "1"], None, None))
    seal.hook("subprocess.Popen", ("python", ["-m", "tinynode.learn", "list"], None, None))
    assert [one["path"] for one in seal.broken[1:]] == ["solutions", "learn show"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from pathlib import Path\nexec(Path({!r}).read_text())\n", "line 2"),
        (
            "import importlib.util as u\ns = u.spec_from_file_location('x', {!r})\n"
            "m = u.module_from_spec(s)\ns.loader.exec_module(m)\n"
            "triple, half = m.triple, m.half\n",
            "line 4",
        ),
        (
            "import subprocess\nexec(subprocess.run(['cat', {!r}], capture_output=True,"
            " text=True).stdout)\n",
            "line 2",
        ),
        (
            "def triple(x):\n    names = {{}}\n    exec(open({!r}).read(), names)\n"
            "    return names['triple'](x)\n\n\ndef half(x):\n    return x / 2\n",
            "line 3",
        ),
    ],
)
def test_a_read_of_the_solution_is_noticed(learn, course: Path, code: str, line: str) -> None:
    Path("step01.py").write_text(code.format(str(course / "solutions" / "step01.py")))
    status, said = learn("check", "1")
    assert status == 1 and "reads the solution of the course" in said and line in said
    assert not Progress(Path.cwd()).of("01")["passed"]
    one = results(learn("check", "1", "--json")[1])
    assert all(check["passed"] for check in one["checks"]) and not one["passed"]
    reads = one["read_solution"]  # of the file, and perhaps of its bytecode
    assert all(read["path"].startswith("solutions") for read in reads)
    assert line in reads[0]["lines"][0]


def test_a_copied_solution_is_named_and_passes(learn, quick) -> None:
    Path("step01.py").write_text("# my own\n" + SOLUTION)
    one = results(learn("check", "1", "--json")[1])
    assert one["passed"] and one["same_as_reference"] == ["triple", "half"]


# the hidden checks


def test_there_are_hidden_checks_for_ten_steps() -> None:
    assert len({step.key for step, _ in HIDDEN}) >= 10
    folder = ROOT / "course_solutions" / "tinynode_course_solutions" / "hidden"
    assert {path.name for _, path in HIDDEN} == {path.name for path in folder.glob("*.py")}


@pytest.mark.slow
@pytest.mark.parametrize(("step", "path"), HIDDEN, ids=[one.name for one, _ in HIDDEN])
def test_hidden_checks_pass_on_solutions_and_fail_on_stubs(
    step: Step, path: Path, tmp_path: Path
) -> None:
    for folder, passes in ((tmp_path / "right", True), (tmp_path / "stub", False)):
        folder.mkdir()
        package = folder / mynode.NAME
        if step.builds and passes:
            mynode.write_files(mynode.reference(step.key), package)
        elif step.builds:
            mynode.write_files(mynode.before(step.key), package)
            exercises.add_stubs(step, package)
        else:
            text = (step.solution if passes else step.stub).read_text(encoding="utf-8")
            (folder / step.work).write_text(text)
        found = grading.fold(checking.events(step, folder / step.work, 60.0, path), step)
        assert found["passed"] is passes, json.dumps(found, indent=1)
        assert found["read_solution"] == []


# pytest


@pytest.mark.slow
def test_checks_are_tests_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    step = sources.find("jacobians")
    text = step.solution.read_text(encoding="utf-8")
    text = text.replace("np.stack(columns, axis=1)", "np.stack(columns)")
    (tmp_path / "ada" / "jacobians.py").write_text(text)
    (tmp_path / "test_other.py").write_text("1 / 0")  # not collected
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "tinynode_course.pytest_plugin", "-v"]
        return subprocess.run(
            [*command, "-p", "no:cacheprovider", *options],
            cwd=tmp_path,
            env=checking.environment(),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    done = run("--learner", "ada", "--learner-hidden")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ada::jacobians::by_rows, with a backward pass for each result. PASSED" in done.stdout
    assert re.search(r"by_columns, with two backward passes for each.* FAILED", done.stdout)
    assert "Not yet: by_columns" in done.stdout and "Traceback" not in done.stdout
    assert "ada::jacobians::hidden: All ways agree" in done.stdout
    assert "test_other" not in done.stdout
    done = run("--learner", "ada", "-k", "jacobians and fewest")
    assert done.returncode == 0 and "1 passed, 4 deselected" in done.stdout
    done = run("--learner", "nobody")
    assert done.returncode == 4 and "there is no such folder" in done.stderr


# the table of a class


def test_a_table_of_the_class(learn, quick) -> None:
    codes = {"ada": SOLUTION, "bob": SOLUTION.replace("3 *", "2.0 *"), "eve": SOLUTION}
    for name, code in codes.items():
        Path("step01.py").write_text(code)
        found = json.loads(learn("check", "all", "--json", "--hidden")[1])
        if name == "eve":
            read = {"path": "solutions/step01.py", "lines": [], "passed": False, "text": []}
            found["steps"][0] |= {"passed": False, "state": "failed", "read_solution": [read]}
        Path(f"{name}.json").write_text(json.dumps(found))
    files = ["ada.json", "bob.json", "eve.json"]
    status, said = learn("report", *files, "--csv", "class.csv", "--html", "class.html")
    assert status == 0 and "wrote class.csv" in said
    rows = [line.split() for line in said.splitlines()[:4]]
    assert rows[0][:4] == ["student", "01", "passed", "hidden"]
    assert [row[:4] for row in rows[1:]] == [
        ["ada", "x", "1", "2/2"],
        ["bob", "o", "0", "1/2"],
        ["eve", "o", "0", "2/2"],
    ]
    assert rows[3][-1] == "01"  # reads the solution
    with open("class.csv", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [row["student"] for row in table] == ["ada", "bob", "eve"]
    assert (table[1]["01 state"], table[1]["01 hidden"]) == ("failed", "1/2")
    page = Path("class.html").read_text()
    assert page.count("<tr>") == 4 and "Not yet: triple of 2" in page
    assert 'class="read"' in page and "http" not in page


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("{", "has no results"), ('{"format": "x"}', "has no results")],
)
def test_a_file_without_results_is_named(learn, content: str | None, said: str) -> None:
    if content is not None:
        Path("bad.json").write_text(content)
    status, text = learn("report", "bad.json")
    assert status == 2 and said in text and "bad.json" in text


def test_a_step_that_one_file_lacks(course: Path) -> None:
    student = report.Student("ada", {})
    assert student.state("01") == "absent" and student.sums()["passed"] == "0"
    assert student.sums()["taken"] == "-"  # no owners are known
    assert "absent" in report.as_csv([student], ["01"])
    assert '<td class="dim">' in report.as_html([student], ["01"])


# templates


WHEEL, COURSE = "tinynode-0.2.0-py3-none-any.whl", "tinynode_course-0.2.0-py3-none-any.whl"


def test_a_template_for_github_classroom(learn) -> None:
    yaml = pytest.importorskip("yaml")
    Path("wheels").mkdir()
    for name in (WHEEL, COURSE):
        Path(f"wheels/{name}").write_bytes(name.encode())
    install = ["--install", f"wheels/{WHEEL}", f"wheels/{COURSE}"]
    status, said = learn("template", "github-classroom", "room", "1", *install)
    assert status == 0 and "YOUR-COPY" not in said
    for name in (WHEEL, COURSE):
        assert Path(f"room/{name}").read_bytes() == name.encode()
    workflow = yaml.safe_load(Path("room/.github/workflows/classroom.yml").read_text())
    (job,) = workflow["jobs"].values()
    graders = [one for one in job["steps"] if "command-grader" in one.get("uses", "")]
    assert [one["id"] for one in graders] == ["step01_1", "step01_2"]
    assert all(one["with"]["max-score"] == 1 for one in graders)
    assert [one["with"]["command"] for one in graders] == [
        f"python -P -m tinynode.learn report results.json --passes 01:{n}" for n in (1, 2)
    ]
    reporter = job["steps"][-1]
    assert reporter["with"]["runners"] == "step01_1,step01_2"
    assert reporter["env"] == {
        f"STEP01_{n}_RESULTS": f"${{{{steps.step01_{n}.outputs.result}}}}" for n in (1, 2)
    }
    runs = [one["run"] for one in job["steps"] if "run" in one]
    assert runs == [
        f'python -m pip install "./{WHEEL}" "./{COURSE}"',
        "python -P -m tinynode.learn check all --json > results.json || true",
    ]
    names = [one.get("name") for one in job["steps"]]
    assert names.index("Results of all steps") < names.index(graders[0]["name"])
    assert "check 01" in Path("room/README.md").read_text()
    status, said = learn("template", "github-classroom", "room")
    assert status == 1 and "is there already" in said


@pytest.mark.parametrize(
    ("wheel", "words"), [("tinynode.whl", "pip refuses the name"), (WHEEL, "there is no file")]
)
def test_a_wheel_that_pip_refuses(learn, wheel: str, words: str) -> None:
    status, said = learn("template", "github-classroom", "room", "1", "--install", wheel)
    assert status == 1 and words in said and not Path("room").exists()


def test_a_point_for_each_check(learn, quick) -> None:
    """The commands of the workflow, on work with one right definition of two."""
    Path("step01.py").write_text(SOLUTION.replace("3 * x", "4 * x"))
    learn("start", "1")
    _, said = learn("check", "all", "--json")
    Path("results.json").write_text(said)
    points = [learn("report", "results.json", "--passes", f"01:{n}")[0] for n in (1, 2, 3)]
    assert sorted(points[:2]) == [0, 1] and points[2] == 1
    assert learn("report", "results.json", "--passes", "02:1")[0] == 1
    status, said = learn("report", "results.json", "--passes", "01")
    assert status == 2 and "05:1" in said
    assert learn("report", "results.json", "--gradescope", "g.json")[0] == 0
    tests = json.loads(Path("g.json").read_text())["tests"]
    assert [test["score"] for test in tests] == [1.0 - point for point in points[:2]]
    assert all(test["max_score"] == 1 for test in tests)


def test_a_template_for_gradescope(learn) -> None:
    Path(WHEEL).write_bytes(b"a wheel")
    arguments = ("template", "gradescope", "room", "1", "--install", WHEEL)
    status, said = learn(*arguments)
    assert status == 2 and "--class TEACHER" in said
    assert learn("class", "new", "teacher")[0] == 0
    assert learn(*arguments, "--class", "teacher")[0] == 0
    assert f'pip install "./{WHEEL}"' in Path("room/setup.sh").read_text()
    assert Path("room/teacher/class.json").read_text() == Path("teacher/class.json").read_text()
    for script in ("setup.sh", "run_autograder"):
        assert subprocess.run(["bash", "-n", f"room/{script}"], check=True)


def test_a_template_for_nbgrader(learn) -> None:
    nbformat = pytest.importorskip("nbformat")
    status, said = learn("template", "nbgrader", "class")
    assert status == 0 and "YOUR-COPY" in said
    notebook = nbformat.read("class/source/step01/step01.ipynb", as_version=4)
    nbformat.validate(notebook)
    marks = [cell.metadata["nbgrader"] for cell in notebook.cells]
    assert [one["grade_id"] for one in marks] == [
        *("text", "answer", "check_triple", "check_half", "hidden_1"),
    ]
    assert [one["grade"] for one in marks] == [False, False, True, True, True]
    assert [one["solution"] for one in marks] == [False, True, False, False, False]
    assert all(one["schema_version"] == 3 for one in marks)
    assert all(("points" in one) is one["grade"] for one in marks)
    assert "Write triple." in notebook.cells[0].source
    answer, hidden_tests = notebook.cells[1].source, notebook.cells[-1].source
    assert "### BEGIN SOLUTION\ndef triple(x):\n    return 3 * x" in answer
    assert answer.startswith('"""Exercise 1."""') and answer.endswith("### END SOLUTION")
    assert "### BEGIN HIDDEN TESTS" in hidden_tests and "check_half(answer)" in hidden_tests
    compile(Path("class/nbgrader_config.py").read_text(), "nbgrader_config.py", "exec")


def test_tests_of_a_notebook_run_on_its_names(course: Path) -> None:
    names: dict = {}
    exec(SOLUTION, names)
    grading.check_names("01", "check_half", names)
    with pytest.raises(AssertionError, match="half of 8"):
        grading.check_names("01", "check_half", names | {"half": abs})


def test_exercises_of_mynode_have_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    builders = [step for step in mynode.builders() if step.builds]
    if builders:
        with pytest.raises(templates.CommandError, match="parts of mynode"):
            templates.nbgrader(builders, "x")


# the distribution for teachers


@pytest.mark.slow
def test_the_distribution_for_teachers_has_what_the_wheel_of_learners_has_not(
    tmp_path: Path,
) -> None:
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling")
    names = {}
    for folder in (ROOT, ROOT / "tutorials", ROOT / "course_solutions"):
        place = tmp_path / folder.name
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
        subprocess.run(build, cwd=folder, check=True, capture_output=True, timeout=300)
        (wheel,) = place.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names[folder.name] = archive.namelist()
            archive.extractall(tmp_path / "site")
    theirs, teachers = names["tutorials"], names["course_solutions"]
    assert not [name for name in names[ROOT.name] if "course" in name]
    assert not [name for name in theirs if "hidden/" in name or "course_solutions" in name]
    assert "tinynode_course/tutorials/hunts/stubs/step14.py" in theirs
    assert "tinynode_course_solutions/hidden/step14.py" in teachers
    assert "tinynode_course_solutions/hunts/step14.py" in teachers
    (tmp_path / "work").mkdir()
    solution = sources.find("jacobians").solution.read_text(encoding="utf-8")
    (tmp_path / "work" / "jacobians.py").write_text(solution)
    path = os.pathsep.join([str(tmp_path / "site"), checking.environment()["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "tinynode.learn", "check", "jacobians", "--json", "--hidden"],
        cwd=tmp_path / "work",
        env={**checking.environment(), "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    (one,) = json.loads(done.stdout)["steps"]
    assert one["passed"] and len(one["hidden"]["checks"]) == 2 and one["hidden"]["passed"]


@pytest.mark.slow
def test_a_forked_examination_seals_the_solutions_too(tmp_path: Path) -> None:
    """The tests of the course examine by a fork of a server, with the examiner's own main."""
    step = sources.find("jacobians")
    path = tmp_path / "jacobians.py"
    path.write_text(READS.format(str(step.solution)))
    assert "read solution" in [event["event"] for event in events_of(step, path)]


# what a learner's program writes to the pipe


@pytest.mark.parametrize(
    "line",
    [
        *("junk", "[]", "{}", "[" * 100_000, '{"event": []}'),
        *('{"event": "passed", "check": 7}', '{"event": "begin", "check": -1}'),
        '{"event": "passed", "check": "0"}',
    ],
)
def test_junk_on_the_pipe_is_named(line: str, course: Path) -> None:
    (step,) = grading.with_exercise()
    lines: checking.Lines = checking.queue.SimpleQueue()
    for one in ('{"event": "checks", "titles": ["a", "b"]}', line, ""):
        lines.put(one)
    found = list(checking._until_end(None, lines, 1.0))  # type: ignore[arg-type]
    assert [event["event"] for event in found] == ["checks", "junk"]
    results = grading.fold(found, step)
    assert not results["passed"] and "pipe" in results["stopped"]["text"][0]


def test_a_read_in_hidden_checks_fails_the_work(course: Path, monkeypatch) -> None:
    (step,) = grading.with_exercise()
    Path("step01.py").write_text(SOLUTION)
    read = {"event": "read solution", "path": "solutions/step01.py", "lines": []}

    def events(step: Step, work: Path, seconds: float, checks: Path | None = None):
        yield {"event": "checks", "titles": ["a"]}
        yield {"event": "passed", "check": 0}
        yield from [read] if checks else []
        yield {"event": "end"}

    monkeypatch.setattr(checking, "events", events)
    found = grading.graded(step, Progress(Path.cwd()), 1.0, with_hidden=True)
    assert (found["passed"], found["state"]) == (False, "failed")
    assert found["hidden"] is not None and len(found["read_solution"]) == 1


def test_a_damaged_file_of_a_student_stops_no_report(
    course: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("step01.py").write_text(SOLUTION)
    command.main(["check", "all", "--json"])
    Path("ada.json").write_text(capsys.readouterr().out)
    Path("bob.json").write_text("{")
    assert command.main(["report", "ada.json", "bob.json"]) == 2
    out, err = capsys.readouterr()
    assert "ada" in out and "left out: bob.json" in err
