"""Training steps of layers without an update: forward and backward, beside PyTorch.

LSTM and GRU: 32 inputs, 64 states, 32 steps, batch 8 and 64. Attention: 128 features, 4 heads,
1,024 positions in sequences of 64 or 512. U-Net: a small one, on 8 images of 32 by 32. Linear:
784 to 256, batch 1. The loss is the sum of squares. The weights are PyTorch's. The gradients of x
are compared first. Then the libraries take turns; the smallest processor time of a round counts.

    python -m tools.benchmarks.layers
    python -m tools.benchmarks.layers --only LSTM GRU --rounds 20
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

# before NumPy and PyTorch are imported
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

if importlib.util.find_spec("torch") is None:
    raise SystemExit("tools.benchmarks.layers needs PyTorch: pip install -e '.[peers]'")

import numpy as np
import torch

import tinynode as tn
from tinynode import functions, nn
from tools.benchmarks import measure

DEVICES = ("numpy", "fast")
LEAST = 0.02
"""The shortest sample in seconds."""


class UNet(nn.Module):
    """Two convolutions down, one at the bottom, and a way up with a link across."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.down = nn.Conv2d(16, 32, 3, padding=1)
        self.bottom = nn.Conv2d(32, 32, 3, padding=1)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.last = nn.Conv2d(32, 16, 3, padding=1)
        self.head = nn.Conv2d(16, 1, 1)

    def forward(self, x: Any) -> Any:
        """The image of scores."""
        across = functions.relu(self.first(x))
        low = functions.relu(self.down(functions.max_pool2d(across, 2)))
        high = self.up(functions.relu(self.bottom(low)))
        both = functions.concat([high, across], axis=1)
        return self.head(functions.relu(self.last(both)))


class TorchUNet(torch.nn.Module):
    """The same in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.down = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.bottom = torch.nn.Conv2d(32, 32, 3, padding=1)
        self.up = torch.nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.last = torch.nn.Conv2d(32, 16, 3, padding=1)
        self.head = torch.nn.Conv2d(16, 1, 1)

    def forward(self, x: Any) -> Any:
        """The image of scores."""
        across = torch.relu(self.first(x))
        low = torch.relu(self.down(torch.nn.functional.max_pool2d(across, 2)))
        high = self.up(torch.relu(self.bottom(low)))
        both = torch.cat([high, across], 1)
        return self.head(torch.relu(self.last(both)))


def attention(layer: Any, x: Any) -> Any:
    return layer(x, x, x, need_weights=False)[0]


def first(layer: Any, x: Any) -> Any:
    return layer(x)[0]


def whole(layer: Any, x: Any) -> Any:
    return layer(x)


Call = Callable[[Any, Any], Any]
Maker = Callable[[], Any]
ROWS: dict[str, tuple[Maker, Maker, Call, Call, tuple[int, ...]]] = {}
"""For each title: tinynode's layer and PyTorch's, how each is called, and the shape of x."""

for kind in ("LSTM", "GRU"):
    for batch in (8, 64):
        ROWS[f"{kind}, batch {batch}"] = (
            lambda kind=kind: getattr(nn, kind)(32, 64),  # type: ignore[misc]
            lambda kind=kind: getattr(torch.nn, kind)(32, 64),  # type: ignore[misc]
            first,
            first,
            (32, batch, 32),
        )
for length in (64, 512):
    ROWS[f"attention, length {length}"] = (
        lambda: nn.MultiHeadAttention(128, 4, batch_first=True),
        lambda: torch.nn.MultiheadAttention(128, 4, batch_first=True),
        attention,
        attention,
        (1024 // length, length, 128),
    )
ROWS["U-Net"] = (UNet, TorchUNet, whole, whole, (8, 1, 32, 32))
ROWS["Linear, batch 1"] = (
    lambda: nn.Linear(784, 256),
    lambda: torch.nn.Linear(784, 256),
    whole,
    whole,
    (1, 784),
)


def steps_of(title: str) -> dict[str, Callable[[], Any]]:
    """For each contestant a function of a step that returns the gradient of x."""
    make, make_torch, call, call_torch, shape = ROWS[title]
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    model = make_torch()
    weights = model.state_dict()
    steps: dict[str, Callable[[], Any]] = {}
    for device in DEVICES:
        with tn.using_device(device):
            layer = make()
            layer.load_state_dict({k: v.numpy(force=True) for k, v in weights.items()})
            x = tn.Variable(array)
        steps[device] = step_of(device, layer, call, x)

    def step() -> Any:
        model.zero_grad()
        given.grad = None
        y = call_torch(model, given)
        (y * y).sum().backward()
        return given.grad.numpy()

    given = torch.from_numpy(array).requires_grad_()
    steps["torch"] = step
    return steps


def step_of(device: str, layer: Any, call: Call, x: Any) -> Callable[[], Any]:
    def step() -> Any:
        with tn.using_device(device):
            layer.cleargrads()
            x.cleargrad()
            y = call(layer, x)
            functions.sum(y * y).backward()
            return tn.to_host(x.grad)

    return step


def seconds(step: Callable[[], Any], repeats: int) -> float:
    """The processor time of a step."""
    start = time.process_time()
    for _ in range(repeats):
        step()
    return (time.process_time() - start) / repeats


def row(title: str, rounds: int) -> list[str]:
    """The cells of a row: milliseconds, and ratios to PyTorch."""
    steps = steps_of(title)
    wanted = steps["torch"]()
    for step in steps.values():
        scale = float(np.abs(wanted).max())
        np.testing.assert_allclose(step(), wanted, 1e-3, 1e-4 * scale, err_msg=title)
    repeats = max(1, int(LEAST / max(seconds(steps["torch"], 1), 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            times[name].append(seconds(step, repeats))
    best = {name: min(found) for name, found in times.items()}
    ratios = [f"{best[name] / best['torch']:.2f}" for name in DEVICES]
    return [title, *(f"{best[name] * 1e3:.3f}" for name in steps), *ratios]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Layers, forward and backward, side by side.")
    parser.add_argument("--only", nargs="+", default=[""], help="starts of titles, such as LSTM")
    parser.add_argument("--rounds", type=int, default=12, help="the quickest of these counts")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    titles = [title for title in ROWS if title.startswith(tuple(options.only))]
    if not titles:
        raise SystemExit(f"unknown: {', '.join(options.only)}; choose from {', '.join(ROWS)}")
    print(measure.describe_setting(["numpy", "torch"]))
    head = ["ms", *DEVICES, "torch", *(f"{device} / torch" for device in DEVICES)]
    measure.print_table(head, [row(title, options.rounds) for title in titles])


if __name__ == "__main__":
    main()
