"""Sessions: several calls of a compiled function, with changes between the calls.

A session is a script. The script makes parameters, a module and arrays, then calls a function in
several ways. The script runs twice: with the eager function, and with the compiled function. All
calls must have equal results, gradients and running statistics.

Between the calls, arrays of parameters are replaced, and the module changes between training and
evaluation. The calls differ in shapes, dtypes, numbers and modes. Arguments share arrays with each
other, with parameters and with constants.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from fuzz import generator
from fuzz.generator import Writer
from fuzz.programs import Input, Program, Var, text_of
from hypothesis import strategies as st

import tinynode as tn
from tinynode import nn
from tinynode.errors import TraceError

SIDE = 3
POOL = ["a0", "a1", "a2", "a3"]
"""Arrays of one shape, of fewer rows, and of float32."""
MODES = [
    "", "", "", "with tn.no_backprop_mode(): ", "with tn.using_config(train=False): ",
    "with tn.using_config(dtype='float32'): ",
]  # fmt: skip
FAMILIES: list[Callable[[Writer], None]] = [
    generator.unary, generator.unary, generator.binary, generator.binary, generator.quotients,
    generator.in_place, generator.writing, generator.reduction, generator.shaping,
    generator.reading, generator.joining,
]  # fmt: skip


class ClosedWriter(Writer):
    """Writes a function of x0, x1 and a number s, with parameters and constants."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)
        self.dtype = "float64"
        self.inputs = [Input(name, (SIDE, SIDE), "float64") for name in ("x0", "x1", "s")]
        self.numbers = [2, 0.5, -1.5, Var("s"), Var("s")]
        for name in ("x0", "x1", "w0"):
            self.values[name] = tn.Variable(np.full((SIDE, SIDE), 0.5), requires_grad=False)
        for name in ("w1", "c"):
            self.values[name] = tn.Variable(np.full(SIDE, 0.25), requires_grad=False)
        self.values["k"] = np.full(SIDE, -0.5)
        self.values["s"] = 0.75
        self.globals["bn"] = nn.BatchNorm(SIDE, dtype="float64")

    def input(self, shape: Any = None, dtype: Any = None, large: bool = False) -> Var:
        """In place of a new argument: a constant."""
        found = self.apply("copy", self.literal(np.full(shape or (SIDE,), 0.5)))
        return found or Var("w1")

    def constant(self, shape: tuple[int, ...], dtype: str | None = None) -> Var:
        return Var("k") if shape[-1:] == (SIDE,) else super().constant(shape, dtype)


def stateful(w: Writer) -> None:
    """Batch normalization, by a module."""
    x = w.one_of(w.variables(lambda v: v.ndim == 2 and v.shape[1] == SIDE and v.shape[0] > 1))
    w.apply(w.one_of(["bn", "bn.forward"]), x, form="closure")


def without_gradient(w: Writer) -> None:
    """detach(), also of a parameter; or a step in no_backprop_mode()."""
    x = w.one_of(w.variables(_is_any))
    if w.once_in(2):
        w.apply("detach", x, form="operator")
    else:
        w.apply(w.one_of(["tanh", "square"]), x, form="no backprop")


def _is_any(value: Any) -> bool:
    return True


@dataclasses.dataclass(frozen=True)
class Session:
    """A function, and the lines of a script that calls the function.

    Attributes:
        program: the function of x0, x1 and s.
        setup: lines that make parameters, the module and arrays.
        events: lines that call the function, or change parameters and the module.
        device: the device of everything.
    """

    program: Program
    setup: tuple[str, ...]
    events: tuple[str, ...]
    device: str

    def script(self) -> str:
        """The whole script; ``wrap`` is the identity, or ``tn.compile``."""
        lines = [*self.setup, "", self.program.source(), "function = wrap(program)", *self.events]
        return "\n".join(lines) + "\n"


@st.composite
def sessions(draw: Any, shares: bool = False) -> Session:
    """Sessions of a few calls.

    Args:
        shares: True if a parameter's array is also that of a constant.
    """
    writer = ClosedWriter(draw)
    families = [*FAMILIES, without_gradient, stateful]
    for _ in range(generator.LONGEST):
        stops = writer.integer(0, 7) == 0
        if writer.failed or (stops and len(writer.steps) > 2) or len(writer.steps) > 15:
            break
        draw(generator.one_step(writer, families))
        writer.draw = draw
    if shares:
        writer.apply("multiply", Var("x0"), Var("w1"), form="operator")
        writer.apply("multiply", Var("x0"), Var("k"), form="operator")
    names = [*POOL, "k", "c.array", "w0.array"]
    if writer.once_in(2):
        writer.apply(writer.one_of(["bn", "bn.forward"]), Var("x0"), form="closure")
    events = [draw(event(writer, names))]
    for _ in range(writer.integer(3, 9)):
        called = [one for one in events if "call" in one]
        repeats = called and writer.integer(0, 9) > 5  # the same signature, after a change
        events.append(called[-1] if repeats else draw(event(writer, names)))
    program, setup = writer.program(), SETUP
    if shares:
        setup, events = [*SETUP, "k = w1.array"], [CALL, "w1.array = k + 1.0", *events, CALL]
    return Session(program, tuple(setup), tuple(events), writer.one_of(["numpy", "fast"]))


CALL = "call(leaf(a0), leaf(a1), 0.5)"
SETUP = [
    "rng = np.random.default_rng(3)",
    f"a0, a1 = rng.uniform(-1, 1, (2, {SIDE}, {SIDE}))",
    f"a2 = rng.uniform(-1, 1, (2, {SIDE}))",
    f"a3 = rng.uniform(-1, 1, ({SIDE}, {SIDE})).astype('float32')",
    f"w0 = nn.Parameter(rng.uniform(-1, 1, ({SIDE}, {SIDE})))",
    f"w1 = nn.Parameter(rng.uniform(-1, 1, {SIDE}))",
    f"c = data(rng.uniform(-1, 1, {SIDE}))",
    f"k = rng.uniform(-1, 1, {SIDE})",
    f"bn = nn.BatchNorm({SIDE}, dtype='float64')",
]


@st.composite
def event(draw: Any, writer: Writer, names: list[str]) -> str:
    """A line of the script."""
    writer.draw = draw
    kind = writer.integer(0, 9)
    if kind > 7:
        return str(writer.one_of(["bn.eval()", "bn.train()", "bn.eval()"]))
    if kind == 7:
        numbers = np.random.default_rng(writer.integer(0, 255)).uniform(-1, 1, (SIDE, SIDE))
        new = [f"w0.array = {text_of(numbers)}", f"w1.array = {text_of(numbers[0])}"]
        return str(writer.one_of([*new, "w0.array = a0", "w0.array = a3", "w1.array = a3[0]"]))
    one, other = writer.one_of(names[:4]), writer.one_of([*names, "x"])
    form = writer.one_of(["leaf({})", "leaf({})", "data({})"])
    first, second = form.format(one), f"leaf({other})"
    if kind == 6:
        first = "w0"
    if other == "x":  # one Variable twice
        return f"x = leaf({one})\n{writer.one_of(MODES)}call(x, x, {writer.integer(0, 2)}.5)"
    return f"{writer.one_of(MODES)}call({first}, {second}, {writer.integer(0, 2)}.5)"


# --- to run a session ---------------------------------------------------------------------------


class World:
    """The globals of a script, and the records of its calls.

    Attributes:
        records: for each call the results, their flags, gradients and statistics; or the error.
    """

    def __init__(self, session: Session, wrap: Callable[[Any], Any]) -> None:
        self.records: list[list[Any] | Exception] = []
        self.names: dict[str, Any] = {
            "F": tn.functions, "np": np, "nn": nn, "tn": tn, "array": np.array, "wrap": wrap,
            "leaf": tn.Variable, "data": _data, "call": self.call,
        }  # fmt: skip
        with tn.using_device(session.device), np.errstate(all="ignore"):
            exec(compile(session.script(), "<session>", "exec"), self.names)

    def call(self, *args: Any) -> None:
        """Call the function; record all that can be seen afterwards."""
        try:
            self.records.append(self._record(args))
        except Exception as error:
            self.records.append(error)
            bn = self.names["bn"]  # the eager function has perhaps updated the statistics
            bn.running_mean.array = np.zeros(SIDE)
            bn.running_variance.array = np.ones(SIDE)

    def _record(self, args: tuple[Any, ...]) -> list[Any]:
        ys = self.names["function"](*args)
        parameters = [self.names["w0"], self.names["w1"], *self.names["bn"].parameters()]
        leaves = [x for x in (*args, *parameters) if isinstance(x, tn.Variable)]
        free = list({id(x): x for x in leaves if x.requires_grad}.values())
        known = [y for y in ys if y.requires_grad]
        gxs: list[Any] = [None] * len(free)
        ggs = list(gxs)
        if known and free:
            gys = [tn.Variable(np.full(y.shape, 0.5, y.dtype)) for y in known]
            gxs = tn.grad(known, free, gys, enable_double_backprop=True)
            again = [gx for gx in gxs if gx is not None and gx.requires_grad]
            if again:
                vs = [tn.Variable(np.full(gx.shape, 0.5, gx.dtype)) for gx in again]
                ggs = tn.grad(again, free, vs)
        bn = self.names["bn"]
        state = [bn.running_mean, bn.running_variance]
        found = [None if x is None else np.array(x.array) for x in (*ys, *gxs, *ggs, *state)]
        return [[y.requires_grad for y in ys], *found]


def _data(array: Any) -> Any:
    return tn.Variable(array, requires_grad=False)


def _same(function: Any) -> Any:
    return function


def check(session: Session) -> int:
    """Compare the compiled function with the eager one at each call; the number of calls.

    Raises:
        AssertionError: they differ; a note has the session as a script.
    """
    eager, compiled = World(session, _same), World(session, tn.compile)
    count = 0
    try:
        for theirs, ours in zip(eager.records, compiled.records, strict=True):
            what = f"call {count} on {session.device}"
            if isinstance(ours, TraceError):
                return count  # a net cannot record an action, and says so
            if isinstance(theirs, Exception):
                assert isinstance(ours, Exception), f"{what} raises {theirs!r} eagerly"
                continue
            if isinstance(ours, Exception):
                raise ours
            _compare(ours, theirs, what)
            count += 1
    except Exception as error:
        error.add_note(f"the session as a script, with wrap = tn.compile:\n\n{session.script()}")
        raise
    return count


def _compare(ours: list[Any], theirs: list[Any], what: str) -> None:
    assert ours[0] == theirs[0], f"{what}: results require gradients {ours[0]}, not {theirs[0]}"
    assert len(ours) == len(theirs), what
    for i, (one, other) in enumerate(zip(ours[1:], theirs[1:], strict=True)):
        if one is None and other is None:
            continue
        one = np.zeros_like(other) if one is None else one
        other = np.zeros_like(one) if other is None else other
        assert (one.shape, one.dtype) == (other.shape, other.dtype), f"{what}: array {i}"
        eps = 1e-3 if "float32" in (str(one.dtype), *map(_dtype, theirs[1:])) else 1e-8
        scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
        if not np.isfinite(scale) or scale > 1e6:
            continue
        worst = float(np.max(np.abs(one - other), initial=0.0))
        assert worst <= eps * scale, f"{what}: array {i} is\n{one}\nnot\n{other}"


def _dtype(array: Any) -> str:
    return "" if array is None else str(array.dtype)
