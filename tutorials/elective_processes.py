# %% [markdown]
# # Elective: one model, many processes
#
# **Goal.** You share a batch out to several processes, add up gradients in a ring, and calculate
# when several processes pay.

# %%
import time

import numpy as np

import tinynode as tn
from tinynode import distributed, nn
from tinynode import functions as F

# %% [markdown]
# A large batch takes long. Two processes may take half a batch each. The processes are the
# **ranks** 0, 1, 2 ... A rank has a copy of the model, and a part of the batch. After each
# backward pass the ranks exchange gradients, and every rank does the same update.
#
# In this elective the ranks are entries of a list, and a loop runs them in turn. So the page needs
# no second process, and runs in a browser. The last part is about real processes.

# %%
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
T = X @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=12)
w = np.array([0.5, 0.5, 0.5])


def gradient(x, t):
    """The gradient of the mean loss of some examples. x: (n, 3), t: (n) -> (3)."""
    v = tn.asarray(w, requires_grad=True)
    F.mean_squared_error(F.matmul(x, v), t).backward()
    return tn.to_host(v.grad)


def shared_out(counts):
    """The gradients of ranks with so many examples each."""
    ends = np.cumsum(counts)
    return [gradient(X[e - n : e], T[e - n : e]) for n, e in zip(counts, ends, strict=True)]


# %% [markdown]
# ## Predict
# There are 12 examples and 3 ranks. The loss of a rank is the **mean** over its own examples.
#
# - With parts of 4, 4 and 4 examples: is the mean of the three gradients the gradient of the whole
#   batch? And with parts of 7, 4 and 1?
# - All ranks need the sum of all gradients, of n numbers each. How many numbers does a rank have
#   to send, if there are 64 ranks?
#
# ## Run

# %%
whole = gradient(X, T)
equal = shared_out([4, 4, 4])
print("whole batch  ", whole.round(4))
print("mean of three", np.mean(equal, axis=0).round(4))

# %% [markdown]
# With equal parts, the plain mean is right. Uneven parts come later, under "Break it".
#
# Now the sum. A simple way: all ranks send their array to rank 0, which adds and sends the sum to
# all. With p ranks, 2 (p - 1) n numbers go through rank 0, and all others wait.
#
# The **ring** has no such rank. Rank r sends to rank r + 1 only, and the last rank to rank 0. All
# ranks send at the same time. Here is a network that counts:


# %%
class Network:
    """A ring: in each step, every rank sends an array to the next rank."""

    def __init__(self):
        self.steps = 0
        self.bytes = 0  # that rank 0 has sent

    def exchange(self, sent):
        """sent[r] goes to rank r + 1: what each rank receives."""
        self.steps += 1
        self.bytes += sent[0].nbytes
        return [sent[r - 1].copy() for r in range(len(sent))]


# %% [markdown]
# Each rank cuts its array into p **pieces**. The first half of the work is called
# **reduce-scatter**. In step s, rank r sends piece r - s. The next rank adds the piece to its own:


# %%
def reduce_scatter(pieces, network):
    """After p - 1 steps, rank r has the sum of piece r + 1. pieces[r][i]: piece i of rank r."""
    p = len(pieces)
    for s in range(p - 1):
        received = network.exchange([pieces[r][(r - s) % p] for r in range(p)])
        for r in range(p):
            i = (r - 1 - s) % p
            pieces[r][i] = pieces[r][i] + received[r]
        tell(f"step {s + 1}, add", pieces)


# %% [markdown]
# The second half is called **allgather**. Each finished piece goes round the ring, and the next
# rank puts the piece in place of its own. Rank r begins with piece r + 1:


# %%
def allgather(pieces, network):
    """After p - 1 more steps, every rank has every sum."""
    p = len(pieces)
    for s in range(p - 1):
        received = network.exchange([pieces[r][(r + 1 - s) % p] for r in range(p)])
        for r in range(p):
            pieces[r][(r - s) % p] = received[r]
        tell(f"step {p + s}, copy", pieces)


def tell(title, pieces):
    """A line with the pieces of all ranks, if the pieces are texts."""
    if pieces[0][0].dtype == object:
        rows = [" ".join(f"{''.join(piece):4}" for piece in own) for own in pieces]
        print(f"{title:14}", " | ".join(rows).rstrip())


# %% [markdown]
# ## See
# Texts in place of numbers show who adds what: `+` of texts writes one behind the other. The ranks
# have the letters A, B and C. A piece with three letters is finished.

# %%
texts = [[np.array([rank], dtype=object) for _ in range(3)] for rank in "ABC"]
network = Network()
tell("start", texts)
reduce_scatter(texts, network)
allgather(texts, network)

# %% [markdown]
# With the three gradients, the pieces are numbers. Each rank has the sum, and a third of the sum
# is the gradient of the whole batch:

# %%
pieces = [list(np.array_split(g, 3)) for g in equal]
network = Network()
reduce_scatter(pieces, network)
allgather(pieces, network)
for r in range(3):
    print("rank", r, "has", (np.concatenate(pieces[r]) / 3).round(4))
print(network.steps, "steps,", network.bytes, "bytes sent by rank 0")

# %% [markdown]
# There are 2 (p - 1) steps. In each, a rank sends a piece of n / p numbers. So a rank sends
# 2 (p - 1) / p n numbers: 1.97 n with 64 ranks, and less than 2 n with any number.


# %%
def sent_by_ring(p, n=1_000_000):
    """The bytes that rank 0 sends for n float32 numbers, counted."""
    network = Network()
    pieces = [list(np.array_split(np.zeros(n, "float32"), p)) for _ in range(p)]
    reduce_scatter(pieces, network)
    allgather(pieces, network)
    return network.bytes / 1e6


megabytes = {f"ring, {p} ranks": round(sent_by_ring(p), 2) for p in (2, 4, 16)}
through_rank_0 = {f"rank 0, {p} ranks": 2 * (p - 1) * 4.0 for p in (2, 4, 16)}
tn.show.bars(
    megabytes | through_rank_0,
    title="The sum of a million float32 numbers",
    x_label="MB at the busiest rank",
)

# %% [markdown]
# ## Break it
# Data sets rarely have a length that the number of ranks divides. Here the parts are uneven:

# %%
counts = [7, 4, 1]
uneven = shared_out(counts)
print("whole batch", whole.round(4))
print("plain mean ", np.mean(uneven, axis=0).round(4))

# %% [markdown]
# No error, and another gradient. The only example of rank 2 counts as much as the seven examples
# of rank 0. The run still learns, so nobody sees the mistake.
#
# ## Fix it
# Rank r has $n_r$ examples and the gradient $g_r$. The mean over all examples weights each rank
# with its examples:
#
# $$g = \frac{\sum_r n_r g_r}{\sum_r n_r}$$
#
# Each rank multiplies before the sum, and the ring need not know of weights.

# %%
weighted = sum(n * g for n, g in zip(counts, uneven, strict=True)) / sum(counts)
print("weighted   ", weighted.round(4), np.allclose(weighted, whole))

# %% [markdown]
# ### In tinynode
# `distributed.world()` is the communicator of all ranks. A single process is a world of size 1, so
# a script needs no `if`. `scatter_dataset` gives each rank its examples. `DistributedOptimizer`
# takes the number of examples of a rank as `weight`. Its `backward` sends gradients of the last
# layers while the pass is still in the first layers:

# %%
comm = distributed.world()
print("rank", comm.rank, "of", comm.size)

tn.seed(0)
model = nn.Linear(3, 1)
distributed.broadcast_parameters(model)  # all ranks begin with the parameters of rank 0
optimizer = distributed.DistributedOptimizer(nn.SGD(model, lr=0.2))
data = distributed.scatter_dataset(nn.ArrayDataset(X.astype("float32"), T.astype("float32")))
for epoch in range(3):
    for x, t in nn.DataLoader(data, batch_size=6 // comm.size, shuffle=False):
        optimizer.cleargrads()
        loss = F.mean_squared_error(F.reshape(model(x), (-1,)), t)
        optimizer.backward(loss, weight=len(x))  # loss.backward(), and the exchange begins
        optimizer.update()  # waits for the messages, then updates
    print(f"epoch {epoch}: loss {float(loss):.2f} on rank {comm.rank}")
print("weight", tn.to_host(model.weight).round(4))

# %% [markdown]
# The sum over all ranks may also be a function in the graph. What is its gradient? Write the
# x of all ranks below each other. Then "every rank gets the sum" is a matrix of ones, and backward
# multiplies with the **transposed** matrix. This is the adjoint:

# %%
p = 3
allreduce = np.ones((p, p))  # y[r] = x[0] + x[1] + x[2], for each rank r
broadcast = np.zeros((p, p))
broadcast[:, 0] = 1.0  # y[r] = x[0], for each rank r
print("backward of allreduce:", allreduce.T.tolist())
print("backward of broadcast:", broadcast.T.tolist())

# %% [markdown]
# The adjoint of `allreduce` is `allreduce`: each rank gets the sum of all gradients. The adjoint
# of `broadcast` is a sum at rank 0. `distributed.functions` has both. In a world of size 1, the
# sum of all ranks is the array itself:

# %%
x = tn.asarray(np.array([1.0, 2.0]), requires_grad=True)
y = F.sum(distributed.functions.allreduce(x * x))
y.backward()
print(float(y), tn.to_host(x.grad))

# %% [markdown]
# **Cost.** A message of b bytes takes about $\alpha + \beta b$ seconds. $\alpha$ is the time until
# the first byte arrives, $\beta$ is the time of a byte. For the ring:
#
# $$2 (p - 1)\,\alpha + 2\,\frac{p - 1}{p}\,\beta b$$
#
# Now by hand, for the perceptron of `python -m tinynode train digits`. An ethernet of 10 Gbit/s
# has $\beta$ = 0.8 ns. For $\alpha$, assume 50 µs:

# %%
hidden = nn.Sequential(nn.Linear(64, 128), F.relu, nn.Linear(128, 128), F.relu)
perceptron = nn.Sequential(hidden, nn.Linear(128, 10))
size = sum(p.size for p in perceptron.parameters())
b = 4 * size
print(f"{size} float32 numbers are {b} bytes")


def ring_seconds(p, b, alpha=50e-6, beta=0.8e-9):
    return 2 * (p - 1) * alpha + 2 * (p - 1) / p * beta * b


for p in (2, 8, 64):
    first, second = ring_seconds(p, b, beta=0), ring_seconds(p, b, alpha=0)
    print(f"{p:2} ranks: {1e3 * first:.2f} ms for alpha, {1e3 * second:.2f} ms for beta")

# %% [markdown]
# With more ranks, the bytes stay nearly the same, and the number of messages grows. The computing
# of p ranks takes a p-th of the time. So several ranks pay if
#
# $$\text{computing} \cdot \left(1 - \tfrac{1}{p}\right) > \text{ring}$$

# %%
for p in (2, 8, 64):
    print(
        f"{p:2} ranks pay if a step takes {1e3 * ring_seconds(p, b) / (1 - 1 / p):.2f} ms or more"
    )

# %% [markdown]
# And how long does a step take? This depends on the machine, so here is a clock:

# %% tags=["varies"]
images = rng.normal(size=(64, 64)).astype("float32")
labels = rng.integers(0, 10, size=64)
optimizer = nn.SGD(perceptron, lr=0.01)


def step():
    optimizer.cleargrads()
    F.softmax_cross_entropy(perceptron(images), labels).backward()
    optimizer.update()


def shortest():
    """The shortest time of 20 steps, in seconds."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


compute = shortest()
milliseconds = {"1 rank, measured": round(1e3 * compute, 2)}
for p in (2, 8, 64):
    milliseconds[f"{p} ranks"] = round(1e3 * (compute / p + ring_seconds(p, b)), 2)
tn.show.bars(
    milliseconds,
    title="A step of 64 images: computing / ranks + ring",
    x_label="milliseconds",
)

# %% [markdown]
# The exchange does not get shorter with more ranks. What helps is more computing for each byte: a
# larger batch, or layers that use a parameter many times, as a convolution does.

# %% [markdown]
# ### Try it where MPI is
# `pip install 'tinynode[mpi]'` installs MPI. In a checkout, this page is also a script of two
# ranks:
#
#     mpiexec -n 2 python tutorials/elective_processes.py
#
# Each rank prints its own lines. Which lines differ, and why? Compare the weight after training
# with the weight above: the ranks share each batch of six, so the weight is the same. The sum in
# the graph is twice as large.
#
# The digits train on two ranks with a command of their own:
#
#     python -m tinynode train digits --ranks 2
#
# [Several processes](../distributed.md) has more. The source is in
# [optimizer.py](../source/tinynode/distributed/optimizer.md) and
# [functions.py](../source/tinynode/distributed/functions.md).
#
# Source: Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations,
# 2009.
#
# ## Exercise
# Write the weighted mean, the ring, and its cost. The network counts what you send.
#
#     python -m tinynode.learn start processes
#     python -m tinynode.learn check processes
