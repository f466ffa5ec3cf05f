"""Random numbers of a key: the bits, the numbers made of them, and the errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.functions.keyed import threefry

DEVICES = ["numpy", "fast", "strict"]
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("torch", "jax")]
DRAWS: dict[str, Any] = {
    "normal": lambda key: tn.random.normal((3, 40), key=key, dtype="float64"),
    "normal float32": lambda key: tn.random.normal((3, 40), 1.0, 2.0, key=key),
    "normal float16": lambda key: tn.random.normal((3, 40), key=key, dtype="float16"),
    "normal ()": lambda key: tn.random.normal((), key=key),
    "uniform": lambda key: tn.random.uniform((3, 40), -1.0, 2.0, key=key, dtype="float64"),
    "uniform float32": lambda key: tn.random.uniform((3, 40), -1.0, 2.0, key=key),
    "uniform float16": lambda key: tn.random.uniform((3, 40), key=key, dtype="float16"),
    "integers": lambda key: tn.random.integers((3, 40), -5, 5, key=key),
    "bernoulli": lambda key: tn.random.bernoulli((3, 40), 0.3, key=key),
    "permutation": lambda key: tn.random.permutation(40, key=key),
    "split": lambda key: tn.random.split(key, 5),
    "fold_in": lambda key: tn.random.fold_in(key, 7),
}


def host(x: Any) -> Any:
    return tn.to_host(x.array)


def bits_of(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    counters = np.asarray([counter[0] << 32 | counter[1]], dtype=np.uint64).astype(np.int64)
    bits = int(threefry(np.int64(key[0]), np.int64(key[1]), counters)[0]) % 2**64
    return bits >> 32, bits % 2**32


# --- the bits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_bits_are_the_published_ones(key: Any, counter: Any, expected: Any) -> None:
    """The known answers of Random123 for Threefry-2x32 with 20 rounds."""
    assert bits_of(key, counter) == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 42, 2**31, 2**63 + 12345])
def test_keys_and_bits_are_those_of_jax(seed: int) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        other = jax.random.wrap_key_data(
            np.asarray([seed >> 32, seed % 2**32], np.uint32), impl="threefry2x32"
        )
        if seed < 2**63:  # larger seeds do not fit an int64
            made = jax.random.key(seed, impl="threefry2x32")
            np.testing.assert_array_equal(jax.random.key_data(made), jax.random.key_data(other))
        splits = jax.random.key_data(jax.random.split(other, 5))
        folded = jax.random.key_data(jax.random.fold_in(other, 9))
        bits = np.asarray(jax.random.bits(other, (3, 2), "uint64"))
    key = tn.random.key(seed)
    np.testing.assert_array_equal(host(tn.random.split(key, 5)), splits)
    np.testing.assert_array_equal(host(tn.random.fold_in(key, 9)), folded)
    np.testing.assert_array_equal(host(fn.keyed_bits(key, (3, 2))).astype(np.uint64), bits)


def test_bits_depend_on_the_position_alone() -> None:
    key = tn.random.key(3)
    bits = host(fn.keyed_bits(key, 100_000))  # in blocks
    np.testing.assert_array_equal(host(fn.keyed_bits(key, (10, 20))).ravel(), bits[:200])
    np.testing.assert_array_equal(host(fn.keyed_bits(key, 5, first=70_000)), bits[70_000:70_005])
    later = fn.keyed_bits(key, 2, first=2**32 - 1)  # the counter has 64 bits
    following = fn.keyed_bits(key, (), first=tn.asarray(np.asarray(2**32)))
    assert host(later)[1] == host(following)


def test_a_key_may_have_any_integer_dtype_and_be_an_array() -> None:
    words = np.asarray([2**31 + 5, 2**32 - 1], dtype=np.uint32)
    expected = host(fn.keyed_bits(tn.asarray(words.astype(np.int64)), 4))
    np.testing.assert_array_equal(host(fn.keyed_bits(words, 4)), expected)
    np.testing.assert_array_equal(host(fn.keyed_bits(tn.asarray(words), 4)), expected)
    np.testing.assert_array_equal(host(fn.keyed_bits(words.astype(np.int32), 4)), expected)


# --- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [*DEVICES, *OTHERS])
@pytest.mark.parametrize("name", DRAWS)
def test_a_key_gives_the_same_numbers_on_every_device(name: str, device: str) -> None:
    if device in ("torch", "jax"):
        pytest.importorskip(device)
    if "float16" in name and device == "strict":
        pytest.skip("array_api_strict has no float16")
    found = DRAWS[name](tn.random.key(5, device=device))
    again = DRAWS[name](tn.random.key(5, device=device))
    other = DRAWS[name](tn.random.key(6, device=device))
    expected = host(DRAWS[name](tn.random.key(5, device="numpy")))
    assert found.device is tn.get_device(device) and not found.requires_grad
    assert (host(found) == host(again)).all() and (host(found) != host(other)).any()
    assert host(found).dtype == expected.dtype and found.shape == expected.shape
    if name.startswith("normal"):  # ln and cos are rounded differently
        eps = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(host(found), expected, rtol=16 * eps, atol=4 * eps)
    else:
        np.testing.assert_array_equal(host(found), expected)


def test_draws_leave_the_generator_of_the_process_alone() -> None:
    before = tn.random.get_state()
    for draw in DRAWS.values():
        draw(tn.random.key(0))
    np.testing.assert_array_equal(tn.random.get_state(), before)


@pytest.mark.parametrize("has_key", [False, True])
def test_numbers_that_the_dtype_has_not_are_refused(has_key: bool) -> None:
    """The draws were NaN or infinite."""
    key = tn.random.key(1) if has_key else None
    with pytest.raises(
        ValueError, match=r"random\.uniform: low must be finite in float32.*-1e\+39"
    ):
        tn.random.uniform(3, -1e39, 1e39, key=key, dtype="float32")
    with pytest.raises(ValueError, match=r"random\.normal: mean must be finite in float16"):
        tn.random.normal(3, 7e4, key=key, dtype="float16")
    with pytest.raises(ValueError, match=r"random\.normal: deviation must be finite in float16"):
        tn.random.normal(3, 0.0, 7e4, key=key, dtype="float16")
    most = tn.random.uniform(3, 0.0, 65504.0, key=key, dtype="float16")
    assert np.isfinite(tn.asarray(most).array).all()


def test_the_width_of_a_keyed_draw_is_finite_in_the_dtype() -> None:
    key = tn.random.key(1)
    with pytest.raises(ValueError, match=r"high - low must be finite in float16, got 80000"):
        tn.random.uniform(3, -4e4, 4e4, key=key, dtype="float16")
    assert np.isfinite(tn.random.uniform(3, -4e4, 4e4, dtype="float16")).all()
    assert np.isfinite(host(tn.random.uniform(3, -4e4, 4e4, key=key, dtype="float32"))).all()


def test_uniform_draws_of_each_dtype_are_the_same_number_cut() -> None:
    key = tn.random.key(1)
    exact = host(tn.random.uniform(1000, key=key, dtype="float64"))
    for dtype, digits in (("float32", 24), ("float16", 11)):
        cut = np.floor(exact * 2**digits) / 2**digits
        np.testing.assert_array_equal(host(tn.random.uniform(1000, key=key, dtype=dtype)), cut)


N = 200_000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_draws_have_the_moments_and_the_distribution(dtype: str) -> None:
    x = host(tn.random.normal(N, 2.0, 3.0, key=tn.random.key(0), dtype=dtype)).astype(float)
    z = (x - 2.0) / 3.0
    assert abs(z.mean()) < 4 / math.sqrt(N) and abs(z.var() - 1) < 4 * math.sqrt(2 / N)
    assert abs((z**3).mean()) < 4 * math.sqrt(15 / N)
    assert abs((z**4).mean() - 3) < 4 * math.sqrt(96 / N)
    phi = np.asarray([0.5 * (1 + math.erf(one / math.sqrt(2))) for one in np.sort(z)])
    assert np.abs(phi - (np.arange(N) + 0.5) / N).max() < 1.63 / math.sqrt(N)  # Kolmogorov, 1 %


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_draws_are_uniform(dtype: str) -> None:
    x = np.sort(host(tn.random.uniform(N, key=tn.random.key(1), dtype=dtype)))
    assert x[0] >= 0 and x[-1] < 1
    assert np.abs(x - (np.arange(N) + 0.5) / N).max() < 1.63 / math.sqrt(N)


def chi_square(counts: Any, expected: float) -> float:
    """The statistic less its mean, in standard deviations."""
    degrees = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(abs(statistic - degrees) / math.sqrt(2 * degrees))


def test_integers_bools_and_permutations_are_equally_probable() -> None:
    keys = tn.random.split(tn.random.key(2), 4)
    numbers = host(tn.random.integers(N, -3, 4, key=keys[0]))
    assert set(numbers) == set(range(-3, 4))
    assert chi_square(np.bincount(numbers + 3), N / 7) < 4
    wide = host(tn.random.integers(N, 0, 2**31, key=keys[1]))
    assert chi_square(np.bincount(wide >> 24), N / 128) < 4
    ratio = host(tn.random.bernoulli(N, 0.3, key=keys[2])).mean()
    assert abs(ratio - 0.3) < 4 * math.sqrt(0.21 / N)
    orders = tn.vmap(lambda key: tn.random.permutation(3, key=key))(tn.random.split(keys[3], 6000))
    code = host(orders) @ np.asarray([9, 3, 1])
    assert chi_square(np.unique(code, return_counts=True)[1], 1000) < 4
    assert (np.sort(host(tn.random.permutation(1000, key=keys[3]))) == np.arange(1000)).all()


def test_split_keys_give_independent_numbers() -> None:
    keys = tn.random.split(tn.random.key(3), 200)
    rows = host(tn.vmap(lambda key: tn.random.normal(1000, key=key))(keys)).astype(float)
    correlations = np.corrcoef(rows)[np.triu_indices(200, 1)]
    assert abs(correlations.mean()) < 4 / math.sqrt(1000 * len(correlations))
    assert abs(correlations.var() * 1000 - 1) < 0.1 and np.abs(correlations).max() < 0.2
    assert len({key.tobytes() for key in host(tn.random.split(keys[0], 10_000))}) == 10_000


def test_folding_in_a_number_gives_that_row_of_split() -> None:
    key = tn.random.key(4)
    rows = host(tn.random.split(key, 6))
    np.testing.assert_array_equal(host(tn.random.fold_in(key, 5)), rows[5])
    number = tn.asarray(np.asarray(5))
    np.testing.assert_array_equal(host(tn.random.fold_in(key, number)), rows[5])


def test_probabilities_0_and_1_are_certain() -> None:
    key = tn.random.key(0)
    assert not host(tn.random.bernoulli(1000, 0.0, key=key)).any()
    assert host(tn.random.bernoulli(1000, 1.0, key=key)).all()


# --- integers and bools without a key ------------------------------------------------------------


def test_draws_of_the_generator_are_those_of_numpy() -> None:
    before = tn.random.get_state()
    tn.seed(3)
    expected = np.random.default_rng(3)
    numbers = tn.random.integers((2, 3), -5, 10, device="strict")
    flags = tn.random.bernoulli((4,), 0.3)
    tn.random.set_state(before)
    np.testing.assert_array_equal(tn.to_host(numbers), expected.integers(-5, 10, (2, 3)))
    np.testing.assert_array_equal(flags, expected.random(4) < 0.3)
    assert tn.to_host(numbers).dtype == np.int64 and flags.dtype == np.bool_


# --- errors --------------------------------------------------------------------------------------

KEY = tn.random.key(0, device="numpy")
NEW_KEY = r"key must be an integer array of shape \(2,\), got .*tn\.random\.key\(0\)"
SHAPE_FIRST = r"The shape is the first argument, as in tn\.random\.uniform\(\(2, 3\), -1"
WRONG: list[tuple[Any, str]] = [
    (lambda: tn.random.normal(3, key=5), f"random.normal: {NEW_KEY}"),
    (lambda: tn.random.uniform(3, key=0.5), f"random.uniform: {NEW_KEY}"),
    (lambda: tn.random.integers(3, 0, 2, key="key"), f"random.integers: {NEW_KEY}"),
    (lambda: tn.random.bernoulli(3, key=[0, 1]), f"random.bernoulli: {NEW_KEY}"),
    (lambda: tn.random.permutation(3, key=np.zeros(2)), f"random.permutation: {NEW_KEY}"),
    (lambda: tn.random.split(tn.asarray([1.0, 2.0])), f"random.split: {NEW_KEY}"),
    (lambda: tn.random.fold_in(np.zeros(3, int), 1), f"random.fold_in: {NEW_KEY}"),
    (lambda: fn.keyed_bits(np.zeros(2, bool), 2), f"keyed_bits: {NEW_KEY}"),
    (lambda: tn.random.normal(2, key=tn.random.split(KEY)), r"is a key: keys\[0\]"),
    (lambda: tn.random.normal(3, KEY), "normal: mean must be a number.* by its name, key=key"),
    (lambda: tn.random.fold_in(KEY, 0.5), "random.fold_in: number must be an integer, got"),
    (lambda: tn.random.fold_in(KEY, KEY), "random.fold_in: number must be an integer, got"),
    (lambda: fn.keyed_bits(KEY, 2, True), "keyed_bits: first must be an integer, got"),
    (lambda: tn.random.key(1.5), "random.key: seed must be an integer, got float 1.5"),
    (lambda: tn.random.key(-1), r"random.key: seed must lie in 0 to 2\*\*64 - 1, got -1"),
    (lambda: tn.random.key(2**64), "random.key: seed must lie in"),
    (lambda: tn.random.split(KEY, -1), "random.split: n must not be negative.*got int -1"),
    (lambda: tn.random.split(KEY, 3.0), "random.split: n must be an integer, got float 3.0"),
    (lambda: tn.random.permutation((2, 3)), "permutation: n must be an integer, got tuple"),
    (
        lambda: tn.random.bernoulli(3, np.ones(3)),
        r"probability must be a number, got ndarray.*uniform\(p.shape\) < p",
    ),
    (
        lambda: tn.random.uniform(3, np.ones(3)),
        "low must be a number, got ndarray.*Scale the draws by arrays",
    ),
    (lambda: tn.random.bernoulli(2, 1.5), "bernoulli: probability must be at most 1, got 1.5"),
    (lambda: tn.random.integers(2, 3, 3), "integers: high must be above low, by at most"),
    (lambda: tn.random.integers(2, 0, 2**31 + 1), "integers: high must be above low, by at most"),
    (lambda: tn.random.integers(2, 0.0, 1), "random.integers: low must be an integer, got"),
    (lambda: tn.random.integers(0, 10, (2,)), f"integers: high must .* {SHAPE_FIRST}"),
    (lambda: tn.random.uniform(-1, 1, (2,)), f"uniform: high must be a number.* {SHAPE_FIRST}"),
    (lambda: tn.random.normal(0.0, 1.0, (2,)), f"deviation must be a number.* {SHAPE_FIRST}"),
    (lambda: tn.random.uniform(0.0, 1.0), f"shape must be an integer or .* {SHAPE_FIRST}"),
    (lambda: tn.random.uniform(-1, 1), f"shape must not be negative.* {SHAPE_FIRST}"),
    (
        lambda: tn.random.normal(2, tn.asarray(1.0), key=KEY),
        r"mean must be a number, .* mean \+ deviation \* tn.random.normal\(shape, key=key\)",
    ),
    (
        lambda: tn.random.normal(2, key=KEY, device="strict"),
        r"random.normal: device must be the key's, numpy, got strict.*key\.to_device",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_errors_name_the_function_the_argument_and_the_cure(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError, tn.TinynodeError), match=message):
        call()
