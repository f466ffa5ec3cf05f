"""Hostile arguments of constructors: each FunctionNode class of the operation table, by hand.

Requirement: whatever the arguments are, making and applying a FunctionNode ends with an error that
has a name, or with the same values in each way: eagerly, in a compiled function, and as an
operator of a net, on ``numpy`` and on ``fast``. No signal, no hang, no number from elsewhere. The
processes and the comparisons are those of ``mutated_nets``. The number of an attack decides about
all, so a finding can be repeated:

    PYTHONPATH=.:backends:tests:tests/support python -m hostile_constructors            # all
    PYTHONPATH=.:backends:tests:tests/support python -m hostile_constructors --first 417 --last 418
"""

from __future__ import annotations

import argparse
import collections
import functools
import inspect
import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mutated_nets
import numpy as np

STORED = {"device": "output_device", "target": "output_device", "inputs": "subscripts"}
"""By name of a parameter: the attribute of another name that has the value."""
RANDOM = ("dropout_mask", "gumbel_noise")
KINDS = (ValueError, TypeError, IndexError, ArithmeticError)
"""The errors that a program can expect of wrong arguments."""


class CodeFloat(float):
    """A number whose text is code."""

    def __repr__(self) -> str:
        return "0); abort(); ("

    __str__ = __repr__


class CodeInt(int):
    """An integer whose text is code."""

    def __repr__(self) -> str:
        return "0); abort(); ("

    __str__ = __repr__


def deep() -> Any:
    """A tuple of 50,000 levels."""
    made: Any = (0,)
    for _ in range(50_000):
        made = (made,)
    return made


PLAIN = [None, True, False, "", "a", "mean", "0); abort(); (", b"a", 0, 1, -1, 2, 3, 63, 64, -65]
PLAIN += [2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400]
PLAIN += [0.0, 0.5, 1.0, -1.0, 1e300, 1e-300, float("nan"), float("inf"), -float("inf"), 1j]
WHOLE = [(), [], [0], [[0]], {}, {"a": 1}, (0,), (0, 0), (1, 0), (-1,), ("a",), (None,), ((0,),)]
WHOLE += [(True,), (1.0,), (2**40,), (2**62, 2), (2**64,), (float("nan"),), slice(0, 1), Ellipsis]
WHOLE += [object(), int, len, np.float64, np.dtype("O"), np.dtype("S3"), np.ones(3), np.ones(())]
WHOLE += [CodeInt(1), CodeFloat(0.25), np.int64(1), np.uint64(2**63), np.float32(0.5), np.bool_(1)]


class Row(NamedTuple):
    """A function of the table: its class, the constructor's arguments, and the input arrays."""

    type: str
    node_class: Any
    arguments: dict[str, Any]
    arrays: list[Any]


class Attack(NamedTuple):
    """A row with a hostile value in the place of one argument."""

    row: Row
    name: str
    value: Any


# --- the rows and the attacks --------------------------------------------------------------------


def rows_of(seeds: list[mutated_nets.Seed]) -> list[Row]:
    """The first operator of each type with attributes, with the arrays that it reads."""
    import tinynode as tn
    from tinynode.net import Scope, loads

    found: dict[str, Row] = {}
    for seed in seeds:
        if "to_device" in seed.text:  # perhaps to a device of the parent alone
            continue
        net, scope = loads(seed.text), Scope({n: tn.asarray(x) for n, x in seed.feeds.items()})
        for operator in net.flattened():
            arrays = [tn.to_host(scope.find(name).array) for name in operator.input_names]
            if operator.attrs and operator.type not in found:
                found[operator.type] = _row(operator, arrays)
            operator.run(scope)
    return [row for _, row in sorted(found.items())]


def _row(operator: Any, arrays: list[Any]) -> Row:
    names = list(inspect.signature(operator.node_class.__init__).parameters)[1:]
    arguments = {name: operator.attrs[STORED.get(name, name)] for name in names}
    return Row(operator.type, operator.node_class, arguments, arrays)


def hostile_values(value: Any) -> Iterator[Any]:
    """Values in the place of an argument: hostile ones, and tuples with one hostile item."""
    yield from PLAIN
    if not isinstance(value, tuple):
        yield from WHOLE
        return
    yield from (*WHOLE, list(value), value + value, value[:-1], value * 100_000, deep())
    for i, item in enumerate(value):
        for other in PLAIN if not isinstance(item, tuple) else hostile_values(item):
            items = (*value[:i], other, *value[i + 1 :])
            yield type(value)(*items) if hasattr(value, "_fields") else items


def attacks(rows: list[Row]) -> list[Attack]:
    """All attacks, in a fixed order."""
    return [
        Attack(row, name, hostile)
        for row in rows
        for name, value in row.arguments.items()
        for hostile in hostile_values(value)
    ]


# --- the ways ------------------------------------------------------------------------------------


def on_device(arguments: dict[str, Any], device: str) -> dict[str, Any]:
    """The arguments with another device."""
    import tinynode as tn

    return {
        name: tn.get_device(device) if isinstance(value, tn.Device) else value
        for name, value in arguments.items()
    }


def applied(attack: Attack, device: str) -> dict[str, Any]:
    """The outputs of a FunctionNode, made and applied eagerly."""
    import tinynode as tn

    arguments = {**on_device(attack.row.arguments, device), attack.name: attack.value}
    xs = tuple([tn.asarray(x, device=device) for x in attack.row.arrays])
    return named(attack.row.node_class(**arguments).apply(xs))


def compiled(attack: Attack, device: str) -> dict[str, Any]:
    """The outputs of a compiled function, after C was built."""
    import tinynode as tn
    from tinynode_fast.native import build

    arguments = {**on_device(attack.row.arguments, device), attack.name: attack.value}

    def run(*xs: Any) -> list[Any]:
        return list(attack.row.node_class(**arguments).apply(xs))

    function, xs = tn.compile(run), [tn.asarray(x, device=device) for x in attack.row.arrays]
    for _ in range(3):
        found = function(*xs)
        build.wait()
    return named(found)


def in_net(attack: Attack, device: str, is_changed: bool) -> dict[str, Any]:
    """The outputs of an operator in a net: made so, or changed after it was made."""
    import tinynode as tn
    from tinynode.net import NetOp, Operator, Scope

    arguments = on_device(attack.row.arguments, device)
    count = len(attack.row.node_class(**arguments).apply(tuple(attack.row.arrays)))
    reads, writes = [f"x{i}" for i in range(len(attack.row.arrays))], names_of(count)
    if not is_changed:
        arguments[attack.name] = attack.value
    operator = Operator(attack.row.type, reads, writes, arguments)
    if is_changed:
        operator.attrs[STORED.get(attack.name, attack.name)] = attack.value
    values = {
        n: tn.asarray(x, device=device) for n, x in zip(reads, attack.row.arrays, strict=True)
    }
    scope = Scope(values)
    NetOp([operator]).run(scope)
    return {name: scope.find(name) for name in writes}


def names_of(count: int) -> list[str]:
    return [f"y{i}" for i in range(count)]


def named(ys: Any) -> dict[str, Any]:
    return {name: y for name, y in zip(names_of(len(ys)), ys, strict=True) if y is not None}


WAYS: dict[str, Callable[[Attack, str], dict[str, Any]]] = {
    "applied": applied,
    "compiled": compiled,
    "in a net": functools.partial(in_net, is_changed=False),
    "changed in a net": functools.partial(in_net, is_changed=True),
}


def judged(attack: Attack) -> tuple[str, str]:
    """What is wrong with the outcomes of an attack, "" for nothing; and their kind."""
    ways = {
        f"{way} on {device}": mutated_nets.outcome(run, attack, device)
        for device in ("numpy", "fast")
        for way, run in WAYS.items()
    }
    kind = "error" if all(found.error is not None for found in ways.values()) else "values"
    finding = nameless(attack, ways)
    if attack.row.type not in RANDOM:
        finding = finding or mutated_nets.difference(without_counts(ways))
    return finding, kind


def without_counts(ways: dict[str, mutated_nets.Outcome]) -> dict[str, mutated_nets.Outcome]:
    """The ways without operators that name another number of outputs than the function gives."""
    return {way: y for way, y in ways.items() if "the function gives" not in str(y.error)}


def nameless(attack: Attack, ways: dict[str, mutated_nets.Outcome]) -> str:
    """The first error that names neither the function nor the argument, or is endless."""
    words = {attack.row.type, attack.row.node_class.__name__, attack.name}
    known = set(map(squashed, words))
    for way, found in ways.items():
        if found.error is None or isinstance(found.error, MemoryError):
            continue
        text = "\n".join([str(found.error), *getattr(found.error, "__notes__", ())])
        is_named = isinstance(found.error, KINDS) and any(name in squashed(text) for name in known)
        if not is_named or len(text) > 1500:
            return f"nameless error, {way}: {found.error!r}"[:1000]
    return ""


def squashed(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


# --- the processes -------------------------------------------------------------------------------


def work(folder: Path, first: int, last: int, every: int) -> None:
    """Run attacks in this process, and print a line before and after each of them."""
    mutated_nets.limit_process()
    known = attacks(rows_of(pickle.loads((folder / "seeds").read_bytes())))
    with mutated_nets.quick_compiler():
        for number in range(first + -first % every, min(last, len(known)), every):
            attack = known[number]
            text = f"{attack.row.type}.{attack.name} = {mutated_nets.shown(attack.value)}"
            mutated_nets.report(number, functools.partial(judged, attack), text)


def run(first: int, last: int | None, every: int, rows: int) -> mutated_nets.Report:
    """Run one out of ``every`` attacks in child processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir(mode=0o700)
        seeds = mutated_nets.seeds(rows)
        (folder / "seeds").write_bytes(pickle.dumps(seeds))
        end = len(attacks(rows_of(seeds))) if last is None else last
        options = ["--every", str(every)]
        found = list(mutated_nets.findings(folder, first, end, "hostile_constructors", options))
    return mutated_nets.report_of(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", help="of a child: how many numbers")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--rows", type=int, default=4, help="of each operation")
    parser.add_argument("--work", type=Path, help="the folder of a parent: run here")
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.first, options.first + options.count, options.every)
        return
    found = run(options.first, options.last, options.every, options.rows)
    for one in found.findings:
        print(f"{one['number']}: {one['text']}: {one['finding']}")
    kinds = collections.Counter(one["finding"].partition(":")[0] for one in found.findings)
    print(f"{found.nets} attacks, {found.with_values} with values; findings: {dict(kinds)}")


if __name__ == "__main__":
    main()
