"""One seed, one generator, and the same numbers on every device."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy
import pytest

import tinynode as tn
from tinynode import random

DEVICES = ["numpy", "strict", "strict:device1"]


@pytest.fixture(autouse=True)
def _state() -> Iterator[None]:
    before = random.get_state()
    yield
    random.set_state(before)


@pytest.mark.parametrize("device", DEVICES)
def test_a_seed_gives_the_numbers_of_numpys_pcg64_on_every_device(device: str) -> None:
    random.seed(7)
    normal = random.normal((3, 2), 1.0, 2.0, device=device)
    uniform = random.uniform((4,), -1.0, 3.0, dtype="float64", device=device)
    order = random.permutation(9, device=device)
    expected = numpy.random.Generator(numpy.random.PCG64(7))
    assert tn.get_device(device).owns(normal)
    assert tn.as_variable(normal).device is tn.get_device(device)
    numpy.testing.assert_array_equal(
        tn.to_host(normal), expected.normal(1.0, 2.0, (3, 2)).astype("float32")
    )
    numpy.testing.assert_array_equal(tn.to_host(uniform), expected.uniform(-1.0, 3.0, 4))
    numpy.testing.assert_array_equal(tn.to_host(order), expected.permutation(9))
    assert tn.to_host(order).dtype == numpy.int64


def test_seeds_differ() -> None:
    random.seed(1)
    first = random.normal((8,))
    random.seed(2)
    assert not (first == random.normal((8,))).any()


def test_the_generator_stays_the_same_object() -> None:
    generator = random.get_generator()
    random.seed(3)
    first = generator.random()
    random.seed(3)
    assert random.get_generator() is generator
    assert generator.random() == first


@pytest.mark.parametrize("n", [0, 2**70, numpy.int32(5), True])
def test_any_integer_that_is_not_negative_is_a_seed(n: int) -> None:
    random.seed(n)


@pytest.mark.parametrize("n", [1.0, "1", None, [1]])
def test_a_seed_must_be_an_integer(n: object) -> None:
    random.seed(5)
    with pytest.raises(TypeError, match="seed: n must be an integer, got"):
        random.seed(n)  # type: ignore[arg-type]
    assert random.get_generator().random() == numpy.random.default_rng(5).random()


def test_a_seed_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        random.seed(-1)


def test_a_state_can_be_taken_up_again() -> None:
    random.seed(11)
    # an odd number of 32-bit draws leaves half a word in the generator
    random.get_generator().integers(0, 2**32, size=3, dtype=numpy.uint32)
    state = random.get_state()
    assert state[4] == 1
    first = random.get_generator().integers(0, 2**32, size=3, dtype=numpy.uint32)
    normal = random.normal((4,))
    random.seed(0)
    random.set_state(state)
    second = random.get_generator().integers(0, 2**32, size=3, dtype=numpy.uint32)
    numpy.testing.assert_array_equal(first, second)
    numpy.testing.assert_array_equal(normal, random.normal((4,)))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (numpy.zeros(6), r"expected an array of shape \(6,\), uint64"),
        (numpy.zeros(5, dtype=numpy.uint64), r"got ndarray of shape \(5,\), uint64"),
        (numpy.zeros(6, dtype=numpy.uint64), "is no state of a PCG64 generator"),
        (numpy.array([1, 1, 1, 1, 2, 0], dtype=numpy.uint64), "is no state"),
        (numpy.array([1, 1, 1, 1, 0, 2**32], dtype=numpy.uint64), "is no state"),
    ],
)
def test_a_wrong_state_is_refused(state: object, message: str) -> None:
    before = random.get_state()
    with pytest.raises(tn.errors.StateError, match=message):
        random.set_state(state)
    numpy.testing.assert_array_equal(random.get_state(), before)


def test_the_dtype_is_that_of_the_settings_or_what_is_asked() -> None:
    assert random.normal((2,)).dtype == numpy.float32
    with tn.using_config(dtype="float64"):
        assert random.normal((2,)).dtype == numpy.float64
    assert random.uniform((2,), dtype="float16").dtype == numpy.float16
    assert random.uniform((2,), dtype=numpy.float64).dtype == numpy.float64
    strict = tn.get_device("strict")
    assert random.normal((), dtype=strict.xp.float64, device=strict).dtype == strict.xp.float64
    assert random.normal(()).shape == ()


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "nonsense", int, object()])
def test_a_dtype_that_is_not_floating_is_refused(dtype: object) -> None:
    with pytest.raises(TypeError, match="dtype must be float16, float32 or float64, got"):
        random.normal((2,), dtype=dtype)


def test_threads_share_one_stream() -> None:
    """Each draw of the stream goes to exactly one thread."""
    drawn: list[float] = []

    def draw() -> None:
        for _ in range(500):
            drawn.append(float(random.uniform((), dtype="float64")))

    random.seed(4)
    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(drawn) == sorted(numpy.random.default_rng(4).random(2000))


def test_numpy_random_is_imported_when_it_is_needed() -> None:
    code = "import sys, tinynode, tinynode.nn; print('numpy.random' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "False"
