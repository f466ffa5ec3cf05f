"""Exercise roofline: the limits of a machine, and a product in blocks.

Nothing here is measured, so your machine does not matter. A number of float64 has 8 bytes.

1. ``roof(intensity, peak, bandwidth)``: the most GFLOP/s of a loop with ``intensity`` flops for
   each byte. ``ridge(peak, bandwidth)``: the intensity from which on the peak is the limit.
2. ``bytes_per_flop(rows, columns, itemsize)``: a tile adds ``rows * columns`` products. A product
   and its addition are 2 flops. The tile reads ``rows`` numbers of a and ``columns`` numbers of b.
3. ``lines_loaded(addresses, capacity, line)``: a cache keeps ``capacity`` lines of ``line`` bytes.
   A read of a line that is kept loads nothing. Else the line is loaded; a full cache drops the
   line that was unused for longest. A read makes a line the newest.
4. ``product_in_blocks(a, b, size, multiply)``: a @ b for a: (m, k) and b: (k, n), from blocks of
   at most ``size`` rows and ``size`` columns. ``multiply(x, y)`` gives the product of two blocks.
   The last blocks of a row or a column may be smaller. a and b stay as they are, and the result
   has their dtype.
"""

import numpy as np


def roof(intensity, peak, bandwidth):
    """The most GFLOP/s: flops for each byte, GFLOP/s and GB/s -> GFLOP/s."""
    raise NotImplementedError("write roof")


def ridge(peak, bandwidth):
    """The flops for each byte at which both limits are the same."""
    raise NotImplementedError("write ridge")


def bytes_per_flop(rows, columns, itemsize=8):
    """The bytes that a tile reads for each flop."""
    raise NotImplementedError("write bytes_per_flop")


def lines_loaded(addresses, capacity, line=64):
    """The number of lines that the cache loads for reads at these addresses, in order."""
    raise NotImplementedError("write lines_loaded")


def product_in_blocks(a, b, size, multiply=np.matmul):
    """a @ b, block by block: (m, k) and (k, n) -> (m, n)."""
    raise NotImplementedError("write product_in_blocks")


if __name__ == "__main__":  # python roofline.py
    print("2.0 is expected:", roof(0.1, 50.0, 20.0), " 2.5:", ridge(50.0, 20.0))
    print("1.5 is expected:", bytes_per_flop(4, 8))
    print("3 lines are expected:", lines_loaded([0, 8, 64, 0, 128, 0], capacity=2))
    a, b = np.arange(15.0).reshape(3, 5), np.arange(20.0).reshape(5, 4)
    print("0.0 is expected:", np.abs(product_in_blocks(a, b, 2) - a @ b).max())
