"""The limits of the fast path: sizes of blocks, thresholds, sizes of caches.

Requirement: every tuned number stands on one page, with its unit and its reason. The code reads
``LIMITS`` at each call, so a test can change a number.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Limits:
    """Numbers that decide about speed alone, except where rounding is named."""

    # --- blocks and threads ---

    block: int = 1 << 16
    """Elements in a block of a kernel: the few arrays of a kernel fit the cache together."""
    threaded: int = 1 << 20
    """Elements from which threads share an array. To hand over a share may take as long as a small
    kernel, where other programs use the cores too."""
    in_cache: int = 1 << 15
    """Elements below which arrays stay in the cache between calls: blocks gain nothing."""
    chain_bytes: int = 1 << 20
    """Bytes of all blocks of a fused chain: they stay in a core's second-level cache."""
    chain_step: int = 1024
    """Elements in the smallest block of a fused chain; larger blocks are multiples. For shorter
    blocks the calls would cost more than the cache saves."""

    # --- memory ---

    copied_bytes: int = 4096
    """Bytes up to which a plan copies inputs and results. The copy is quicker than looking up the
    array at each call."""
    results_kept: int = 2
    """Arrays that a plan remembers for each large result: a loop holds the last one and asks for
    the next."""
    workspace_bytes: int = 1 << 26
    """Bytes of workspace that a thread keeps. Larger workspaces are rare, and are freed."""
    freed_bytes: int = 31 << 20
    """Bytes, just below the 32 MiB up to which glibc raises its limits: see ``keep_pages``."""
    numbers: int = 1024
    """Constants that are kept as 0-d arrays: about 100 bytes each."""
    adam_numbers: int = 16
    """Sets of Adam's numbers that are kept: the parameters of one step share one set."""

    # --- least sizes of a kernel's first input ---

    small: int = 1 << 12
    """Elements for softmax, pooling, products of stacks, and convolutions in plans: NumPy's calls
    cost more below."""
    sums: int = 1 << 13
    """Elements for sums: the product with ones has to be set up."""
    standardize: int = 1 << 14
    """Elements for standardization, which calls NumPy about ten times."""

    # --- rows ---

    row_sum: int = 4096
    """Elements of a row that a product with ones adds up. NumPy adds longer rows pairwise, and
    rounds less."""
    row_mean: int = 256
    """Elements of a row whose mean a product computes: rounding shows in numbers far from 0."""
    rows_summed: int = 256
    """Rows, or columns, from which a product adds up quicker than NumPy."""
    short_row: int = 256
    """Elements of a row up to which softmax subtracts one maximum for a whole block."""
    many_rows: int = 192
    """Rows from which softmax gains by that one maximum."""
    sampled_rows: int = 64
    """Rows whose maxima foretell whether one maximum serves."""
    near: float = 9.0
    """Difference of logarithms: a row's maximum may lie so far below the block's. float32 ends at
    e^-87, so a term that is rounded to 0 is below e^-78 of its row's sum."""

    # --- images ---

    columns: int = 1 << 18
    """Elements of columns that a convolution unfolds at a time: 1 MiB of float32."""
    few_channels: int = 8
    """Channels below which a window's row is too short to be copied in one run."""


LIMITS = Limits()
