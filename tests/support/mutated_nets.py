"""Mutated nets: saved nets of the operation table with changes, each run in three ways.

Requirement: whatever the text of a net says, loading and running it ends with an error that has a
name, or with the same values on ``numpy``, on ``fast`` and in a compiled function with C. No
signal, no hang, no number from elsewhere. So the nets run in child processes, with limits of
memory and time. The number of a net decides about all changes, so a finding can be repeated:

    PYTHONPATH=.:backends:tests:tests/support python -m mutated_nets 30000        # the whole run
    PYTHONPATH=.:backends:tests:tests/support python -m mutated_nets 1 --first 417 # one net
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import functools
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from child_process import running

SECONDS = 20
"""The time of a net; a longer one counts as a hang."""
MEMORY = 6 << 30
"""The address space of a child: OpenBLAS and the compiler's libraries take most of it."""
MOST_COMPARED = 1 << 22
FOLDERS = [".", "backends", "tests", "tests/support"]


class Seed(NamedTuple):
    """A saved net of the operation table, and the arrays that it reads."""

    text: str
    feeds: dict[str, Any]


class Outcome(NamedTuple):
    """What became of a net in one way: the values by name, or the error."""

    values: dict[str, Any] | None
    error: BaseException | None


# --- the nets of the operation table -------------------------------------------------------------


def seeds(rows: int) -> list[Seed]:
    """The nets of the first rows of each operation, with their backward nets."""
    import op_drivers
    from op_cases import CASES

    found = []
    for cases in op_drivers.by_operation(CASES).values():
        for case in cases[:rows]:
            try:
                found.append(_seed(case))
            except (TypeError, ValueError, RuntimeError):  # a row that cannot be recorded or saved
                continue
    return found


def _seed(case: Any) -> Seed:
    import op_drivers

    import tinynode as tn
    from tinynode.net import NetOp, Scope, backward, dumps

    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    hosts = op_drivers.draw_inputs(case, dtype, 0)
    inputs = op_drivers.make_inputs(case, hosts, tn.get_device("numpy"))
    found = tn.trace(case.function, *inputs, **case.constants)
    variables = [x if isinstance(x, tn.Variable) else tn.as_variable(x) for x in inputs]
    scope = Scope({**dict(zip(found.inputs, variables, strict=True)), **found.captured})
    found.net.run(scope)
    for name in found.net.output_names:
        y = scope.find(name)
        scope.set(f"{name}@GRAD", tn.Variable(y.xp.ones_like(y.array)))
    sources = [name for name in found.net.input_names if scope.find(name).requires_grad]
    net = NetOp([found.net, backward(found.net, scope, inputs=sources)], "f")
    feeds = {name: tn.to_host(scope.find(name).array) for name in net.input_names}
    return Seed(dumps(net), feeds)


# --- the changes ---------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, -2, 3, 7, 63, 64, 100, 127, 128, 255, 1000, 2**15, 2**31 - 1, 2**31]
NUMBERS += [2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, -(2**31), -(2**63), -(2**63) - 1]
NUMBERS += [10**30, 10**400, 0.0, -0.0, 0.5, 1.5, -3.7, 1e-30, 1e30, 1e300]
VALUES: list[Any] = [
    None,
    True,
    False,
    "",
    "mean",
    "sum",
    "none",
    "x",
    "0); abort(); (",
    "ij",
    "i",
]
VALUES += [[], [[]], [0], [1, 0], [0, 0], [-1], [3, 3], [2**40], [2**62, 2], ["x"], [None], {}]
VALUES += [{"float": text} for text in ("nan", "inf", "-inf", "1e400", "x")]
VALUES += [
    {"scalar": 1, "dtype": name} for name in ("int8", "uint64", "float16", "bool", "object")
]
VALUES += [
    {"dtype": name, "backend": "numpy"} for name in ("float32", "float16", "int8", "object")
]
VALUES += [{"constant": "..."}, {"constant": "the process-wide generator"}, {"constant": "x"}]
VALUES += [{"Slice": [None, None, -1]}, {"Slice": [0, 1, 0]}, {"Place": [1]}, {"Place": [9]}]
VALUES += [{"Windows": [[2, 2], [1, 1], [0, 0], [1, 1]]}, {"Windows": [[9, 9], [1, 1], [4, 4]]}]
VALUES += [{"Windows": [[2**40, 2], [2**40, 1], [2**40, 0], [1, 1]]}, {"slice": [0, 1]}]
VALUES += [{"list": [1]}, {"device": "numpy"}, {"device": "nowhere:3"}, {"device": "fast"}]
VALUES += [{"array": [1.0, 2.0], "shape": [2], "dtype": "float64", "device": "numpy"}]


def other_value(rng: random.Random, value: Any) -> Any:
    """A value in the place of another: a neighbour, one of a list, or a changed item."""
    if rng.random() < 0.3:
        return copy.deepcopy(rng.choice(VALUES))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        changed = [value + 1, value - 1, -value, value * 2, rng.choice(NUMBERS)]
        return rng.choice(changed)
    if isinstance(value, list):
        return other_items(rng, value)
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        return {**value, key: other_value(rng, value[key])}
    return copy.deepcopy(rng.choice(VALUES + NUMBERS))


def other_items(rng: random.Random, items: list[Any]) -> list[Any]:
    """A list with an item changed, left out, twice, or added."""
    place = rng.randrange(len(items) + 1)
    inside = items[place : place + 1]
    kind = rng.randrange(5)
    if kind == 0 or not inside:
        return [*items[:place], copy.deepcopy(rng.choice(NUMBERS)), *items[place:]]
    if kind == 1:
        return [*items[:place], *items[place + 1 :]]
    if kind == 2:
        return [*items[:place], *inside, *items[place:]]
    return [*items[:place], other_value(rng, inside[0]), *items[place + 1 :]]


def operators_of(content: Any) -> list[Any]:
    """The operators of a net's data, with those of inner nets."""
    found, waiting = [], [content]
    while waiting:
        net = waiting.pop()
        for one in net["operators"]:
            (waiting if "operators" in one else found).append(one)
    return found


def change_attribute(rng: random.Random, content: Any, types: list[str]) -> None:
    """An attribute gets another value."""
    some = [one for one in operators_of(content) if one["attrs"]]
    if some:
        one = rng.choice(some)
        name = rng.choice(sorted(one["attrs"]))
        one["attrs"][name] = other_value(rng, one["attrs"][name])


def change_attributes(rng: random.Random, content: Any, types: list[str]) -> None:
    """An attribute is left out, renamed or added; or two operators change theirs."""
    operators = operators_of(content)
    one, other = rng.choice(operators), rng.choice(operators)
    names = sorted(one["attrs"])
    kind = rng.randrange(4)
    if kind == 0 and names:
        del one["attrs"][rng.choice(names)]
    elif kind == 1:
        name = rng.choice(["forward", "inputs", "axes", "axis", "shape", "wide", "label", "é", ""])
        one["attrs"][name] = copy.deepcopy(rng.choice(VALUES))
    elif kind == 2 and names:
        name = rng.choice(names)
        one["attrs"][name + "_"] = one["attrs"].pop(name)
    else:
        one["attrs"], other["attrs"] = other["attrs"], one["attrs"]


def change_names(rng: random.Random, content: Any, types: list[str]) -> None:
    """The names of inputs or outputs: swapped, left out, added, or of other operators."""
    operators = operators_of(content)
    one = rng.choice(operators)
    side = rng.choice(["inputs", "inputs", "outputs"])
    if not isinstance(one[side], list):
        return
    known = [name for each in operators for name in each["inputs"] if isinstance(name, str)]
    names = list(one[side])
    kind = rng.randrange(5)
    if kind == 0:
        rng.shuffle(names)
    elif kind == 1 and names:
        names.pop(rng.randrange(len(names)))
    elif kind == 2:
        names.append(rng.choice([*known, "nowhere", "@EMPTY@", ""]))
    elif names:
        names[rng.randrange(len(names))] = rng.choice([*known, "nowhere", "@EMPTY@"])
    one[side] = names


def change_type(rng: random.Random, content: Any, types: list[str]) -> None:
    """An operator becomes another one, with the attributes of before."""
    rng.choice(operators_of(content))["type"] = rng.choice([*types, "nothing", "gradient_of"])


def change_nesting(rng: random.Random, content: Any, types: list[str]) -> None:
    """An operator comes twice, moves, or stands in nets in nets."""
    operators = content["operators"]
    place = rng.randrange(len(operators))
    kind = rng.randrange(4)
    if kind == 0:
        operators.append(copy.deepcopy(operators[place]))
    elif kind == 1:
        operators.insert(0, operators.pop())
    elif kind == 2:
        content["writes"] = {rng.choice(["x", "y", "nowhere"]): rng.choice(["x", "t0", "nowhere"])}
    else:
        for _ in range(rng.choice([1, 2, 50, 400])):
            operators[place] = {"net": "g", "operators": [operators[place]]}


def change_operator(rng: random.Random, content: Any, types: list[str]) -> None:
    """An entry of an operator is something else."""
    one = rng.choice(operators_of(content))
    one[rng.choice(["type", "inputs", "outputs", "attrs"])] = copy.deepcopy(rng.choice(VALUES))


CHANGES: list[Callable[[random.Random, Any, list[str]], None]] = [
    *[change_attribute] * 6,
    *[change_attributes, change_names, change_names, change_type, change_nesting, change_operator],
]


def mutated(rng: random.Random, seed: Seed, types: list[str]) -> tuple[str, dict[str, Any]]:
    """The text and the arrays of a seed, with one to three changes."""
    data = json.loads(seed.text)
    feeds = dict(seed.feeds)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.15 and feeds:
            name = rng.choice(sorted(feeds))
            feeds[name] = other_array(rng, feeds[name])
        else:
            try:
                rng.choice(CHANGES)(rng, data["content"], types)
            except (AttributeError, IndexError, KeyError, TypeError):
                continue  # a change before this one left nothing to change
    return json.dumps(data), feeds


def other_array(rng: random.Random, x: Any) -> Any:
    """An array of another shape or dtype."""
    kind = rng.randrange(6)
    if kind == 0:
        return x[None]
    if kind == 1:
        return x.reshape(-1)
    if kind == 2:
        return x[..., :1] if x.ndim else x
    if kind == 3:
        return x.T.copy()
    if kind == 4:
        return x[:0] if x.ndim else x
    with np.errstate(all="ignore"):
        return x.astype(rng.choice(["float32", "float64", "int64", "int8", "bool"]))


# --- the three ways ------------------------------------------------------------------------------


def run_net(text: str, feeds: dict[str, Any], device: str) -> dict[str, Any]:
    """The values of all outputs of a net."""
    import tinynode as tn
    from tinynode.net import Scope, loads

    net = loads(text)
    scope = Scope({name: tn.asarray(x, device=device) for name, x in feeds.items()})
    net.run(scope)
    return {name: scope.find(name) for name in net.output_names if name != "@EMPTY@"}


def compiled_net(text: str, feeds: dict[str, Any]) -> dict[str, Any]:
    """The values of a compiled function that runs the net, after C was built."""
    import tinynode as tn
    from tinynode.net import Scope, loads
    from tinynode_fast.native import build

    net = loads(text)

    def run(**arrays: Any) -> dict[str, Any]:
        scope = Scope(arrays)
        net.run(scope)
        return {name: scope.find(name) for name in net.output_names if name != "@EMPTY@"}

    compiled = tn.compile(run)
    xs = {name: tn.asarray(x, device="fast") for name, x in feeds.items()}
    for _ in range(3):
        found = compiled(**xs)
        build.wait()
    return found


def outcome(function: Callable[..., dict[str, Any]], *arguments: Any) -> Outcome:
    import tinynode as tn

    try:
        found = function(*arguments)
        return Outcome({name: tn.to_host(y.array) for name, y in found.items()}, None)
    except Exception as error:
        return Outcome(None, error)


def is_named(error: BaseException) -> bool:
    """True for an error of tinynode, a ValueError with a text, or too little memory."""
    from tinynode.errors import TinynodeError

    return isinstance(error, TinynodeError | ValueError | MemoryError) and bool(str(error))


def judged(text: str, feeds: dict[str, Any]) -> tuple[str, str]:
    """What is wrong with the outcomes of a net, "" for nothing; and the kind of the outcome."""
    on_fast = text.replace('"device": "numpy"', '"device": "fast"')
    ways = {
        "numpy": outcome(run_net, text, feeds, "numpy"),
        "fast": outcome(run_net, on_fast, feeds, "fast"),
    }
    if ways["fast"].error is None:
        ways["compiled"] = outcome(compiled_net, on_fast, feeds)
    kind = "error" if all(found.error is not None for found in ways.values()) else "values"
    is_random = any(name in text for name in ("dropout_mask", "gumbel_noise"))
    return raw_error(ways) or ("" if is_random else difference(ways)), kind


def raw_error(ways: dict[str, Outcome]) -> str:
    """The first error without a name."""
    for way, found in ways.items():
        if found.error is not None and not is_named(found.error):
            lines = traceback.format_exception(found.error)
            return f"raw error, {way}: {''.join(lines[-4:])}"
    return ""


def difference(ways: dict[str, Outcome]) -> str:
    """Where the other ways differ from the first."""
    first = next(iter(ways.values()))
    for way, found in ways.items():
        if found.error is not None and first.error is not None:
            continue
        if found.error is not None or first.error is not None:
            if not is_allowed_to_differ(found.error or first.error):
                return f"one way alone raises: {way}: {found.error!r} beside {first.error!r}"
            continue
        other = different(first.values or {}, found.values or {})
        if other:
            return f"other values, {way}: {other}"
    return ""


def is_allowed_to_differ(error: BaseException | None) -> bool:
    """True if a compiled function refuses to be recorded, or memory runs out."""
    from tinynode.errors import DeviceMixError, TraceError

    return isinstance(error, TraceError | MemoryError | DeviceMixError)


def different(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The name of the first value that differs."""
    for name, x in ours.items():
        y = theirs[name]
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{name}: {x.dtype}{x.shape} and {y.dtype}{y.shape}"
        if x.size > MOST_COMPARED:  # such as a number in the shape of millions
            continue
        if x.dtype.kind not in "fc":
            if not np.array_equal(x, y):
                return f"{name}: {x} and {y}"
            continue
        rtol = 1e-7 if x.dtype.itemsize >= 8 else 2e-3
        finite = np.abs(x[np.isfinite(x)])
        atol = rtol * (1.0 + float(finite.max(initial=0.0)))
        if not np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True):
            return f"{name}: {x} and {y}"
    return ""


# --- the processes -------------------------------------------------------------------------------


def limit_process() -> None:
    """Limit the memory of this process; values of all kinds give no warnings."""
    import resource  # of POSIX alone

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")


@contextlib.contextmanager
def quick_compiler() -> Iterator[None]:
    """A context in which every plan is built in C, with few optimizations."""
    import fast_kernels

    import tinynode as tn
    from tinynode_fast.limits import LIMITS
    from tinynode_fast.native import build

    build.FLAGS = tuple(["-O1" if flag == "-O3" else flag for flag in build.FLAGS])
    for name in fast_kernels.CHANGEABLE:
        setattr(LIMITS, name, 0)
    with tn.using_config(compiler="auto"):
        yield


def report(number: int, judge: Callable[[], tuple[str, str]], text: str) -> None:
    """Print a line before and after a judgement with a limit of time; a finding has the text."""
    from tinynode_fast.native import build

    print(f"begin {number}", flush=True)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)  # the signal ends the process
    found, kind = judge()
    signal.setitimer(signal.ITIMER_REAL, 0)
    facts = {"number": number, "finding": found, "kind": kind, "text": text if found else ""}
    print(f"end {json.dumps(facts | {'built': len(build._loaded)})}", flush=True)


def shown(value: Any) -> str:
    """The beginning of a value's text."""
    from tinynode.errors import describe

    return describe(value)


def work(folder: Path, first: int, last: int) -> None:
    """Run nets in this process, and print a line before and after each of them."""
    limit_process()
    known = pickle.loads((folder / "seeds").read_bytes())
    types = sorted(
        {one["type"] for s in known for one in operators_of(json.loads(s.text)["content"])}
    )
    with quick_compiler():
        for number in range(first, last):
            rng = random.Random(number)
            text, feeds = mutated(rng, rng.choice(known), types)
            report(number, functools.partial(judged, text, feeds), text)


def findings(
    folder: Path, first: int, last: int, module: str = "mutated_nets", options: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """What children report; a child that ends by a signal is a finding, and another goes on."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join(str(root / each) for each in FOLDERS)
    env = {**os.environ, "PYTHONPATH": paths, "TINYNODE_CACHE": str(folder / "cache")}
    env |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    while first < last:
        command = [sys.executable, "-m", module, "--work", str(folder), *options]
        command += ["--first", str(first), str(last - first)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with running(command, cwd=root, env=env, **pipes) as child:
            assert child.stdout is not None and child.stderr is not None
            begun = first - 1
            for line in child.stdout:
                word, _, rest = line.partition(" ")
                if word == "begin":
                    begun = int(rest)
                elif word == "end":
                    yield json.loads(rest)
                    first = begun + 1
            errors = child.stderr.read()
            status = child.wait()
        if status == 0:
            return
        assert begun >= first, f"a child has not begun: {errors[-1500:]}"
        text = f"the child ended with status {status}: {errors[-1500:]}"
        yield {"number": max(begun, first), "finding": text, "text": ""}
        first = max(begun, first) + 1


class Report(NamedTuple):
    """The number of nets, those with values in each way, C libraries, and the findings."""

    nets: int
    with_values: int
    libraries: int
    findings: list[dict[str, Any]]


def run(count: int, first: int = 0, rows: int = 4) -> Report:
    """Run mutated nets in child processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir(mode=0o700)
        (folder / "seeds").write_bytes(pickle.dumps(seeds(rows)))
        every = list(findings(folder, first, first + count))
    return report_of(every)


def report_of(every: list[dict[str, Any]]) -> Report:
    """The counts and the findings of all reports of children."""
    with_values = sum(one.get("kind") == "values" for one in every)
    libraries = max([one.get("built", 0) for one in every], default=0)
    return Report(len(every), with_values, libraries, [one for one in every if one["finding"]])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=4, help="of each operation")
    parser.add_argument("--work", type=Path, help="the folder of a parent: run here")
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.first, options.first + options.count)
        return
    report = run(options.count, options.first, options.rows)
    for one in report.findings:
        print(f"{one['number']}: {one['finding']}\n    {one['text'][:600]}")
    kinds = collections.Counter(one["finding"].partition(":")[0] for one in report.findings)
    print(
        f"{report.nets} nets, {report.with_values} with values in each way, {report.libraries} "
        f"libraries of C; {len(report.findings)} findings: {dict(kinds)}"
    )


if __name__ == "__main__":
    main()
