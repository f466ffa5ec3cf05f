"""``step --serve``: the token stays private, no client holds the server, and nothing is left."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import running
from film_server import SCRIPT, FakeRunner, is_alive, serving, wait_until

from tinynode.commands import step_server
from tinynode.commands.step_server import FilmServer, Runner

ROOT = Path(__file__).resolve().parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and modes are of POSIX")


@pytest.fixture
def server() -> Iterator[FilmServer]:
    with serving(FakeRunner()) as server:
        yield server


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has half a second."""
    monkeypatch.setattr(step_server, "REQUEST_SECONDS", 0.5)


def connected(server: FilmServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=10)


def page_of(server: FilmServer) -> int:
    """The status of the answer to a reader."""
    connection = http.client.HTTPConnection(server.host, timeout=10)
    connection.request("GET", f"/{server.token}/")
    status = connection.getresponse().status
    connection.close()
    return status


# --- the token -----------------------------------------------------------------------------------


@POSIX
def test_the_browser_gets_a_private_file_and_no_token(
    server: FilmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(step_server.webbrowser, "open", opened.append)
    with step_server.private_folder() as folder:
        server.open_browser(folder)
        wait_until(lambda: opened)
        path = folder / "open.html"
        assert opened == [path.as_uri()] and server.token not in opened[0]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert f'url={server.address}"' in path.read_text(encoding="utf-8")
        assert page_of(server) == 200
        assert list(folder.iterdir()) == [], "after the visit, no file has the token"
    assert not folder.exists()


def test_a_file_in_the_way_is_not_followed(server: FilmServer, tmp_path: Path) -> None:
    (tmp_path / "open.html").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        server.open_browser(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


# --- connections ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST /%s/run HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\n"
        b"Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n",
    ],
)
@pytest.mark.usefixtures("short")
def test_a_slow_client_is_left(server: FilmServer, head: bytes) -> None:
    """Each byte in time does not make a request in time."""
    host = server.host.encode()
    start = time.monotonic()
    with connected(server) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(head % (server.token.encode(), host, host) if b"%" in head else head)
        while not select.select([connection], [], [], 0.05)[0] and time.monotonic() - start < 9:
            connection.sendall(b"x")
        assert connection.recv(100) == b""
    assert time.monotonic() - start < 5
    assert isinstance(server.runner, FakeRunner) and server.runner.texts == []


@pytest.mark.parametrize("part", [b"x", b"Name: " + b"x" * 60_000 + b"\r\n"])
def test_an_endless_head_ends(server: FilmServer, part: bytes) -> None:
    with connected(server) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(600_000_000 // len(part * 1000)):
            connection.sendall(part * 1000)
        pytest.fail("the server reads 600 MB")
    assert page_of(server) == 200


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_many_clients_get_few_threads_and_the_reader_comes_back(server: FilmServer) -> None:
    before = threading.active_count()
    clients = [connected(server) for _ in range(200)]
    with contextlib.suppress(OSError, http.client.HTTPException):
        page_of(server)  # all places are taken
    assert threading.active_count() - before <= step_server.MOST_CONNECTIONS
    time.sleep(1)
    assert page_of(server) == 200
    for client in clients:
        client.close()


def test_a_broken_connection_prints_nothing(
    server: FilmServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(20):
        with connected(server) as connection:
            # the end is a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(b"POST / HTTP/1.1\r\nContent")
    assert page_of(server) == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("short")
def test_a_client_that_reads_nothing_is_left(server: FilmServer) -> None:
    server.page = b"x" * 50_000_000
    with connected(server) as connection:
        connection.sendall(
            f"GET /{server.token}/ HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()
        )
        time.sleep(1.5)
        received = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1_000_000):
                received += len(part)
    assert received < 50_000_000


# --- the end -------------------------------------------------------------------------------------


LASTING = """
import os, subprocess, sys
code = "import signal, time\\nfor n in 1, 2, 15: signal.signal(n, signal.SIG_IGN)\\ntime.sleep(99)"
child = subprocess.Popen([sys.executable, "-c", code])
open("pids.part", "w").write(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
while True: pass
"""
"""A program that does not end, with a child that ignores signals."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the script; temporary files go to ``temporary``."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "backends"))))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def command(*options: str) -> Any:
    words = [sys.executable, "-m", "tinynode", "step", "script.py", "--serve", *options]
    return running(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def address_of(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Host and token, which the command prints."""
    text = ""
    while "Ctrl-C" not in text:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0], text
        text += os.read(process.stdout.fileno(), 4096).decode()
    return re.findall(r"http://([\d.:]+)/([\w-]+)/", text)[0]


def pids() -> list[int]:
    """The processes of the lasting program."""
    wait_until(Path("pids").exists)
    return [int(pid) for pid in Path("pids").read_text(encoding="utf-8").split()]


def run_lasting(host: str, token: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"Origin": f"http://{host}", "Content-Type": "application/json"}
    content = json.dumps({"program": SCRIPT + LASTING})
    connection.request("POST", f"/{token}/run", content, headers)
    return connection


ENDS = [
    (signal.SIGINT, 130),
    (signal.SIGTERM, 128 + signal.SIGTERM),
    (signal.SIGHUP, 128 + signal.SIGHUP),
    (signal.SIGKILL, -signal.SIGKILL),
] if os.name == "posix" else []  # fmt: skip


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), ENDS)
def test_a_signal_leaves_no_process_and_no_folder(
    folder: Path, number: signal.Signals, status: int
) -> None:
    with command("--no-open") as process:
        connection = run_lasting(*address_of(process))
        found = pids()
        assert len(list((folder / "temporary").iterdir())) == 1
        process.send_signal(number)
        if number != signal.SIGKILL:
            process.send_signal(number)  # a second one does not interrupt the way out
        assert process.wait(30) == status
        wait_until(lambda: not any(map(is_alive, found)))
        wait_until(lambda: list((folder / "temporary").iterdir()) == [])
        connection.close()


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("number", [number for number, _ in ENDS])
def test_a_signal_in_the_first_run_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    (folder / "script.py").write_text(SCRIPT + LASTING, encoding="utf-8")
    with command("--no-open") as process:
        found = pids()
        process.send_signal(number)
        process.wait(30)
        wait_until(lambda: not any(map(is_alive, found)))
        wait_until(lambda: list((folder / "temporary").iterdir()) == [])


@POSIX
@pytest.mark.slow
def test_a_program_that_reads_its_input_does_not_hold_the_pipe(folder: Path) -> None:
    text = "import subprocess; print(subprocess.run(['cat'], capture_output=True).stdout)\n"
    outcome = Runner("script.py", [], quiz=False, limit=30).run(SCRIPT + text)
    assert outcome is not None and outcome.error == "" and outcome.output.endswith("b''\n")


@POSIX
@pytest.mark.slow
def test_no_command_line_has_the_token(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that notes its words stands for a real one."""
    program = folder / "browser"
    program.write_text('#!/bin/sh\necho "$0 $@" > words.part\nmv words.part words\nsleep 60\n')
    program.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(program))
    with command() as process:
        _, token = address_of(process)
        wait_until(Path("words").exists)
        words = Path("words").read_text(encoding="utf-8")
        assert "/open.html" in words and token not in words
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                assert token.encode() not in path.read_bytes()


@pytest.mark.slow
def test_the_file_leads_a_browser_to_the_film(server: FilmServer, browser: Any) -> None:
    server.page = b"<!DOCTYPE html><title>The film</title>"
    page = browser.new_page()
    with step_server.private_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_server.webbrowser, "open", lambda address: None)
        server.open_browser(folder)
        page.goto((folder / "open.html").as_uri())
        page.wait_for_url(server.address)
        assert page.title() == "The film"
    page.close()
