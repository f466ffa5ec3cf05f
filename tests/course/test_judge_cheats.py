"""Cheats: each ends with a reason, in bounded time, and passes nothing.

The first thirteen were found by a teacher, in the earlier way of grading. The others read the
source of the judge.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from judging import SINGLE, hunt_plan, hunted, plan, reasons, solution, step_of, write

from tinynode_course import grading, mynode, sources
from tinynode_course.judge import classes, keys, one, process, submission

STEP = "step05"
pytestmark = pytest.mark.slow  # each cheat is judged in processes of its own

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the locks are of Linux")

PIPES = """
for fd in range(3, 64):
    try:
        os.write(fd, {line!r})
    except OSError:
        pass
"""


def forged(*events: str) -> str:
    """A program that writes events to all open files."""
    line = ("\n".join(events) + "\n").encode()
    return "import os\n" + PIPES.format(line=line)


RESULT = '{"event": "result", "number": %d, "value": ["bool", true]}'

# programs for mynode/__init__.py, before the untouched stubs of the learner
PACKAGE_CHEATS = {
    "the code of all functions is replaced": (
        "import gc, types\n"
        "def yes(*inputs, **options):\n    return True\n"
        "for one in gc.get_objects():\n"
        "    if isinstance(one, types.FunctionType) and one.__module__ in ('wire', 'drill',\n"
        "            '__main__', 'tinynode_course.drilling') and not one.__closure__:\n"
        "        one.__code__ = yes.__code__\n"
    ),
    "the examiner's methods are replaced": (
        "import __main__\n"
        "def run(job, tell, wire):\n"
        "    for number in range(len(job['calls'])):\n"
        "        tell(event='begin', number=number)\n"
        "        tell(event='result', number=number, value=['bool', True])\n"
        "__main__.run_drills = run\n"
        "import sys\n"
        "frame = sys._getframe()\n"
        "while frame.f_code.co_name != 'run_drills':\n    frame = frame.f_back\n"
        "run(frame.f_locals['job'], frame.f_locals['tell'], None)\n"
        "frame.f_locals['tell'](event='end')\nimport os\nos._exit(0)\n"
    ),
    "events are forged": forged(
        '{"event": "imported"}', *(RESULT % number for number in range(3)), '{"event": "end"}'
    ),
    "posix_spawn": (
        "import os, sys\nos.posix_spawn(sys.executable, [sys.executable, '-m', 'tinynode.learn',\n"
        "    'take', '05'], {})\n"
    ),
    "ctypes": "import ctypes\nassert ctypes.CDLL(None).system(b'true') == 0\n",
    "python -c": (
        "import subprocess, sys\n"
        "exec(subprocess.check_output([sys.executable, '-c', 'print(1)']))\n"
    ),
    "a process in another folder": "import subprocess\nsubprocess.run(['ls'], cwd='/tmp')\n",
    "the package of the course": "from tinynode_course import mynode\n",
    "functions of tinynode": "from tinynode.functions import conv2d\n",
    "wrong numbers of events": forged(RESULT % 7, RESULT % -1, RESULT % 10**9),
    "a number that is no number": forged('{"event": "result", "number": [], "value": 1}'),
    "junk": forged('{"event": ' + "[" * 5000),
    "no object": forged("[1, 2]", "null", "3"),
    "a class of a value": forged('{"event": "result", "number": 0, "value": ["module", "os"]}'),
    "a flood": "import os\nwhile True:\n    for fd in range(3, 64):\n"
    "        try:\n            os.write(fd, b'x' * 60000)\n"
    "        except OSError:\n            pass\n",
    "a flood of events": (
        "import os\nwhile True:\n    for fd in range(3, 64):\n"
        '        try:\n            os.write(fd, b\'{"event": "x"}\\n\')\n'
        "        except OSError:\n            pass\n"
    ),
    "a flood of prints": "while True:\n    print('x' * 10000)\n",
    "an endless loop": "while True:\n    pass\n",
    "a loop that no signal ends": (
        "import signal\nfor n in range(1, 60):\n"
        "    try:\n        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n"
        "        pass\nwhile True:\n    pass\n"
    ),
    "a process that stops itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
    "reads of open files": (
        "import os\nfor fd in os.listdir('/proc/self/fd'):\n"
        "    open(f'/proc/self/fd/{fd}').read()\n"
    ),
    "exit": "import sys\nsys.exit(0)\n",
    "os._exit": "import os\nos._exit(0)\n",
    "a crash": "import ctypes\nctypes.string_at(0)\n",
    "a closed pipe": "import os, time\nos.closerange(3, 64)\ntime.sleep(600)\n",
    "a fork bomb": "import os\nwhile True:\n    os.fork()\n",
    "threads without an end": (
        "import threading, time\nwhile True:\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
    ),
    "all memory": "x = [0]\nwhile True:\n    x += x\n",
    "a signal to the judge": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "a signal to all": "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
    "the network": "import socket\nsocket.create_server(('127.0.0.1', 0))\n",
    "higher limits": (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY,) * 2)\n"
    ),
    "other packages of Python": (
        "import os, sys\nfor folder in PLACES:\n"
        "    os.listdir(folder)\n    sys.path.append(folder)\n"
    ),
    "a recursion without an end": "def f():\n    f()\nf()\n",
    "an error without a text": (
        "class E(Exception):\n    def __str__(self):\n        1 / 0\nraise E\n"
    ),
}


@ON_LINUX
@pytest.mark.parametrize("name", PACKAGE_CHEATS)
def test_a_package_that_cheats(name: str, tmp_path: Path, monkeypatch) -> None:
    """Stubs of step 5 behind a program of the student's: no drill is passed, and time is short."""
    monkeypatch.setattr(one, "STEP", process.ChildLimits(seconds=3.0, total=6.0))
    places = [entry for entry in sys.path if entry]
    text = f"PLACES = {places!r}\n{PACKAGE_CHEATS[name]}"
    files = {f"mynode/{path}": content for path, content in mynode.before(STEP[4:]).items()}
    files["mynode/__init__.py"] = text + files["mynode/__init__.py"]
    before = process.children()
    start = time.monotonic()
    found = reasons(STEP, write(files, tmp_path / "eve"))
    assert all(found) and len(found) == 3
    assert time.monotonic() - start < 40.0
    assert set(process.children()) <= set(before)


@ON_LINUX
def test_a_read_of_the_pipe_ends_at_once(tmp_path: Path) -> None:
    """The pipe of the judge has no other end to open: reads do not wait for the limit."""
    text = """
import os, pathlib
said = []
for fd in range(1, 64):
    try:
        said.append(os.read(fd, 10))
    except OSError:
        pass
    try:
        said.append(pathlib.Path(f"/proc/self/fd/{fd}").read_bytes())
    except OSError:
        pass
raise ValueError(f"read: {set(said)}")
"""
    start = time.monotonic()
    (said,) = reasons(SINGLE, write({f"{SINGLE}.py": text}, tmp_path / "eve"))
    assert "ValueError: read: {b''}" in said
    assert time.monotonic() - start < one.STEP.seconds


@ON_LINUX
def test_without_a_cheat_the_same_package_passes(tmp_path: Path) -> None:
    assert reasons(STEP, write(solution(STEP), tmp_path / "ada")) == [""] * 3


# answers that pretend

DIRECTIONS = """
import numpy as np
import tinynode as tn
{program}

def hvp(f, x, v):
    return jvp(lambda at: tn.grad([f(at)], [at], enable_double_backprop=True)[0], x, v)[1]

def bend(f, x, v):
    return jvp(lambda at: jvp(f, at, v)[1], x, v)[1]
"""

HONEST = (
    "def jvp(f, x, v):\n"
    "    y = f(x)\n"
    "    u = tn.asarray(np.ones(y.shape), requires_grad=True)\n"
    "    g = tn.grad([y], [x], [u], enable_double_backprop=True)\n"
    "    return y, tn.grad(g, [u], [v], enable_double_backprop=True)[0]"
)

ANSWERS = {
    "an import": (
        "from tinynode.transforms.linear import jvp as given\n"
        "def jvp(f, x, v):\n    return given(f, (x,), (v,))"
    ),
    "an import at the call": (
        "def jvp(f, x, v):\n    y, pushforward = tn.linearize(f, x)\n    return y, pushforward(v)"
    ),
    "a value that is equal to all": (
        "class Equal:\n    __module__ = 'numpy'\n"
        "    def __eq__(self, other):\n        return True\n"
        "    def __getattr__(self, name):\n        return self\n"
        "    def __getitem__(self, place):\n        return self\n"
        "    def __call__(self, *inputs, **options):\n        return self\n"
        "    def __iter__(self):\n        return iter([self, self])\n"
        "jvp = Equal()\n"
        "tn.grad = Equal()\ntn.Variable = Equal()"
    ),
    "comparisons of NumPy are replaced": (
        "def yes(*inputs, **options):\n    return True\n"
        "np.allclose = np.array_equal = np.isclose = yes\n"
        "def jvp(f, x, v):\n    y = f(x)\n    return y, 0.0 * y"
    ),
    "an array that lies": (
        "class Liar(np.ndarray):\n    dtype = np.dtype('float64')\n"
        "    def tobytes(self, *inputs):\n        return b''\n"
        "def zeros(*inputs, **options):\n    return np.zeros(4).view(Liar)\n"
        "class Box:\n    array = zeros()\n"
        "def jvp(f, x, v):\n    return f(x), Box"
    ),
    "the encoder is replaced": (
        "import sys\nfor module in list(sys.modules.values()):\n"
        "    if hasattr(module, 'encode') and hasattr(module, 'WireError'):\n"
        "        module.encode = lambda value, depth=0: ['bool', True]\n"
        "def jvp(f, x, v):\n    y = f(x)\n    return y, 0.0 * y"
    ),
    "the caller's values": (
        "import sys\n"
        "def jvp(f, x, v):\n"
        "    frame = sys._getframe()\n    found = {}\n"
        "    while frame:\n"
        "        found = {**frame.f_locals, **found}\n        frame = frame.f_back\n"
        "    right = found.get('right', found.get('expected', (f(x), f(x))))\n"
        "    return right[0], right[1]"
    ),
}


def test_an_honest_answer_passes(tmp_path: Path) -> None:
    folder = write({f"{SINGLE}.py": DIRECTIONS.format(program=HONEST)}, tmp_path / "ada")
    assert reasons(SINGLE, folder) == [""]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_pretends(name: str, tmp_path: Path) -> None:
    folder = write({f"{SINGLE}.py": DIRECTIONS.format(program=ANSWERS[name])}, tmp_path / "eve")
    assert all(reasons(SINGLE, folder))


def test_an_untouched_stub_has_no_points(tmp_path: Path) -> None:
    for name in ("vmap", "jacobians", "registry"):
        step = next(step for step in sources.steps() if step.name == name)
        folder = write({step.work: step.stub.read_text() + "# begun\n"}, tmp_path / name)
        assert all(reasons(name, folder))


# files


@ON_LINUX
def test_a_program_reads_and_writes_no_other_file(tmp_path: Path) -> None:
    keys.new(tmp_path / "teacher")
    secret = tmp_path / "teacher" / keys.NAME
    targets = [secret, Path(sources.__file__), sources.tutorials() / "solutions" / f"{SINGLE}.py"]
    (tmp_path / "eve").mkdir()
    text = f"""
import os
found = []
for path in {[str(path) for path in targets]!r} + ["/proc/self/environ", "/etc/passwd"]:
    for mode in ("r", "a", "w"):
        try:
            open(path, mode)
            found.append((path, mode))
        except OSError:
            pass
for call in (lambda: os.unlink({str(secret)!r}), lambda: os.mkdir({str(tmp_path / "new")!r}),
             lambda: os.rename({str(secret)!r}, {str(tmp_path / "x")!r}),
             lambda: os.chmod({str(secret)!r}, 0o777), lambda: os.symlink("/etc", "link"),
             lambda: open("here", "w")):
    try:
        call()
        found.append(call)
    except OSError:
        pass
raise ValueError(f"opened: {{found}}")
"""
    (said,) = reasons(SINGLE, write({f"{SINGLE}.py": text}, tmp_path / "eve"))
    assert said.endswith("ValueError: opened: []")
    assert secret.stat().st_mode & 0o777 == 0o600 and keys.open_key(tmp_path / "teacher")


def test_links_and_pipes_are_no_work(tmp_path: Path) -> None:
    folder = tmp_path / "eve"
    folder.mkdir()
    solutions = sources.tutorials() / "solutions"
    (folder / "vmap.py").symlink_to(solutions / "vmap.py")
    os.mkfifo(folder / "compile.py")
    (folder / "registry.py").write_bytes(b"#" * (submission.MOST_FILE + 1))
    (folder / "jacobians.py").mkdir()
    (folder / "mynode").symlink_to(solutions / "step01")
    found = submission.read(folder, grading.with_exercise())
    assert found.files == {} and len(found.remarks) == 5
    (folder / "mynode").unlink()
    (folder / "mynode").mkdir()
    (folder / "mynode" / "core").symlink_to(solutions / "step01" / "core")
    (folder / "mynode" / "__init__.py").symlink_to(solutions / "step01" / "__init__.py")
    assert submission.read(folder, grading.with_exercise()).files == {}


@ON_LINUX
def test_a_name_that_is_no_utf8_stops_no_class(tmp_path: Path) -> None:
    folder = write(solution(STEP), tmp_path / "eve")
    (folder / "mynode" / os.fsdecode(b"x\xff.py")).write_text("")
    found = submission.read(folder, grading.with_exercise())
    assert len(found.digest) == 64
    assert reasons(STEP, folder) == [""] * 3


def test_a_folder_that_shadows_libraries(tmp_path: Path) -> None:
    right = solution(SINGLE)
    shadow = "raise SystemExit('shadow')\n"
    names = (
        "tinynode/__init__.py",
        "numpy.py",
        "tinynode_course/__init__.py",
        "wire.py",
        "random.py",
    )
    folder = write({**right, **dict.fromkeys(names, shadow)}, tmp_path / "eve")
    assert reasons(SINGLE, folder) == [""]
    found = submission.read(folder, grading.with_exercise())
    assert "tinynode" in found.remarks[0] and "numpy.py" in found.remarks[0]


def test_work_that_is_no_file_fails_with_the_reason(tmp_path: Path) -> None:
    for work in ("mynode/__init__.py", "registry.py"):
        (tmp_path / "eve" / work).mkdir(parents=True)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "mynode").write_text("")
    for name, key, words in (
        ("eve", "step05", "expected a file, got a folder"),
        ("eve", "registry", "expected a file, got a folder"),
        ("bob", "step05", "mynode is no folder"),
    ):
        student = submission.read(tmp_path / name, grading.with_exercise())
        result = one.Judge(student).step(step_of(key), plan(key))
        assert (result["state"], result["passed"], result["checks"]) == ("failed", False, [])
        assert words in result["stopped"]["text"][0] and words in student.remarks[0]


def test_an_untouched_stub_in_a_file_is_not_started(tmp_path: Path) -> None:
    step = step_of("registry")
    text = step.stub.read_text().replace("\n", "\r\n") + "\n"
    for content, state in ((text, "not started"), (text + "x = 1\n", "failed")):
        student = submission.read(
            write({step.work: content}, tmp_path / state), grading.with_exercise()
        )
        assert one.Judge(student).step(step, plan("registry"))["state"] == state


def test_a_stuck_package_is_run_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(one, "STEP", process.ChildLimits(seconds=2.0, total=4.0))
    folder = write({"mynode/__init__.py": "while True: pass\n"}, tmp_path / "eve")
    judge = one.Judge(submission.read(folder, grading.with_exercise()))
    start = time.monotonic()
    for name in ("step05", "step06", "step13"):
        result = judge.step(step_of(name), plan(name))
        assert "at the import: the time is over" in result["checks"][0]["text"][0]
    assert time.monotonic() - start < 30.0


def test_the_time_of_a_submission_ends(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(one, "TOTAL_SECONDS", 0.5)
    assert set(reasons(STEP, write(solution(STEP), tmp_path / "ada"))) == {
        "not run: the time of the submission is over"
    }


# hunts

FINGERPRINT = """
import hashlib

def names_of(engine):
    import mynode.core.backprop as backprop
    return {name: thing for name, thing in vars(backprop).items() if hasattr(thing, "__code__")}

def test_program(engine):
    codes = [f.__code__.co_code for f in names_of(engine).values()]
    assert hashlib.sha256(b"".join(codes)).hexdigest() == RIGHT
"""

TESTS = {
    "the text of the files": (
        "import inspect\ndef test_text(engine):\n"
        "    assert 'heappop' in inspect.getsource(engine.Variable.backward)\n"
    ),
    "the files on the disk": (
        "from pathlib import Path\ndef test_files(engine):\n"
        "    assert Path(engine.__file__).read_text()\n"
    ),
    "a fingerprint": FINGERPRINT.replace("RIGHT", repr("0" * 64)),
    "always wrong": "def test_no(engine):\n    assert False\n",
    "right at first": (
        "runs = []\nimport builtins\nbuiltins.runs = getattr(builtins, 'runs', 0)\n"
        "def test_first(engine):\n    builtins.runs += 1\n    assert builtins.runs == 1\n"
    ),
    "an exit": "import os\ndef test_exit(engine):\n    os._exit(0)\n",
    "forged events": (
        "import os\ndef test_forged(engine):\n    for number in range(30):\n"
        "        for fd in range(3, 64):\n            try:\n"
        '                os.write(fd, b\'{"event": "tested", "number": %d, "tests": 1, \'\n'
        '                         b\'"failed": "yes"}\\n\' % number)\n'
        "            except OSError:\n                pass\n"
    ),
    "the judge's files": ("def test_files(engine):\n    import tinynode_course.judge.hunting\n"),
}


@ON_LINUX
@pytest.mark.parametrize("name", TESTS)
def test_a_hunt_that_cheats(name: str, tmp_path: Path) -> None:
    found = hunted("step06", TESTS[name], tmp_path)
    assert found["caught"] == 0
    assert found["broken"] or name == "forged events"  # the pipe may have another number


def test_tests_that_read_programs_are_named(tmp_path: Path) -> None:
    folder = write({"hunt06.py": FINGERPRINT}, tmp_path / "eve")
    (remark,) = submission.read(folder, grading.with_exercise()).remarks
    assert remark == "hunt06.py reads the program of the engine: __code__ co_code"
    assert hunt_plan("step06").work == "hunt06.py"


# the class


@ON_LINUX
def test_a_judging_process_that_dies_stops_nobody(tmp_path: Path, monkeypatch) -> None:
    """Whatever happens to the process of a submission, there is a result."""
    keys.new(tmp_path / "teacher")
    write(solution(SINGLE), tmp_path / "ada")
    step = next(step for step in sources.steps() if step.name == SINGLE)
    room = classes.Room(tmp_path / "teacher", "key", [step], tmp_path, quiet=True)
    environment = {**classes.environment(), "PYTHONHOME": "/nowhere"}
    monkeypatch.setattr(classes, "environment", lambda: environment)
    monkeypatch.setattr(room, "_prepare", lambda: None)
    (result,) = room.judge({"ada": tmp_path / "ada"}, again=False)
    assert "the judging process ended early" in result["remarks"][0]
    assert not result["passed"] and result["steps"] == []
