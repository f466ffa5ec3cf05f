"""Arrays of NumPy go to the device of the Variables beside them, or to the current device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest

import tinynode as tn
from tinynode import errors, nn
from tinynode.devices import clear_transfers
from tinynode.errors import DeviceMixError, OperandError

F = tn.functions
AWAY = "strict:device1"
ONES = np.ones((2, 3), np.float32)
LABELS = np.array([0, 2])


@pytest.fixture(autouse=True)
def no_transfers() -> Iterator[None]:
    clear_transfers()
    yield
    clear_transfers()


def away(array: Any = ONES, **options: Any) -> tn.Variable:
    return tn.asarray(array, device=AWAY, **options)


BESIDE: dict[str, Callable[[], Any]] = {
    "operand behind": lambda: away() * ONES,
    "operand before": lambda: F.add(ONES, away()),
    "scalar of NumPy": lambda: away() * np.float32(2),
    "labels": lambda: F.softmax_cross_entropy(away(), LABELS),
    "class weights": lambda: F.softmax_cross_entropy(
        away(), LABELS, class_weight=np.ones(3, np.float32)
    ),
    "a mask": lambda: F.where(ONES > 0, away(), 0.0),
    "an index": lambda: away()[LABELS > 0],
    "integers as an index": lambda: away()[LABELS - 1],
    "indices": lambda: F.take(away(), LABELS, axis=1),
    "a list": lambda: F.concat([away(), ONES]),
    "a class": lambda: F.Add().apply((away(), ONES))[0],
    "a layer": lambda: nn.Linear(3, 2, device=AWAY)(ONES),
    "a normalisation": lambda: nn.LayerNorm(3, device=AWAY)(ONES),
    "the namespace": lambda: away().__array_namespace__().add(away(), ONES),
    "vmap": lambda: tn.vmap(lambda x: x * ONES[0])(away()),
    "vmap of both": lambda: tn.vmap(lambda x, y: x * y, in_axes=(0, None))(away(), ONES[0]),
    "checkpoint": lambda: tn.checkpoint(lambda x: x * ONES, away()),
    "compile": lambda: tn.compile(lambda x, y: x * y + ONES)(away(), ONES),
    "einsum": lambda: F.einsum("ij,ij->i", ONES, away()),
}


@pytest.mark.parametrize("call", BESIDE.values(), ids=BESIDE.keys())
def test_an_array_of_numpy_goes_to_the_variable_beside(call: Callable[[], tn.Variable]) -> None:
    y = call()
    assert str(y.device) == AWAY
    assert type(y.array) is type(array_api_strict.ones(1))


def test_values_and_gradients_are_those_of_numpy() -> None:
    found = []
    for device in ("numpy", AWAY):
        x = tn.asarray(ONES * [1.0, 2.0, 3.0], device=device, requires_grad=True)
        loss = F.sum(F.exp(x[LABELS - 1]) * np.arange(3.0))
        loss.backward()
        found.append((tn.to_host(loss), tn.to_host(x.grad)))
    np.testing.assert_allclose(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1])


@pytest.mark.parametrize("call", BESIDE.values(), ids=BESIDE.keys())
def test_the_variable_beside_counts_before_the_current_device(
    call: Callable[[], tn.Variable],
) -> None:
    with tn.using_device("strict:device2"):
        assert str(call().device) == AWAY


CURRENT: dict[str, Callable[[], tn.Variable]] = {
    "asarray": lambda: tn.asarray(ONES),
    "Variable": lambda: tn.Variable(ONES),
    "a scalar": lambda: tn.Variable(np.float64(1)),
    "Parameter": lambda: nn.Parameter(np.ones(())),
    "a function": lambda: F.exp(ONES),
    "vmap": lambda: tn.vmap(F.exp)(ONES),
    "compile": lambda: tn.compile(F.exp)(ONES),
    "gradient": lambda: tn.gradient(lambda x: F.sum(x * x))(tn.asarray(ONES)),
}


@pytest.mark.parametrize("make", CURRENT.values(), ids=CURRENT.keys())
def test_without_a_variable_beside_the_current_device_counts(
    make: Callable[[], tn.Variable],
) -> None:
    assert str(make().device) == "numpy"
    with tn.using_device(AWAY):
        assert str(make().device) == AWAY


def test_assigned_arrays_go_to_the_device_of_the_variable() -> None:
    x = away(requires_grad=True)
    x.array, x.grad = ONES * 2, ONES * 3
    w = nn.Parameter(np.ones(()), device=AWAY)
    w.grad = np.float64(0.5)
    w.array = w.array - 0.1 * w.grad
    assert str(x.device) == str(w.device) == AWAY
    np.testing.assert_array_equal(tn.to_host(x.grad), ONES * 3)
    assert float(w) == pytest.approx(0.95)


def test_a_pinned_variable_stays_where_it_is() -> None:
    pinned = tn.asarray(ONES, device="numpy", requires_grad=True)
    with tn.using_device(AWAY):
        F.sum(pinned * pinned).backward()
        pinned.array = pinned.array - 0.1 * pinned.grad
        pinned.grad = ONES
        scalar = tn.asarray(np.ones(()), device="numpy")
        scalar.array = scalar.array - np.float64(0.5)
    assert str(scalar.device) == "numpy"
    assert str(pinned.device) == "numpy" and type(pinned.grad) is np.ndarray
    with tn.using_device("fast"):  # the same memory: nothing is copied
        pinned.array = ONES
    assert str(pinned.device) == "fast"


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_in_numpy_s_memory_nothing_is_copied(device: str) -> None:
    with tn.using_device(device):
        x = tn.Variable(ONES)
        y = x * ONES
        assert x.array is ONES and tn.asarray(ONES).array is ONES
        x.array = other = ONES * 2
    assert x.array is other and str(y.device) == device
    assert tn.show.transfers() == "no array of NumPy was copied to another device"


def test_a_pinned_array_stays_on_numpy() -> None:
    with tn.using_device(AWAY):
        assert str(tn.asarray(ONES, device="numpy").device) == "numpy"
        assert str(tn.asarray(tn.asarray(ONES, device="numpy")).device) == "numpy"


def test_later_writes_on_the_host_do_not_reach_the_device() -> None:
    host = np.zeros(3, np.float32)
    x = away(np.ones(3, np.float32)) * host
    y = tn.Variable(host)
    with tn.using_device(AWAY):
        z = tn.Variable(host)
    host[:] = 5.0
    assert [float(F.sum(v)) for v in (x, y, z)] == [0.0, 15.0, 0.0]


def test_no_copy_is_allowed_means_an_error() -> None:
    with tn.using_device(AWAY), pytest.raises(ValueError, match="copy=False"):
        tn.asarray(ONES, copy=False)


def test_arrays_of_another_library_never_move() -> None:
    other = tn.get_device("strict:device2").from_host(ONES)
    for call in (
        lambda: away() * other,
        lambda: tn.asarray(ONES) * other,
        lambda: F.Add().apply((away(), other)),
    ):
        with pytest.raises(DeviceMixError, match="strict:device2"):
            call()
    with pytest.raises(DeviceMixError):
        away() * tn.asarray(ONES, device="numpy")


@pytest.mark.parametrize("wrong", [np.array(["a", "b", "c"]), np.array([None, 1, 2])])
def test_texts_and_objects_are_refused_by_name(wrong: Any) -> None:
    with pytest.raises((OperandError, DeviceMixError), match=r"Variable|numpy"):
        away() * wrong
    with tn.using_device(AWAY), pytest.raises(OperandError, match="bools or numbers"):
        tn.Variable(wrong)


def test_copies_are_counted_by_function_and_bytes() -> None:
    x = away()
    for _ in range(3):
        x = x * ONES
    F.take(x, LABELS, axis=1)
    lines = tn.show.transfers(reset=True).splitlines()
    assert lines[2].split() == ["multiply", AWAY, "3", "3", "72", "24"]
    assert [line.split()[0] for line in lines[3:5]] == ["asarray", "take"]
    assert lines[5].startswith("again: ")
    assert "before the loop: x = tinynode.asarray(x)" in lines[5]
    assert tn.show.transfers() == "no array of NumPy was copied to another device"


def test_only_the_same_memory_counts_as_copied_again() -> None:
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    x = away(np.ones((2, 3), np.float32))
    tn.show.transfers(reset=True)
    for start in (0, 2):
        x * data[start : start + 2]
        x * data.copy()[:2]
    (function, _, copies, again, *_), *rest = rows_of_transfers()
    assert (function, copies, again, rest) == ("multiply", "4", "0", [])
    x * data[:2]
    assert rows_of_transfers()[0][2:4] == ["5", "1"]


def rows_of_transfers() -> list[list[str]]:
    lines = tn.show.transfers().splitlines()[2:]
    return [line.split() for line in lines if not line.startswith("again:")]


class Copies(tn.FunctionHook):
    """Keeps the copies that it hears of."""

    name = "Copies"

    def __init__(self) -> None:
        self.found: list[Any] = []

    def copied_from_host(self, host_copy: Any) -> None:
        self.found.append(host_copy)


def test_hooks_hear_of_each_copy() -> None:
    x, host = away(), ONES.copy()
    with Copies() as hook:
        F.maximum(x, host)
        F.maximum(x, host)
        F.maximum(x, x)
    told = [(one.function, one.device, one.nbytes, one.is_again) for one in hook.found]
    assert told == [("maximum", AWAY, 24, False), ("maximum", AWAY, 24, True)]
    assert all(one.seconds > 0 for one in hook.found)


def test_a_timer_has_a_column_and_a_row_for_copies(capsys: pytest.CaptureFixture[str]) -> None:
    x = away()
    with tn.hooks.TimerHook() as timer:
        F.sum(x * ONES)
        F.sum(x * ONES)
    timer.print_report()
    head, _, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[-1] == "copied"
    assert [row[-1] for row in rows if row[:3] == ["copy", "for", "multiply"]] == ["48"]
    assert rows[-1][-1] == "48"
    assert timer.total_time() >= sum(one.seconds for one in timer.copies) > 0
    with tn.hooks.TimerHook() as timer:
        F.sum(x * x)
    timer.print_report()
    assert "copied" not in capsys.readouterr().out


def test_a_film_says_which_step_copied() -> None:
    x = away()
    with tn.show.record() as film:
        F.sum(x * ONES)
        F.sum(x * x)
    copied = [line.strip() for line in film.to_text().splitlines() if "copied from" in line]
    assert copied == [f"copied from the host: multiply: 24 bytes to {AWAY}"]


def test_devices_that_differ_are_named_before_their_dtypes() -> None:
    """Each library has dtypes of its own, so float32 was said to differ from float32."""
    images = tn.asarray(np.ones((1, 1, 4, 4), np.float32))
    with pytest.raises(DeviceMixError, match=rf"input 0 on numpy, input 1 on {AWAY}"):
        nn.Conv2d(1, 2, 3, device=AWAY)(images)


@pytest.mark.parametrize(
    "call", [np.argmax, np.asarray, np.exp, np.mean, lambda x: np.ones(3) * x]
)
def test_numpy_s_functions_of_an_array_elsewhere_name_the_cure(call: Callable[[Any], Any]) -> None:
    scores = away(np.asarray([1.0, 3.0, 2.0], np.float32))
    with pytest.raises((errors.DeviceError, TypeError), match=r"to_host\(x\)|numpy"):
        call(scores.array)
    with pytest.raises(errors.DeviceError, match=r"on strict:device1.*tinynode.to_host\(x\)"):
        np.argmax(scores.array)
    assert np.argmax(tn.to_host(scores)) == 1
    assert np.argmax(tn.asarray(ONES, device="strict").array) == 0


@pytest.mark.parametrize(
    ("device", "dtype"), [(AWAY, np.float16), (AWAY, np.longdouble), ("fast", np.float16)]
)
def test_a_dtype_that_the_device_lacks_is_named(device: str, dtype: Any) -> None:
    array = np.ones(2, dtype)
    if device == "fast":
        assert tn.asarray(array, device=device).dtype == dtype
        return
    name = str(np.dtype(dtype))
    for call in (lambda: tn.asarray(array, device=device), lambda: away() * array[:1]):
        with pytest.raises(OperandError, match=f"{device} cannot hold .*{name}.*Cast the array"):
            call()
    with (
        pytest.raises(OperandError, match=r"cannot hold .*float16"),
        tn.using_config(dtype="float16"),
    ):
        tn.asarray([1.0], device=device)
