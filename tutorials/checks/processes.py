"""Checks of processes: sums by hand, and what goes over the network."""

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_weighted_mean": Hint(
        "Ranks have different numbers of examples. How much does each rank count?",
        "sum of count * gradient / sum of counts.",
    ),
    "check_a_rank_without_examples": Hint(
        "What is zero times something that is no number?",
        "Leave a gradient out if its count is 0.",
    ),
    "check_reduce_scatter": Hint(
        "Which piece must a rank send first, so that the last addition happens at the right rank?",
        "In step s rank r sends piece (r - 1 - s) % p; the receiver adds.",
    ),
    "check_allgather": Hint(
        "After the first part each rank has one finished piece. What does it send in step 0, "
        "and then?",
        "In step s rank r sends piece (r - s) % p; the receiver replaces its own.",
    ),
    "check_ring_allreduce": Hint(
        "Which lengths have the pieces if the array does not divide by the number of ranks?",
        "np.array_split, reduce_scatter, allgather, np.concatenate, in the dtype of the parts.",
    ),
    "check_what_is_sent": Hint(
        "How many steps does the ring make, and how much does each rank send in one?",
        "2 (p - 1) steps, one piece each.",
    ),
    "check_arrays_of_their_own": Hint(
        "Which arrays share memory with the ones that came in?",
        "array_split gives views: a = a + b makes another array, a += b does not.",
    ),
    "check_step_seconds": Hint(
        "Which part of a step gets shorter with more ranks, and which does not?",
        "compute / p + 2 (p - 1) (alpha + beta size / p).",
    ),
}
RANKS = (1, 2, 3, 4, 7)
LOOK = "np.array_split(part, p) gives p pieces, also of a length that p does not divide."


class Watched:
    """A ring that keeps how many numbers each rank sends in each step."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.sent = []

    def exchange(self, sent):
        look = "sent[r] is the array that rank r sends. Every rank sends in every step."
        expect_equal("the number of arrays for exchange", len(sent), self.ranks, look)
        arrays = all(isinstance(x, np.ndarray) for x in sent)
        expect_true("exchange gets NumPy arrays", arrays, look)
        self.sent.append([x.size for x in sent])
        return [sent[r - 1].copy() for r in range(self.ranks)]

    def expect(self, what, steps, most, look):
        """The number of steps, and the most numbers that a rank sends in a step."""
        expect_equal(f"{what}: the steps", len(self.sent), steps, look)
        largest = max((max(sizes) for sizes in self.sent), default=0)
        if largest > most:
            raise CheckFailed(
                f"{what}: the numbers that a rank sends in a step",
                f"at most {most}: a single piece",
                str(largest),
                look,
            )


def called(what, function, *arguments):
    """What the learner's code gives; an exception is a failed check."""
    try:
        return function(*arguments)
    except (NotImplementedError, CheckFailed):
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed(what, "a result", got, LOOK) from error


def parts_of(ranks, n):
    """Integers as floats: sums of these are exact in each order."""
    rng = np.random.default_rng(ranks + n)
    return [rng.integers(-99, 100, size=n).astype("float32") for _ in range(ranks)]


def check_weighted_mean(work):
    """The weighted mean is the mean over all examples."""
    rng = np.random.default_rng(0)
    examples = rng.normal(size=(12, 3))
    look = "A rank counts as much as it has examples. Divide by the number of all examples."
    for counts in ([7, 4, 1], [4, 4, 4], [12], [1, 11]):
        means = [part.mean(axis=0) for part in np.split(examples, np.cumsum(counts)[:-1])]
        kept = [mean.copy() for mean in means]
        got = called("weighted_mean", work.weighted_mean, means, counts)
        expect_close(f"weighted_mean with counts {counts}", got, examples.mean(axis=0), look)
        same = all(np.array_equal(a, b) for a, b in zip(means, kept, strict=True))
        expect_true(
            "weighted_mean leaves the gradients as they are", same, "`g *= n` writes into g."
        )


def check_a_rank_without_examples(work):
    """A gradient of no examples is NaN, and does not count."""
    nothing = np.full(2, np.nan)
    look = "0 * NaN is NaN. Leave the gradient out if its count is 0."
    for place in range(3):
        means, counts = [np.array([1.0, 2.0]), np.array([4.0, 8.0])], [2, 1]
        means.insert(place, nothing)
        counts.insert(place, 0)
        got = called("weighted_mean", work.weighted_mean, means, counts)
        expect_close(f"weighted_mean with counts {counts}", got, [2.0, 4.0], look)


def check_reduce_scatter(work):
    """Rank r ends with the sum of piece r, after p - 1 steps."""
    for p in RANKS:
        parts, network = parts_of(p, 3 * p), Watched(p)
        sums = np.split(np.sum(parts, axis=0), p)
        pieces = [list(np.split(part, p)) for part in parts]
        what = f"reduce_scatter, p = {p}"
        called(what, work.reduce_scatter, pieces, network)
        look = "The next rank adds what it receives to its own piece of the same number."
        for r in range(p):
            expect_close(f"{what}: pieces[{r}][{r}]", pieces[r][r], sums[r], look)
        network.expect(what, p - 1, 3, "p - 1 steps, and a piece of each rank in each step.")


def check_allgather(work):
    """All ranks end with all pieces, after p - 1 steps."""
    for p in RANKS:
        (whole,), network = parts_of(1, 2 * p), Watched(p)
        right = np.split(whole, p)
        pieces = [[right[i] if i == r else right[i] + np.nan for i in range(p)] for r in range(p)]
        what = f"allgather, p = {p}"
        called(what, work.allgather, pieces, network)
        look = "What a rank receives replaces its own piece of the same number."
        for r in range(p):
            for i in range(p):
                expect_close(f"{what}: pieces[{r}][{i}]", pieces[r][i], right[i], look)
        network.expect(what, p - 1, 2, "p - 1 steps, and a piece of each rank in each step.")


def check_ring_allreduce(work):
    """Every rank has the sum, for any length."""
    for p in RANKS:
        for n in (12, 7, 2):
            parts = parts_of(p, n)
            total = np.sum(parts, axis=0)
            what = f"ring_allreduce, p = {p}, {n} numbers"
            got = called(what, work.ring_allreduce, parts, Watched(p))
            expect_equal(f"{what}: the number of results", len(got), p, "A result for each rank.")
            for r in range(p):
                expect_close(f"{what}: rank {r}", got[r], total, LOOK)
                look = "The sum of float32 arrays is float32."
                expect_equal(f"{what}: the dtype of rank {r}", str(got[r].dtype), "float32", look)


def check_what_is_sent(work):
    """2 (p - 1) steps, and a piece in each."""
    for p in RANKS:
        for n in (12, 7, 2):
            network = Watched(p)
            what = f"ring_allreduce, p = {p}, {n} numbers"
            called(what, work.ring_allreduce, parts_of(p, n), network)
            look = "p - 1 steps of reduce_scatter, p - 1 steps of allgather, a piece in each."
            network.expect(what, 2 * (p - 1), -(-n // p), look)
            total = sum(sum(sizes) for sizes in network.sent)
            expect_equal(f"{what}: the numbers that all send", total, 2 * (p - 1) * n, look)


def check_arrays_of_their_own(work):
    """Ranks share no memory, and the parts stay as they are."""
    for p in (1, 3):
        parts = parts_of(p, 6)
        kept = [part.copy() for part in parts]
        got = called("ring_allreduce", work.ring_allreduce, parts, Watched(p))
        look = (
            "array_split gives views. `a += b` writes into the array, `a = a + b` makes another."
        )
        for r in range(p):
            expect_close(f"part {r} after ring_allreduce, p = {p}", parts[r], kept[r], look)
        arrays = [*parts, *got]
        shared = any(
            np.shares_memory(one, other)
            for place, one in enumerate(arrays)
            for other in arrays[:place]
        )
        look = "Real ranks have no common memory: each has an array of its own."
        expect_true(f"the results share no memory, p = {p}", not shared, look)


def check_step_seconds(work):
    """The time of a step, by hand."""
    look = "compute / p, and 2 (p - 1) messages of size / p bytes: alpha + beta * size / p each."
    rows = (
        ((8.0, 1, 100, 1.0, 0.5), 8.0),
        ((8.0, 2, 100, 1.0, 0.5), 4.0 + 2 * (1.0 + 25.0)),
        ((8.0, 4, 100, 1.0, 0.5), 2.0 + 6 * (1.0 + 12.5)),
        ((0.0, 10, 100, 3.0, 0.0), 54.0),
        ((0.0, 10, 100, 0.0, 1.0), 180.0),
    )
    for arguments, right in rows:
        got = called("step_seconds", work.step_seconds, *arguments)
        expect_close(f"step_seconds{arguments}", got, right, look)


_SOLUTION = solution(__file__)
_TERM = "total = total + count * gradient"
_ADD = "pieces[r][i] = pieces[r][i] + received[r]"
_COPY = "pieces[r][(r - 1 - s) % p] = received[r]"
_FIRST, _SECOND = "[pieces[r][(r - 1 - s) % p] for r in", "[pieces[r][(r - s) % p] for r in"
_RESULT = "    return [np.concatenate(own) for own in pieces]\n"
_CUT = "list(np.array_split(part, p)) for part in parts"

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the plain mean",
        _SOLUTION.replace("count * gradient", "sum(counts) / len(counts) * gradient"),
    ),
    (
        "divided by the number of ranks",
        _SOLUTION.replace("total / sum(counts)", "total / len(counts)"),
    ),
    ("0 * NaN counts", _SOLUTION.replace("if count > 0:", "if count >= 0:")),
    (
        "the gradients are changed",
        _SOLUTION.replace(_TERM, "gradient *= count\n            total = total + gradient"),
    ),
    ("reduce_scatter replaces", _SOLUTION.replace(_ADD, "pieces[r][i] = received[r]")),
    (
        "allgather adds",
        _SOLUTION.replace(_COPY, _COPY.replace("= ", "= pieces[r][(r - 1 - s) % p] + ")),
    ),
    ("a step is missing", _SOLUTION.replace("range(p - 1)", "range(p - 2)")),
    ("a step too many", _SOLUTION.replace("range(p - 1)", "range(p)")),
    (
        "rank r ends with piece r + 1",
        _SOLUTION.replace("(r - 1 - s)", "(r - s)").replace("r - 2", "r - 1"),
    ),
    ("the same piece in each step", _SOLUTION.replace(_FIRST, _FIRST.replace(" - s", ""))),
    (
        "allgather sends the same piece again",
        _SOLUTION.replace(_SECOND, _SECOND.replace(" - s", "")),
    ),
    (
        "the sum without the network",
        _SOLUTION.replace(
            "    p = len(parts)\n", "    return [sum(parts) for _ in parts]\n    p = len(parts)\n"
        ),
    ),
    (
        "all ranks share a result",
        _SOLUTION.replace(_RESULT, "    return [np.concatenate(pieces[0])] * p\n"),
    ),
    ("the parts are changed", _SOLUTION.replace(_ADD, "pieces[r][i] += received[r]")),
    ("only lengths that p divides", _SOLUTION.replace("np.array_split", "np.split")),
    (
        "the rest of the division is lost",
        _SOLUTION.replace(
            _CUT,
            "[part[i * (len(part) // p):][:len(part) // p] for i in range(p)] for part in parts",
        ),
    ),
    (
        "pieces of float64",
        _SOLUTION.replace("np.array_split(part, p)", "np.array_split(part.astype(float), p)"),
    ),
    (
        "whole arrays are sent",
        _SOLUTION.replace(
            _CUT, "[part if i == 0 else part[:0] for i in range(p)] for part in parts"
        ),
    ),
    ("each message has all bytes", _SOLUTION.replace("beta * size / ranks", "beta * size")),
    ("one half of the ring", _SOLUTION.replace("2 * (ranks - 1)", "(ranks - 1)")),
    ("a message for each rank", _SOLUTION.replace("2 * (ranks - 1)", "2 * ranks")),
    ("the computing is not shared", _SOLUTION.replace("compute / ranks", "compute")),
    (
        "alpha counts once",
        _SOLUTION.replace(
            "2 * (ranks - 1) * message", "alpha + 2 * (ranks - 1) * (message - alpha)"
        ),
    ),
)
