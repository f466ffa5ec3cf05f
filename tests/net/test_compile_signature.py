"""The signature of a compiled call sees every change that matters: the results are eager's.

Each case alternates two calls. A signature that leaves the change out would run the first call's
net for the second.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.net.structure import ByIdentity


def variable(
    *values: float, dtype: str = "float64", device: str = "numpy", requires_grad: bool = True
) -> tn.Variable:
    x = tn.asarray(np.array(values, dtype), device=device)
    return x if requires_grad else x.detach()


class Call(NamedTuple):
    """One call: arguments, and the settings that hold during the call."""

    args: tuple[Any, ...]
    keywords: Mapping[str, Any] = MappingProxyType({})
    settings: Callable[[], AbstractContextManager[Any]] = nullcontext


def outcome(function: Any, call: Call) -> Any:
    """Values, dtype, device, flag and gradients of a call, on fresh Variables of its arrays."""
    fresh: dict[int, Any] = {}
    for x in call.args:
        if isinstance(x, tn.Variable):
            leaf = tn.asarray(x.array, device=x.device)
            fresh[id(x)] = leaf if x.requires_grad else leaf.detach()
    args = [fresh.get(id(x), x) for x in call.args]
    with call.settings():
        y = function(*args, **call.keywords)
    if not isinstance(y, tn.Variable):
        return y
    found = [y.device, str(y.dtype), y.shape, y.requires_grad, tn.to_host(y.array).tolist()]
    if y.requires_grad and y.creator_node is not None:
        fn.sum(y).backward()
    grads = [x.grad for x in fresh.values()]
    return [*found, *(g if g is None else tn.to_host(g).tolist() for g in grads)]


def check(function: Callable[..., Any], *calls: Call) -> int:
    """Compare the compiled function with the eager one; the number of recordings."""
    compiled = tn.compile(function)
    for _ in range(3):
        for call in calls:
            found, expected = outcome(compiled, call), outcome(function, call)
            assert repr(found) == repr(expected), call  # 0.0 == -0.0
    return len(compiled.recordings)


def affine(x: Any, w: Any, b: Any = 0.0) -> Any:
    return x * w + b


X, W = variable(1.0, 2.0), variable(3.0, 4.0)
ARGUMENTS = {
    "shape": (X, variable(5.0)),
    "rank": (X, variable(5.0, 6.0).reshape((2, 1)).detach()),
    "dtype": (variable(1.0, 2.0, dtype="float32"), variable(3.0, 4.0, dtype="float32")),
    "integer": (X, variable(3, 4, dtype="int64", requires_grad=False)),
    "device": (variable(1.0, 2.0, device="fast"), variable(3.0, 4.0, device="fast")),
    "the first requires no gradient": (variable(1.0, 2.0, requires_grad=False), W),
    "none requires a gradient": tuple(variable(1.0, 2.0, requires_grad=False) for _ in "xw"),
    "one array twice": (X, X),
    "a float": (X, 3.0),
    "another float": (X, -3.0),
    "minus zero": (X, -0.0),
    "zero": (X, 0.0),
    "an int": (X, 3),
    "a bool": (X, True),
    "one": (X, 1),
    "an array": (X, np.array([3.0, 4.0])),
}


@pytest.mark.parametrize("other", ARGUMENTS.values(), ids=ARGUMENTS)
def test_a_change_of_the_arguments(other: tuple[Any, ...]) -> None:
    device = "fast" if any(str(getattr(x, "device", "")) == "fast" for x in other) else "numpy"
    with tn.using_device(device):
        check(affine, Call((X, W)), Call(other))
        check(affine, Call(other), Call((X, W)))


def test_a_change_of_a_number() -> None:
    """Equal numbers of several types, and both zeros, are several signatures."""
    factors = {bool: 2.0, int: 3.0, float: 5.0}
    numbers = (1.0, 1, True, -0.0, 0.0, 0, False)
    calls = [Call((X, n)) for n in numbers]
    assert check(lambda x, n: x * n * factors[type(n)], *calls) == len(numbers)


def test_arguments_by_position_and_by_name() -> None:
    number = check(affine, Call((X, W, X)), Call((X, W), {"b": X.detach()}), Call((X, W)))
    assert number == 3


def test_the_order_of_the_arguments() -> None:
    assert check(lambda x, w: x / w, Call((X, W)), Call((W, X))) == 1


def test_the_structure_of_the_arguments() -> None:
    def kind_of(xs: Any) -> Any:
        return fn.sum(xs[0]) * (2.0 if isinstance(xs, list) else 3.0) * len(xs)

    assert check(kind_of, Call(([X, W],)), Call(((X, W),)), Call(((X, W, W),))) == 3


@pytest.mark.parametrize("first", [(X, X), (X, W), (W, X)], ids=["one", "two", "swapped"])
def test_one_variable_as_two_arguments(first: tuple[Any, ...]) -> None:
    """The recorder knows arrays by identity: it must not take one argument for the other."""
    check(lambda x, y: x.detach() * 2.0 + y, Call(first), Call((X, W)), Call((X, X)))


def test_an_argument_may_share_its_array_with_a_constant() -> None:
    target = np.array([1.0, 2.0])
    same, other = tn.Variable(target), variable(5.0, 7.0)
    check(lambda x: (x - tn.asarray(target)) ** 2, Call((same,)), Call((other,)))


@contextmanager
def setting(**settings: Any) -> Iterator[None]:
    with tn.using_config(**settings):
        yield


SETTINGS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "train": (lambda x: x * (2.0 if tn.config.train else 3.0), {"train": False}),
    "enable_backprop": (lambda x: x * 2.0, {"enable_backprop": False}),
    "dtype": (lambda x: x * tn.asarray([0.1, 0.2]).astype("float64"), {"dtype": "float64"}),
    "device": (lambda x: x * (2.0 if tn.config.device is None else 3.0), {"device": "numpy"}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_change_of_a_setting(name: str) -> None:
    function, settings = SETTINGS[name]
    number = check(function, Call((X,)), Call((X,), {}, lambda: setting(**settings)))
    assert number == 2


def test_a_setting_of_the_users() -> None:
    tn.config.gain = 2.0
    try:
        compiled = tn.compile(lambda x: x * tn.config.gain)
        for gain in (2.0, 3.0, 2.0, -0.0, 0.0, True):
            tn.config.gain = gain
            assert str((X * gain).array) == str(compiled(X).array)
        assert len(compiled.recordings) == 5
    finally:
        del tn.config.gain


class Halving(nn.Module):
    """Halves in training, doubles in evaluation; with a parameter."""

    def __init__(self) -> None:
        self.w = nn.Parameter(np.array([3.0, 4.0]))

    def forward(self, x: Any) -> Any:
        return x * self.w * (0.5 if self.training else 2.0)


@pytest.mark.parametrize("way", ["call", "forward", "attribute", "as a function"])
def test_a_change_of_training(way: str) -> None:
    model = Halving()
    functions: dict[str, Callable[[Any], Any]] = {
        "call": lambda x: model(x),
        "forward": lambda x: model.forward(x),
        "attribute": lambda x: x * (0.5 if model.training else 2.0),
        "as a function": model,
    }
    compiled = tn.compile(functions[way])
    for _ in range(3):
        for mode in (model.train, model.eval):
            mode()
            assert outcome(compiled, Call((X,))) == outcome(functions[way], Call((X,)))


@pytest.mark.parametrize("layer", [nn.BatchNorm(2), nn.Dropout(0.5)], ids=["norm", "dropout"])
def test_a_change_of_training_where_forward_is_called(layer: Any) -> None:
    """The layers of the library, without ``__call__``; evaluation is deterministic."""
    x = tn.asarray(np.arange(1.0, 201.0, dtype="f4").reshape((100, 2)))
    compiled = tn.compile(lambda x: layer.forward(x) * 1.0)
    layer.train()
    trained = compiled(x)
    for _ in range(2):
        layer.eval()
        np.testing.assert_allclose(compiled(x).array, layer(x).array, rtol=1e-6)
        layer.train()
        assert not np.allclose(compiled(x).array, layer.eval()(x).array)
    assert trained.shape == x.shape and len(compiled.recordings) == 2


def test_a_setting_of_the_users_in_a_with_block() -> None:
    tn.config.gain = 2.0
    try:
        compiled = tn.compile(lambda x: x * tn.config.gain)
        for gain in (2.0, 3.0, 2.0):
            with tn.using_config(gain=gain):
                assert compiled(X).array.tolist() == (X.array * gain).tolist()
    finally:
        del tn.config.gain


def test_a_change_of_a_parameter() -> None:
    """A new array of the same spec is read; another spec is recorded anew."""
    model = Halving()
    compiled = tn.compile(model.forward)
    arrays = [np.array(v) for v in ([5.0, 6.0], [7.0], [[1.0], [2.0]])]
    for array in [*arrays, *arrays]:
        model.w.array = array
        found = []
        for function in (compiled, model.forward):
            model.cleargrads()
            found.append((outcome(function, Call((X,))), np.asarray(model.w.grad).tolist()))
        assert found[0] == found[1]
    assert len(compiled.recordings) == 3


def test_another_instance_is_another_signature() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @tn.compile
        def apply(self, x: Any) -> Any:
            return x * self.factor

    two, three = Scale(2.0), Scale(3.0)
    for scale in (two, three, two, three):
        assert (scale.apply(X).array == X.array * scale.factor).all()


def test_the_first_gradient_request_changes_no_result() -> None:
    compiled = tn.compile(affine)
    for flags in ((True, True), (True, False), (False, True), (True, True)):
        xs = [variable(2.0, 3.0, requires_grad=flag) for flag in flags]
        for x, other in zip(xs, reversed(xs), strict=True):
            if x.requires_grad:
                (gx,) = tn.grad([fn.sum(compiled(*xs))], [x])
                assert gx is not None and (gx.array == other.array).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [x * 2.0],
        lambda x: (x * 2.0,),
        lambda x: {"y": x * 2.0},
        lambda x: (x * 2.0).detach(),
        lambda x: x,
        lambda x: (x * 2.0, x),
    ],
    ids=["list", "tuple", "dict", "detached", "argument", "output and argument"],
)
def test_repeated_calls_return_the_structure_of_the_function(function: Any) -> None:
    compiled = tn.compile(function)
    for _ in range(4):  # from the second call on, the signature is the latest
        x = variable(1.0, 2.0)
        expected, found = function(x), compiled(x)
        assert type(found) is type(expected)
        if isinstance(found, dict):
            found, expected = list(found.values()), list(expected.values())
        if isinstance(found, tn.Variable):
            found, expected = [found], [expected]
        assert [y.requires_grad for y in found] == [y.requires_grad for y in expected]
        for y, z in zip(found, expected, strict=True):
            np.testing.assert_array_equal(y.array, z.array)


class Pair(NamedTuple):
    """A container of a class of the user's."""

    a: Any
    b: Any


class Text(str):
    """A key that equals a text, and is none."""


def text_of(value: Any) -> str:
    """The structure of a value in words; Variables by shape, dtype and flag."""
    if isinstance(value, dict):
        return (
            f"dict({', '.join(f'{k!r} {type(k).__name__}: {text_of(value[k])}' for k in value)})"
        )
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(text_of, value))})"
    if isinstance(value, tn.Variable):
        return f"{value.shape} {value.dtype} {value.requires_grad}"
    return "array" if hasattr(value, "shape") else repr(value)


SHORT, DATA = variable(1.0), variable(1.0, 2.0, requires_grad=False)
STRUCTURES: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X, {"w": W, "b": X}), {}),
    ((X, {"b": W, "w": X}), {}),
    ((X, {"w": W}), {}),
    ((X, {"w": W, "b": X, "c": X}), {}),
    ((X, {Text("w"): W, "b": X}), {}),
    ((X, {"w": W, "b": SHORT}), {}),
    ((X, {"w": DATA, "b": X}), {}),
    ((X, {"w": W, "b": np.ones(2)}), {}),
    ((X, {"w": W, "b": 1.0}), {}),
    ((X, {"w": W, "b": None}), {}),
    ((X, [W, X]), {}),
    ((X, (W, X)), {}),
    ((X, Pair(W, X)), {}),
    ((X, (W, [X])), {}),
    ((X, (W, X, ())), {}),
    ((X, {"w": W}), {"b": X}),
    ((X,), {"w": W, "b": X}),
    ((X, W, X), {}),
]
"""Arguments of other structures, with equal Variables in part: each is a call of its own."""


def test_calls_of_other_structures_are_told_apart() -> None:
    seen: list[str] = []

    def function(*args: Any, **keywords: Any) -> tuple[Any, str]:
        return args[0] * 2.0, text_of((args, keywords))

    compiled = tn.compile(function)
    pairs = [(one, other) for one in STRUCTURES for other in STRUCTURES]
    for pair in pairs:
        for args, keywords in (*pair, pair[1]):
            y, text = compiled(*args, **keywords)
            assert text == text_of((args, keywords))
            assert y.array.tolist() == (args[0].array * 2.0).tolist()
            seen.append(text)
    assert len(compiled.recordings) == len(set(seen)) == len(STRUCTURES)


def test_a_compiled_call_keeps_no_argument_alive() -> None:
    class Scale:
        factor = 2.0

    compiled = tn.compile(lambda pair: pair[0] * pair[1].factor)
    scale = Scale()
    for _ in range(3):
        compiled((X, scale))
    reference = weakref.ref(scale)
    del scale
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("setting", ["train", "dtype", "device"])
def test_a_setting_that_the_function_changes(setting: str) -> None:
    """The recording belongs to the settings before the call."""
    values = {"train": (True, False), "dtype": ("float32", "float64"), "device": (None, "numpy")}
    before, after = values[setting]

    def function(x: Any) -> Any:
        y = x * (2.0 if getattr(tn.config, setting) == before else 3.0)
        setattr(tn.config, setting, after)
        return y

    with tn.using_config(setting, before):
        compiled = tn.compile(function)
        for factor in (2.0, 3.0, 3.0):
            np.testing.assert_array_equal(compiled(X).array, X.array * factor)


def test_an_argument_that_another_thread_changes_while_recording() -> None:
    began, go_on = threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        began.set()
        assert go_on.wait(10)
        return x * x.shape[0]

    compiled, x = tn.compile(function), variable(1.0, 1.0, requires_grad=False)
    thread = threading.Thread(target=compiled, args=(x,))
    thread.start()
    assert began.wait(10)
    x.array = np.ones(3)
    go_on.set()
    thread.join()
    for _ in range(2):
        y = compiled(variable(1.0, 1.0, 1.0, requires_grad=False))
        assert y.array.tolist() == [3.0, 3.0, 3.0]


def test_batch_normalisation_under_checkpoint() -> None:
    """Only the first run of a checkpoint updates the running statistics; so does a later call."""
    found = []
    for wrap in (lambda function: function, tn.compile):
        norm, x = nn.BatchNorm(2), tn.asarray(np.arange(6, dtype="f4").reshape((3, 2)))
        function = wrap(lambda x, norm=norm: norm(x))
        for _ in range(2):
            fn.sum(tn.checkpoint(function, x)).backward()
            function(x)
            found.append([norm.running_mean.array.tolist(), norm.running_variance.array.tolist()])
    assert found[:2] == found[2:] and found[0] != found[1]


@pytest.fixture
def own_settings() -> Iterator[None]:
    """Settings of the user's that a test adds are removed."""
    before = dict(vars(tn.config))
    yield
    vars(tn.config).clear()
    vars(tn.config).update(before)


@pytest.mark.usefixtures("own_settings")
def test_a_setting_of_the_users_that_the_function_does_not_read() -> None:
    compiled = tn.compile(affine)
    for step in range(20):
        tn.config.own_step = step
        compiled(X, W)
    assert len(compiled.recordings) <= 2  # before the setting was added, and after


class Held:
    """An object among the settings."""

    factor = 2.0


def test_objects_by_identity() -> None:
    """Two objects that were freed are two objects still."""
    a, b = Held(), Held()
    assert ByIdentity(a) == ByIdentity(a) != ByIdentity(b)
    one, other = ByIdentity(a), ByIdentity(b)
    for freed in (one, other):
        freed.weaken(lambda _: None)
    del a, b
    assert one.value is other.value is None and one != other


@pytest.mark.usefixtures("own_settings")
def test_an_object_among_the_settings_of_the_users_may_be_freed() -> None:
    compiled = tn.compile(lambda x: x * tn.config.own_object.factor)
    for factor in (2.0, 3.0):
        tn.config.own_object = Held()
        tn.config.own_object.factor = factor
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X).array, X.array * factor)
        assert len(compiled.recordings) == 1
        freed = weakref.ref(tn.config.own_object)
        tn.config.own_object = None
        gc.collect()
        assert freed() is None


@pytest.mark.usefixtures("own_settings")
def test_a_setting_of_the_users_that_is_missing() -> None:
    compiled = tn.compile(lambda x: x * getattr(tn.config, "own_factor", 2.0))
    for factor in (2.0, 3.0):
        np.testing.assert_array_equal(compiled(X).array, X.array * factor)
        tn.config.own_factor = 3.0
    del tn.config.own_factor
    np.testing.assert_array_equal(compiled(X).array, X.array * 2.0)
    tn.global_config.own_factor = 5.0
    try:
        np.testing.assert_array_equal(compiled(X).array, X.array * 5.0)
    finally:
        del tn.global_config.own_factor
    np.testing.assert_array_equal(compiled(X).array, X.array * 2.0)


@pytest.mark.usefixtures("own_settings")
def test_a_setting_of_the_users_inside_a_block_of_the_function() -> None:
    """The values before the call are compared: a value of the block would never be found."""

    def function(x: Any) -> Any:
        with tn.using_config("own_power", 3.0):
            return x * tn.config.own_power

    tn.config.own_power = 2.0
    compiled = tn.compile(function)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X).array, X.array * 3.0)
    assert len(compiled.recordings) == 1
