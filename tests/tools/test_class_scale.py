"""The folders of the measured class, and the clock of the kernel."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tinynode_course import grading, hunts, mynode
from tools import class_scale


@pytest.mark.slow
def test_a_finished_and_a_hostile_folder_have_all_work(tmp_path: Path) -> None:
    one, other = class_scale.write_class(tmp_path, 2)
    works = {step.work for step in grading.with_exercise()}
    tests = {hunt.work for hunt in map(hunts.of, grading.with_exercise()) if hunt is not None}
    assert len(tests) == 5
    found = {path.relative_to(one).as_posix() for path in one.rglob("*.py")}
    assert works | tests <= found
    assert mynode.read_files(one / mynode.NAME) == mynode.whole()
    assert mynode.read_files(other / mynode.NAME) == mynode.reference(class_scale.MIDDLE)
    for folder in class_scale.write_hostile(tmp_path):
        files = mynode.read_files(folder)
        assert set(files) == works | tests
        assert set(files.values()) == {class_scale.HOSTILE[folder.name]}


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers come from /proc")
def test_the_seconds_of_a_process() -> None:
    assert abs(class_scale.seconds_of(os.getpid()) - sum(os.times()[:4])) < 1.0
