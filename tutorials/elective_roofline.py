# %% [markdown]
# # Elective: blocked products, and the roofline
#
# **Goal.** You make a product of matrices many times quicker, with the same multiplications. You
# draw the limits of your machine, and see which limit holds a loop back.

# %%
import ctypes
import time

import numpy as np

import tinynode as tn
from tinynode_fast.native import build

# %% [markdown]
# A product $Y = A B$ of two matrices of shape (n, n) has $n^3$ multiplications and $n^3$
# additions: $2 n^3$ **flops**, floating-point operations. Here are two loops in C. Only the order
# of the loops differs:

# %%
LOOPS = """
void ijk(const double *restrict a, const double *restrict b, double *restrict y, long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0.0;
            for (long k = 0; k < n; k++)
                sum = ADD_PRODUCT(sum, a[i * n + k], b[k * n + j]);
            y[i * n + j] = sum;
        }
}

void ikj(const double *restrict a, const double *restrict b, double *restrict y, long n) {
    for (long i = 0; i < n * n; i++)
        y[i] = 0.0;
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++)
                y[i * n + j] = ADD_PRODUCT(y[i * n + j], a[i * n + k], b[k * n + j]);
}
"""

# %% [markdown]
# The third program computes a **tile** of `y` at a time, such as 4 rows and 8 columns. The sums of
# a tile fit into the registers of the processor:

# %%
TILES = """
void tiles_ROWSxCOLUMNS(const double *restrict a, const double *restrict b,
                        double *restrict y, long n) {
    for (long j = 0; j < n; j += COLUMNS)
        for (long i = 0; i < n; i += ROWS) {
            double sums[ROWS][COLUMNS] = {{0.0}};
            for (long k = 0; k < n; k++)
                for (int r = 0; r < ROWS; r++)
                    for (int c = 0; c < COLUMNS; c++)
                        sums[r][c] = ADD_PRODUCT(
                            sums[r][c], a[(i + r) * n + k], b[k * n + j + c]);
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < COLUMNS; c++)
                    y[(i + r) * n + j + c] = sums[r][c];
        }
}
"""

# %% [markdown]
# `ADD_PRODUCT(s, x, y)` is $s + x y$, with one instruction where the processor has it.
#
# ## Predict
# Let n be 288. All three programs have the same $2 n^3$ flops, about 48 millions.
# 1. Which is the slowest, and which is the quickest? By which factor?
# 2. `ijk` adds n products to one sum. `ikj` adds products to n sums, in turn. Which loop can begin
#    an addition before the addition before is ready?
#
# ## Run
# The compiler of the system makes machine code, as in the elective `net_in_c`. Without a compiler,
# as in a browser, only the product of tinynode is measured.

# %%
SHAPES = ((1, 8), (2, 8), (4, 8), (4, 16), (6, 16), (6, 32))
HEAD = """
#include <math.h>
#ifdef FP_FAST_FMA
#define ADD_PRODUCT(s, x, y) fma(x, y, s)
#else
#define ADD_PRODUCT(s, x, y) ((s) + (x) * (y))
#endif
"""
ROOFS = """
void compute(const double *restrict a, const double *restrict b, double *restrict y, long n) {
    double sums[96];
    const double x = a[0];
    for (int c = 0; c < 96; c++)
        sums[c] = b[c];
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 96; c++)
            sums[c] = ADD_PRODUCT(x, x, sums[c]);
    for (int c = 0; c < 96; c++)
        y[c] = sums[c];
}

void move(const double *restrict a, const double *restrict b, double *restrict y, long n,
          long passes) {
    const double x = a[0];
    for (long k = 0; k < passes; k++)
        for (long j = 0; j < n; j++)
            y[j] = ADD_PRODUCT(y[j], x, b[j]);
}
"""
first_loop = LOOPS[: LOOPS.index("void ikj")]
along_rows = first_loop.replace("ijk", "ijk_rows").replace("b[k * n + j]", "b[j * n + k]")
source = HEAD + LOOPS + along_rows + ROOFS
for rows, columns in SHAPES:
    source += TILES.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))

# %% tags=["varies"]
try:
    library = build.library(source)
    print("The compiler is", build.compiler())
except build.NotBuiltError as error:
    library = None
    print(f"No C was compiled, so its rows are missing below: {error}")


# %% tags=["varies"]
def seconds(call):
    """The shortest time of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def in_c(name, a, b, y, *numbers):
    """A call of the C function, with the addresses of the arrays."""

    def call():
        function = getattr(library, name)
        function.restype = None
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, y)]
        function(*addresses, *[ctypes.c_long(number) for number in numbers])

    return call


N = 288
rng = np.random.default_rng(0)
a, b, y = rng.normal(size=(N, N)), rng.normal(size=(N, N)), np.zeros((N, N))
names = ["ijk", "ikj", *(f"tiles_{rows}x{columns}" for rows, columns in SHAPES)]
speed = {}
for name in names if library else ():
    speed[name] = 2e-9 * N**3 / seconds(in_c(name, a, b, y, N))
    assert np.allclose(y, a @ b)
ours, theirs = tn.asarray(a, requires_grad=False), tn.asarray(b, requires_grad=False)
speed["x @ w"] = 2e-9 * N**3 / seconds(lambda: ours @ theirs)
for name, number in speed.items():
    print(f"{name:12} {number:7.1f} GFLOP/s")

# %% [markdown]
# The same flops, and other times. `x @ w` is tinynode's product. On the CPU it calls **BLAS**,
# a library of tiled products in the machine code of each processor. Which tile is the best depends
# on the processor: too many sums, and they no longer fit into its registers.
#
# ## See
# Two limits hold a loop back. The **peak** is the number of flops in a second if all numbers are
# in registers. The **bandwidth** is the number of bytes in a second that reach the registers. A
# loop with $I$ flops for each byte, its **intensity**, is at most as quick as
#
# $$\min(\text{peak}, \ I \cdot \text{bandwidth})$$
#
# Drawn over $I$, this is a roof: the **roofline**. All limits are measured, by two more loops in
# C.

# %% tags=["varies"]
large = 4_000_000
peak = bandwidths = None
if library:
    few, many = np.ones(1000), np.ones(large)
    peak = 2e-9 * 96 * 200_000 / seconds(in_c("compute", few, few, np.zeros(96), 200_000))
    near = seconds(in_c("move", few, few, np.zeros(1000), 1000, 1000))
    far = seconds(in_c("move", few, many, np.zeros(large), large, 1))
    bandwidths = {"the cache": 24e-9 * 1000 * 1000 / near, "memory": 24e-9 * large / far}
    print(f"peak {peak:.0f} GFLOP/s")
    for name, bandwidth in bandwidths.items():
        print(f"from {name} {bandwidth:.0f} GB/s")


# %% [markdown]
# How many bytes does an inner loop move for each flop? `ikj` reads `y` and `b` and writes `y`:
# 24 bytes for 2 flops. A tile of $r$ rows and $c$ columns reads $r$ numbers of `a` and $c$ numbers
# of `b` for $r c$ products:


# %%
def bytes_per_flop(rows, columns):
    return 8 * (rows + columns) / (2 * rows * columns)


intensity = {"ikj": 2 / 24}
for rows, columns in SHAPES:
    intensity[f"tiles_{rows}x{columns}"] = 1 / bytes_per_flop(rows, columns)
for name, flops in intensity.items():
    print(f"{name:12} {flops:.2f} flops for each byte")

# %% tags=["varies"]
if library:
    xs = sorted(intensity.values())
    curves = {}
    for name, bandwidth in bandwidths.items():
        curves[f"roof, from {name}"] = [min(peak, x * bandwidth) for x in xs]
    curves["measured"] = [speed[name] for name in sorted(intensity, key=intensity.get)]
    picture = tn.show.lines(
        xs,
        curves,
        log_x=True,
        log_y=True,
        title="The roofline",
        x_label="flops for each byte",
        y_label="GFLOP/s",
    )
else:
    picture = tn.show.bars(speed, title="Without C", x_label="GFLOP/s")
picture

# %% [markdown]
# A loop may be quicker than memory allows: these three matrices fit into the caches. And a loop
# may be far below both roofs. Bytes and flops are not the only limits, as the next section shows.
#
# Elementwise operations stand far on the left: `x + y` has 1 flop for 24 bytes. No order of loops
# helps, only fewer bytes. So the elective `net_in_c` puts many operations into one loop.
#
# ## Break it
# Why is `ijk` so slow? A first guess: the loop goes down a column of `b`. Memory gives **lines**
# of 64 bytes, and the loop uses 8 bytes of each line. The guess can be tested. `ijk_rows` is the
# same loop, but gets `b` transposed, and walks along rows:

# %% tags=["varies"]
for name, other in (("ijk", b), ("ijk_rows", b.T.copy())) if library else ():
    number = 2e-9 * N**3 / seconds(in_c(name, a, other, y, N))
    print(f"{name:12} {number:7.1f} GFLOP/s")

# %% [markdown]
# If both numbers are of the same size, the guess was wrong for this n: a column of 288 lines stays
# in the caches until the next column needs the same lines. What remains is the **sum**. Each
# addition waits for the one before, some ticks of the clock. In these ticks, a processor could
# begin many additions to other sums. `ikj` has n sums, and a tile has all its sums in registers.
#
# For larger matrices the lines count too. Here is a model of a cache. The cache keeps the lines
# that were used last, and counts the lines that it loads:


# %%
def lines_loaded(addresses, capacity, line=64):
    """The lines that a cache of some lines loads; the line unused for longest makes room."""
    kept = {}  # a dictionary keeps the order: the first is the oldest
    loaded = 0
    for address in addresses:
        number = address // line
        if number in kept:
            del kept[number]
        else:
            loaded += 1
            if len(kept) == capacity:
                del kept[next(iter(kept))]
        kept[number] = True
    return loaded


def reads_of_b(n, order):
    """The addresses of b in bytes, in the order of three loops."""
    for first in range(n):
        for second in range(n):
            for third in range(n):
                place = dict(zip(order, (first, second, third), strict=True))
                yield 8 * (place["k"] * n + place["j"])


for order in ("ijk", "ikj"):
    loaded = lines_loaded(reads_of_b(48, order), capacity=32)
    print(f"{order}: {loaded:6} lines for {48**3} reads of b")

# %% [markdown]
# A column of 48 lines does not fit into a cache of 32 lines. In `ijk` each read loads a line. The
# line is gone before the next column needs the line.
#
# ## Fix it
# Cut `b` into blocks that fit. A block of 16 rows and 8 columns has 16 lines. They stay in the
# cache, and each line is used for all rows of `a`:


# %%
def reads_in_blocks(n, rows, columns):
    for k0 in range(0, n, rows):
        for j0 in range(0, n, columns):
            for _ in range(n):
                for j in range(j0, j0 + columns):
                    for k in range(k0, k0 + rows):
                        yield 8 * (k * n + j)


loaded = lines_loaded(reads_in_blocks(48, 16, 8), capacity=32)
print(f"blocks: {loaded} lines for {48**3} reads of b: each line of b once, 48 * 48 / 8")

# %% [markdown]
# A good product has blocks for each level of memory: parts of `b` for the caches, and tiles for
# the registers. BLAS has both, and first copies a block, so that its numbers are neighbours
# (Goto).
#
# **Cost.** $2 n^3$ flops on $24 n^2$ bytes. The intensity grows with $n$, so a large product
# reaches the peak, if its blocks are right. A sum of two arrays never does.
#
# Source: Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model for
# Multicore Architectures, 2009; Goto and van de Geijn, Anatomy of High-Performance Matrix
# Multiplication, 2008.
#
# ## Exercise
# Write the roofline, the bytes of a tile, the model of a cache, and a product in blocks. Shapes
# may be no multiples of the block. If you have a compiler, try other tiles on this page: 8 rows
# and 8 columns, or 12 rows and 16 columns. They must divide 288.
#
#     python -m tinynode.learn start roofline
#     python -m tinynode.learn check roofline
