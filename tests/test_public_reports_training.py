"""Situations of training, data and layers in which users of other libraries met wrong results.

Each test is one situation, in its own words and numbers. ``test_public_reports.py`` has those of
gradients.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import atomic_file, nn
from tinynode.errors import StateError, dtype_name

F = tn.functions


def test_nearest_interpolation_takes_the_exact_place_for_all_sizes() -> None:
    """49 / 98 is not 0.5 of a rounded quotient: a place before the right one was taken."""
    wrong = []
    for n in (*range(1, 20), 30, 49, 80, 98, 196, 224):
        x = tn.asarray(np.arange(n, dtype=np.float32).reshape(1, 1, n))
        for o in (*range(1, 20), 22, 26, 49, 80, 98, 103, 196, 206, 214, 245):
            found = tn.to_host(F.interpolate(x, size=o)).ravel()
            if found.tolist() != [i * n // o for i in range(o)]:
                wrong.append((n, o))
    assert wrong == []


@pytest.mark.parametrize("scale", [49, 98, 103, 107.0, 0.25])
def test_nearest_interpolation_by_a_scale_repeats_each_place_so_often(scale: float) -> None:
    x = tn.asarray(np.arange(8, dtype=np.float32).reshape(1, 1, 8))
    found = tn.to_host(F.interpolate(x, scale=scale)).ravel()
    assert found.tolist() == [int(i / scale + 1e-9) for i in range(int(8 * scale))]


def test_a_mask_chooses_the_samples_of_a_subset() -> None:
    """[True, False, True] are no indexes 1, 0, 1."""
    subset = nn.Subset(list("abc"), np.array([True, False, True]))
    assert [subset[i] for i in range(len(subset))] == ["a", "c"]
    assert len(nn.Subset(list("abc"), [False] * 3)) == 0
    assert len(nn.Subset(list("abc"), [])) == 0


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ([True, False], "3 bools, one for each sample; got bool of shape"),
        ([0.0, 1.0], "integers along one axis"),
        ([[0, 1]], "integers along one axis"),
        ([0, 3], "no sample 3: give indexes from -3 to 2"),
        ([-4], "no sample -4"),
        (np.array([2**63], np.uint64), "no sample 9223372036854775808"),
    ],
)
def test_indexes_of_no_sample_are_refused_when_the_subset_is_made(
    indexes: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        nn.Subset(list("abc"), indexes)


@pytest.mark.parametrize("indexes", [range(2), (0, -1), np.array([2, 0], np.uint8)])
def test_integers_of_each_kind_are_indexes(indexes: Any) -> None:
    subset = nn.Subset(nn.ArrayDataset(np.arange(3)), indexes)
    expected = [np.arange(3)[i] for i in indexes]
    assert [int(subset[i][0]) for i in range(2)] == expected


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda p: nn.SGD([p], 0.1),
    "SGD, momentum": lambda p: nn.SGD([p], 0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
    "Adam": lambda p: nn.Adam([p], 0.01),
    "AdamW": lambda p: nn.AdamW([p], 0.01),
    "NAdam": lambda p: nn.NAdam([p], 0.01),
    "RMSprop": lambda p: nn.RMSprop([p], 0.01),
    "RMSprop, all": lambda p: nn.RMSprop([p], 0.01, momentum=0.9, centered=True),
    "Adagrad": lambda p: nn.Adagrad([p], 0.01),
    "Lion": lambda p: nn.Lion([p], 0.01),
}
GRADIENTS = (0.0, 0.0, 1e-4, -3e-6, 300.0, 1.0)
"""Of an element: zeros, a square below the smallest float16, and a square above the largest."""


@pytest.mark.parametrize("way", ["eager", "compiled on numpy", "compiled on fast"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_steps_of_float32_in_float16(name: str, way: str) -> None:
    """eps and squares of gradients rounded to 0 in float16, and the parameter became NaN."""
    device = "fast" if way.endswith("fast") else "numpy"
    half, single = [
        nn.Parameter(np.asarray([1.0, -0.5, 0.0], dtype), device=device)
        for dtype in ("float16", "float32")
    ]
    ours, expected = OPTIMIZERS[name](half), OPTIMIZERS[name](single)

    def step(scale: Any) -> None:
        ours.cleargrads()
        F.sum(half * scale).backward()
        ours.update()

    run = step if way == "eager" else tn.compile(step)
    for gradient in GRADIENTS:
        rounded = np.float16(gradient)
        with tn.using_device(device):
            run(tn.asarray(np.full(3, rounded), device=device, requires_grad=False))
        single.grad = np.full(3, rounded, np.float32)
        expected.update()
        single.array = single.array.astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(half.array, single.array.astype(np.float16))
    moments = {k: v.dtype for k, v in ours.state_dict().items() if not k.endswith("count")}
    assert set(moments.values()) <= {np.dtype("float32")}


def test_wide_moments_are_saved_loaded_and_checked() -> None:
    p = nn.Parameter(np.ones(2, np.float16))
    adam, other = nn.Adam([p], 0.01), nn.Adam([p], 0.01)
    p.grad = np.full(2, 1e-4, np.float16)
    adam.update()
    other.load_state_dict(adam.state_dict())
    assert {k: v.tolist() for k, v in other.state_dict().items()} == {
        k: v.tolist() for k, v in adam.state_dict().items()
    }
    p.grad = np.full(2, 1e-4, np.float16)
    other.update()
    p.array = np.ones(3, np.float16)
    p.grad = np.ones(3, np.float16)
    with pytest.raises(tn.errors.GraphError, match="has a m of shape"):
        other.update()


def test_a_rule_of_ones_own_has_moments_like_the_parameter() -> None:
    class Mine(nn.Optimizer):
        moment_names = ("v",)

        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            v = moments["v"] + grad
            return array - v, {"v": v}

    p = nn.Parameter(np.ones(2, np.float16))
    p.grad = np.ones(2, np.float16)
    Mine([p], 0.1).update()
    assert p.array.tolist() == [0.0, 0.0]


def test_nadam_s_steps_cost_the_same_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product over all steps is that of the step before, times one factor."""
    from tinynode.nn import updates

    asked = []
    mu = updates._nadam_mu
    monkeypatch.setattr(updates, "_products", {})
    monkeypatch.setattr(updates, "_nadam_mu", lambda *args: asked.append(args) or mu(*args))
    first = [updates.nadam_numbers(0.9, 0.004, t) for t in range(1, 200)]
    assert len(asked) == 199 * 3
    updates._products.clear()
    assert updates.nadam_numbers(0.9, 0.004, 199) == first[-1]
    assert updates.nadam_numbers(0.9, 0.004, 7) == first[6]


SCORES = [[3, 0, 1], [0, 2, 2]]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64", "int64", "float16", "float64"])
def test_scores_of_each_dtype_are_ranked_alike(dtype: str) -> None:
    """The negative of an unsigned 0 is the largest number's neighbour, or 0."""
    scores = np.asarray(SCORES, dtype)
    for labels, k, expected in (
        ([0, 1], 1, 1.0),
        ([0, 2], 1, 0.5),
        ([2, 2], 2, 1.0),
        ([1, 0], 2, 0.0),
    ):
        assert nn.metrics.Accuracy(k).update(scores, np.asarray(labels)).value() == expected
    lowest = np.asarray([[-128, 1, 0]], "int8")
    assert nn.metrics.top_k_accuracy(lowest, np.asarray([0]), 2) == 0.0


def test_labels_may_be_bools_or_unsigned() -> None:
    scores = np.asarray([[0.0, 1.0], [1.0, 0.0]])
    for dtype in (bool, np.uint8, np.uint64, np.int8):
        labels = np.asarray([1, 0], dtype)
        assert nn.metrics.accuracy(scores, labels) == 1.0
        assert nn.metrics.Perplexity().update(scores, labels).value() < 1.4
        assert nn.metrics.confusion_matrix(scores, labels, 2).tolist() == [[1, 0], [0, 1]]
    assert nn.metrics.top_k_accuracy(scores > 0.5, np.asarray([1, 0]), 1) == 1.0
    assert nn.metrics.top_k_accuracy(scores > 0.5, np.asarray([1, 0]), 2) == 1.0


@pytest.mark.parametrize("k", [1, 2])
def test_a_score_of_nan_is_no_class(k: int) -> None:
    """argmax of NaN and numbers is the place of the NaN: class 0 would have the credit."""
    scores = np.asarray([[np.nan, 1.0, 2.0], [1.0, 2.0, 0.0]])
    metric = nn.metrics.Accuracy(k).update(scores, np.asarray([0, 1]))
    assert np.isnan(metric.value())
    metric.reset()
    assert metric.update(scores, np.asarray([-1, 1])).value() == 1.0  # an ignored example
    with pytest.raises(tn.errors.OperandError, match="1 of 2 examples have a NaN"):
        nn.metrics.confusion_matrix(scores, np.asarray([0, 1]), 3)


def test_an_empty_batch_does_not_count_for_a_mean() -> None:
    mean = nn.metrics.Mean().update(np.nan, 0).update(2.0, 3)
    assert mean.value() == 2.0
    with pytest.raises(ValueError, match=r"Mean: count must be at least 0 .*got -1"):
        mean.update(1.0, -1)
    assert mean.value() == 2.0


def test_perplexity_has_the_limit_at_infinite_scores() -> None:
    scores = np.asarray([[np.inf, 0.0], [-np.inf, 0.0]])
    assert nn.metrics.Perplexity().update(scores, np.asarray([0, 1])).value() == 1.0
    assert nn.metrics.Perplexity().update(scores, np.asarray([1, 1])).value() == np.inf


def trainer(train: Any, loss: Any = None, **options: Any) -> nn.Trainer:
    """A trainer of a small model."""
    tn.seed(0)
    model = nn.Linear(2, 3)
    usual = lambda m, x, t: F.softmax_cross_entropy(m(x), t)  # noqa: E731
    return nn.Trainer(model, loss or usual, nn.SGD(model, 0.1), train, **options)


def batches(count: int = 2) -> list[Any]:
    x = tn.asarray(np.ones((4, 2), np.float32), requires_grad=False)
    return [(x, tn.asarray(np.asarray([0, 1, 2, 1])))] * count


def test_an_epoch_without_batches_has_no_loss_of_zero() -> None:
    """A loader that drops its only batch made the first epoch the best of all."""
    data = nn.ArrayDataset(np.ones((4, 2)), np.asarray([0, 1, 2, 1]))
    dropped = nn.DataLoader(data, 8, drop_last=True)
    with pytest.raises(ValueError, match=r"train has no batches.*drop_last=True"):
        trainer(dropped).run(1, quiet=True)
    with pytest.raises(ValueError, match="validation has no batches"):
        trainer(batches(), validation=dropped, patience=1).run(1, quiet=True)
    assert np.isnan(trainer(batches(), metrics=None).evaluate([])["loss"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_early_stopping_by_a_number_that_was_never_finite(
    bad: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no best epoch, so the model keeps its parameters."""
    run = trainer(
        batches(), validation=batches(), metrics={"odd": lambda m, x, t: bad}, monitor="odd",
        patience=2,
    )  # fmt: skip
    run.run(5)
    assert (run.stopped, run.epoch) == ("early", 2)
    told = capsys.readouterr().out
    assert "odd was infinite or NaN in all epochs; the model has the latest parameters" in told
    measured = run.evaluate()["loss"]
    assert run.history[-1]["validation loss"] == measured


def test_a_function_of_scores_as_the_loss_is_told_how_to_be_called() -> None:
    with pytest.raises(TypeError, match=r"F.softmax_cross_entropy\(model\(x\), t\)"):
        trainer(batches(), F.softmax_cross_entropy)


@pytest.mark.parametrize("where", ["train", "validation"])
def test_a_data_set_is_no_loader(where: str) -> None:
    data = nn.ArrayDataset(np.ones((4, 2)), np.asarray([0, 1, 2, 1]))
    given = {"train": data} if where == "train" else {"train": batches(), "validation": data}
    with pytest.raises(TypeError, match=rf"Write {where}=nn.DataLoader\(data"):
        trainer(**given)
    for method in (trainer(batches()).predict, trainer(batches()).evaluate):
        for wrong in (data, np.ones((4, 2)), tn.asarray(np.ones((4, 2)))):
            with pytest.raises(TypeError, match=r"Write batches=nn.DataLoader\(data"):
                method(wrong)


def test_batches_may_begin_with_texts_or_be_nested() -> None:
    x, t = batches()[0]
    by_text = trainer(
        [(["a", "b", "c", "d"], x, t)], lambda m, names, x, t: F.softmax_cross_entropy(m(x), t)
    )
    nested = trainer([((x, x), t)], lambda m, xs, t: F.softmax_cross_entropy(m(xs[0]), t))
    usual = trainer([(x, t)])
    losses = [one.run(2, quiet=True)[-1]["loss"] for one in (by_text, nested, usual)]
    assert losses[0] == losses[1] == losses[2]
    texts = trainer([["a", "b"]], lambda m, names: F.sum(m(x)) * len(names))
    assert texts.run(1, quiet=True)[0]["loss"] != 0
    with pytest.raises(TypeError, match="must have an array or a list of texts"):
        trainer([(1, 2)], lambda m, a, b: F.sum(m(x))).run(1, quiet=True)


def test_predict_gives_the_outputs_of_all_batches() -> None:
    run = trainer(batches())
    x, _ = batches()[0]
    found = run.predict(batches(3))
    assert found.shape == (12, 3) and not found.requires_grad
    np.testing.assert_array_equal(found.array[:4], run.model(x).array)
    np.testing.assert_array_equal(run.predict([x]).array, found.array[:4])
    with pytest.raises(ValueError, match="there are no batches"):
        run.predict([])


# --- tables --------------------------------------------------------------------------------------


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def table(tmp_path: Path, text: str, **options: Any) -> nn.TableDataset:
    return nn.TableDataset(written(tmp_path, text), "y", **options)


def test_the_order_of_classes_depends_on_the_names_alone(tmp_path: Path) -> None:
    """Texts of one value, and nan, came in the order of a set, which differs by process."""
    for names in (["1.0", "1", "0"], ["1", "0", "1.0"]):
        rows = "".join(f"{i},{name}\n" for i, name in enumerate(names))
        assert table(tmp_path, f"x,y\n{rows}").classes == ["0", "1", "1.0"]
    for names in (["nan", "2", "1"], ["1", "nan", "2"]):
        rows = "".join(f"{i},{name}\n" for i, name in enumerate(names))
        assert table(tmp_path, f"x,y\n{rows}").classes == ["1", "2", "nan"]


def test_a_table_without_one_class_has_the_labels_of_the_whole(tmp_path: Path) -> None:
    whole = table(tmp_path, "x,y\n1,cat\n2,ant\n3,dog\n")
    part = table(tmp_path, "x,y\n1,dog\n2,cat\n", classes=whole.classes)
    assert part.classes == ["ant", "cat", "dog"]
    assert part.arrays[1].tolist() == [2, 1]
    with pytest.raises(ValueError, match="line 3, column 'y': 'emu' is none of the classes"):
        table(tmp_path, "x,y\n1,dog\n2,emu\n", classes=whole.classes)
    for wrong in (["dog", "dog"], "dog", [1]):
        with pytest.raises((TypeError, ValueError), match="TableDataset: classes must be"):
            table(tmp_path, "x,y\n1,dog\n", classes=wrong)


def test_a_number_beyond_the_dtype_is_no_infinity(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 3, column 'x': '1e39' is too large for float32"):
        table(tmp_path, "x,y\n1,a\n1e39,a\n")
    with pytest.raises(ValueError, match="line 2, column 'y': '-70000' is too large for float16"):
        table(tmp_path, "x,y\n1,-70000\n", regression=True, dtype="float16")
    assert table(tmp_path, "x,y\n1e39,a\n", dtype="float64").arrays[0].tolist() == [[1e39]]


def test_cells_may_be_long_and_separators_others(tmp_path: Path) -> None:
    long = "a" * 200_000
    assert nn.TableDataset(written(tmp_path, f"n,x\n{long},2"), columns=["x"])[0][0].tolist() == [
        2
    ]
    german = written(tmp_path, "x;y\n0,5;1\n-1,5e1;0")
    data = nn.TableDataset(german, "y", delimiter=";", decimal=",")
    assert data.arrays[0].ravel().tolist() == [0.5, -15.0] and data.classes == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x;y\n1;2", {}, r"line 1: a single column .*Give delimiter=';'"),
        ("x\ty\n1\t2", {}, r"line 1: .*Give delimiter='\\t'"),
        (",x\n0,1", {}, r"line 1: column 1 has no name.*index=False"),
        ("x\n1_000", {}, "line 2, column 'x': '1_000' is no finite number"),
        ("x;z\n1.000,5;1", {"delimiter": ";", "decimal": ","}, "'1.000,5' is no finite number"),
        ("x;z\n1.5;1", {"delimiter": ";", "decimal": ","}, "'1.5' is no finite number"),
        ("x,z\n1,2", {"decimal": ","}, "decimal must be .* and not the delimiter"),
        ('x,z\n"1,2\n3,4\n5,6', {}, "line 2: expected 2 values .*quotation mark missing"),
        ('x,z\n1,2\n"a\nb",4,5', {}, "line 3: expected 2 values .*quotation mark missing"),
        ('x,z\n1,2\n"a\nb",4', {}, "line 3, column 'x'"),
        ('x,z\n1,a\n2,"b\n3,c\n', {"label": "z"}, "line 3: a quotation mark is open"),
        ('x,z\n1,"a', {"label": "z"}, "line 2: a quotation mark is open"),
        ("x,z\n1,2", {"delimiter": ""}, "delimiter must be one character"),
        ("x,z\n1,2", {"delimiter": ";;"}, "delimiter must be one character"),
        ("x,z\n1,2", {"delimiter": None}, "delimiter must be one character"),
        ("x,z\n1,2", {"delimiter": '"'}, "delimiter must be one character"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(
    text: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        nn.TableDataset(written(tmp_path, text), **options)


@pytest.mark.parametrize("size", [(0, 3), (-1, 3), (2.5, 3), "ab", (1, 2, 3)])
def test_a_size_of_images_is_checked_at_once(size: Any, tmp_path: Path) -> None:
    """The first image was an error of Pillow, without the name of the argument."""
    save(tmp_path / "a" / "1.png", GREY)
    with pytest.raises((TypeError, ValueError), match="ImageFolder: size"):
        nn.ImageFolder(tmp_path, size=size)


@pytest.mark.parametrize("names", [{"a", "b"}, "ab", 5])
def test_names_without_an_order_are_refused(names: Any, tmp_path: Path) -> None:
    """The order of a set is another in each run, and so were the labels."""
    file = written(tmp_path, "a,b\n1,a\n2,b\n")
    for argument in ("classes", "columns"):
        with pytest.raises(TypeError, match=f"TableDataset: {argument} must be a list of texts"):
            nn.TableDataset(file, "b", **{argument: names})
    save(tmp_path / "images" / "a" / "1.png", GREY)
    with pytest.raises(TypeError, match="ImageFolder: classes must be a list of texts"):
        nn.ImageFolder(tmp_path / "images", classes=names)
    with pytest.raises(ValueError, match="classes must be texts"):
        nn.TableDataset(file, "b", classes=[["a"], "b"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([np.ones(3), np.ones(4)], r"shapes.*\(3,\) in sample 0, \(4,\) in sample 1"),
        ([(1.0, np.ones(2)), (2.0, np.ones((2, 1)))], r"\(2,\) in sample 0, \(2, 1\) in sample 1"),
        ([(1, 2), (1, 2), (1, 2, 3)], "lengths.*2 in sample 0, 3 in sample 2"),
        ([(1, 2), 1], "lengths.*2 in sample 0, int in sample 1"),
        ([{"a": 1}, {"b": 1}], "names.*in sample 0.*in sample 1"),
        ([{"a": 1}, 3], "names.*in sample 0, int in sample 1"),
        (["a", 3], "kinds.*str in sample 0, int in sample 1"),
        ([(1, 3), (2, "a")], "kinds.*int in sample 0, str in sample 1"),
    ],
)
def test_samples_that_make_no_batch_are_named(samples: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"DataLoader: .*{message}.*collate="):
        next(iter(nn.DataLoader(samples, 3)))


# --- images --------------------------------------------------------------------------------------


def save(path: Path, pixels: Any, **options: Any) -> Path:
    images = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    images.fromarray(np.asarray(pixels)).save(path, **options)
    return path


GREY = np.asarray([[0, 255, 51]], np.uint8)


def test_a_class_without_images_keeps_its_label(tmp_path: Path) -> None:
    """The labels behind it shifted, in the validation folder alone."""
    for part in ("train", "validation"):
        for name in ("ant", "bee", "cat"):
            save(tmp_path / part / name / "1.png", GREY)
    (tmp_path / "validation" / "bee" / "1.png").unlink()
    whole = nn.ImageFolder(tmp_path / "train")
    part = nn.ImageFolder(tmp_path / "validation")
    assert part.classes == whole.classes == ["ant", "bee", "cat"]
    assert part.labels.tolist() == [0, 2]
    (tmp_path / "validation" / "bee").rmdir()
    part = nn.ImageFolder(tmp_path / "validation", classes=whole.classes)
    assert part.labels.tolist() == [0, 2]
    with pytest.raises(ValueError, match="which is none of the classes ant, bee"):
        nn.ImageFolder(tmp_path / "validation", classes=["ant", "bee"])


def test_hidden_and_nested_images(tmp_path: Path) -> None:
    save(tmp_path / "bee" / "deep" / "er" / "1.png", GREY)
    save(tmp_path / "bee" / "._1.png", GREY)
    save(tmp_path / "bee" / ".thumbnails" / "1.png", GREY)
    save(tmp_path / ".cache" / "1.png", GREY)
    (tmp_path / "bee" / "loop").symlink_to(tmp_path / "bee", target_is_directory=True)
    folder = nn.ImageFolder(tmp_path)
    assert folder.classes == ["bee"]
    assert folder.files == [tmp_path / "bee" / "deep" / "er" / "1.png"]


def test_a_photo_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    exif = images.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    save(tmp_path / "a" / "1.png", GREY, exif=exif)
    image, _ = nn.ImageFolder(tmp_path, mode="L")[0]
    np.testing.assert_allclose(image[0, :, 0], [0, 1, 0.2], rtol=1e-6)
    assert image.shape == (1, 3, 1)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pixels_of_16_bits_are_not_cut_off(tmp_path: Path, mode: str) -> None:
    save(tmp_path / "a" / "1.png", np.asarray([[0, 65535, 13107, 256]], np.uint16))
    image, _ = nn.ImageFolder(tmp_path, mode=mode)[0]
    assert image.shape == ({"L": 1, "RGB": 3}[mode], 1, 4) and image.dtype == np.float32
    for channel in image:
        np.testing.assert_allclose(channel[0], [0, 1, 0.2, 256 / 65535], rtol=1e-6)
    larger, _ = nn.ImageFolder(tmp_path, mode=mode, size=(2, 8))[0]
    assert larger.shape[1:] == (2, 8) and 0 <= larger.min() <= larger.max() <= 1


def test_floating_pixels_are_refused_by_name(tmp_path: Path) -> None:
    path = save(tmp_path / "a" / "1.tiff", np.asarray([[0.5, 2.0]], np.float32))
    with pytest.raises(ValueError, match=f"{path} has pixels of Pillow's mode F"):
        nn.ImageFolder(tmp_path)[0]


def test_normalize_takes_integers_as_numbers() -> None:
    """0 - 128 of uint8 is 128."""
    found = nn.transforms.normalize(np.asarray([[[0, 255]]], np.uint8), 127.5, 127.5)
    assert found.tolist() == [[[-1.0, 1.0]]] and found.dtype == np.float32


# --- logs ----------------------------------------------------------------------------------------


def test_a_log_of_json_has_null_for_nan(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run = trainer(
        batches(), validation=batches(), metrics={"odd": lambda m, x, t: np.nan}, log=path
    )
    run.run(1, quiet=True)
    strict = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert strict["odd"] is None and strict["epoch"] == 1


def test_rules_of_ones_own_on_half_precision_keep_their_moments() -> None:
    class Own(nn.Adam):
        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            return super().update_one(array, grad, moments, count)

    for make in (Own, nn.Adam):
        p = nn.Parameter(np.ones(3, np.float16))
        optimizer = make([p], eps=1e-3)
        if make is nn.Adam:
            optimizer.update_one = lambda p, g, moments, count: (
                p - p.dtype.type(0.1) * g,
                moments,
            )
        for _ in range(2):
            p.grad = np.full(3, 0.1, np.float16)
            optimizer.step()
        assert p.array.dtype == np.float16 and (p.array < 1).all()


def test_a_state_with_moments_of_float16_is_still_read() -> None:
    p = nn.Parameter(np.ones(3, np.float16))
    adam = nn.Adam([p])
    state = adam.state_dict()
    old = {k: v.astype(np.float16) if v.dtype == np.float32 else v for k, v in state.items()}
    adam.load_state_dict(old)
    assert {v.dtype.name for k, v in adam.state_dict().items() if k.endswith(("m", "v"))} == {
        "float32"
    }


def test_a_moving_average_of_half_precision_moves() -> None:
    """0.999 of a mean rounds to the mean itself in float16."""
    model = nn.Linear(3, 2)
    model.weight.array = np.zeros((2, 3), np.float16)
    average = nn.ExponentialMovingAverage(model)
    for _ in range(5000):
        model.weight.array = np.ones((2, 3), np.float16)
        average.update()
    with average.average():
        assert model.weight.array.dtype == np.float16
        np.testing.assert_allclose(model.weight.array, 1 - 0.999**5000, rtol=1e-3)
    other = nn.ExponentialMovingAverage(model)
    other.load_state_dict(average.state_dict())
    assert (
        other.state_dict()["means/weight"].tolist()
        == average.state_dict()["means/weight"].tolist()
    )


def test_lbfgs_on_half_precision_finds_the_minimum() -> None:
    """The product of two changes of a gradient was 0, and a division by it followed."""
    p = nn.Parameter(np.full(3, 3.0, np.float16))
    optimizer = nn.LBFGS([p])
    weights = np.asarray([1, 0.1, 0.01], np.float16)

    def closure() -> Any:
        optimizer.cleargrads()
        y = F.sum((p - 1) ** 2 * weights) * 1e-3
        y.backward()
        return y

    for _ in range(20):
        optimizer.step(closure)
    np.testing.assert_allclose(p.array, 1, atol=0.05)
    optimizer.load_state_dict(optimizer.state_dict())


# --- files of a run ------------------------------------------------------------------------------


def test_a_log_of_another_run_is_kept(tmp_path: Path) -> None:
    """A second program with the same log erased the first one's rows."""
    for name in ("log.csv", "log.jsonl"):
        log = tmp_path / name
        trainer(batches(), log=log).run(2, quiet=True)
        rows = log.read_text()
        second = trainer(batches(), log=log, validation=batches())
        before = second.model.parameters()[0].array
        with pytest.raises(FileExistsError, match=r"rows of another run.*overwrite=True"):
            second.run(1, quiet=True)
        assert log.read_text() == rows and second.steps == 0
        assert second.model.parameters()[0].array is before
        trainer(batches(), log=log, overwrite=True).run(1, quiet=True)
        assert len(log.read_text()) < len(rows)


def test_a_resumed_log_with_another_metric_keeps_each_number_under_its_name(
    tmp_path: Path,
) -> None:
    """The validation loss stood under "lr"."""
    log, file = tmp_path / "log.csv", tmp_path / "run.npz"

    def start(**options: Any) -> nn.Trainer:
        made = trainer(batches(), log=log, checkpoint=file, **options)
        made.schedule = nn.schedules.ExponentialSchedule(made.optimizer, 0.5)
        return made

    start().run(2, quiet=True)
    again = start(validation=batches())
    again.resume(file)
    again.run(2, quiet=True)
    names, *rows = [line.split(",") for line in log.read_text().splitlines()]
    assert names == ["epoch", "loss", "lr", "validation loss"]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert [row[3] == "" for row in rows] == [True, True, False, False]
    assert float(rows[3][2]) == 0.1 / 2**8


@pytest.mark.parametrize("name", ["two\nlines", "form\x0bfeed", "next\x85line", "line\u2028s"])
def test_a_log_with_a_line_break_in_a_name_goes_on(name: str, tmp_path: Path) -> None:
    """The resumed run found rows of another run in its own log."""
    log, file = tmp_path / "log.csv", tmp_path / "run.npz"

    def start() -> nn.Trainer:
        metrics = {name: lambda model, *batch: 0.5}
        return trainer(batches(), log=log, checkpoint=file, validation=batches(), metrics=metrics)

    start().run(2, quiet=True)
    again = start()
    again.resume(file)
    again.run(1, quiet=True)
    with log.open(newline="", encoding="utf-8") as text:
        names, *rows = csv.reader(text)
    assert names[-1] == name and [row[0] for row in rows] == ["1", "2", "3"]


@pytest.mark.parametrize("content", ["hello", "1,2,3", "name,price\n", "\n"])
def test_a_file_of_one_line_is_no_empty_log(content: str, tmp_path: Path) -> None:
    """A table of one line was replaced: it had no rows below its names."""
    log, file = tmp_path / "log.csv", tmp_path / "run.npz"
    log.write_text(content)
    trainer(batches(), checkpoint=file).run(1, quiet=True)
    resumed = trainer(batches(), log=log)
    resumed.resume(file)
    for one in (trainer(batches(), log=log), resumed):
        with pytest.raises(FileExistsError, match="rows of another run"):
            one.run(1, quiet=True)
    assert log.read_text() == content


def test_rows_that_an_error_left_out_are_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the log lost rows, and later rows stood below the hole."""
    log = tmp_path / "log.csv"
    one = trainer(batches(), log=log)
    one.run(1, quiet=True)

    def fail(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tinynode.nn.training_log.append_to_file", fail)
        patch.setattr("tinynode.nn.training_log.replace_file", fail)
        with pytest.raises(OSError, match="No space left"):
            one.run(1, quiet=True)
    one.run(1, quiet=True)
    assert [line.split(",")[0] for line in log.read_text().splitlines()[1:]] == ["1", "2", "3"]


@pytest.mark.parametrize("path", [5, True, ["run.npz"], "run\0.npz"])
def test_a_checkpoint_that_is_no_path_is_refused_at_once(path: Any) -> None:
    """An integer counted as the number of an open file."""
    with pytest.raises((TypeError, ValueError), match="Trainer: checkpoint: path must"):
        trainer(batches(), checkpoint=path)


def test_checkpoint_and_log_are_two_files(tmp_path: Path) -> None:
    """Each replaced the other."""
    one, link = tmp_path / "one.csv", tmp_path / "two.csv"
    link.symlink_to(one)
    for log in (one, link):
        with pytest.raises(ValueError, match="checkpoint and log must be two files"):
            trainer(batches(), checkpoint=one, log=log).run(1, quiet=True)
    assert not one.exists()


def test_the_missing_folder_is_that_of_a_link(tmp_path: Path) -> None:
    link = tmp_path / "log.csv"
    link.symlink_to(tmp_path / "gone" / "log.csv")
    with pytest.raises(FileNotFoundError, match=r"The folder '[^']*gone' is missing"):
        trainer(batches(), log=link).run(1, quiet=True)


def test_a_log_that_no_reader_of_tables_takes_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("x" * 200_000)
    with pytest.raises(FileExistsError, match="rows of another run"):
        trainer(batches(), log=log).run(1, quiet=True)


def test_a_log_that_is_no_log_of_the_resumed_run_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    trainer(batches(), checkpoint=file).run(2, quiet=True)
    log = tmp_path / "notes.csv"
    log.write_text("epoch,loss\n1,0.5\n")
    again = trainer(batches(), log=log)
    again.resume(file)
    with pytest.raises(FileExistsError, match=r"rows of another run.*those of the checkpoint"):
        again.run(1, quiet=True)
    assert log.read_text() == "epoch,loss\n1,0.5\n"


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_table_with_names_alone_is_kept(tmp_path: Path, is_resumed: bool) -> None:
    """A log has a row from its first write on, so the file is one of the user."""
    log, file = tmp_path / "prices.csv", tmp_path / "run.npz"
    log.write_text("name,price\n")
    trainer(batches(), checkpoint=file).run(1, quiet=True)
    run = trainer(batches(), log=log)
    if is_resumed:
        run.resume(file)
    with pytest.raises(FileExistsError, match="has rows of another run"):
        run.run(1, quiet=True)
    assert log.read_text() == "name,price\n"
    log.write_text("")
    run.run(1, quiet=True)
    assert log.read_text().startswith("epoch,loss\n")


def test_the_log_and_the_checkpoint_are_two_files(tmp_path: Path) -> None:
    """The checkpoint replaced the rows after each epoch."""
    path = tmp_path / "run.csv"
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    for checkpoint in (str(path), link):
        with pytest.raises(ValueError, match="checkpoint and log must be two files"):
            trainer(batches(), checkpoint=checkpoint, log=path)


def test_later_rows_of_a_resumed_log_are_written_again(tmp_path: Path) -> None:
    """The checkpoint is of epoch 2, and the killed run wrote three rows."""
    log, file = tmp_path / "log.csv", tmp_path / "run.npz"
    first = trainer(batches(), log=log)
    first.run(2, quiet=True)
    first.save(file)
    first.run(1, quiet=True)
    whole = log.read_text()
    again = trainer(batches(), log=log)
    again.resume(file)
    again.run(1, quiet=True)
    assert log.read_text() == whole


@pytest.mark.parametrize("option", ["checkpoint", "log"])
@pytest.mark.parametrize("problem", ["missing", "folder", "protected"])
def test_a_path_is_checked_before_the_first_step(
    option: str, problem: str, tmp_path: Path
) -> None:
    """The first epoch was trained, and its checkpoint could not be written."""
    name = "run.npz" if option == "checkpoint" else "log.csv"
    path = tmp_path / name
    if problem == "missing":
        path = tmp_path / "none" / name
    elif problem == "folder":
        path.mkdir()
    else:
        path.touch()
        path.chmod(0o400)
    if problem == "protected" and os.access(path, os.W_OK):
        pytest.skip("this user may write to all files")
    made = trainer(batches(), overwrite=True, **{option: path})
    with pytest.raises(OSError, match=rf"Trainer: {option}: .*{name}.* cannot be written"):
        made.run(1, quiet=True)
    assert made.steps == 0
    setattr(made, option, None)
    made.run(1, quiet=True)


def test_a_full_disk_is_noticed_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Any, content: bytes = b"") -> None:
        if len(content) > 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr("tinynode.nn.checkpoints.check_writable", full)
    made = trainer(batches(), checkpoint=tmp_path / "run.npz")
    with pytest.raises(OSError, match=r"Trainer: checkpoint: .*No space left"):
        made.run(1, quiet=True)
    assert made.steps == 0 and not list(tmp_path.iterdir())


def test_a_row_that_does_not_fit_on_the_disk_leaves_whole_rows(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(b"epoch\n1\n")
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (9, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            atomic_file.append_to_file(file, b"2222\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert file.read_bytes() == b"epoch\n1\n"


def test_a_file_that_is_no_checkpoint_of_the_model_is_kept(tmp_path: Path) -> None:
    own = tmp_path / "data.npz"
    np.savez(own, x=np.ones(3))
    other = tmp_path / "other.npz"
    model = nn.Linear(5, 5)
    nn.save_checkpoint(other, model=model)
    for path, kind in ((own, "no checkpoint of a"), (other, "the checkpoint of another model")):
        content = path.read_bytes()
        with pytest.raises(FileExistsError, match=rf"{kind}.*overwrite=True"):
            trainer(batches(), checkpoint=path).run(1, quiet=True)
        assert path.read_bytes() == content
        trainer(batches(), checkpoint=path, overwrite=True).run(1, quiet=True)
        trainer(batches(), checkpoint=path).run(1, quiet=True)


def test_a_folder_with_points_of_another_run_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            Path(folder, f"events.out.tfevents.{purge_step}").touch()

        def add_scalar(self, *point: Any) -> None: ...

        def flush(self) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr("tinynode.nn.training_log.summary_writer", lambda: Writer)
    folder = tmp_path / "runs" / "first"
    first = trainer(batches(), log=folder)
    first.run(1, quiet=True)
    first.run(1, quiet=True)
    (folder / "notes.txt").touch()
    with pytest.raises(FileExistsError, match=r"points of another run.*overwrite=True"):
        trainer(batches(), log=folder).run(1, quiet=True)
    first.save(tmp_path / "run.npz")
    again = trainer(batches(), log=folder)
    again.resume(tmp_path / "run.npz")
    again.run(1, quiet=True)
    assert (folder / "events.out.tfevents.3").exists()
    trainer(batches(), log=folder, overwrite=True).run(1, quiet=True)
    names = {path.name for path in folder.iterdir()}
    assert names == {"notes.txt", "events.out.tfevents.1"}


# --- which parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize("has_average", [False, True])
def test_the_checkpoint_has_the_program_s_parameters_after_early_stopping(
    has_average: bool, tmp_path: Path
) -> None:
    """The file had the latest parameters, and the program the best ones."""
    values = iter([3.0, 1.0, 2.0, 2.0, 2.0])
    file = tmp_path / "run.npz"
    run = trainer(
        batches(), validation=batches(1), metrics={"odd": lambda m, x, t: next(values)},
        monitor="odd", patience=2, checkpoint=file,
    )  # fmt: skip
    if has_average:
        run.average = nn.ExponentialMovingAverage(run.model, 0.5)
    run.run(9, quiet=True)
    assert (run.stopped, run.epoch) == ("early", 4)
    loaded = nn.load(file, part="model")
    for name, value in run.model.state_dict().items():
        np.testing.assert_array_equal(value, loaded[name])
    run.metrics = {}
    assert run.evaluate()["loss"] == run.history[1]["validation loss"]
    assert run.history[1]["validation loss"] != run.history[3]["validation loss"]


def test_the_best_parameters_of_a_run_that_did_not_stop_early(tmp_path: Path) -> None:
    values = iter([3.0, 1.0, 2.0])
    run = trainer(
        batches(), validation=batches(1), metrics={"odd": lambda m, x, t: next(values)},
        monitor="odd", patience=5,
    )  # fmt: skip
    run.run(3, quiet=True)
    run.metrics = {}
    assert run.evaluate()["loss"] == run.history[2]["validation loss"]
    run.restore_best()
    assert run.evaluate()["loss"] == run.history[1]["validation loss"]
    with pytest.raises(ValueError, match=r"no best parameters: give patience="):
        trainer(batches()).restore_best()


def test_maximize_and_the_schedule_s_mode_agree() -> None:
    def start(mode: str, **options: Any) -> nn.Trainer:
        model = nn.Linear(2, 3)
        optimizer = nn.SGD(model, 0.1)
        schedule = nn.schedules.PlateauSchedule(optimizer, mode)
        loss = lambda m, x, t: F.softmax_cross_entropy(m(x), t)  # noqa: E731
        return nn.Trainer(
            model, loss, optimizer, batches(), validation=batches(), schedule=schedule, **options
        )

    with pytest.raises(ValueError, match=r"mode 'min', and maximize is True.*mode='max'"):
        start("min", maximize=True)
    with pytest.raises(ValueError, match=r"mode 'max', and maximize is False.*maximize=True"):
        start("max", patience=3)
    start("max", maximize=True, patience=3)
    start("max")
    start("min", patience=3)


def test_the_schedule_is_one_of_the_trainer_s_optimizer() -> None:
    other = nn.schedules.StepSchedule(nn.SGD(nn.Linear(2, 3), 0.1), 1)
    with pytest.raises(ValueError, match="learning rate of another optimizer, got StepSchedule"):
        trainer(batches(), schedule=other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "cosine"}, r"schedule must be an object with step\(\), got str"),
        ({"schedule": nn.schedules.StepSchedule}, r"schedule must be an object with step\(\)"),
        ({"schedule": [1, 2]}, "SequentialSchedule"),
        ({"average": True}, r"average must be an object .*ExponentialMovingAverage\(model\)"),
        ({"average": nn.ExponentialMovingAverage}, "average must be an object"),
        ({"checkpoint": True}, "Trainer: checkpoint: path must be a text"),
    ],
)
def test_a_part_of_another_kind_is_refused_at_once(options: Any, message: str) -> None:
    """The errors came in the first step, and named a method alone."""
    with pytest.raises(TypeError, match=message):
        trainer(batches(), **options)


def test_the_average_is_one_of_the_trainer_s_model() -> None:
    """The validation measured the model's own parameters, in silence."""
    other = nn.ExponentialMovingAverage(nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"average has the means of another model, got Exp"):
        trainer(batches(), average=other)


@pytest.mark.parametrize("value", [1.0, None, (tn.asarray(1.0), 2), tn.asarray([1.0, 2.0])])
def test_a_loss_that_is_no_number_of_the_graph_is_refused(value: Any) -> None:
    run = trainer(batches(), lambda m, x, t: value)
    with pytest.raises(TypeError, match=r"Trainer: loss must give a Variable of shape \(\)"):
        run.run(1, quiet=True)
    assert (run.epoch, run.position) == (0, 0)


@pytest.mark.parametrize("is_loader", [True, False])
@pytest.mark.parametrize("wrong", [1, 3, 4])
def test_after_an_error_the_epoch_goes_on_with_its_batch(is_loader: bool, wrong: int) -> None:
    """A loader began a new epoch, and the mean loss had the batches of both."""
    x, t = np.ones((8, 2), np.float32), np.asarray([0, 1, 2, 1] * 2)
    many: Any = [(x[i : i + 2], t[i : i + 2]) for i in range(0, 8, 2)]
    if is_loader:
        many = nn.DataLoader(nn.ArrayDataset(x, t), 2, shuffle=True, seed=3, prefetch=2)
    calls: list[Any] = []

    def loss(model: Any, x: Any, t: Any) -> Any:
        calls.append(tn.to_host(t).tolist())
        if len(calls) == wrong:
            raise RuntimeError("of the user")
        return F.softmax_cross_entropy(model(x), t)

    run = trainer(many, loss)
    with pytest.raises(RuntimeError, match="of the user"):
        run.run(1, quiet=True)
    assert (run.epoch, run.position) == (0, wrong - 1)
    run.run(1, quiet=True)
    assert (run.epoch, run.position, run.steps) == (1, 0, 4)
    assert calls.pop(wrong - 1) == calls[wrong - 1]
    assert sorted(label for labels in calls for label in labels) == sorted(t.tolist())
    run.run(1, quiet=True)
    assert run.steps == 8


def test_after_an_error_of_a_metric_the_epoch_ends_with_its_row(tmp_path: Path) -> None:
    """The epoch counted without a row, and the checkpoint was refused as damaged."""
    file = tmp_path / "run.npz"
    calls = []

    def metric(model: Any, x: Any, t: Any) -> float:
        calls.append(1)
        return 1 / (len(calls) - 1)

    options: Any = {"validation": batches(), "metrics": {"odd": metric}, "checkpoint": file}
    run = trainer(batches(2), **options)
    with pytest.raises(ZeroDivisionError):
        run.run(1, quiet=True)
    assert (run.epoch, run.steps) == (0, 2)
    run.run(2, quiet=True)
    assert [row["epoch"] for row in run.history] == [1, 2] and run.steps == 4
    again = trainer(batches(2), **options)
    again.resume(file)
    assert again.history == run.history


def test_a_tuple_of_arrays_is_one_batch() -> None:
    with pytest.raises(TypeError, match=r"(?s)train must be batches.*or \[batch\]"):
        trainer(batches()[0])
    with pytest.raises(TypeError, match=r"(?s)batches must be batches.*or \[batch\]"):
        trainer(batches()).predict(batches()[0])


# --- schedules -----------------------------------------------------------------------------------


def sgd() -> nn.SGD:
    return nn.SGD([nn.Parameter(np.ones(2))], 0.8)


def test_two_schedules_in_turn_are_refused() -> None:
    """The second one began at a tenth of the rate, since the first had set it."""
    optimizer = sgd()
    warmup = nn.schedules.WarmupSchedule(optimizer, 4, start=0.1)
    decay = nn.schedules.ExponentialSchedule(optimizer, 0.5)
    assert decay.base_lr == 0.8
    with pytest.raises(ValueError, match=r"a later ExponentialSchedule .*SequentialSchedule\("):
        warmup.step()
    decay.step()
    assert optimizer.lr == 0.4


def test_one_schedule_after_another() -> None:
    optimizer = sgd()
    warmup = nn.schedules.WarmupSchedule(optimizer, 2, start=0.5)
    decay = nn.schedules.ExponentialSchedule(optimizer, 0.5)
    both = nn.schedules.SequentialSchedule([warmup, decay], [3])
    rates = [optimizer.lr]
    for _ in range(5):
        both.step()
        rates.append(optimizer.lr)
    assert rates == pytest.approx([0.4, 0.6, 0.8, 0.8, 0.4, 0.2])
    state = both.state_dict()
    again = sgd()
    again.lr = 7.0
    parts = [
        nn.schedules.WarmupSchedule(again, 2, start=0.5),
        nn.schedules.ExponentialSchedule(again, 0.5),
    ]
    resumed = nn.schedules.SequentialSchedule(parts, [3])
    resumed.load_state_dict(state)
    assert again.lr == optimizer.lr
    resumed.step()
    both.step()
    assert again.lr == optimizer.lr == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: ([], []), ValueError, "must be one schedule or more of one optimizer, got 0"),
        (lambda o: ([nn.schedules.StepSchedule(o, 1)], [1]), ValueError, "must be 0 increasing"),
        (lambda o: ([nn.schedules.StepSchedule(o, 1)] * 3, [3, 2]), ValueError, r"\[3, 2\]"),
        (lambda o: ([nn.schedules.PlateauSchedule(o)], []), TypeError, "number of steps alone"),
        (lambda o: ([o], []), TypeError, "number of steps alone, got SGD"),
        (
            lambda o: ([nn.schedules.StepSchedule(x, 1) for x in (o, sgd())], [1]),
            ValueError,
            "2 of 2 optimizers",
        ),
    ],
)
def test_schedules_that_make_no_sequence(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.schedules.SequentialSchedule(*make(sgd()))


def test_the_base_rate_of_a_sequence_is_that_of_its_schedules() -> None:
    """It had no effect, and a sequence inside of a sequence kept its own rate when loaded."""

    def make(lr: float) -> tuple[nn.SGD, nn.schedules.SequentialSchedule]:
        optimizer = sgd()
        optimizer.lr = lr
        parts = [nn.schedules.ExponentialSchedule(optimizer, 0.5) for _ in range(3)]
        inner = nn.schedules.SequentialSchedule(parts[:2], [2])
        return optimizer, nn.schedules.SequentialSchedule([inner, parts[2]], [4])

    optimizer, schedule = make(0.8)
    schedule.base_lr = 0.08
    schedule.step()
    assert optimizer.lr == pytest.approx(0.04)
    other, resumed = make(7.0)
    resumed.load_state_dict(schedule.state_dict())
    assert other.lr == optimizer.lr
    with pytest.raises(StateError, match="base_lr"):
        resumed.load_state_dict({})
    assert other.lr == optimizer.lr


def test_schedules_of_a_sequence_keep_base_rates_of_their_own() -> None:
    optimizer = sgd()
    parts = [nn.schedules.StepSchedule(optimizer, 9) for _ in range(2)]
    parts[1].base_lr = 0.2
    schedule = nn.schedules.SequentialSchedule(parts, [1])
    assert optimizer.lr == 0.8
    schedule.step()
    assert optimizer.lr == 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"milestones": 2}, r"milestones must be a list, got int 2\. Write SequentialSchedule"),
        ({"milestones": [1], "schedulers": []}, "The keyword here is schedules"),
    ],
)
def test_wrong_arguments_of_a_sequence_show_the_call(options: Any, message: str) -> None:
    parts = [nn.schedules.StepSchedule(sgd(), 1)] * 2
    with pytest.raises(TypeError, match=message):
        nn.schedules.SequentialSchedule(parts, **options)


def test_a_rate_set_by_hand_is_where_a_plateau_schedule_goes_on() -> None:
    optimizer = sgd()
    schedule = nn.schedules.PlateauSchedule(optimizer, factor=0.5, patience=0)
    schedule.step(1.0)
    optimizer.lr = 0.1
    schedule.step(0.5)
    assert optimizer.lr == 0.1
    schedule.step(0.5)
    assert optimizer.lr == 0.05


def test_a_rate_set_by_hand_is_undone_by_a_formula_with_a_warning() -> None:
    optimizer = sgd()
    schedule = nn.schedules.ExponentialSchedule(optimizer, 0.5)
    optimizer.lr = 0.3
    with pytest.warns(UserWarning, match=r"set to 0\.3 by hand, and the schedule sets 0\.4"):
        schedule.step()
    schedule.base_lr = 0.08
    schedule.step()
    assert optimizer.lr == 0.02


# --- Ctrl-C --------------------------------------------------------------------------------------


def test_a_second_ctrl_c_stops_a_long_step(tmp_path: Path) -> None:
    def slow(model: Any, x: Any, t: Any) -> tn.Variable:
        if run.steps == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)  # a launcher's echo of the first one
            time.sleep(0.6)
            signal.raise_signal(signal.SIGINT)
        return F.softmax_cross_entropy(model(x), t)

    file = tmp_path / "run.npz"
    run = trainer(batches(), slow, checkpoint=file)
    with pytest.raises(KeyboardInterrupt):
        run.run(5, quiet=True)
    again = trainer(batches(), checkpoint=file)
    again.resume(file)
    assert (again.epoch, again.steps) == (1, 2)


def test_a_loss_scale_that_no_scale_helps_is_an_error() -> None:
    """The scale fell to 0.0, and each further update was skipped in silence."""
    p = nn.Parameter(np.ones(2))
    optimizer, scaler = nn.SGD([p], 0.1), nn.LossScaler(1.0)
    skipped = 0
    with (
        tn.using_config(debug_infinite=False),
        pytest.raises(tn.TinynodeError, match="does not help"),
    ):
        for _ in range(2000):
            p.grad = np.asarray([np.nan, 1.0])
            skipped += not scaler.step(optimizer)
            scaler.update()
    assert skipped == 25 and scaler.factor == 2.0**-24
    p.grad = np.ones(2)
    assert scaler.step(optimizer)
    scaler.update()


def test_a_frozen_encoder_is_clipped_averaged_and_trained_again() -> None:
    """Fine-tuning in two stages with one Trainer: weight decay moved frozen weights elsewhere."""
    encoder, head = nn.Linear(4, 3), nn.Linear(3, 1)
    model = nn.Sequential(encoder, F.relu, head)
    encoder.freeze()
    x = np.random.default_rng(2).standard_normal((12, 4)).astype(np.float32)
    trainer = nn.Trainer(
        model,
        lambda model, x, t: F.mean_squared_error(model(x), t),
        nn.AdamW(model, lr=0.1, weight_decay=0.5),
        nn.DataLoader(nn.ArrayDataset(x, x[:, :1]), 4),
        clip=0.5,
        average=nn.ExponentialMovingAverage(model, rate=0.5),
    )
    start = encoder.state_dict()
    trainer.run(2, quiet=True)
    assert all((array == start[name]).all() for name, array in encoder.state_dict().items())
    with trainer.averaged():
        assert all((array == start[name]).all() for name, array in encoder.state_dict().items())
    encoder.unfreeze()
    trainer.run(1, quiet=True)
    assert not (encoder.weight.array == start["weight"]).any()


def test_meta_learning_finds_a_start_from_which_one_step_suffices() -> None:
    """A model's parameters as an argument: the gradient passes through a gradient step."""
    model = nn.Linear(1, 1)
    tasks = tn.asarray(np.linspace(-1, 1, 5, dtype=np.float32), requires_grad=False)
    x = np.float32([[1.0], [-1.0]])

    def loss(parameters: Any, slope: Any) -> Any:
        y = nn.functional_call(model, parameters, x)
        return F.mean((y - slope * x) ** 2), y

    def adapted(parameters: Any, slope: Any) -> Any:
        g, _ = tn.gradient(loss, has_aux=True)(parameters, slope)
        moved = {name: p - 0.5 * g[name] for name, p in parameters.items()}
        return loss(moved, slope)[0]

    optimizer = nn.SGD(model, lr=0.2)
    before = float(tn.vmap(lambda s: adapted(dict(model.named_parameters()), s))(tasks).mean())
    for _ in range(20):
        optimizer.cleargrads()
        parameters = dict(model.named_parameters())
        tn.vmap(lambda s, p=parameters: adapted(p, s))(tasks).mean().backward()
        optimizer.update()
    after = float(tn.vmap(lambda s: adapted(dict(model.named_parameters()), s))(tasks).mean())
    assert after <= before and after < 1e-6


def test_a_trained_model_goes_to_pytorch_by_names(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3), nn.Linear(3, 1))
    nn.save_torch_weights(tmp_path / "net.safetensors", model)
    names = ["0.bias", "0.weight", "1.bias", "1.num_batches_tracked", "1.running_mean"]
    assert sorted(nn.load(tmp_path / "net.safetensors")) == [
        *names,
        *("1.running_var", "1.weight", "2.bias", "2.weight"),
    ]


WAYS = {
    "numpy": lambda f, x: tn.value_and_grad(f)(x),
    "compiled": lambda f, x: tn.compile(tn.value_and_grad(f))(x),
    "fast": lambda f, x: tn.compile(tn.value_and_grad(f))(x.to_device("fast")),
    "vmap": lambda f, x: [y[0] for y in tn.vmap(tn.value_and_grad(f))(x[None])],
}


def check_loss(f: Any, scores: Any, loss: float, gradient: Any) -> None:
    """The loss and the gradient at scores, in each dtype and in each way."""
    for dtype in ("float16", "float32", "float64"):
        x = tn.Variable(np.asarray(scores, dtype))
        for way in WAYS.values():
            y, gx = way(f, x)
            assert dtype_name(y.dtype) == dtype
            np.testing.assert_allclose(tn.to_host(y).astype(float), loss, rtol=2e-3)
            np.testing.assert_allclose(tn.to_host(gx).astype(float), gradient, rtol=2e-3)


def test_a_class_that_is_impossible_and_has_no_target_costs_nothing() -> None:
    """A mask of -inf on a logit, and soft targets that give the class nothing."""
    t = np.asarray([[0.5, 0.5, 0.0]])
    check_loss(
        lambda x: F.softmax_cross_entropy(x, t), [[1.0, 1.0, -np.inf]], np.log(2), [[0] * 3]
    )
    weighted = np.asarray([1.0, 1.0, 2.0])
    check_loss(lambda x: F.softmax_cross_entropy(x, t, class_weight=weighted),
               [[1.0, 1.0, -np.inf]], np.log(2), [[0] * 3])  # fmt: skip
    check_loss(lambda x: F.kl_divergence(x, np.asarray([[1.0, 0.0]])), [[0.0, -np.inf]], 0.0,
               [[-1.0, 0.0]])  # fmt: skip


def test_an_impossible_target_costs_infinitely_much() -> None:
    t = np.asarray([[0.5, 0.5]])
    check_loss(lambda x: F.softmax_cross_entropy(x, t), [[0.0, -np.inf]], np.inf, [[0.5, -0.5]])
    labels = np.asarray([1])
    check_loss(lambda x: F.softmax_cross_entropy(x, labels), [[0.0, -np.inf]], np.inf, [[1, -1]])


def test_a_logit_of_plus_infinity_is_certain() -> None:
    check_loss(lambda x: F.softmax_cross_entropy(x, np.asarray([0])), [[np.inf, 0.0]], 0, [[0, 0]])
    t = np.asarray([[1.0, 0.0]])
    check_loss(lambda x: F.softmax_cross_entropy(x, t), [[np.inf, 0.0]], 0.0, [[0, 0]])


def test_a_class_of_weight_0_may_be_impossible() -> None:
    weight = np.asarray([1.0, 0.0])
    for options in ({}, {"label_smoothing": 0.5}, {"label_smoothing": 1.0}):
        x = tn.Variable(np.asarray([[0.0, -np.inf], [0.0, 0.0]]))
        loss = F.softmax_cross_entropy(
            x, np.asarray([1, 0]), "none", class_weight=weight, **options
        )
        F.sum(loss).backward()
        assert np.isfinite(loss.array).all() and np.isfinite(x.grad).all()


@pytest.mark.parametrize("weight", [3.0, 1.0, 0.5, 0.0])
def test_positive_weights_at_infinite_scores(weight: float) -> None:
    """The losses of both labels at both ends: 0 where the score is right, else infinite."""
    for label, score, loss, slope in (
        (0.0, -np.inf, 0.0, 0.0),
        (1.0, np.inf, 0.0, 0.0),
        (0.0, np.inf, np.inf, 1.0),
        (1.0, -np.inf, np.inf if weight else 0.0, -weight),
    ):
        for t in (np.asarray([label]), np.asarray([int(label)]), np.asarray([label > 0])):
            check_loss(
                lambda x, t=t: F.sigmoid_cross_entropy(x, t, pos_weight=weight),
                [score], loss, [slope],
            )  # fmt: skip


def test_a_soft_target_of_0_has_a_finite_second_derivative() -> None:
    t = np.asarray([[0.75, 0.25, 0.0]])
    x = tn.Variable(np.asarray([[0.0, 0.0, -np.inf]]))
    found = tn.hessian(lambda x: F.softmax_cross_entropy(x, t))(x).array.reshape(3, 3)
    np.testing.assert_allclose(found, [[0.25, -0.25, 0], [-0.25, 0.25, 0], [0, 0, 0]], atol=1e-15)


def test_losses_in_float16_are_means_of_what_float16_cannot_hold() -> None:
    """One element is above 65,504, and the mean is below."""
    x = tn.Variable(np.asarray([400.0, 0.0, 0.0, 0.0], np.float16))
    far = tn.Variable(np.asarray([60000.0, 0.0, 0.0, 0.0], np.float16))
    zero = np.zeros(4, np.float16)
    negative = np.zeros(4, np.int64)
    for loss, expected in (
        (F.mean_squared_error(x, zero), 40000.0),
        (F.mean_absolute_error(far, -far.array), 30000.0),
        (F.huber(far, -far.array), 30000.0),
        (F.gaussian_nll(x, zero, np.ones(4, np.float16)), 20000.0),
        (F.sigmoid_cross_entropy(far, negative, pos_weight=2.0), 15000.0),
        (F.hinge(x[:, None], np.asarray([0] * 4), p=2), 0.75),
    ):
        assert loss.dtype == np.float16
        np.testing.assert_allclose(float(loss), expected, rtol=2e-3)


def test_batch_normalisation_in_float16_evaluates_far_from_the_mean() -> None:
    layer = nn.BatchNorm(1, dtype="float16").eval()
    layer.running_mean.array = np.asarray([-60000.0], np.float16)
    layer.running_variance.array = np.asarray([60000.0], np.float16)
    y = layer(np.asarray([[60000.0]], np.float16))
    assert y.dtype == np.float16
    np.testing.assert_allclose(float(y), 120000 / np.sqrt(60000), rtol=2e-3)


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")  # of PyTorch
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (4, 1), (3, 2), (2, 3)])
def test_layers_of_convolution_keep_the_size(axes: int, kernel: int, dilation: int) -> None:
    """``padding="same"``, also for an even kernel: the odd zero comes last."""
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=(2, 3, *(7, 6, 5)[:axes])).astype(np.float32)
    layer = getattr(nn, f"Conv{axes}d")(3, 4, kernel, padding="same", dilation=dilation)
    w, b = (torch.from_numpy(tn.to_host(p)) for p in (layer.weight, layer.bias))
    convolve = getattr(torch.nn.functional, f"conv{axes}d")
    expected = convolve(torch.from_numpy(x), w, b, padding="same", dilation=dilation)
    found = layer(x)
    assert found.shape[2:] == x.shape[2:]
    np.testing.assert_allclose(tn.to_host(found), expected.numpy(), atol=1e-5)
    valid = getattr(nn, f"Conv{axes}d")(3, 4, 2, padding="valid")
    assert valid(x).shape[2:] == tuple(n - 1 for n in x.shape[2:])


@pytest.mark.parametrize("layer", ["Conv1d", "Conv2d", "Conv3d"])
@pytest.mark.parametrize(("padding", "stride"), [("same", 2), ("full", 1)])
def test_other_names_of_padding_are_refused_as_the_layer_is_made(
    layer: str, padding: str, stride: int
) -> None:
    with pytest.raises(ValueError, match=f'{layer}: padding must be integers, "valid", or'):
        getattr(nn, layer)(1, 1, 3, padding=padding, stride=stride)


def test_a_class_is_drawn_with_its_probability() -> None:
    """Text is written by draws from scores; a class of score -inf never comes."""
    p = np.asarray([0.1, 0.0, 0.3, 0.6])
    with np.errstate(divide="ignore"):
        scores = np.broadcast_to(np.log(p)[:, None], (4, 20000))
    tn.seed(0)
    for key in (None, tn.random.key(1)):
        drawn = tn.to_host(tn.random.categorical(scores, axis=0, key=key))
        assert drawn.shape == (20000,)
        assert dtype_name(drawn.dtype) == "int64"
        shares = np.bincount(drawn, minlength=4) / 20000
        assert shares[1] == 0.0
        np.testing.assert_allclose(shares, p, atol=0.015)


def test_draws_of_classes_are_new_in_each_run_of_a_compiled_function() -> None:
    compiled = tn.compile(lambda scores: tn.random.categorical(scores))
    keyed = tn.compile(lambda scores, key: tn.random.categorical(scores, key=key))
    scores, key = np.zeros((9, 1000), np.float32), tn.random.key(2)
    assert compiled(scores).tolist() != compiled(scores).tolist()
    assert keyed(scores, key).tolist() == keyed(scores, key).tolist()
    assert keyed(scores, key).tolist() == tn.random.categorical(scores, key=key).tolist()
    keys = tn.random.split(key, 9)
    rows = tn.vmap(lambda row, key: tn.random.categorical(row, key=key))(scores, keys)
    alone = [
        tn.random.categorical(row, key=key).item() for row, key in zip(scores, keys, strict=True)
    ]
    assert rows.tolist() == alone


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.zeros(3, int), {}, "random.categorical: logits must be floating"),
        (np.zeros((2, 0)), {}, "random.categorical: x has shape (2, 0)"),
        (np.zeros(3), {"axis": 1}, "random.categorical: axis 1"),
        (np.zeros(3), {"key": 5}, "random.categorical: key must"),
    ],
)
def test_wrong_scores_of_classes_are_named(
    scores: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((tn.TinynodeError, ValueError), match=re.escape(message)):
        tn.random.categorical(scores, **options)


def test_a_generator_step_names_the_gradients_that_its_optimizer_does_not_clear() -> None:
    """The loss of the generator goes through the critic, whose gradients nobody cleared."""
    generator, critic = nn.Linear(4, 2), nn.Linear(2, 1)
    optimizer = nn.Adam(generator, lr=0.01)

    def step(noise: Any, clears: bool) -> tn.Variable:
        optimizer.cleargrads()
        if clears:
            critic.cleargrads()
        loss = F.sigmoid_cross_entropy(critic(generator(noise)), np.ones((len(noise), 1)))
        loss.backward()
        optimizer.update()
        return loss

    compiled, noise = tn.compile(step), np.ones((3, 4), np.float32)
    critic(np.ones((1, 2), np.float32)).backward()
    with pytest.raises(
        tn.TinynodeError, match=r"\(shape \(1, 2\)\) was changed.*model.cleargrads"
    ):
        compiled(noise, False)
    first, second = compiled(noise, True).item(), compiled(noise, True).item()
    assert second < first


def test_a_table_of_numpy_with_an_index_of_a_compiled_function() -> None:
    table = np.asarray([10.0, 20.0, 30.0])
    with pytest.raises(tn.TinynodeError, match=re.escape("functions.take(table, x, axis=0)")):
        tn.compile(lambda t: table[t])(np.asarray([2, 0]))
    taken = tn.compile(lambda t: F.take(table, t, axis=0))
    assert taken(np.asarray([2, 0])).tolist() == [30.0, 10.0]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("F.ones_like", "np.ones(x.shape)"),
        ("tn.zeros_like", "np.zeros(x.shape)"),
        ("F.randn_like", "tn.random.normal(x.shape)"),
        ("F.cdist", "tn.functions.linalg.vector_norm(x[:, None] - y, axis=-1)"),
        ("F.ctc", "tn.functions.ctc_loss("),
        ("tn.multinomial", "tn.random.categorical(scores)"),
        ("tn.random.multinomial", "tn.random.categorical(scores)"),
        ("nn.LeakyReLU", "lambda x: functions.leaky_relu(x, 0.2)"),
        ("nn.initializers.normal", "tn.random.normal(shape, 0.0, 0.1)"),
        ("nn.initializers.uniform_", "tn.random.uniform(shape, -0.1, 0.1)"),
    ],
)
def test_names_in_programs_of_pytorch_get_the_code_to_write(code: str, remedy: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(remedy)):
        eval(code)


# --- complete programs, as a user of PyTorch or JAX guesses them ---------------------------------


def test_a_layer_of_a_sequential_is_replaced_in_place() -> None:
    """LoRA wraps the layers of a trained model."""
    model = nn.Sequential(nn.Linear(2, 3), F.relu, nn.Linear(3, 1))
    frozen = model[-1].freeze()
    model[-1] = nn.Sequential(frozen, F.tanh)
    assert [name for name, _ in model.named_parameters()][2:] == [
        "layers.2.layers.0.weight",
        "layers.2.layers.0.bias",
    ]
    del model[1]
    assert len(model) == 2
    with pytest.raises(TypeError, match="layer 0 must be a Module or a function"):
        model[0] = nn.Linear
    with pytest.raises(
        IndexError, match=r"less than 2, got 2\. Write Sequential\(\*model, layer\)"
    ):
        model[2] = F.relu


def test_a_number_stands_before_an_array() -> None:
    """logaddexp(0, z) of a NumPy array was refused, and logaddexp(z, 0) was not."""
    z = np.array([0.0, 1.0, -2.0], np.float32)
    for f in (F.logaddexp, F.maximum, F.add, F.divide, F.pow):
        found = f(2, z + 3)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.array, f(2, tn.asarray(z + 3)).array)


def test_draws_need_no_shape_for_a_single_number() -> None:
    """The acceptance of a Monte Carlo step is one uniform number."""
    key = tn.random.key(3)
    for draw in (tn.random.uniform, tn.random.normal, tn.random.bernoulli):
        assert draw().shape == draw(key=key).shape == ()


def test_classes_are_drawn_from_logits_with_their_probabilities() -> None:
    """The action of a policy; a masked action has the logit -inf."""
    logits = np.log(np.array([0.2, 0.5, 0.3, 0.0], np.float32), where=[1, 1, 1, 0], out=None)
    logits = np.where([True, True, True, False], logits, -np.inf).astype(np.float32)
    rows = np.broadcast_to(logits, (20_000, 4))
    draw = tn.compile(lambda key: tn.random.categorical(rows, key=key))
    key = tn.random.key(0)
    found = tn.to_host(draw(key))
    assert np.array_equal(found, tn.to_host(tn.random.categorical(rows, key=key)))
    shares = np.bincount(found, minlength=4) / len(found)
    assert np.abs(shares - [0.2, 0.5, 0.3, 0.0]).max() < 0.015
    keys = tn.random.split(key, 5)
    each = tn.vmap(lambda one: tn.random.categorical(logits, key=one))(keys)
    assert each.tolist() == [int(tn.random.categorical(logits, key=keys[i])) for i in range(5)]
    columns = tn.random.categorical(tn.asarray(rows[:6].T), axis=0)
    assert columns.shape == (6,) and not columns.requires_grad
    with pytest.raises(tn.errors.OperandError, match="categorical: logits must be"):
        tn.random.categorical(np.array([1, 2]), key=key)


@pytest.mark.parametrize("dtype", ["float16", "uint16", "uint64"])
def test_a_compiled_vmap_casts_to_every_dtype(dtype: str) -> None:
    x = tn.asarray(np.array([[1.5, 2.0], [3.0, 4.5]], np.float32))

    def rows(x: Any) -> Any:
        return tn.vmap(lambda row: row.astype(dtype) + 1)(x)

    found, expected = tn.compile(rows)(x), rows(x)
    assert dtype_name(found.dtype) == dtype
    np.testing.assert_array_equal(found.array, expected.array)


def test_a_numpy_array_at_an_index_that_is_a_variable_names_take() -> None:
    """A minibatch for each model of an ensemble: data[rows] under vmap and compile."""
    data, rows = np.arange(6.0), tn.asarray(np.array([[0, 1], [4, 5]]))
    for f in (tn.vmap(lambda i: data[i]), tn.compile(lambda i: data[i])):
        with pytest.raises(tn.TinynodeError, match=r"take\((array|table), x, axis=0\)"):
            f(rows)
    assert tn.vmap(lambda i: F.take(data, i, axis=0))(rows).tolist() == [[0.0, 1.0], [4.0, 5.0]]


def test_scatter_add_of_whole_rows_names_index_add() -> None:
    """Messages of a graph network arrive in rows, and each node has a number."""
    x, target, messages = np.zeros((4, 2)), np.array([3, 0, 3]), np.ones((3, 2))
    for axis in (0, -1):
        with pytest.raises(
            ValueError, match=r"Whole rows: index_add\(x, indices, values, axis=0\)"
        ):
            F.scatter_add(x, target, messages, axis=axis)
    assert F.index_add(x, target, messages).array[:, 0].tolist() == [1.0, 0.0, 0.0, 2.0]


def test_inputs_in_a_tuple_as_for_functional_call_of_pytorch_get_a_note() -> None:
    model, x = nn.Linear(2, 1), tn.asarray(np.ones((3, 2), np.float32))
    with pytest.raises(tn.TinynodeError) as caught:
        nn.functional_call(model, dict(model.named_parameters()), (x,))
    assert "functional_call(model, parameters, *inputs)" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: tn.grad(F.sum), r"tinynode\.gradient\(f\)"),
        (lambda: tn.grad([tn.asarray(1.0)]), r"grad: inputs must be a tuple or a list"),
        (lambda: tn.vmap(F.sum, in_dims=0), "in_axes"),  # type: ignore[arg-type]
        (lambda: tn.vmap(F.sum, randomness="same"), r"tn\.random\.split"),  # type: ignore[arg-type]
        (lambda: tn.checkpoint(F.sum, np.ones(2), use_reentrant=False), "Leave the keyword out"),  # type: ignore[arg-type]
        (lambda: F.linalg.solve_triangular(np.eye(2), np.ones(2), lower=True), "upper=True"),  # type: ignore[arg-type]
        (lambda: F.gumbel_softmax(np.ones(2), tau=1.0), "temperature"),  # type: ignore[arg-type]
        (lambda: nn.SGD(nn.Linear(1, 1)).zero_grad(set_to_none=True), "become None"),  # type: ignore[arg-type]
        (lambda: nn.Linear(1, 1).zero_grad(set_to_none=True), "become None"),  # type: ignore[arg-type]
        (lambda: tn.random.normal(size=(2,)), "shape"),  # type: ignore[arg-type]
        (lambda: tn.random.uniform((2,), minval=0), "low"),  # type: ignore[arg-type]
        (lambda: tn.random.bernoulli((2,), p=0.3), "probability"),  # type: ignore[arg-type]
        (lambda: tn.random.split(tn.random.key(0), num=3), "keyword here is n"),  # type: ignore[arg-type]
        (lambda: tn.compile(F.sum, mode="reduce-overhead"), "one mode"),  # type: ignore[call-overload]
        (lambda: tn.compile(static_argnums=0), "static"),  # type: ignore[call-overload]
        (
            lambda: F.linalg.cholesky_solve(np.eye(3), np.ones(3)),
            r"cholesky_solve\(b, factor\), in this order",
        ),
        (lambda: tn.random.normal(tn.random.key(0), (3,)), "key=key"),  # type: ignore[arg-type]
    ],
)
def test_calls_in_the_form_of_another_library_name_the_form_here(call: Any, cure: str) -> None:
    with pytest.raises(TypeError, match=cure):
        call()


@pytest.mark.parametrize(
    ("owner", "name", "code"),
    [
        (nn.Linear(1, 1), "in_features", "layer.weight.shape"),
        (nn.Conv2d(1, 1, 1), "out_channels", "layer.weight.shape"),
        (nn.Sequential(), "insert", r"nn.Sequential\(\*model, layer\)"),
        (
            nn.ExponentialMovingAverage(nn.Linear(1, 1)),
            "update_parameters",
            r"average\.update\(\)",
        ),
        (nn.ModuleList(), "parameters", r"attribute of a Module, which has parameters"),
        (nn.ModuleDict(), "state_dict", r"nn.Sequential\(\*layers\) is a Module"),
        (nn, "stack_module_state", "model.state_dict"),
        (tn, "func", "tn.vmap"),
        (tn, "tree_map", "for name, p in parameters.items"),
        (tn, "scan", "for i in range"),
        (tn.random, "multinomial", "tn.random.categorical"),
        (tn.random, "PRNGKey", "in place of JAX"),
        (F, "segment_sum", "functions.index_add"),
        (F, "diag_embed", "np.eye"),
        (F.linalg, "logdet", "slogdet"),
    ],
)
def test_names_of_complete_programs_have_the_code_to_write(
    owner: Any, name: str, code: str
) -> None:
    with pytest.raises(AttributeError, match=code):
        getattr(owner, name)


def test_a_state_of_parameters_and_a_reduction_of_pytorch_name_the_form_here() -> None:
    model, x = nn.Linear(1, 1), np.ones((2, 2))
    with pytest.raises(tn.errors.StateError, match=r"Give its array, x\.array"):
        model.load_state_dict(dict(model.named_parameters()))
    with pytest.raises(ValueError, match='"mean" is PyTorch'):
        F.kl_divergence(x, x, reduction="batchmean")


def test_schedules_of_a_sequence_keep_their_own_base_rates_after_a_resume() -> None:
    def start() -> nn.schedules.SequentialSchedule:
        optimizer = sgd()
        first = nn.schedules.WarmupSchedule(optimizer, 2, start=0.5)
        second = nn.schedules.ExponentialSchedule(optimizer, 0.5)
        second.base_lr = 8.0
        return nn.schedules.SequentialSchedule([first, second], [1])

    one, other = start(), start()
    other.schedules[1].base_lr = 3.0
    one.step()
    other.load_state_dict(one.state_dict())
    assert [part.base_lr for part in other.schedules] == [0.8, 8.0]
    one.step()
    other.step()
    assert other.optimizer.lr == one.optimizer.lr == 4.0


def test_a_schedule_that_another_one_replaced_is_refused_by_the_trainer() -> None:
    made = trainer(batches())
    first = nn.schedules.StepSchedule(made.optimizer, 1)
    nn.schedules.ExponentialSchedule(made.optimizer, 0.9)
    with pytest.raises(ValueError, match="a later ExponentialSchedule sets the learning rate"):
        nn.Trainer(made.model, made.loss, made.optimizer, batches(), schedule=first)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("nn.TransformerBlock(8, 2)(np.ones((1, 3, 8)), src_mask=None)", "is attn_mask"),
        ("nn.TransformerDecoderBlock(8, 2)(x, x, tgt_mask=None)", "is attn_mask"),
        ("nn.TableDataset('x.csv', target='y')", "is label"),
        ("nn.TableDataset('x.csv', sep=';')", "is delimiter"),
        ("nn.ImageFolder(root='x')", "is path"),
        ("F.linalg.cholesky_solve(np.ones(2), np.eye(2), lower=True)", "is upper"),
        ("F.linear(x, x, bias=x)", "is b"),
    ],
)
def test_keywords_of_pytorch_and_pandas_name_the_keyword_here(code: str, message: str) -> None:
    x = np.ones((1, 3, 8))
    with pytest.raises(tn.TinynodeError, match=rf"unknown keyword .*The keyword here {message}"):
        eval(code, globals(), {"x": x})
