"""The limits of the fast path: sizes of blocks, thresholds, sizes of caches.

Requirement: every tuned number stands on one page, with a unit and a reason. The code reads
``LIMITS`` at each call, so a test can change a number; ``least`` of a kernel is read at import.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Limits:  # pragma: no mutate below: the numbers decide about speed
    """Numbers that decide about speed alone, except where rounding is named."""

    # blocks and threads
    block: int = 1 << 16  # elements of a block: the few arrays of a kernel fit the cache together
    threaded: int = 1 << 20  # elements that threads share: a handover may cost a small kernel
    in_cache: int = 1 << 15  # elements below which arrays stay in the cache without blocks
    chain_bytes: int = 1 << 20  # bytes of all blocks of a chain: the second-level cache of a core
    chain_step: int = 1024  # elements of a chain's smallest block: shorter blocks cost more calls

    # memory
    copied_bytes: int = 4096  # bytes of inputs and results that a plan copies, for bound calls
    results_kept: int = 2  # arrays kept for a large result: a loop holds one and asks for the next
    numbers: int = 1024  # constants that are kept as 0-d arrays: about 100 bytes each

    # elements of a kernel's first input, below which the portable forward is as quick
    small: int = 1 << 12  # softmax, pooling, products of stacks; convolutions in plans
    sums: int = 1 << 13  # sums: the product with ones has to be set up
    standardize: int = 1 << 14  # standardization calls NumPy about ten times

    # rows
    row_sum: int = 4096  # elements of a row; NumPy adds longer rows pairwise, and rounds less
    row_mean: int = 256  # elements of a row; rounding shows in means of numbers far from 0
    rows_summed: int = 256  # rows, or columns, from which a product adds up quicker than NumPy
    short_row: int = 256  # elements of a row: below, softmax subtracts one maximum for a block
    many_rows: int = 192  # rows from which softmax gains by that one maximum
    sampled_rows: int = 64  # rows whose maxima foretell whether one maximum serves
    # how far a row's maximum may lie below the block's: float32 ends at e^-87, so a term that is
    # rounded to 0 is below e^-78 of its row's sum
    near: float = 9.0

    # images
    columns: int = 1 << 18  # elements of columns that a convolution unfolds at a time: 1 MiB
    few_channels: int = 8  # channels below which a window's row is too short for one copied run


LIMITS = Limits()
