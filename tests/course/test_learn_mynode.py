"""The learner's package: stubs are added, references are taken, and no work is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinynode.commands.command_line import CommandError
from tinynode_course import command, mynode, shell, sources, use_mynode
from tinynode_course.progress import NAME, Progress

PAGE = "# %% [markdown]\n# # Step {n}: {name}\n#\n# **Goal.** To test.\n\n# %%\nprint({n})\n"

CHECK = '''
from tinynode_course.checks import expect_equal
{until}

def check_value(work):
    """{function}() is {value}"""
    expect_equal("{function}()", work.{function}(), {value}, "look")

MISTAKES = ()
'''

FILES = {
    "exercises/step01/__init__.py": '"""mine"""\n\nfrom mynode.core.a import one\n',
    "exercises/step01/core/a.py": (
        '"""Write one."""\n\n\ndef one():\n    """1"""\n    raise NotImplementedError("step 1")\n'
    ),
    "solutions/step01/__init__.py": '"""mine"""\n\nfrom mynode.core.a import one\n',
    "solutions/step01/core/a.py": '"""One."""\n\n\ndef one():\n    """1"""\n    return 1\n',
    "exercises/step02/__init__.py": "from mynode.core.a import two\n",
    "exercises/step02/core/a.py": (
        'import math\n\n\ndef one():\n    return "the stub\'s"\n\n\n'
        '# why\ndef two():\n    raise NotImplementedError("step 2")\n'
    ),
    "solutions/step02/__init__.py": '"""mine"""\n\nfrom mynode.core.a import one, two\n',
    "solutions/step02/core/a.py": (
        '"""One."""\n\nimport math\n\n\ndef one():\n    """1"""\n    return 1.0\n\n\n'
        "def two():\n    return math.sqrt(4)\n"
    ),
    "checks/step01.py": CHECK.format(function="one", value=1, until='UNTIL = "01"'),
    "checks/step02.py": CHECK.format(function="two", value=2.0, until=""),
}


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two steps that build mynode, and the learner's folder."""
    folder = tmp_path / "tutorials"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for n, name in ((1, "first"), (2, "second")):
        (folder / f"step{n:02}_{name}.py").write_text(PAGE.format(n=n, name=name))
    monkeypatch.setattr(sources, "tutorials", lambda: folder)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


@pytest.fixture
def learn(course: Path, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = command.main(arguments)
        out, err = capsys.readouterr()
        return status, out + err

    return run


def test_the_first_start_lays_rules_for_assistants(learn) -> None:
    status, said = learn("start", "01")
    assert status == 0 and "wrote AGENTS.md" in said
    rules = Path("AGENTS.md").read_text()
    assert "Teach, and do not solve" in rules and "learn hint STEP" in rules
    Path("AGENTS.md").unlink()
    learn("take", "01")
    assert learn("start", "02")[0] == 0 and not Path("AGENTS.md").exists()  # removed: stays away


def test_a_refused_start_writes_no_file(learn) -> None:
    status, said = learn("start", "02")
    assert status == 2 and "start 01" in said and os.listdir() == []
    learn("start", "01")
    status, said = learn("start", "02")
    assert status == 2 and f"Do step 01 first: {shell.PROGRAM} check 01" in said


def test_a_check_of_a_step_that_is_not_started_says_so(learn) -> None:
    learn("start", "01")
    status, said = learn("check", "02")
    assert status == 1 and "Step 02 is not started in this folder" in said and "start 02" in said
    assert Progress(Path.cwd()).of("02")["started"] is False
    assert "not started" not in learn("check", "01")[1]


def test_a_file_of_the_learner_for_assistants_stays(learn) -> None:
    Path("AGENTS.md").write_text("mine")
    status, said = learn("start", "01")
    assert status == 0 and "AGENTS.md" not in said
    assert Path("AGENTS.md").read_text() == "mine"


def test_a_strangers_package_is_refused_with_the_cure(
    learn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert learn("start", "01")[0] == 0
    facts = tmp_path / "site-packages" / "mynode-1.1.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text("Metadata-Version: 2.1\nName: mynode\nVersion: 1.1\n")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    for words in (("start", "02"), ("check", "01"), ("status",), ("run", "01", "--mine")):
        status, said = learn(*words)
        assert status == 2 and "python -m pip uninstall mynode" in said, words
    assert learn("run", "01", "--no-questions")[0] == 0, "the course's own package runs"


A = Path("mynode/core/a.py")


def write_one(value: str = "1") -> None:
    A.write_text(A.read_text().replace('raise NotImplementedError("step 1")', f"return {value}"))


def test_definitions_have_their_decorators_and_comments() -> None:
    text = "import os\n\n# why\n@cache\ndef f():\n    pass\n\n\nX = 1\n\n\nclass C:\n    y = 2\n"
    found = mynode.definitions(text)
    assert list(found) == ["f", "X", "C"]
    assert found["f"].text == "# why\n@cache\ndef f():\n    pass"
    documented = mynode.definitions('@cache\ndef f():\n    """Words."""\n    pass\n')["f"]
    assert documented.meaning == found["f"].meaning, "docstrings and comments do not count"


def test_imports_are_added_once_and_after_the_others() -> None:
    text = '"""Doc."""\n\nimport os\nfrom a import b\n\n\ndef f():\n    pass\n'
    new = mynode.with_imports(text, ["import os", "from a import c"])
    assert new.splitlines()[2:5] == ["import os", "from a import b", "from a import c"]
    assert mynode.with_imports(new, ["from a import c"]) == new
    assert mynode.with_imports("x = 1\n", ["import os"]) == "import os\nx = 1\n"
    assert mynode.with_imports('"""Doc."""\n', ["import os"]) == '"""Doc."""\n\nimport os\n'


@pytest.mark.slow
def test_the_way_through_two_steps(learn) -> None:
    status, said = learn("start", "1")
    assert status == 0 and "mynode/core/a.py: added one" in said
    assert learn("check", "1")[0] == 1
    assert "to write           one" in learn("status")[1]
    status, said = learn("start", "2")
    assert status == 2 and "step 01, which is open" in said and "take 01" in said
    write_one()
    status, said = learn("check", "1")
    assert status == 0 and "Next: Step 2" in said
    status, said = learn("start", "2")
    assert status == 0 and "mynode/core/a.py: added two" in said
    text = A.read_text()
    assert "return 1\n" in text and "# why\ndef two" in text and "import math" in text
    assert text.count("def one") == 1, "a definition of the learner's stays"
    status, said = learn("check", "2")
    assert status == 1 and "mynode/core/a.py, line" in said and "step 2" in said
    assert "No file was changed" in learn("start", "2")[1]


def test_a_skipped_step_is_taken_and_named(learn) -> None:
    learn("start", "1")
    write_one("0 + 1")
    learn("check", "1")
    status, said = learn("take", "2")
    assert status == 0 and "took one, two" in said and "kept your mynode/core/a.py as" in said
    assert learn("check", "2")[0] == 0
    said = learn("status")[1]
    assert "reference, step 02 one" in said and "reference, step 02 two" in said
    A.write_text(A.read_text().replace("math.sqrt(4)", "math.sqrt(2 * 2)"))
    said = learn("status")[1]
    assert "reference, step 02 one" in said and "yours              two" in said
    assert "1 of 2 definitions are yours" in said
    assert "0 + 1" in Path("mynode/core/a.py.old-1").read_text()


def test_take_of_an_early_step_leaves_what_later_steps_changed(learn) -> None:
    for key in ("1", "2"):
        learn("take", key)
    after = A.read_text()
    status, said = learn("take", "1")
    assert status == 0 and "left one, which later steps changed" in said
    assert A.read_text() == after and "return 1.0" in after
    assert learn("show", "1", "--now")[1].startswith("mynode is the same as the solution")


def test_take_keeps_a_copy_of_the_learner_s_lines_alone(learn) -> None:
    for key in ("1", "2"):
        status, said = learn("take", key)
        assert status == 0 and "kept your" not in said
    learn("start", "1")
    assert not list(Path("mynode").rglob("*.old-*"))
    A.write_text(A.read_text().replace("def two():", "def two():\n    # mine"))
    assert "kept your mynode/core/a.py as a.py.old-1" in learn("take", "2")[1]
    assert "# mine" in Path("mynode/core/a.py.old-1").read_text()


def test_all_open_steps_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["start", "bytes"]) == 2
    said = capsys.readouterr().err
    assert "builds on step 01, which is open" in said and "Then come 02, 03, " in said
    assert "12, 13, in this order" in said


def test_what_a_stub_gives_is_not_the_learner_s(course: Path, learn) -> None:
    stub = course / "exercises/step01/core/a.py"
    stub.write_text(stub.read_text() + "\n\ndef three():\n    return 3\n")
    later = course / "exercises/step02/core/a.py"
    later.write_text(later.read_text().replace('return "the stub\'s"', "return 1"))
    learn("start", "1")
    write_one()
    learn("check", "1")
    learn("start", "2")
    said = learn("status")[1]
    assert "given              three" in said
    assert "yours              one" in said, "step 2 gives what the learner wrote in step 1"
    assert "1 of 3 definitions are yours" in said and "1 were given." in said


def test_take_changes_all_files_or_none(learn) -> None:
    """The last file of the step is broken: the files before stay as they were."""
    learn("start", "1")
    A.write_text("def (\n")
    root = Path("mynode/__init__.py")
    root.unlink()
    status, said = learn("take", "1")
    assert status == 1 and "mynode/core/a.py, line 1" in said
    assert not root.exists() and not list(Path("mynode").rglob("*.old-*"))


@pytest.mark.parametrize("words", ["start 2", "take 2", "show 1 --now", "status"])
def test_a_file_that_is_no_utf_8_is_named(learn, words: str) -> None:
    learn("take", "1")
    A.write_bytes(b"# \xff\n" + A.read_bytes())
    status, said = learn(*words.split())
    assert status == 1 and "mynode/core/a.py is no UTF-8 text" in said


def test_show_is_the_difference_to_the_reference_of_this_step_only(learn) -> None:
    learn("take", "1")
    learn("start", "2")
    A.write_text(A.read_text() + "\n\ndef own():\n    return 3\n")
    learn("check", "2")
    status, said = learn("show", "2")
    assert status == 0 and "+    return math.sqrt(4)" in said and "own" not in said.split("+++")[0]
    assert "-def own" not in said


def test_checks_that_fit_no_longer_say_so(learn) -> None:
    learn("take", "1")
    assert learn("check", "1")[0] == 0
    learn("start", "2")
    status, said = learn("check", "1")
    assert status == 2 and "fit mynode up to step 01; yours has parts of step 02" in said


@pytest.mark.parametrize("word", ["start", "take", "status"])
def test_a_file_that_is_no_python_is_left_alone(learn, word: str) -> None:
    learn("take", "1")
    A.write_text("def one(:\n")
    status, said = learn(word, *(["2"] if word != "status" else []))
    assert status == 1 and "mynode/core/a.py, line 1" in said and "mend" in said
    assert A.read_text() == "def one(:\n"


def test_a_missing_name_is_named_with_the_package(learn) -> None:
    learn("take", "1")
    Path("mynode/__init__.py").write_text("")
    status, said = learn("check", "1")
    assert status == 1 and "mynode does not define one" in said


def test_a_file_that_nobody_imports_may_be_no_python(learn) -> None:
    learn("take", "1")
    A.write_text(A.read_text().replace("return 1", "return 3"))
    Path("mynode/old.py").write_text("def (")
    status, said = learn("check", "1")
    assert status == 1 and "Not yet: one()" in said and "a.py, line 3: def one():" in said


def test_run_takes_the_learners_package_if_asked(learn, course: Path) -> None:
    program = course / "step01_first.py"
    program.write_text(
        program.read_text()
        + 'from tinynode_course import use_mynode\nuse_mynode("01")\nimport mynode\n'
        + 'print("one is", mynode.one())\n'
    )
    assert "one is 1\n" in learn("run", "1")[1]
    status, said = learn("run", "1", "--mine")
    assert status == 2 and "there is no mynode" in said
    learn("start", "1")
    write_one("'mine'")
    assert "one is mine" in learn("run", "1", "--mine")[1]
    assert "one is 1\n" in learn("run", "1")[1]


def test_run_names_the_line_of_the_learners_package_that_stops(learn, course: Path) -> None:
    program = course / "step01_first.py"
    program.write_text(
        program.read_text()
        + 'from tinynode_course import use_mynode\nuse_mynode("01")\nimport mynode\n'
        + "mynode.one()\nint('x')\n"
    )
    learn("start", "1")
    write_one("int('y')")
    (path,) = [one for one in Path("mynode").rglob("*.py") if "int('y')" in one.read_text()]
    line = path.read_text().splitlines().index("    return int('y')") + 1
    status, said = learn("run", "1", "--mine")
    assert status == 1
    assert "stopped with ValueError" in said and f"; your code: {path}, line {line}\n" in said
    status, said = learn("run", "1")
    assert status == 1 and "your code" not in said


def test_excerpts_mark_the_changed_lines(course: Path) -> None:
    whole = mynode.excerpt("02", "core/a.py", ["one", "two"])
    lines = whole.code.splitlines()
    assert [lines[i - 1] for i in whole.marked] == [
        "    return 1.0", "def two():", "    return math.sqrt(4)"
    ]  # fmt: skip
    assert mynode.excerpt("02", "core/a.py", ["two"]).marked == (), "all is new"
    first, excerpt, last = mynode.parts("a\n\n<!-- mynode: core/a.py two -->\n\nb", "02")
    assert (first, last) == ("a", "b")
    assert isinstance(excerpt, mynode.Excerpt) and excerpt.code.startswith("def two")
    with pytest.raises(KeyError):
        mynode.parts("<!-- mynode: core/a.py three -->", "02")


def test_use_mynode_gives_real_files_of_the_stage(course: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tinynode_course import sources, use_mynode\n"
        f"sources.tutorials = lambda: Path({str(course)!r})\n"
        "for key in ('01', '02', '01'):\n"
        "    use_mynode(key); import mynode\n"
        "    print(hasattr(mynode, 'two'), Path(mynode.__file__).is_file())\n"
        "print(mynode.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    *lines, path = done.stdout.splitlines()
    assert lines == ["False True", "True True", "False True"]
    assert not Path(path).exists(), "the temporary folder is removed at the end"
    with pytest.raises(CommandError, match="no step"):
        use_mynode("77")


def test_progress_keeps_what_was_taken(learn) -> None:
    learn("take", "1")
    taken = json.loads(Path(NAME).read_text())["steps"]["01"]["taken"]
    assert list(taken) == ["__init__.py", "core/a.py"] and list(taken["core/a.py"]) == ["one"]
    assert Progress(Path.cwd()).of("01")["started"]
