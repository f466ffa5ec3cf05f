"""Metrics: plain formulas, batches against everything at once, errors; scikit-learn if there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import OperandError
from tinynode.nn import metrics

RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((40, 5))
LABELS = RNG.integers(0, 5, 40)
X, Y = RNG.standard_normal((2, 40)) + 1000


def cross_entropy(scores: Any, labels: Any) -> float:
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


FORMULAS: list[tuple[Callable[[], metrics.Metric], Any, Any, float]] = [
    (metrics.Accuracy, SCORES, LABELS, float((SCORES.argmax(1) == LABELS).mean())),
    (
        lambda: metrics.Accuracy(2),
        SCORES,
        LABELS,
        float((np.argsort(SCORES)[:, -2:] == LABELS[:, None]).sum() / 40),
    ),
    (metrics.Perplexity, SCORES, LABELS, math.exp(cross_entropy(SCORES, LABELS))),
    (metrics.MeanAbsoluteError, X, Y, float(np.abs(X - Y).mean())),
    (metrics.MeanSquaredError, X, Y, float(((X - Y) ** 2).mean())),
    (metrics.R2, X, Y, float(1 - ((X - Y) ** 2).sum() / ((Y - Y.mean()) ** 2).sum())),
    (
        lambda: metrics.ConfusionMatrix(5),
        SCORES,
        LABELS,
        [
            [int(((i == LABELS) & (SCORES.argmax(1) == j)).sum()) for j in range(5)]
            for i in range(5)
        ],
    ),
]


@pytest.mark.parametrize(("make", "first", "second", "expected"), FORMULAS)
def test_batches_add_up_to_the_formula(make: Any, first: Any, second: Any, expected: Any) -> None:
    metric = make()
    for _ in range(2):
        for start, end in ((0, 7), (7, 7), (7, 30), (30, 40)):
            a, b = first[start:end], second[start:end]
            metric.update(tn.Variable(a) if start else a, b)
        np.testing.assert_allclose(metric.value(), expected, rtol=1e-9)
        metric.reset()
    if not isinstance(metric, metrics.ConfusionMatrix):
        assert math.isnan(metric.value())


def test_the_functions_are_the_metrics_of_one_batch() -> None:
    assert metrics.accuracy(SCORES, LABELS) == (SCORES.argmax(1) == LABELS).mean()
    assert metrics.top_k_accuracy(SCORES, LABELS, 5) == 1.0
    assert metrics.confusion_matrix([1, 1, 0], [1, 0, 0], 2).tolist() == [[1, 1], [0, 1]]
    assert metrics.accuracy([[[1, 0], [0, 1]]], [[0, 0]]) == 0.5  # more axes
    mean = metrics.Mean().update(2.0, 3).update(tn.Variable(np.array(4.0)))
    assert mean.value() == 2.5


def test_ignored_labels_do_not_count() -> None:
    labels = np.where(np.arange(40) < 20, -1, LABELS)
    assert metrics.accuracy(SCORES, labels) == metrics.accuracy(SCORES[20:], LABELS[20:])
    half = metrics.Perplexity().update(SCORES[20:], LABELS[20:]).value()
    assert metrics.Perplexity().update(SCORES, labels).value() == half
    for predictions in (SCORES, SCORES.argmax(1)):
        matrix = metrics.ConfusionMatrix(5)
        matrix.update(predictions, labels)
        assert matrix.value().sum() == 20
    with pytest.raises(OperandError, match=r"labels must be from 0 to 4, got -1 to"):
        metrics.accuracy(SCORES, labels, ignore_label=None)


def test_precision_recall_and_f1() -> None:
    matrix = metrics.ConfusionMatrix(3)
    assert math.isnan(matrix.accuracy()) and matrix.f1() == matrix.recall("micro") == 0.0
    matrix.update([0, 0, 1, 1], [0, 1, 1, 1])
    assert matrix.precision(None).tolist() == [0.5, 1.0, 0.0]
    assert matrix.recall(None).tolist() == pytest.approx([1.0, 2 / 3, 0.0])
    assert matrix.f1(None).tolist() == pytest.approx([2 / 3, 0.8, 0.0])
    assert matrix.f1() == pytest.approx((2 / 3 + 0.8) / 3)
    assert matrix.f1("micro") == matrix.recall("micro") == matrix.accuracy() == 0.75
    with pytest.raises(ValueError, match="average must be 'macro', 'micro' or None"):
        matrix.f1("weighted")


def test_large_scores_and_large_perplexities() -> None:
    assert metrics.Perplexity().update([[1e5, 0.0]], [0]).value() == 1.0
    assert metrics.Perplexity().update([[1e5, 0.0]], [1]).value() == math.inf
    assert math.isnan(metrics.R2().update([1.0, 2.0], [3.0, 3.0]).value())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.accuracy(SCORES, np.eye(5)[LABELS]),
            r"labels \(...\), got shapes .*-hot",
        ),
        (lambda: metrics.accuracy(SCORES, LABELS / 1), "labels must be integers, got float64"),
        (lambda: metrics.accuracy(SCORES, LABELS + 1), "labels must be from 0 to 4, got 1 to 5"),
        (lambda: metrics.confusion_matrix([5], [0], 5), "predictions must be from 0 to 4"),
        (lambda: metrics.confusion_matrix([5], [[0]], 5), "must have the same shape"),
        (lambda: metrics.confusion_matrix([0], [0.5], 5), "labels must be integers"),
        (lambda: metrics.R2().update([1.0], [[1.0]]), r"got \(1,\) and \(1, 1\). Reshape one"),
        (lambda: metrics.accuracy([["a"]], [0]), "scores must be numbers"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(OperandError, match=message):
        call()


def test_the_base_class_names_what_is_missing() -> None:
    metric = metrics.Metric()
    for call in (metric.update, metric.value, metric.reset):
        with pytest.raises(NotImplementedError, match=r"^Metric has no"):
            call()


def test_scikit_learn_agrees() -> None:
    sk = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    predicted = SCORES.argmax(1)
    matrix = metrics.ConfusionMatrix(5)
    matrix.update(SCORES, LABELS)
    assert (matrix.value() == sk.confusion_matrix(LABELS, predicted)).all()
    for average in ("macro", "micro", None):
        np.testing.assert_allclose(
            matrix.f1(average), sk.f1_score(LABELS, predicted, average=average)
        )
    np.testing.assert_allclose(metrics.R2().update(X, Y).value(), sk.r2_score(Y, X))
