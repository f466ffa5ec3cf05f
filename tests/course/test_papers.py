"""Question banks and sheets: other readers find the answers, and numbers come from the key."""

from __future__ import annotations

import html
import io
import json
import os
import random
import re
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tinynode_course import command
from tinynode_course.judge import gradescope, keys, submission
from tinynode_course.recall import gift, more_cards, papers, qti
from tinynode_course.recall.card import DrawnQuestion, spellings

KEY, OTHER = "a" * 64, "b" * 64
CARDS = [card for card in more_cards.ALL if card.step in ("01", "05", "07", "11", "12", "14")]
NAMESPACE = {"q": qti.QTI}


@pytest.fixture(scope="module")
def groups() -> dict[str, list[DrawnQuestion]]:
    return papers.drawn(KEY, CARDS, 4)


# --- GIFT ----------------------------------------------------------------------------------------


def read_gift(text: str) -> list[tuple[str, str, str, str]]:
    """A reader of its own: (category, text, answers, feedback) for each question."""
    category, found = "", []
    for block in re.split(r"\n[ \t]*\n", text.strip()):
        if block.startswith("$CATEGORY:"):
            category = block.partition(":")[2].strip()
            continue
        parts = re.fullmatch(r"::((?:\\.|[^:\\])+)::\s*\[html\](.*?)(?<!\\)\{(.*)\}", block)
        assert parts is not None, block
        assert "\n" not in block
        answers, mark, feedback = parts[3].partition("####")
        assert mark
        for piece in (parts[2], feedback):
            assert not re.search(r"(?<!\\)[~=#{}:]", piece), piece
        found.append((category, plain(parts[2]).strip(), answers, plain(feedback)))
    return found


def plain(text: str) -> str:
    return re.sub(r"\\([\\~=#{}:])", r"\1", text)


def test_another_reader_finds_each_question_of_a_gift_file(
    groups: dict[str, list[DrawnQuestion]],
) -> None:
    found = read_gift(gift.bank(groups, "tinynode"))
    questions = [(name, one) for name, many in groups.items() for one in many]
    assert len(found) == len(questions) > len(groups)
    for (category, text, answers, feedback), (name, one) in zip(found, questions, strict=True):
        assert category == f"$course$/top/tinynode/{name}"
        program = text.partition("<pre>")[2].partition("</pre>")[0].replace("<br>", "\n")
        assert html.unescape(program) == one.program.strip("\n")
        assert html.unescape(text).endswith(f"<p>{one.text}</p>")
        assert html.unescape(feedback) == one.why
        marked = re.findall(r"(?<!\\)([=~])((?:\\.|[^\\=~])*)", answers)
        if one.is_number:
            number, _, distance = answers.removeprefix("#").partition(":")
            assert float(number) == pytest.approx(one.answer, rel=1e-5)
            assert re.fullmatch(r"[\d.]+", distance), "no exponents: readers refuse them"
            assert float(distance) <= 0.007 * abs(float(number)) + 1e-8
        elif one.choices:
            right = [html.unescape(plain(text.strip())) for sign, text in marked if sign == "="]
            assert right == [one.answer] and len(marked) == len(one.choices)
        else:
            assert {sign for sign, _ in marked} == {"="}
            assert [plain(text.strip()) for _, text in marked] == spellings(str(one.answer))


def test_characters_of_gift_are_escaped() -> None:
    name = "x = {1: '#~\\'}  # a < b"
    question = DrawnQuestion("a", "01", name, "Is a < b & c = d?", "{~=}", "so: #", ("{~=}", "b"))
    ((_, text, answers, feedback),) = read_gift(gift.bank({"g": [question]}, "t"))
    assert html.unescape(text) == f"<pre>{name}</pre><p>Is a < b & c = d?</p>"
    assert plain(answers) == "={~=} ~b" and feedback == "so: #"


# --- QTI -----------------------------------------------------------------------------------------


def test_another_reader_finds_each_question_of_a_qti_package(
    groups: dict[str, list[DrawnQuestion]],
) -> None:
    content = qti.package(groups, "tinynode")
    archive = zipfile.ZipFile(io.BytesIO(content))
    manifest = ElementTree.fromstring(archive.read("imsmanifest.xml"))
    (file,) = [one.attrib["href"] for one in manifest.iter() if one.tag.endswith("}file")]
    root = ElementTree.fromstring(archive.read(file))
    sections = root.findall(".//q:section/q:section", NAMESPACE)
    assert [one.attrib["title"] for one in sections] == list(groups)
    identifiers = [one.attrib["ident"] for one in root.iter(f"{{{qti.QTI}}}item")]
    assert len(identifiers) == len(set(identifiers))
    for section, questions in zip(sections, groups.values(), strict=True):
        assert section.findtext(".//q:selection_number", None, NAMESPACE) == "1"
        items = section.findall("q:item", NAMESPACE)
        for item, one in zip(items, questions, strict=True):
            kind = item.findtext(".//q:fieldentry", "", NAMESPACE)
            right = [x.text or "" for x in item.iterfind(".//q:varequal", NAMESPACE)]
            shown = item.findtext("q:presentation/q:material/q:mattext", "", NAMESPACE)
            assert html.unescape(shown).endswith(f"<p>{one.text}</p>")
            if one.is_number:
                assert kind == "numerical_question"
                low, high = (
                    float(item.findtext(f".//q:{name}", "", NAMESPACE))
                    for name in ("vargte", "varlte")
                )
                assert low <= float(right[0]) <= high
                assert one.is_right(right[0]) and not one.is_right(str(high + abs(high) + 1))
            elif one.choices:
                assert kind == "multiple_choice_question"
                labels = {
                    label.attrib["ident"]: label.findtext(".//q:mattext", None, NAMESPACE)
                    for label in item.iterfind(".//q:response_label", NAMESPACE)
                }
                assert [labels[name] for name in right] == [one.answer]
            else:
                assert kind == "short_answer_question" and one.answer in right
    assert content == qti.package(groups, "tinynode")  # the same bytes each time


# --- numbers of a class --------------------------------------------------------------------------


def test_a_key_gives_its_own_numbers(groups: dict[str, list[DrawnQuestion]]) -> None:
    assert papers.drawn(KEY, CARDS, 4) == groups
    assert papers.drawn(OTHER, CARDS, 4) != groups
    for questions in groups.values():
        assert len({(one.program, one.text) for one in questions}) == len(questions)
    ada, bob = (papers.questions_for(KEY, more_cards.ALL, name) for name in ("ada", "bob"))
    assert ada == papers.questions_for(KEY, more_cards.ALL, "ada") != bob
    assert ada != papers.questions_for(OTHER, more_cards.ALL, "ada")
    assert [one.step for one in ada] == sorted(one.step for one in ada)


@pytest.fixture
def teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    keys.new(tmp_path / "teacher")
    return tmp_path


def test_the_command_writes_banks(teacher: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bank.gift", "bank.zip"):
        words = ["class", "questions", "teacher", name, "--steps", "05", "--variants", "3"]
        assert command.main(words) == 0
    assert len(read_gift(Path("bank.gift").read_text())) == 6
    assert zipfile.ZipFile("bank.zip").testzip() is None
    assert command.main(["class", "questions", "teacher", "bank.txt"]) == 2
    assert ".gift (Moodle) or .zip (Canvas)" in capsys.readouterr().err
    assert command.main(["class", "questions", "teacher", "b.gift", "--variants", "0"]) == 2
    assert command.main(["class", "questions", "teacher", "b.gift", "--steps", "99"]) == 2
    assert command.main(["class", "questions", "nobody", "b.gift"]) == 2


OWN = """\
class Square(FunctionNode):
    def forward(self, inputs):
        (x,) = inputs
        self.seen = "<b>"
        return (x * x,)

    def backward(self, targets, grad_outputs):
        return (2 * self.inputs[0] * grad_outputs[0],)
"""


def test_sheets_ask_about_the_code_of_a_student_and_run_none(teacher: Path) -> None:
    folder = teacher / "ada" / "mynode"
    folder.mkdir(parents=True)
    trap = f"open({str(teacher / 'ran')!r}, 'w')\n"
    (folder / "own.py").write_text(trap + OWN)
    (folder / "broken.py").write_text("def (:\n")
    (teacher / "bob").mkdir()
    assert command.main(["class", "sheets", "teacher", "exam", "ada", "bob"]) == 0
    assert not (teacher / "ran").exists()
    sheet = (teacher / "exam" / "students" / "ada.html").read_text()
    answers = (teacher / "exam" / "answers.html").read_text()
    assert "mynode/own.py, line 2" in sheet and html.escape(OWN.strip()) in sheet
    assert "<b>" not in sheet
    questions = papers.questions_for(
        keys.open_key(teacher / "teacher"), papers.cards_of(None), "ada"
    )
    assert all(one.why not in sheet and html.escape(one.why) in answers for one in questions)
    assert command.main(["class", "sheets", "teacher", "exam", "ada"]) == 1  # nothing is replaced


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_sheets_of_names_that_are_no_utf8(teacher: Path) -> None:
    (teacher / os.fsdecode(b"ada\xff")).mkdir()
    assert command.main(["class", "sheets", "teacher", "exam", os.fsdecode(b"ada\xff")]) == 0
    assert (teacher / "exam" / "students" / "ada\\udcff.html").exists()


@pytest.mark.parametrize("names", [["ada", "bod"], ["ada", "more/ada"]])
def test_sheets_of_no_folder_and_of_two_with_a_name(teacher: Path, names: list[str]) -> None:
    (teacher / "more" / "ada").mkdir(parents=True)
    (teacher / "ada").mkdir()
    assert command.main(["class", "sheets", "teacher", "exam", *names]) == 2
    assert not (teacher / "exam").exists()


def test_questions_about_a_definition_fit_it() -> None:
    asked = {papers.question_about(OWN, random.Random(seed)) for seed in range(60)}
    assert any("backward" in one for one in asked) and any("keep between" in one for one in asked)
    deleted = {one for one in asked if "is deleted" in one}
    assert deleted and all(line in OWN for line in re.findall(r"The line  (.+?)  is", str(asked)))
    function = "def f(x):\n    y = x\n    z = y\n    return z\n"
    asked = {papers.question_about(function, random.Random(seed)) for seed in range(60)}
    assert not any("backward" in one for one in asked) and len(asked) == 6


def test_definitions_like_the_reference_come_last(teacher: Path) -> None:
    from tinynode_course import mynode

    text = mynode.reference("05")["core/backprop.py"].encode()
    files = {"mynode/core/backprop.py": text, "mynode/own.py": OWN.encode()}
    found = papers.own_code(KEY, submission.Submission("ada", files))
    assert found[0][0] == "mynode/own.py, line 1"
    assert found[1][0].startswith("mynode/core/backprop.py")


# --- Gradescope ----------------------------------------------------------------------------------


def result(**facts: object) -> dict:
    step = {"step": "05", "title": "Step 5", "checks": [], "stopped": None, "hunt": None}
    return {"seconds": 2.4, "remarks": ["left out: x"], "steps": [{**step, **facts}]}


def test_gradescope_gets_a_point_for_each_check() -> None:
    checks = [
        {"title": "adds", "passed": True, "text": []},
        {"title": "copies", "passed": False, "text": ["expected 0.1234"]},
    ]
    text = gradescope.results(result(checks=checks, hunt={"caught": 15, "of": 20}))
    found = json.loads(text)
    assert [(one["score"], one["max_score"]) for one in found["tests"]] == [
        *((1.0, 1.0), (0.0, 1.0), (3.75, 5.0))
    ]
    assert [one["status"] for one in found["tests"]] == ["passed", "failed", "failed"]
    assert "score" not in found and found["execution_time"] == 2
    assert found["output"] == "left out: x"
    shown = [one["output"] for one in found["tests"]]
    assert not any("0.1234" in one for one in shown), "an expected value of the class is shown"
    assert "0.1234" in found["tests"][1]["extra_data"]["for instructors"]
    shown = json.loads(gradescope.results(result(checks=checks), True))["tests"]
    assert shown[1]["output"] == "expected 0.1234"


def test_gradescope_gets_a_result_without_work() -> None:
    found = json.loads(gradescope.results(result()))
    assert found["score"] == 0.0 and found["tests"] == []
    stopped = result(stopped={"text": ["an endless loop"]})
    (test,) = json.loads(gradescope.results(stopped))["tests"]
    assert test["score"] == 0.0 and "endless loop" in test["output"]
