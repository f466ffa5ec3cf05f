"""Solution of exercise roofline."""

import numpy as np


def roof(intensity, peak, bandwidth):
    """The most GFLOP/s: flops for each byte, GFLOP/s and GB/s -> GFLOP/s."""
    return min(peak, intensity * bandwidth)


def ridge(peak, bandwidth):
    """The flops for each byte at which both limits are the same."""
    return peak / bandwidth


def bytes_per_flop(rows, columns, itemsize=8):
    """The bytes that a tile reads for each flop."""
    return itemsize * (rows + columns) / (2 * rows * columns)


def lines_loaded(addresses, capacity, line=64):
    """The number of lines that the cache loads for reads at these addresses, in order."""
    kept = []  # the oldest line first
    loaded = 0
    for address in addresses:
        number = address // line
        if number in kept:
            kept.remove(number)
        else:
            loaded += 1
            if len(kept) == capacity:
                kept.pop(0)
        kept.append(number)
    return loaded


def product_in_blocks(a, b, size, multiply=np.matmul):
    """a @ b, block by block: (m, k) and (k, n) -> (m, n)."""
    m, length = a.shape
    n = b.shape[1]
    y = np.zeros((m, n), dtype=a.dtype)
    for i in range(0, m, size):
        for j in range(0, n, size):
            for k in range(0, length, size):
                left = a[i : i + size, k : k + size]
                right = b[k : k + size, j : j + size]
                y[i : i + size, j : j + size] += multiply(left, right)
    return y


if __name__ == "__main__":  # python roofline.py
    print("2.0 is expected:", roof(0.1, 50.0, 20.0), " 2.5:", ridge(50.0, 20.0))
    print("1.5 is expected:", bytes_per_flop(4, 8))
    print("3 lines are expected:", lines_loaded([0, 8, 64, 0, 128, 0], capacity=2))
    a, b = np.arange(15.0).reshape(3, 5), np.arange(20.0).reshape(5, 4)
    print("0.0 is expected:", np.abs(product_in_blocks(a, b, 2) - a @ b).max())
