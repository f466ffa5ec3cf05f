"""A server of one film: the reader edits the program in the page, and the program runs again.

Requirement: an edit needs no file and no installation, and no other site can run programs here.

The server listens at 127.0.0.1, and the address has a random token. Other users can read command
lines, so the browser gets the path of a private file that leads to the address. Each request must
name this host, against DNS rebinding. A request for a run must come from the page's own origin.
The number of connections is limited, and so are the time and the bytes of a request.

A request has the program's text, and changes of numbers as data. The server checks all of a change
before a run.

A program runs in a fresh child process with a time limit, and the server ends the child. The
script's file never changes. A private folder has all files of the server. The folder goes when the
command ends, after a signal too. After SIGKILL, a running program removes the folder.
"""

from __future__ import annotations

import contextlib
import hmac
import html
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import IO, Any

from tinynode.commands.edited_script import IMPOSSIBLE
from tinynode.errors import printable
from tinynode.show.films.changes import Change, from_json, to_json

HOST = "127.0.0.1"

MOST_BYTES = 1_000_000
"""The largest request, in bytes."""

MOST_HEAD = 32_768
"""The bytes for the lines before the content: a request has these and ``MOST_BYTES`` at most."""

MOST_CONNECTIONS = 16
"""The server closes further connections at once."""

REQUEST_SECONDS = 10.0
"""The time for a whole request to arrive, and for a whole answer to leave."""

CLOSE_SECONDS = 10.0
"""The longest wait for a killed program."""

MOST_OUTPUT = 20_000
"""The server keeps at most so many bytes of a program's output, from the end."""

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        page: the film's page, or None without a step.
        output: the end of the program's output, with a traceback after an error.
        error: the reason why the run failed, or an empty string.
    """

    page: bytes | None
    output: str
    error: str


class Runner:
    """Runs the texts of a program, one at a time, each in a child process.

    Args:
        script: the path of the script; gives the name and the folder.
        arguments: the script's arguments.
        quiz: True if the page asks automatic questions.
        limit: seconds after which a run is ended.
        folder: a private folder for the files of runs. None means a new one for each run.
    """

    def __init__(
        self,
        script: str,
        arguments: list[str],
        *,
        quiz: bool,
        limit: float,
        folder: Path | None = None,
    ) -> None:
        seed = secrets.randbelow(2**32)  # all runs of a program without a seed draw the same
        self.job = {"script": script, "arguments": arguments, "quiz": quiz, "seed": seed}
        self.limit = limit
        self.folder = folder
        self._busy = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, text: str, changes: Sequence[Change] = ()) -> Outcome | None:
        """Run a text of the program, with changes of numbers; None while another run lasts."""
        if not self._busy.acquire(blocking=False):
            return None
        try:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                return self._run(text, changes, Path(folder, "film.html"))
        finally:
            self._process = None
            self._busy.release()

    def _run(self, text: str, changes: Sequence[Change], page: Path) -> Outcome:
        self._is_stopped = False
        folder = self.folder or page.parent
        wish = {"text": text, "changes": [to_json(one) for one in changes]}
        job = json.dumps({**self.job, **wish, "page": str(page), "folder": str(folder)})
        with subprocess.Popen(
            [sys.executable, "-m", "tinynode.commands.edited_script"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C goes to the server only
        ) as process:
            self._process = process
            kept = bytearray()
            reader = threading.Thread(target=_read, args=(process.stdout, kept), daemon=True)
            reader.start()
            try:
                status = self._wait(process, job)
            finally:
                _kill(process)
                reader.join(5)
        output = kept.decode("utf-8", "replace")
        error = ""
        if self._is_stopped:
            error = "The program was stopped."
        elif status is None:
            error = f"The program ran longer than {self.limit:g} s, and was ended."
        elif not page.exists():
            is_refused = bool(changes) and status == IMPOSSIBLE
            no_step = "The program has no step to show."
            error = "The change is not possible." if is_refused else no_step
        elif status:
            error = "The program ended with an error."
        return Outcome(page.read_bytes() if page.exists() else None, output, error)

    def _wait(self, process: subprocess.Popen[bytes], job: str) -> int | None:
        """The exit status; None after the time limit."""
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # the child has ended
                process.stdin.write(job.encode() + b"\n")
                process.stdin.flush()
        try:
            return process.wait(self.limit)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """End a running program."""
        process = self._process
        if process is not None:
            self._is_stopped = True
            _kill(process)

    def close(self) -> None:
        """End a running program, wait until its files are gone, and start no other program."""
        end = time.monotonic() + CLOSE_SECONDS
        while not self._busy.acquire(timeout=0.1) and time.monotonic() < end:
            self.stop()


def _read(pipe: IO[bytes], kept: bytearray) -> None:
    """Read a pipe to the end, and keep the last bytes."""
    while chunk := os.read(pipe.fileno(), 65536):
        kept += chunk
        del kept[:-MOST_OUTPUT]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a child and the processes that the child has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


_ENDING = [signal.SIGINT, signal.SIGTERM]
"""The signals that end the command."""
if sys.platform != "win32":
    _ENDING.append(signal.SIGHUP)


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for this user alone; it goes at the end of the block, after a signal too."""
    folder = tempfile.mkdtemp(prefix="tinynode-")
    heard = [one for one in _ENDING if signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, _end_by_signal) for one in heard}
    try:
        yield Path(folder)
    finally:
        _ignore_signals()
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_by_signal(number: int, frame: FrameType | None) -> None:
    """Leave the block by an exception; a second signal does not interrupt the way out."""
    _ignore_signals()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _ignore_signals() -> None:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


_CURE = "Open the address that the command printed."


class FilmServer(ThreadingHTTPServer):
    """The server of a film.

    Attributes:
        page: the page of the last run with a film.
        token: the secret part of the address.
        leading_page: the private file that leads a browser to the address, until the first visit.
    """

    daemon_threads = True
    request_queue_size = 4 * MOST_CONNECTIONS  # the loop accepts all, and closes most

    def __init__(self, runner: Runner, page: bytes) -> None:
        super().__init__((HOST, 0), _Handler)
        self.runner = runner
        self.page = page
        self.token = secrets.token_urlsafe(24)
        self.host = f"{HOST}:{self.server_port}"
        self.address = f"http://{self.host}/{self.token}/"
        self.leading_page: Path | None = None
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def open_browser(self, folder: Path) -> None:
        """Open the page by a private file in ``folder``: command lines have no token."""
        path = folder / "open.html"
        with open(path, "x", encoding="utf-8", opener=_open_private) as file:
            file.write(LEADING_PAGE.format(html.escape(self.address)))
        self.leading_page = path
        # some browsers run until they are closed
        threading.Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()

    def visited(self) -> None:
        """Remove the file that has led a browser here."""
        if self.leading_page is not None:
            self.leading_page.unlink(missing_ok=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or close a connection above the limit."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then make room for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a connection that the other side has broken."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        """End a running program, and the server."""
        self.runner.close()
        self.server_close()


LEADING_PAGE = """\
<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>The film opens</title>
<p><a href="{0}">Open the film</a></p>
"""


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _LimitedRequest(io.RawIOBase):
    """The bytes of a request. They end at the largest size, and after the time limit."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.end = time.monotonic() + REQUEST_SECONDS
        self.left = MOST_HEAD + MOST_BYTES

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived; TimeoutError after the time for the whole request."""
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self.connection.settimeout(seconds)
        count = self.connection.recv_into(memoryview(buffer)[: self.left])
        self.left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the page, POST ``run`` and POST ``stop``."""

    server: FilmServer

    def setup(self) -> None:
        """Limit the time and the size of the request."""
        super().setup()
        self.rfile.close()  # it has no limits
        self.rfile = io.BufferedReader(_LimitedRequest(self.connection))

    def do_GET(self) -> None:
        """The page."""
        if self._is_allowed("GET", ("",)):
            self.server.visited()
            self._send(200, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        """Run a text of the program, or stop the run."""
        if not self._is_allowed("POST", ("run", "stop")):
            return
        content = self._read_json()
        if content is None:
            return
        if self.path.endswith("/stop"):
            self.server.runner.stop()
            self._send_json({"error": ""})
        elif not isinstance(content.get("program"), str):
            self._refuse(400, 'The request must be {"program": text, "changes": list}.')
        else:
            self._check_and_run(content["program"], content.get("changes", []))

    def _check_and_run(self, text: str, changes: Any) -> None:
        try:
            checked = from_json(changes)
        except (TypeError, ValueError) as error:
            self._refuse(400, printable(str(error)))
        else:
            self._run(text, checked)

    def _run(self, text: str, changes: list[Change]) -> None:
        outcome = self.server.runner.run(text, changes)
        if outcome is None:
            self._refuse(409, "A run is under way.")
            return
        answer = {"error": outcome.error, "output": outcome.output}
        if outcome.page is not None:
            self.server.page = outcome.page
            if outcome.error:
                answer["film"] = "until the error"
        self._send_json(answer)

    def _is_allowed(self, method: str, names: tuple[str, ...]) -> bool:
        """Check host, token and origin; a refused request gets its answer here."""
        host, origin = self.server.host, self.headers.get("Origin")
        _, token, name = (*self.path.split("/", 2), "", "")[:3]
        is_token = hmac.compare_digest(token.encode(), self.server.token.encode())
        if self.headers.get("Host") != host:
            self._refuse(403, f"This server answers at {host} alone. {_CURE}")
        elif not is_token:
            self._refuse(403, f"The address has no valid token. {_CURE}")
        elif name not in names:
            self._refuse(404, "There is no such page.")
        elif origin != f"http://{host}" and (method == "POST" or origin is not None):
            self._refuse(403, "This origin is not allowed.")
        else:
            return True
        return False

    def _read_json(self) -> dict[str, Any] | None:
        """The request's content; a bad request gets its answer here."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type") != "application/json":
            self._refuse(415, "The content must be application/json.")
        elif not (length.isascii() and length.isdecimal()):
            self._refuse(411, "The request has no length.")
        elif len(length) > 9 or int(length) > MOST_BYTES:
            self._refuse(413, f"The program has more than {MOST_BYTES} bytes.")
        else:
            try:
                content = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                content = None
            if isinstance(content, dict):
                return content
            self._refuse(400, "The content must be an object in JSON.")
        return None

    def _refuse(self, status: int, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", text.encode())

    def _send_json(self, content: dict[str, str]) -> None:
        self._send(200, "application/json", json.dumps(content).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.connection.settimeout(REQUEST_SECONDS)  # of the whole answer
        with contextlib.suppress(ConnectionError):  # the reader has closed the page
            self.send_response(status)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write no line for each request."""
