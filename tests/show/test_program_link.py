"""A program in a link: Python and the script of the page agree on the form, and limit it."""

from __future__ import annotations

import json
import random
import re
import shutil
import string
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import program_links
import pytest
from hostile_texts import hostile_texts
from program_links import raw_link

import tinynode as tn
from tinynode.show import program_link

SCRIPT = Path(__file__).parents[2] / "tools" / "browser_site" / "page_files" / "link.js"
NODE = """
import { readFileSync } from "node:fs";
import { decode, encode } from "SCRIPT";
const [programs, links] = JSON.parse(readFileSync(0, "utf-8"));
const attempt = (one) => one.catch((error) => ({ error: `${error.name}: ${error.message}` }));
const written = [];
for (const { title, program } of programs) written.push(await attempt(encode(program, title)));
const read = [];
for (const link of links) read.push(await attempt(decode(link)));
console.log(JSON.stringify({ written, read }));
"""
"""Writes and reads links with the page's script, in node."""


def in_node(programs: list[dict[str, str]], links: list[str]) -> dict[str, Any]:
    """The links of programs, and the content of links, by the page's script."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node, which runs the script of the page, is not installed")
    code = NODE.replace("SCRIPT", SCRIPT.as_uri())
    done = subprocess.run(
        [node, "--input-type=module", "--eval", code],
        input=json.dumps([programs, links]),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- the form ------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", program_links.good())
def test_links_of_python_and_of_browsers_are_read(one: program_links.Good) -> None:
    assert tn.show.read_link(one.link) == (one.program, one.title)
    assert tn.show.read_link(f"https://example.org/play/#{one.link}\n").title == one.title


@pytest.mark.parametrize("one", program_links.refused(), ids=lambda one: one.name)
def test_other_links_are_refused(one: program_links.Refused) -> None:
    with pytest.raises(ValueError, match=f"read_link: .*{one.says}") as raised:
        tn.show.read_link(one.link)
    assert len(str(raised.value)) < 400 and str(raised.value).isprintable()


def test_the_script_of_the_page_has_the_same_form() -> None:
    good = program_links.good()
    refused = program_links.refused()
    programs = [{"title": one.title, "program": one.program} for one in good]
    told = in_node(programs, [one.link for one in [*good, *refused]])
    for one, link, content in zip(good, told["written"], told["read"], strict=False):
        assert content == {"title": one.title, "program": one.program}
        assert tn.show.read_link(link) == (one.program, one.title)
    for bad, content in zip(refused, told["read"][len(good) :], strict=True):
        if bad.name == "more after the end" and "error" not in content:
            continue  # node 20 drops the rest; browsers refuse it: tests/tools/test_play_page.py
        assert content["error"].startswith("Error: ") and bad.says in content["error"], bad.name


def test_the_script_of_the_page_has_the_same_limits() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    limits = dict(re.findall(r"^export const (MOST_\w+) = ([\d_]+);", text, re.MULTILINE))
    assert {name: int(value) for name, value in limits.items()} == {
        "MOST_LINK": program_link.MOST_LINK,
        "MOST_TEXT": program_link.MOST_TEXT,
        "MOST_TITLE": program_link.MOST_TITLE,
    }


def test_the_script_of_the_page_refuses_long_programs() -> None:
    letters = random.Random(0)
    noise = "".join(letters.choices(string.printable, k=20_000)).replace("\r", "")
    programs = [{"title": "", "program": text} for text in ("x" * 100_000, noise)]
    for answer in in_node(programs, [])["written"]:
        assert "The program is too long: " in answer["error"]
    for text in ("x" * 100_000, noise):
        with pytest.raises(ValueError, match=r"link: the program is too long: .* at most"):
            tn.show.link(text)


def test_damage_at_any_place_is_found() -> None:
    link = tn.show.link("print(1 + 1)", title="Sum", site="")
    part = link.partition("#")[2]
    letters = random.Random(0)
    for place in range(len(part)):
        for cut in (part[:place], part[:place] + part[place + 1 :]):
            with pytest.raises(ValueError, match=r"^read_link: "):
                tn.show.read_link(cut)
        other = part[:place] + letters.choice("ghijXYZ-_.~") + part[place + 1 :]
        if other != part:
            with pytest.raises(ValueError, match=r"^read_link: "):
                tn.show.read_link(other)


def test_a_bomb_takes_little_memory() -> None:
    bomb = raw_link(b"T\n" + b"\0" * program_links.BOMB)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="too long"):
            tn.show.read_link(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


# --- what is linked ------------------------------------------------------------------------------


def test_a_script_is_read_in_its_encoding_and_named(tmp_path: Path) -> None:
    script = tmp_path / "greet.py"
    script.write_bytes("# coding: latin-1\r\nprint('\u00e4')\r".encode("latin-1"))
    wanted = ("# coding: latin-1\nprint('\u00e4')\n", "greet.py")
    assert tn.show.read_link(tn.show.link(script)) == wanted
    assert tn.show.read_link(tn.show.link(str(script))) == wanted
    assert tn.show.read_link(tn.show.link(script, title="Hello")).title == "Hello"
    script.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"link: .*greet\.py is no text in its encoding"):
        tn.show.link(script)
    with pytest.raises(FileNotFoundError):
        tn.show.link("missing.py")
    with pytest.raises(IsADirectoryError):
        tn.show.link(tmp_path)


def test_a_name_of_a_file_becomes_a_title_of_one_line(tmp_path: Path) -> None:
    script = tmp_path / ("a\u202eb\x1b" + "x" * 150 + ".py")
    script.write_text("pass\n")
    title = tn.show.read_link(tn.show.link(script)).title
    assert title.isprintable() and len(title) == 100


def test_hostile_titles_are_refused_or_text() -> None:
    refused = 0
    for text in hostile_texts():
        try:
            link = tn.show.link(text, title=text)
        except ValueError as error:
            refused += 1
            assert str(error).startswith("link: the title ")
            if "\n" not in text:
                with pytest.raises(
                    ValueError, match=r"^read_link: the link is damaged: its first"
                ):
                    tn.show.read_link(raw_link(f"{text}\npass".encode()))
        else:
            assert re.fullmatch(r"http://localhost:8000/play/#[\w.-]+", link)
            assert tn.show.read_link(link) == (text, text)
    assert 20 < refused < 50


def test_the_address_of_the_site_is_chosen() -> None:
    part = tn.show.link("pass", site="").removeprefix("play/#")
    assert tn.show.link("pass") == f"http://localhost:8000/play/#{part}"
    for site in ("https://example.org/a", "https://example.org/a/"):
        assert tn.show.link("pass", site=site) == f"https://example.org/a/play/#{part}"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"program": 3}, TypeError, "program must be a text or a path, got"),
        ({"program": b"pass"}, TypeError, "program must be a text or a path, got"),
        ({"program": "x = '\ud800'"}, ValueError, "the program has half a character"),
        ({"title": 3}, TypeError, "title must be a text, got"),
        ({"title": "x" * 101}, ValueError, "the title has 101 characters, expected 100 at most"),
        ({"title": "a\nb"}, ValueError, "the title must be one line of visible characters"),
        ({"title": "\u202e"}, ValueError, "the title must be one line of visible characters"),
        ({"site": None}, TypeError, "site must be a text, got"),
        ({"site": "javascript:alert(1)//"}, ValueError, "site must be an address such as"),
        ({"site": "https://example.org/#a"}, ValueError, "site must be an address such as"),
        ({"site": "https://example.org/ b"}, ValueError, "site must be an address such as"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"^link: {words}"):
        tn.show.link(**{"program": "pass", **arguments})
    with pytest.raises(TypeError, match=r"^read_link: the link must be a text, got"):
        tn.show.read_link(3)  # type: ignore[arg-type]
