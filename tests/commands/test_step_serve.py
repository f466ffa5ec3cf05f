"""``step --serve``: the reader of the page edits the program, and nobody else runs anything."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import running
from film_server import SCRIPT, FakeRunner, is_alive, request, serving, wait_until

from tinynode.commands import main
from tinynode.commands.step_server import MOST_BYTES, FilmServer, Outcome, Runner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server() -> Iterator[FilmServer]:
    with serving(FakeRunner()) as server:
        yield server


def texts_of(server: FilmServer) -> list[str]:
    assert isinstance(server.runner, FakeRunner)
    return server.runner.texts


# --- who may ask ---------------------------------------------------------------------------------


def test_the_page_and_a_run(server: FilmServer) -> None:
    status, text, headers = request(server, "GET", "")
    assert (status, text) == (200, "old page")
    assert headers["X-Frame-Options"] == "DENY" and headers["Cache-Control"] == "no-store"
    assert request(server)[:2] == (200, '{"error": "", "output": "printed"}')
    assert texts_of(server) == ["text"]
    assert request(server, "GET", "")[1] == "new page"


def test_after_an_error_the_page_ends_at_the_failing_call(server: FilmServer) -> None:
    status, text, _ = request(server, content=b'{"program": "bad"}')
    assert status == 200 and json.loads(text)["error"] == "It failed."
    assert json.loads(text)["film"] == "until the error"
    assert request(server, "GET", "")[1] == "new page"


def test_an_error_without_a_film_keeps_the_page(server: FilmServer) -> None:
    status, text, _ = request(server, content=b'{"program": "bad, no page"}')
    assert status == 200 and "film" not in json.loads(text)
    assert request(server, "GET", "")[1] == "old page"


def test_it_listens_at_this_machine_only(server: FilmServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) == 32 and server.token in server.address
    with serving(FakeRunner()) as other:
        assert other.token != server.token


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("token", ["", "x", "a" * 32, "%00"])
def test_a_wrong_token_is_refused(server: FilmServer, method: str, token: str) -> None:
    name = "" if method == "GET" else "run"
    assert request(server, method, name, token=token)[:2] == (
        403,
        "The address has no valid token. Open the address that the command printed.",
    )
    assert texts_of(server) == []


@pytest.mark.parametrize("path", [b"/", b"//", b"/\xe9\xff/", b"http://127.0.0.1/"])
def test_an_odd_path_is_refused(server: FilmServer, path: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as connection:
        head = b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, server.host.encode())
        connection.sendall(head)
        reply = connection.makefile("rb").read()
    assert re.match(rb"HTTP/1.0 40[03] ", reply) and b"old page" not in reply


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("host", [None, "", "evil.example", "localhost", "127.0.0.1", "[::1]"])
def test_a_wrong_host_is_refused(server: FilmServer, method: str, host: str | None) -> None:
    """A name of another site can lead to 127.0.0.1: DNS rebinding."""
    name = "" if method == "GET" else "run"
    port = f":{server.server_port}"
    for told in [host] if host in (None, "", "127.0.0.1") else [host, f"{host}{port}"]:
        status, text, _ = request(server, method, name, Host=told)
        assert (status, text) == (
            403,
            f"This server answers at {server.host} alone. Open the address that the command "
            "printed.",
        )
    assert texts_of(server) == []


@pytest.mark.parametrize("origin", [None, "null", "", "http://evil.example", "http://127.0.0.1"])
@pytest.mark.parametrize("name", ["run", "stop"])
def test_a_wrong_origin_is_refused(server: FilmServer, name: str, origin: str | None) -> None:
    assert request(server, name=name, Origin=origin)[:2] == (403, "This origin is not allowed.")
    assert texts_of(server) == []
    assert isinstance(server.runner, FakeRunner) and server.runner.stopped == 0


def test_another_site_cannot_read_the_page(server: FilmServer) -> None:
    assert request(server, "GET", "", Origin="http://evil.example")[0] == 403


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (413, {"Content_Length": str(MOST_BYTES + 1)}),
        (413, {"Content_Length": "9" * 5000}),
        (411, {"Content_Length": None}),
        (411, {"Content_Length": "-1"}),
        (415, {"Content_Type": "text/plain"}),
        (415, {"Content_Type": None}),
        (400, {"content": b"{"}),
        (400, {"content": b"[" * 100_000}),
        (400, {"content": b'"text"'}),
        (400, {"content": b'{"program": 3}'}),
        (400, {"content": b"{}"}),
        (400, {"content": b'{"program": "text", "changes": {}}'}),
        (400, {"content": b'{"program": "text", "changes": [{"step": 1}]}'}),
        (400, {"content": b'{"program": "text", "changes": [{"step": 0, "name": "w", "to": 1}]}'}),
        (400, {"content": b"\xff"}),
        (404, {"name": "other"}),
        (404, {"name": ""}),
        (404, {"name": "run/x"}),
        (409, {"content": b'{"program": "busy"}'}),
    ],
)
def test_a_bad_request_is_refused(
    server: FilmServer, status: int, changes: dict[str, Any]
) -> None:
    assert request(server, **changes)[0] == status
    assert texts_of(server) in ([], ["busy"])


def test_stop(server: FilmServer) -> None:
    assert request(server, name="stop", content=b"{}")[0] == 200
    assert isinstance(server.runner, FakeRunner) and server.runner.stopped == 1


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "backends"))))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def film_in(page: bytes | None) -> Any:
    assert page is not None
    content = page.decode().split('<script type="application/json" id="film">')[1]
    return json.loads(content.split("</script>")[0])


@pytest.mark.slow
def test_an_edited_program_runs(script: Path) -> None:
    runner = Runner("script.py", ["a"], quiz=True, limit=60)
    text = SCRIPT.replace("1.0", "3.0") + "import sys; print(sys.argv, sys.stdin.read() == '')\n"
    outcome = runner.run(text)
    assert outcome is not None and outcome.error == ""
    assert outcome.output == "y is 13.0\n['script.py', 'a'] True\n"
    film = film_in(outcome.page)
    assert film["program"] == text and film["questions"]
    assert film["files"]["0"]["lines"] == text.splitlines()
    assert b"connect-src 'self'" in (outcome.page or b"")
    assert script.read_text(encoding="utf-8") == SCRIPT
    assert list(script.parent.iterdir()) == [script]


@pytest.mark.slow
def test_an_error_comes_with_its_traceback(script: Path) -> None:
    runner = Runner("script.py", [], quiz=False, limit=60)
    outcome = runner.run(SCRIPT + "raise KeyError('planted')\n")
    assert outcome is not None and outcome.error == "The program ended with an error."
    assert "    raise KeyError('planted')\nKeyError: 'planted'" in outcome.output
    assert film_in(outcome.page)["note"].endswith("KeyError: 'planted'")


@pytest.mark.slow
def test_errors_without_a_film(script: Path) -> None:
    runner = Runner("script.py", [], quiz=False, limit=60)
    for text, told in (("x = = 1\n", "SyntaxError"), ("print(1)", "1"), ("\0", "null bytes")):
        outcome = runner.run(text)
        assert outcome is not None and outcome.page is None
        assert outcome.error == "The program has no step to show."
        assert told in outcome.output


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["while True: pass", "while True: print('x' * 1000)"])
def test_an_endless_loop_is_ended(script: Path, loop: str) -> None:
    runner = Runner("script.py", [], quiz=False, limit=3)
    start = time.monotonic()
    outcome = runner.run(f"{SCRIPT}{loop}\n")
    assert outcome is not None and time.monotonic() - start < 20
    assert outcome.error == "The program ran longer than 3 s, and was ended."
    assert outcome.page is None and len(outcome.output) <= 20_000


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="process groups are of POSIX")
def test_a_stop_ends_a_run_and_its_children(script: Path) -> None:
    runner = Runner("script.py", [], quiz=False, limit=60)
    found: list[Outcome | None] = []
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'])\n"
        "open('pids', 'w').write(f'{child.pid}'); time.sleep(99)\n"
    )
    thread = threading.Thread(target=lambda: found.append(runner.run(text)))
    thread.start()
    wait_until(lambda: Path("pids").exists() and Path("pids").read_text() != "")
    assert runner.run("print()") is None  # one at a time
    runner.stop()
    thread.join(20)
    assert found[0] is not None and found[0].error == "The program was stopped."
    wait_until(lambda: not is_alive(int(Path("pids").read_text())))


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text"], "--serve needs the page: leave out --text."),
        (["--output", "f.html"], "--serve writes no file: leave out --output."),
        (["--limit", "0"], "expected a number above 0, got '0'"),
    ],
)
def test_options_that_do_not_go_together(
    script: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        assert main(["step", "--serve", *arguments, "script.py"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_script_without_steps_is_not_served(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text("print(1)\n", encoding="utf-8")
    assert main(["step", "--serve", "--no-open", "script.py"]) == 1
    assert "script.py: there are no steps to show." in capsys.readouterr().err


@contextlib.contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[Any], str]]:
    """The command in a process, and the page's address."""
    command = [sys.executable, "-m", "tinynode", "step", "script.py", "--serve", "--no-open"]
    with running(
        [*command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        text = ""
        while "Ctrl-C" not in text:
            assert select.select([process.stdout], [], [], 30)[0], text
            part = os.read(process.stdout.fileno(), 4096).decode()
            assert part, text
            text += part
        assert text.startswith("y is 5.0\n")
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", text)
        assert found is not None
        yield process, found[0]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C to a process is of POSIX")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_server_ends_its_child(script: Path, end: signal.Signals) -> None:
    with served(script.parent) as (process, address):
        host, token = re.findall(r"http://(.*)/(.*)/", address)[0]
        connection = http.client.HTTPConnection(host, timeout=30)
        text = f"{SCRIPT}import os; open('pid', 'w').write(str(os.getpid()))\nwhile True: pass\n"
        headers = {"Origin": f"http://{host}", "Content-Type": "application/json"}
        connection.request("POST", f"/{token}/run", json.dumps({"program": text}), headers)
        wait_until(lambda: Path("pid").exists() and Path("pid").read_text() != "")
        process.send_signal(end)
        assert process.wait(20) == (130 if end == signal.SIGINT else -signal.SIGKILL)
        wait_until(lambda: not is_alive(int(Path("pid").read_text())))
        connection.close()


# --- the page ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_reader_edits_a_number_and_runs_it(script: Path, browser: Any) -> None:
    problems: list[str] = []
    with served(script.parent, "--limit", "5") as (_, url):
        page = browser.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        page.keyboard.press("n")
        selected = "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.activeElement)"
        page.click("#graph [data-id=v0] .value")
        assert page.evaluate(selected) == "1.0"
        page.keyboard.type("7")
        page.keyboard.press("Control+Enter")
        wait_until(lambda: "[7, 2]" in (page.text_content("#graph [data-id=v0]") or ""))
        page.wait_for_selector("#edit")
        assert page.locator("#counter").text_content() == "2 of 6"  # the address keeps the step
        page.click("#user-code .digit >> text=2.0")
        assert page.evaluate(selected) == "2.0"
        page.keyboard.type("nan +")
        page.click("#run")
        page.wait_for_selector("#run-error:not([hidden])")
        error = page.text_content("#run-error")
        assert error is not None and "SyntaxError" in error
        assert page.locator("#show-failure").is_hidden()
        page.fill("#program", f"{SCRIPT}raise KeyError('planted')")
        page.click("#run")
        page.click("#show-failure")
        page.wait_for_selector(".failure")
        assert page.text_content(".failure h3") == "KeyError"
        page.click("#edit")
        page.fill("#program", f"{SCRIPT}while True: pass")
        page.click("#run")
        page.click("#stop")
        wait_until(lambda: "was stopped" in (page.text_content("#run-error") or ""))
        page.keyboard.press("Escape")
        page.close()
    assert problems == []
    assert script.read_text(encoding="utf-8") == SCRIPT


@pytest.mark.slow
def test_a_saved_page_offers_no_edit_but_to_a_hook(script: Path, browser: Any) -> None:
    outcome = Runner("script.py", [], quiz=False, limit=60).run(SCRIPT)
    assert outcome is not None and outcome.page is not None
    Path("film.html").write_bytes(outcome.page)
    hook = "window.tinynodeRun = async (text) => `ran ${text.length}`"
    page = browser.new_page()
    page.goto(Path("film.html").resolve().as_uri())
    assert page.query_selector("#edit") is None
    page.add_init_script(hook)
    page.reload()
    page.click("#edit")
    page.click("#run")
    page.wait_for_selector("#run-error:not([hidden])")
    assert page.text_content("#run-error") == f"ran {len(SCRIPT)}"
    page.close()
