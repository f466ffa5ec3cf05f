"""An error in a compiled function ends at the line of the user; a setting shows all frames."""

from __future__ import annotations

import io
import pdb
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.config_sources import read_sources


def bad_product(x: Any) -> Any:
    return fn.matmul(x, fn.reshape(x, (-1,)))


def frames_of(call: Any, *arguments: Any) -> list[str]:
    """The names of the functions in the traceback, from the outermost call on."""
    with pytest.raises(Exception) as caught:
        call(*arguments)
    return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:]


X = np.ones((2, 3), np.float32)


def test_the_last_frame_is_the_users() -> None:
    assert frames_of(tn.compile(bad_product), X) == ["bad_product"]
    twice = tn.compile(tn.value_and_grad(lambda x: fn.sum(bad_product(x))))
    assert frames_of(twice, X) == ["<lambda>", "bad_product"]


def test_a_model_of_layers_alone_shows_the_call() -> None:
    compiled = tn.compile(nn.Sequential(nn.Linear(4, 2)))
    assert frames_of(compiled, X) == []
    assert frames_of(compiled, X) == []
    assert compiled(np.ones((2, 4), np.float32)).shape == (2, 2)


def test_the_setting_shows_all_frames() -> None:
    with tn.using_config(full_tracebacks=True):
        names = frames_of(tn.compile(bad_product), X)
    assert len(names) > 6 and names[0] == "__call__" and "apply" in names


def test_an_unexpected_error_without_a_frame_of_the_user_keeps_its_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*arguments: Any, **options: Any) -> Any:
        raise KeyError("a fault of tinynode")

    monkeypatch.setitem(fails.__globals__, "__name__", "tinynode.stand_in")
    monkeypatch.setattr(sys.modules["tinynode.net.compile"], "trace_flat", fails)
    assert frames_of(tn.compile(bad_product), X)[-1] == "fails"


def test_cause_context_type_and_notes_stay() -> None:
    @tn.compile
    def chained(x: Any) -> Any:
        try:
            return bad_product(x)
        except ValueError as error:
            raise LookupError("mine") from error

    with pytest.raises(LookupError, match="mine") as caught:
        chained(X)
    assert isinstance(caught.value.__cause__, tn.errors.InvalidType)
    assert caught.value.__context__ is caught.value.__cause__
    text = "".join(traceback.format_exception(caught.value))
    assert "direct cause" in text and text.rstrip().endswith("LookupError: mine")

    @tn.compile
    def in_handler(x: Any) -> Any:
        try:
            raise OSError("first")
        except OSError:
            return bad_product(x)

    with pytest.raises(tn.errors.InvalidType) as second:
        in_handler(X)
    assert second.value.__cause__ is None


def test_an_error_in_a_handler_keeps_the_context_of_the_caller() -> None:
    with pytest.raises(ValueError) as caught:
        try:
            raise OSError("first")
        except OSError:
            tn.compile(bad_product)(X)
    assert isinstance(caught.value.__context__, OSError)


def test_a_debugger_stops_at_the_users_line() -> None:
    with pytest.raises(ValueError) as caught:
        tn.compile(bad_product)(X)
    output = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p x.shape\nup\nquit\n"), stdout=output, nosigint=True)
    debugger.reset()
    debugger.interaction(None, caught.value.__traceback__)
    assert "bad_product" in output.getvalue() and "(2, 3)" in output.getvalue()


def test_an_error_of_a_later_run_shows_the_users_solver() -> None:
    """A solver is called in each run, not only in the recording."""
    fail = False

    def solver(theta: Any) -> Any:
        if fail:
            raise RuntimeError("no solution")
        return np.sqrt(theta.array)

    compiled = tn.compile(tn.custom_root(lambda x, theta: x * x - theta, solver))
    theta = np.float32([4.0])
    compiled(theta)
    fail = True
    assert frames_of(compiled, theta)[-1] == "solver"
    fail = False
    assert compiled(theta).tolist() == [2.0]


def test_the_setting_may_come_from_the_environment() -> None:
    found = read_sources({"TINYNODE_FULL_TRACEBACKS": "1"}, None)
    assert found["full_tracebacks"].value is True
