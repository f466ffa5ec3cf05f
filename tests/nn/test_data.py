"""Data sets and the loader: order, resumption, threads, files, and the errors."""

from __future__ import annotations

import _thread
import gc
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import StateError
from tinynode.nn import transforms


def numbers(count: int = 10, **options: Any) -> nn.DataLoader:
    return nn.DataLoader(list(range(count)), **{"batch_size": 4, "seed": 0, **options})


def lists(loader: Any) -> list[list[int]]:
    return [batch.array.tolist() for batch in loader]


class Squares(nn.Dataset):
    """Sample i is i squared; sample 7 may be broken; records the threads."""

    def __init__(self, count: int = 10, broken: int | None = None) -> None:
        self.count, self.broken = count, broken
        self.reads = 0
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        self.reads += 1
        self.threads.add(threading.current_thread().name)
        if index == self.broken:
            raise OSError("no such sample")
        return index**2


# --- batches -------------------------------------------------------------------------------------


def test_batches_are_variables_without_gradient_on_the_current_device() -> None:
    dataset = nn.ArrayDataset(np.ones((5, 2)), np.arange(5))
    loader = nn.DataLoader(dataset, 2)
    assert len(loader) == 3 and "5 samples, 3 batches of 2" in repr(loader)
    x, labels = next(iter(loader))
    assert isinstance(x, tn.Variable) and not x.requires_grad and not labels.requires_grad
    assert (x.shape, x.dtype.name, labels.dtype.name) == ((2, 2), "float32", "int64")
    with tn.using_device("fast"):
        assert str(next(iter(loader))[0].device) == "fast"
    on_fast = nn.DataLoader(dataset, 2, device="fast", dtype="float64")
    assert str(next(iter(on_fast))[0].device) == "fast"
    assert next(iter(on_fast))[0].dtype == np.float64


def test_lengths_with_and_without_the_last_batch() -> None:
    assert [len(batch) for batch in lists(numbers())] == [4, 4, 2] and len(numbers()) == 3
    short = numbers(drop_last=True)
    assert [len(batch) for batch in lists(short)] == [4, 4] and len(short) == 2
    assert lists(numbers(0)) == [] and len(numbers(0)) == 0
    assert lists(numbers(3, drop_last=True)) == []


def test_samples_of_other_kinds_are_stacked_entry_by_entry() -> None:
    samples = [{"x": np.ones(2), "n": (i, 0.5), "name": f"s{i}"} for i in range(3)]
    batch = next(iter(nn.DataLoader(samples, 2)))
    assert batch["x"].shape == (2, 2) and batch["name"] == ["s0", "s1"]
    assert batch["n"][0].array.tolist() == [0, 1] and batch["n"][1].dtype == np.float32
    variables = [tn.Variable(np.ones(2, np.float32)) for _ in range(2)]
    assert next(iter(nn.DataLoader(variables, 2))).shape == (2, 2)


def test_a_collate_function_makes_the_batch() -> None:
    def padded(samples: list[Any]) -> Any:
        most = max(len(sample) for sample in samples)
        return np.stack([np.pad(sample, (0, most - len(sample))) for sample in samples])

    ragged = [np.ones(n) for n in (1, 3)]
    assert next(iter(nn.DataLoader(ragged, 2, collate=padded))).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\(1,\) in sample 0, \(3,\) in sample 1"):
        list(nn.DataLoader(ragged, 2))
    with pytest.raises(TypeError, match="a sample must be an array"):
        list(nn.DataLoader([object()], 1))


# --- order and state -----------------------------------------------------------------------------


def test_the_seed_and_the_epoch_decide_the_order() -> None:
    loader, same = numbers(shuffle=True), numbers(shuffle=True, prefetch=2, threads=2)
    first, second = lists(loader), lists(loader)
    assert first != second and loader.epoch == 2
    for epoch in (first, second):
        assert sorted(index for batch in epoch for index in batch) == list(range(10))
    assert [lists(same), lists(same)] == [first, second]
    assert lists(numbers(shuffle=True, seed=1)) != first
    tn.seed(3)
    drawn = lists(numbers(shuffle=True, seed=None))
    tn.seed(3)
    assert lists(numbers(shuffle=True, seed=None)) == drawn


@pytest.mark.parametrize("prefetch", [0, 3])
def test_a_loaded_loader_finishes_the_epoch(prefetch: int) -> None:
    def noisy(sample: Any, generator: Any) -> Any:
        return sample + generator.random()

    def doubled(batch: Any, generator: Any) -> Any:
        return batch * generator.random()

    options = {"transform": noisy, "batch_transform": doubled, "shuffle": True}
    unbroken = numbers(**options)
    batches = iter(unbroken)
    next(batches)
    state = unbroken.state_dict()
    rest = lists(batches) + lists(unbroken)
    resumed = numbers(**options, seed=9, prefetch=prefetch)
    resumed.load_state_dict(state)
    assert lists(resumed) + lists(resumed) == rest
    resumed.load_state_dict(unbroken.state_dict())
    assert lists(resumed) == lists(unbroken)


def test_a_state_after_the_last_batch_gives_an_empty_loop() -> None:
    loader, other = numbers(shuffle=True), numbers(shuffle=True)
    for batch in loader:
        assert batch.shape[0] in (2, 4)
        state = loader.state_dict()
    other.load_state_dict(state)
    assert lists(other) == [] and lists(other) == lists(loader)


def test_a_loop_that_was_left_early_is_followed_by_a_whole_epoch() -> None:
    loader = numbers(shuffle=True)
    first = lists(numbers(shuffle=True))
    assert next(iter(loader)).array.tolist() == first[0]
    assert loader.state_dict()["position"] == 1
    whole = lists(loader)
    assert len(whole) == 3 and whole != first


def test_a_state_of_another_loader_is_refused() -> None:
    loader = numbers()
    next(iter(loader))
    state = loader.state_dict()
    for other, message in [
        (numbers(11), "samples is 11 here and 10"),
        (numbers(batch_size=5), "batch_size is 5 here and 4"),
        (numbers(shuffle=True), "shuffle is True here and False"),
    ]:
        before = other.state_dict()
        with pytest.raises(StateError, match=message):
            other.load_state_dict(state)
        assert other.state_dict() == before
    with pytest.raises(StateError, match="the state must have seed, epoch"):
        numbers().load_state_dict({"seed": 1})
    with pytest.raises(StateError, match="got list"):
        numbers().load_state_dict([])  # type: ignore[arg-type]
    list(loader)
    numbers(batch_size=5).load_state_dict(loader.state_dict() | {"position": 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"prefetch": -1}, "prefetch must be at least 0"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"dataset": 3}, r"dataset must have len\(\) and \[i\], got int 3.* nn.ArrayDataset"),
        ({"transform": abs}, r"transform must be a function of \(sample, generator\)"),
        ({"batch_transform": 3}, r"batch_transform must be a function of \(batch, generator\)"),
    ],
)
def test_wrong_arguments_are_named(options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^DataLoader: {message}"):
        nn.DataLoader(**{"dataset": [1, 2], **options})


# --- threads -------------------------------------------------------------------------------------


def data_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("tinynode-data")]


def test_threads_make_batches_ahead() -> None:
    dataset = Squares(20)
    batches = iter(nn.DataLoader(dataset, 2, prefetch=3))
    assert next(batches).array.tolist() == [0, 1]
    deadline = time.monotonic() + 5
    while dataset.reads < 8 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.01)
    assert dataset.reads == 8  # the batch in use, and three ahead
    assert [batch.shape for batch in batches] == [(2,)] * 9
    assert data_threads() == [] and all("tinynode-data" in name for name in dataset.threads)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_comes_at_its_batch_with_the_index(prefetch: int) -> None:
    seen = []
    with pytest.raises(OSError, match="no such sample") as caught:
        for batch in nn.DataLoader(Squares(10, broken=7), 2, prefetch=prefetch):
            seen.append(batch)
    assert len(seen) == 3
    assert caught.value.__notes__ == ["DataLoader: the error is of sample 7 of the data set."]
    del caught
    gc.collect()
    assert data_threads() == []


def test_a_loop_that_is_left_early_ends_the_threads() -> None:
    loader = nn.DataLoader(Squares(1000), 2, prefetch=2, threads=2)
    for batch in loader:
        assert batch.shape == (2,)
        break
    assert data_threads() == []
    with pytest.raises(KeyboardInterrupt):
        interrupted(loader)
    assert data_threads() == [] and loader.state_dict()["position"] == 1


class Stopped(Squares):
    """Ctrl-C comes while sample 5 is read."""

    def __getitem__(self, index: int) -> Any:
        if index == 5:
            _thread.interrupt_main()
        return super().__getitem__(index)


def test_ctrl_c_during_a_read_ends_the_threads() -> None:
    loader = nn.DataLoader(Stopped(1000), 2, prefetch=2, threads=2)
    with pytest.raises(KeyboardInterrupt):
        list(loader)
    gc.collect()
    assert data_threads() == [] and loader.state_dict()["position"] <= 5


def interrupted(loader: Any) -> None:
    for _ in loader:
        raise KeyboardInterrupt


# --- data sets -----------------------------------------------------------------------------------


def test_array_data_sets(tmp_path: Path) -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.array([3, 4, 5])
    dataset = nn.ArrayDataset(x, y)
    assert len(dataset) == 3 and dataset[1][1] == 4 and "int64[3]" in repr(dataset)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    assert nn.ArrayDataset.from_npz(tmp_path / "a.npz")[2][1] == 5
    (only,) = nn.ArrayDataset.from_npz(tmp_path / "a.npz", "y").arrays
    assert only.tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match=r"has no array 'z'; the file has x, y"):
        nn.ArrayDataset.from_npz(tmp_path / "a.npz", "z")
    np.save(tmp_path / "x.npy", x)
    mapped = nn.ArrayDataset.from_npy(tmp_path / "x.npy")
    assert isinstance(mapped.arrays[0], np.memmap)
    (batch,) = next(iter(nn.DataLoader(mapped, 2)))
    assert type(batch.array) is np.ndarray and batch.array.tolist() == x[:2].tolist()
    for arrays in ((), (x, y[:2]), (np.ones(()),)):
        with pytest.raises(ValueError, match=r"^ArrayDataset: one array or more"):
            nn.ArrayDataset(*arrays)
    for call in (nn.Dataset().__len__, lambda: nn.Dataset()[0]):
        with pytest.raises(NotImplementedError, match=r"^Dataset has no __"):
            call()


def test_a_split_is_seeded_and_complete() -> None:
    dataset = nn.ArrayDataset(np.arange(10))
    train, held_out = nn.split_dataset(dataset, 0.3, seed=1)
    assert (len(train), len(held_out)) == (7, 3)
    both = [int(sample[0]) for part in (train, held_out) for sample in part]
    assert sorted(both) == list(range(10))
    again, _ = nn.split_dataset(list(range(10)), 0.3, seed=1)
    assert [again[i] for i in range(7)] == both[:7]
    (batch,) = next(iter(nn.DataLoader(held_out, 3)))
    assert batch.array.tolist() == both[7:]
    assert next(iter(nn.DataLoader(again, 2))).array.tolist() == both[:2]
    with pytest.raises(ValueError, match="share must be at least 0 and at most 1"):
        nn.split_dataset(dataset, 3)


CSV = "\ufefflength, width ,kind\n1,2,rose\n\n3, 4.5 ,iris\n5,6,rose\n"


def test_a_table_has_numbers_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "flowers.csv"
    path.write_text(CSV, encoding="utf-8")
    table = nn.TableDataset(path, "kind")
    assert table.columns == ["length", "width"] and table.classes == ["iris", "rose"]
    assert table.arrays[0].tolist() == [[1, 2], [3, 4.5], [5, 6]]
    assert table.arrays[0].dtype == np.float32 and table.arrays[1].tolist() == [1, 0, 1]
    assert len(nn.TableDataset(path, columns=["width"]).arrays) == 1
    number = nn.TableDataset(path, "width", columns=["length"], regression=True, dtype="float64")
    assert number.arrays[1].tolist() == [2.0, 4.5, 6.0] and number.classes == []
    path.write_text("x;y\n1;10\n2;9\n")
    assert nn.TableDataset(path, "y", delimiter=";").classes == ["9", "10"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,kind\n1,x\n,y\n", r"line 3, column 'a': the value is missing"),
        ("a,kind\n1,\n", r"line 2, column 'kind': the value is missing"),
        ("a,kind\n1,x\n\nNaN,y\n", r"line 4, column 'a': 'NaN' is no finite number"),
        ("a,kind\ntall,x\n", r"line 2, column 'a': 'tall' is no finite number"),
        ("a,kind\n1\n", r"line 2: expected 2 values as in the header, got 1"),
        ("a,a,kind\n1,2,x\n", r"line 1: two columns have the name 'a'"),
        ("a,b\n1,2\n", r"has no column 'kind'; it has a, b"),
        ("a,kind\n", r"needs a header, and one line of values or more"),
        ("", r"needs a header, and one line of values or more"),
    ],
)
def test_a_mistake_in_a_table_names_the_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"table.csv.*{message}"):
        nn.TableDataset(path, "kind")


def test_image_folders_are_read_lazily(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    with pytest.raises(ValueError, match=r"must have a folder of images for each class"):
        nn.ImageFolder(tmp_path)
    for name, color in (("red", (255, 0, 0)), ("blue", (0, 0, 255))):
        (tmp_path / name).mkdir()
        images.new("RGB", (4, 3), color).save(tmp_path / name / "1.png")
        (tmp_path / name / "notes.txt").write_text("no image")
    folder = nn.ImageFolder(tmp_path)
    assert len(folder) == 2 and folder.classes == ["blue", "red"] and folder[0][1] == 0
    image, label = folder[1]
    assert image.shape == (3, 3, 4) and image.dtype == np.float32 and label == 1
    assert image[:, 0, 0].tolist() == [1.0, 0.0, 0.0]
    grey = nn.ImageFolder(tmp_path, size=(2, 5), mode="L")
    x, labels = next(iter(nn.DataLoader(grey, 2, prefetch=1)))
    assert x.shape == (2, 1, 2, 5) and labels.array.tolist() == [0, 1]
    (tmp_path / "red" / "0.png").write_bytes(b"no image")
    with pytest.raises(images.UnidentifiedImageError, match="red") as caught:
        list(nn.DataLoader(nn.ImageFolder(tmp_path), 3))
    assert "sample 1" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="mode must be 'RGB' or 'L'"):
        nn.ImageFolder(tmp_path, mode="CMYK")


# --- transforms ----------------------------------------------------------------------------------


def test_crops_and_shifts_take_a_window_of_the_padded_image() -> None:
    image = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4)
    padded = np.pad(image, [(0, 0), (2, 2), (2, 2)])
    windows = {padded[:, i : i + 3, j : j + 4].tobytes() for i in range(5) for j in range(5)}
    rng = np.random.default_rng(0)
    seen = {transforms.random_shift(image, rng).tobytes() for _ in range(300)}
    assert seen == windows
    crop = transforms.random_crop(image, rng, (2, 2))
    assert crop.shape == (1, 2, 2) and crop[0, 0, 1] - crop[0, 0, 0] == 1
    assert transforms.random_crop(image[0], rng, padding=1).shape == (3, 4)
    with pytest.raises(ValueError, match="a window of 9 x 9 does not fit"):
        transforms.random_crop(image, rng, (9, 9))


def test_flips_are_as_frequent_as_asked() -> None:
    image, rng = np.array([[1, 2]]), np.random.default_rng(0)
    flipped = [transforms.random_flip(image, rng, 0.25)[0, 0] == 2 for _ in range(2000)]
    assert 0.22 < np.mean(flipped) < 0.28


def test_rotations_turn_around_the_center() -> None:
    class Fixed:
        """A generator that always draws the largest number."""

        def uniform(self, low: float, high: float) -> float:
            return high

    image = np.random.default_rng(0).random((2, 5, 5))
    turn = transforms.random_rotation
    np.testing.assert_allclose(turn(image, Fixed(), 0.0), image, atol=1e-12)
    quarter = turn(image, Fixed(), 90.0)
    np.testing.assert_allclose(quarter, np.rot90(image, -1, axes=(1, 2)), atol=1e-8)
    small = turn(image.astype(np.float32), Fixed(), 10.0)
    assert small.dtype == np.float32 and small[0, 2, 2] == np.float32(image[0, 2, 2])
    assert abs(turn(np.ones((9, 9)), Fixed(), 30.0)[2:7, 2:7] - 1).max() < 1e-12
    with pytest.raises(TypeError, match="image must be floating, got int64"):
        turn(np.ones((2, 2), int), Fixed())


def test_pixels_become_floats_and_are_normalized() -> None:
    pixels = np.array([[[0, 51]], [[255, 102]]], np.uint8)
    floats = transforms.to_float(pixels)
    assert floats.dtype == np.float32 and floats.ravel().tolist() == pytest.approx(
        [0, 0.2, 1, 0.4]
    )
    assert transforms.to_float(np.array([0.5]), "float64").tolist() == [0.5]
    done = transforms.normalize(floats, [0.0, 1.0], [0.5, 2.0])
    assert done.ravel().tolist() == pytest.approx([0, 0.4, 0, -0.3])
    assert transforms.normalize(floats, 0.2, 2.0)[0, 0, 0] == pytest.approx(-0.1)
    with pytest.raises(ValueError, match="deviation must not be 0"):
        transforms.normalize(floats, 0.0, 0.0)
