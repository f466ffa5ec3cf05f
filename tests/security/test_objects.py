"""Lists that hold themselves, deep lists, huge integers and sizes: an error at once, by name."""

from __future__ import annotations

import inspect
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile_arguments
import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.errors import OperandError, SizeError, TinynodeError, describe

ROOT = hostile_arguments.ROOT
RAW = {
    "RecursionError", "OverflowError", "MemoryError", "_ArrayMemoryError", "SystemError",
    "AttributeError", "KeyError", "AssertionError", "ZeroDivisionError",
}  # fmt: skip
"""The exceptions that name no argument."""


# --- the whole table of functions ----------------------------------------------------------------


def is_named(text: str, function: str, argument: str) -> bool:
    """True if an error begins with the called function, and names the argument.

    The name of a function inside helps no user: ``conv1d`` is not ``conv2d``.
    """
    title = re.match(r"[A-Za-z_.0-9]+(?=: )", text)
    name = function.rpartition(".")[2]
    has_title = title is not None and title[0].rpartition(".")[2] == name
    return has_title and re.search(rf"\b{argument}\b", text) is not None


def check_table(every: int) -> None:
    count = 0
    unnamed = []
    for facts in hostile_arguments.outcomes(every):
        count += 1
        assert "ended" not in facts, facts
        if "error" in facts:
            assert facts["error"] not in RAW, facts
            assert facts["length"] < 500, facts
            if not is_named(facts["text"], facts["name"], facts["argument"]):
                unnamed.append(facts)
        elif facts["is_flag"]:
            assert facts["value"] == "True", facts
    assert count > 8000 // every
    assert unnamed == []


def test_hostile_arguments_of_some_calls() -> None:
    """Every 97th of the attacks; the next test makes all."""
    check_table(97)


@pytest.mark.slow
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.long)])
def test_hostile_arguments_of_every_function(every: int) -> None:
    check_table(every)


# --- lists ---------------------------------------------------------------------------------------


def twice() -> list[Any]:
    """A list that holds itself twice: 2**64 elements after 64 levels."""
    made: list[Any] = []
    made += [made, made]
    return made


def doubled(leaf: Any = 1.0) -> list[Any]:
    """2**50 elements in 50 lists."""
    made: list[Any] = [leaf]
    for _ in range(50):
        made = [made, made]
    return made


def deep_with_a_variable() -> list[Any]:
    made: list[Any] = [tn.Variable(np.ones(2))]
    for _ in range(100_000):
        made = [made]
    return made


LISTS: list[Callable[[], list[Any]]] = [
    *(hostile_arguments.cyclic, hostile_arguments.deep, twice, doubled, deep_with_a_variable),
]
X = tn.Variable(np.ones((2, 3)))
XP: Any = X.__array_namespace__()


def setting(name: str, value: Any) -> None:
    with tn.using_config(name, value):
        raise AssertionError


TAKERS: dict[str, Callable[[Any], Any]] = {
    "asarray": tn.asarray,
    "Variable": tn.Variable,
    "namespace": XP.asarray,
    "stack": fn.stack,
    "concat": fn.concat,
    "index": lambda value: X[value],
    "sum": lambda value: X + value,
    "data": nn.ArrayDataset,
    "gradient": lambda value: tn.gradient(lambda tree: fn.sum(X))(value),
    "vjp": lambda value: tn.vjp(lambda tree: X, value),
    "vmap": lambda value: tn.vmap(lambda tree: X)(value),
    "dtype": lambda value: setting("dtype", value),
    "shape": X.reshape,
    "draws": tn.random.normal,
    "accuracy": lambda value: nn.metrics.accuracy(value, [1]),
    "lines": lambda value: tn.show.lines([1.0, 2.0], value),
    "checkpoint": lambda value: nn.save_checkpoint(os.devnull, value=value),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("make", LISTS, ids=lambda make: make.__name__)
def test_endless_and_deep_lists_are_refused_at_once(taker: str, make: Callable[[], Any]) -> None:
    value = make()
    start = time.perf_counter()
    with pytest.raises((TinynodeError, ValueError, TypeError)) as caught:
        TAKERS[taker](value)
    assert time.perf_counter() - start < 2.0
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("transform", [tn.trace, lambda f, x: tn.compile(f)(x)])
@pytest.mark.parametrize("make", [hostile_arguments.cyclic, hostile_arguments.deep, twice])
def test_a_recording_refuses_deep_lists(transform: Any, make: Any) -> None:
    with pytest.raises(tn.errors.TraceError, match="nested too deeply"):
        transform(lambda tree: X, make())


@pytest.mark.parametrize("leaf", [1.0, X])
@pytest.mark.parametrize("transform", [tn.trace, lambda f, x: tn.compile(f)(x)])
def test_a_recording_counts_the_parts_of_shared_lists(transform: Any, leaf: Any) -> None:
    with pytest.raises(tn.errors.TraceError, match=r"^f: lists.* at most 262144 parts"):
        transform(f, doubled(leaf))
    with pytest.raises(tn.errors.TraceError, match=r"returned: lists.* at most 262144 parts"):
        transform(lambda x: doubled(leaf), X)


def f(tree: Any) -> Any:
    return X


TRANSFORMS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "gradient": lambda f, x: tn.gradient(f)(x),
    "value_and_grad": lambda f, x: tn.value_and_grad(f)(x),
    "jacobian": lambda f, x: tn.jacobian(f)(x),
    "jacfwd": lambda f, x: tn.jacfwd(f)(x),
    "vjp": tn.vjp,
    "jvp": lambda f, x: tn.jvp(f, (x,), (x,)),
    "linearize": tn.linearize,
    "vmap": lambda f, x: tn.vmap(f)(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("make", LISTS, ids=lambda make: make.__name__)
def test_transforms_refuse_hostile_trees_as_arguments_and_results(name: str, make: Any) -> None:
    value = make()
    with pytest.raises(ValueError, match=rf"^{name}: argument 0 (has|must have) "):
        TRANSFORMS[name](f, value)
    with pytest.raises(ValueError, match=rf"^{name}: the result of f (has|must have) "):
        TRANSFORMS[name](lambda x: value, X)


def test_deep_lists_below_the_limit_and_shared_rows_are_taken() -> None:
    row = [1.0, 2.0]
    assert tn.asarray([row] * 1000).shape == (1000, 2)
    nested: Any = 1.0
    for _ in range(32):
        nested = [nested]
    assert tn.asarray(nested).ndim == 32
    assert [leaf.shape for leaf in tn.gradient(lambda a: fn.sum(a[0][0] ** 2))([[X]])[0]] == [
        (2, 3)
    ]


# --- integers and sizes --------------------------------------------------------------------------


def test_describe_is_short_and_quick() -> None:
    assert describe([1, 2]) == "list [1, 2]"
    assert describe({"a": (1,)}) == "dict {'a': (1,)}"
    for make in LISTS:
        assert len(describe(make())) < 70
    assert describe(10**5000) == "int of 16610 bits"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fn.reshape(X, 10**30), "reshape: shape"),
        (lambda: fn.diff(X, n=10**30), "diff: n"),
        (lambda: fn.one_hot(tn.asarray([0, 1]), 2**40), "one_hot"),
        (lambda: fn.repeat(X, [2**60, 2**60], axis=0), "repeat: repeats"),
        (lambda: fn.tile(X, (2**40, 2**40)), "tile|broadcast_to|reshape"),
        (lambda: X * 10**400, "y is larger"),
        (lambda: tn.asarray([1, 2]) + 2**64, "y is larger"),
        (lambda: XP.zeros((2**40, 2**20)), "xp.zeros"),
        (lambda: XP.arange(2**62), "xp.arange"),
        (lambda: XP.linspace(0, 1, 2**62), "xp.linspace"),
        (lambda: tn.random.normal((2**40, 2**40)), "random.normal: shape"),
    ],
)
def test_sizes_beyond_the_memory_name_the_function(call: Any, words: str) -> None:
    with pytest.raises(SizeError, match=words):
        call()


def test_differences_of_an_empty_axis_end() -> None:
    assert fn.diff(X, n=2**62).shape == (2, 0)
    assert fn.diff(X, n=2).shape == (2, 1)


@pytest.mark.parametrize("value", [2**31, -1, 1.0, "a", None])
def test_keepdims_is_a_flag(value: Any) -> None:
    for function in (fn.sum, fn.mean, fn.max, fn.min, fn.prod, fn.var, fn.std, fn.logsumexp):
        with pytest.raises(OperandError, match="keepdims must be True or False"):
            function(X, keepdims=value)
    assert fn.sum(X, keepdims=np.True_).shape == (1, 1)
    assert fn.sum(X, keepdims=1).shape == (1, 1)


# --- options that are True or False -------------------------------------------------------------


P = [nn.Parameter(np.ones(2))]
LAYER = nn.Linear(2, 2)
ATTENTION = nn.MultiHeadAttention(4, 2)
FLAGS: dict[str, Callable[..., Any]] = {
    "Linear": lambda bias: nn.Linear(2, 2, bias),
    "Bilinear": lambda bias: nn.Bilinear(2, 2, 2, bias),
    "Conv2d": lambda bias: nn.Conv2d(2, 2, 1, bias=bias),
    "ConvTranspose1d": lambda bias: nn.ConvTranspose1d(2, 2, 1, bias=bias),
    "GRU": lambda bias: nn.GRU(2, 2, bias=bias),
    "LSTM": lambda bidirectional: nn.LSTM(2, 2, bidirectional=bidirectional),
    "RNN": lambda batch_first: nn.RNN(2, 2, batch_first=batch_first),
    "LSTMCell": lambda bias: nn.LSTMCell(2, 2, bias),
    "MultiHeadAttention": lambda batch_first: nn.MultiHeadAttention(4, 2, batch_first=batch_first),
    "MultiHeadAttention ": lambda is_causal: ATTENTION(X, is_causal=is_causal),
    "TransformerBlock": lambda causal: nn.TransformerBlock(4, 2, causal=causal),
    "InstanceNorm": lambda affine: nn.InstanceNorm(2, affine=affine),
    "MaxPool2d": lambda ceil_mode: nn.MaxPool2d(2, ceil_mode=ceil_mode),
    "AvgPool2d": lambda count_include_pad: nn.AvgPool2d(2, count_include_pad=count_include_pad),
    "Upsample": lambda align_corners: nn.Upsample(2, align_corners=align_corners),
    "DataLoader": lambda shuffle: nn.DataLoader([1, 2], 1, shuffle=shuffle),
    "DataLoader ": lambda drop_last: nn.DataLoader([1, 2], 1, drop_last=drop_last),
    "SGD": lambda nesterov: nn.SGD(P, 0.1, momentum=0.9, nesterov=nesterov),
    "Adam": lambda allow_missing: nn.Adam(P, 0.1, allow_missing=allow_missing),
    "RMSprop": lambda centered: nn.RMSprop(P, 0.1, centered=centered),
    "Linear.train": lambda training: LAYER.train(training),
    "Variable": lambda requires_grad: tn.Variable(np.ones(2), requires_grad=requires_grad),
    "asarray": lambda copy: tn.asarray([1.0], copy=copy),
    "grad": lambda set_grad: tn.grad([fn.sum(X)], [X], set_grad=set_grad),
    "backward": lambda enable_double_backprop: tn.backward(
        [fn.sum(X)], [None], enable_double_backprop=enable_double_backprop
    ),
    "vjp": lambda enable_double_backprop: tn.vjp(
        f, X, enable_double_backprop=enable_double_backprop
    ),
    "xp.linspace": lambda endpoint: XP.linspace(0, 1, 3, endpoint=endpoint),
    "isin": lambda invert: XP.isin(X, X, invert=invert),
}


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["no", 2, 1.0, [], np.ones(1)])
def test_a_flag_takes_no_other_object(name: str, value: Any) -> None:
    """A text such as "no" is true for Python."""
    argument = next(iter(inspect.signature(FLAGS[name]).parameters))
    with pytest.raises(OperandError, match=rf"^{name.strip()}: {argument} must be True or False"):
        FLAGS[name](**{argument: value})


def test_a_flag_takes_bools_of_numpy_and_0_and_1() -> None:
    assert nn.Linear(2, 2, np.False_).bias is None
    assert nn.Linear(2, 2, 0).bias is None
    assert nn.Linear(2, 2, np.int64(1)).bias is not None


# --- random numbers ------------------------------------------------------------------------------


DRAWS: dict[str, Callable[[Any], Any]] = {
    "random.normal: mean": lambda value: tn.random.normal((2,), value),
    "random.normal: deviation": lambda value: tn.random.normal((2,), 0.0, value),
    "random.normal: shape": lambda value: tn.random.normal((value,)),
    "random.uniform: low": lambda value: tn.random.uniform((2,), value),
    "random.uniform: high": lambda value: tn.random.uniform((2,), 0.0, value),
    "random.uniform: shape": tn.random.uniform,
    "random.permutation: n": tn.random.permutation,
    "seed: n": tn.seed,
    "dropout: ratio": lambda value: fn.dropout(X, value),
    "gumbel_softmax: temperature": lambda value: fn.gumbel_softmax(X, value),
    "glorot_uniform: gain": lambda value: nn.initializers.glorot_uniform((2, 2), value),
    "zeros: shape": nn.initializers.zeros,
}


@pytest.mark.parametrize("words", DRAWS)
@pytest.mark.parametrize(
    "value", ["a", 1j, X, None, *LISTS], ids=lambda value: getattr(value, "__name__", str(value))
)
def test_draws_name_a_hostile_argument(words: str, value: Any) -> None:
    given = value() if callable(value) and value in LISTS else value
    start = time.perf_counter()
    with pytest.raises((OperandError, TypeError, ValueError), match=f"^{words} "):
        DRAWS[words](given)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    ("words", "value"),
    [
        *[("random.normal: mean", x) for x in (math.nan, math.inf, 10**400)],
        *[("random.normal: deviation", x) for x in (math.nan, -1.0, 10**400)],
        *[("random.normal: shape", x) for x in (-1, 2**40, 10**400)],
        *[("random.uniform: low", x) for x in (math.nan, -math.inf, 10**400)],
        *[("random.uniform: high", x) for x in (math.nan, -1.0, 10**400)],
        *[("random.permutation: n", x) for x in (-1, 2**47, 10**400)],
        ("seed: n", -1),
    ],
)
def test_draws_name_a_number_out_of_range(words: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{words} "):
        DRAWS[words](value)


def test_the_span_of_uniform_draws_is_finite() -> None:
    with pytest.raises(ValueError, match="high - low must be finite"):
        tn.random.uniform((2,), -1e308, 1e308)


# --- paths ---------------------------------------------------------------------------------------


PATHS: dict[str, Callable[[Any], Any]] = {
    "load": nn.load,
    "save": lambda path: nn.save(path, LAYER),
    "load_checkpoint": lambda path: nn.load_checkpoint(path, model=LAYER),
    "save_checkpoint": lambda path: nn.save_checkpoint(path, model=LAYER),
    "load_net": tn.net.load_net,
    "ArrayDataset.from_npz": nn.ArrayDataset.from_npz,
    "ArrayDataset.from_npy": nn.ArrayDataset.from_npy,
    "TableDataset": nn.TableDataset,
    "ImageFolder": nn.ImageFolder,
    "Diagram.save": tn.show.graph(X * 2.0).save,
    "Plot.save": tn.show.lines([0.0, 1.0], [1.0, 2.0]).save,
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("path", ["a\0b", b"a\0b", "x" * 5000, "\ud800", None, 1, 0.5, ["a"]])
def test_a_path_that_no_system_takes_is_named(name: str, path: Any) -> None:
    with pytest.raises((OperandError, ValueError), match=f"^{name}: path must ") as caught:
        PATHS[name](path)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("dtype", ["<M8[s]", "|V0", "|V3", "<m8[D]"])
def test_arrays_of_a_file_are_no_dates_and_no_raw_bytes(dtype: str, tmp_path: Path) -> None:
    array = np.zeros(2, dtype)
    np.savez(tmp_path / "a.npz", x=array)
    np.save(tmp_path / "a.npy", array)
    for read in (nn.load, nn.ArrayDataset.from_npz):
        with pytest.raises(tn.errors.StateError, match="x has elements of the kind"):
            read(tmp_path / "a.npz")
    with pytest.raises(tn.errors.StateError, match=r"has elements of the kind|damaged"):
        nn.ArrayDataset.from_npy(tmp_path / "a.npy")


# --- memory --------------------------------------------------------------------------------------


def test_a_memory_error_of_a_forward_names_the_function() -> None:
    """In a process with little memory; the error is a MemoryError, too."""
    program = (
        "import resource, numpy as np, tinynode as tn\n"
        "from tinynode import functions as F\n"
        "x = tn.Variable(np.ones((1000, 1)))\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "try:\n"
        "    F.add(F.broadcast_to(x, (1000, 10**7)), 1.0)\n"
        "except MemoryError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "backends")])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("SizeError add: ")
