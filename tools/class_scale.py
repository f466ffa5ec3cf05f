"""Measures the judgement of a class: processor time for each folder, and for 200 of them.

    python -m tools.class_scale
    python -m tools.class_scale --students 60 --steps 05,compile

Requirement: 200 folders, three of them hostile, in under two hours of a core. The folders are
written into a temporary folder. Every second student has finished: the whole ``mynode``, all
single files, all hunts. The others are at step 13, with the stubs of later files. Each hostile
student has one program at the import of ``mynode``, and in every single file and hunt.

The kernel counts the processor time of the judging process and of all waited-for descendants.
Linux only: the numbers come from ``/proc``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tinynode_course import grading, hunts, mynode, sources
from tinynode_course.judge import plans

ROOT = Path(__file__).resolve().parent.parent
HUNTS = ROOT / "course_solutions" / "tinynode_course_solutions" / "hunts"
CLASS = 200
MIDDLE = "13"
"""The last finished step of every second student."""

HOSTILE = {
    "loop": "while True:\n    pass\n",
    "memory": "x = [0]\nwhile True:\n    x += x\n",
    "fork": "import os\nwhile True:\n    os.fork()\n",
}
"""The programs of the hostile students, by name."""


def finished() -> mynode.Files:
    """A folder with all work of the course: the reference, and hunts that catch all bugs."""
    files: mynode.Files = {}
    for step in grading.with_exercise():
        files |= plans.reference(step)
        hunt = hunts.of(step)
        if hunt is not None:
            files[hunt.work] = (HUNTS / f"{step.name}.py").read_text(encoding="utf-8")
    return files


def half() -> mynode.Files:
    """A folder in the middle of the course: ``mynode`` of step 13, and untouched single files."""
    files = {f"{mynode.NAME}/{path}": text for path, text in mynode.reference(MIDDLE).items()}
    for step in grading.with_exercise():
        if not step.builds:
            files[step.work] = step.stub.read_text(encoding="utf-8")
    return files


def hostile(program: str) -> mynode.Files:
    """A folder with the program in place of all work."""
    return dict.fromkeys([sources.WORK_PACKAGE, *set(finished()) - set(_package())], program)


def _package() -> list[str]:
    return [f"{mynode.NAME}/{path}" for path in mynode.whole()]


def write_class(folder: Path, students: int) -> list[Path]:
    """Write the students' folders; returns the folders."""
    kinds = (finished(), half())
    found = []
    for number in range(students):
        found.append(folder / f"student{number:03}")
        mynode.write_files(kinds[number % 2], found[-1])
    return found


def write_hostile(folder: Path) -> list[Path]:
    """Write the three hostile folders; returns the folders."""
    for name, program in HOSTILE.items():
        mynode.write_files(hostile(program), folder / name)
    return [folder / name for name in HOSTILE]


def judged(teacher: Path, folders: list[Path], steps: str | None) -> tuple[float, float, float]:
    """Judge folders: seconds of a core for the drawing and for the folders, and of the clock."""
    command = [sys.executable, "-P", "-m", "tinynode.learn", "class", "judge", str(teacher)]
    command += [str(folder) for folder in folders]
    command += ["--steps", steps] if steps else []
    start, drawn, last = time.perf_counter(), 0.0, 0.0
    with subprocess.Popen(
        command, cwd=teacher.parent, env=os.environ | _paths(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(("student", "[")):
                print(line, end="", flush=True)
            if line.startswith("["):
                last = seconds_of(process.pid)
            if line.rstrip().endswith("drills are drawn"):
                drawn = seconds_of(process.pid)
    if process.returncode:
        raise SystemExit(f"class judge ended with status {process.returncode}")
    return drawn, last - drawn, time.perf_counter() - start


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def seconds_of(pid: int) -> float:
    """The processor time of a process and of its ended descendants, by the kernel."""
    facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(int(word) for word in facts[11:15])  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tools.class_scale", description=__doc__)
    parser.add_argument("--students", type=int, default=12, help="honest folders (default: 12)")
    parser.add_argument("--steps", help="such as 05,compile; default: all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinynode-scale-") as name:
        folder = Path(name)
        teacher = folder / "teacher"
        new = [sys.executable, "-P", "-m", "tinynode.learn", "class", "new", str(teacher)]
        subprocess.run(new, check=True, env=os.environ | _paths(), stdout=subprocess.DEVNULL)
        honest = write_class(folder, options.students)
        drawn, spent, clock = judged(teacher, honest, options.steps)
        each = spent / len(honest)
        print(f"the drawing: {drawn:.1f} s of a core; a folder: {each:.1f} s; clock {clock:.0f} s")
        whole = drawn + each * (CLASS - len(HOSTILE))
        for one in write_hostile(folder):
            _, spent, clock = judged(teacher, [one], options.steps)
            print(f"the hostile folder {one.name}: {spent:.1f} s of a core; clock {clock:.0f} s")
            whole += spent
    print(f"{CLASS} folders with these three: {whole / 3600:.2f} hours of a core")


if __name__ == "__main__":
    main()
