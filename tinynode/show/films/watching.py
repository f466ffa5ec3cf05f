"""Watching: pictures of a model's predictions in a film of a training loop.

Requirement: a picture changes no result of the program. So the predictions are computed without
a graph, in evaluation mode, and unseen by hooks. Draws from ``tinynode.random`` are undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tinynode import random
from tinynode.configuration import using_config
from tinynode.core.hooks import thread_hooks
from tinynode.core.variable import Variable
from tinynode.devices import find_device, to_host
from tinynode.errors import describe
from tinynode.functions.draws import restored_generators
from tinynode.net.recorder import without_hooks
from tinynode.show.films.recorder import FilmRecorder


def watch(
    predict: Callable[[Any], Any],
    inputs: Any,
    labels: Any = None,
    *,
    name: str = "predictions",
    every: int = 1,
) -> None:
    """Add a picture of a model's predictions to the film that is being recorded.

        with tn.show.record(model=model) as film:
            for step in range(50):
                loss = F.softmax_cross_entropy(model(x), t)
                optimizer.cleargrads()
                loss.backward()
                optimizer.update()
                tn.show.watch(model, x, t)

    For points of shape (n, 2) the picture is the decision border: the predicted classes of a grid,
    and at most 300 points. For images the picture has at most 12 images, each with the predicted
    class, the score and the label. Of more examples, a fixed random choice is watched. The first
    call of a name fixes the examples: later calls of the name watch the same examples.

    Outside of a recording the call does nothing. The predictions are computed in evaluation mode
    (``config.train`` is False) and without a graph. They are no steps of the film.

    Args:
        predict: a model: from inputs to scores, of shape (n, classes). Of a single score, of shape
            (n, 1) or (n,), a score above 0 means class 1: subtract 0.5 from a probability.
            ``predict`` gets a Variable if ``inputs`` is a Variable, else an array.
        inputs: points of shape (n, 2), or images of shape (n, h, w), (n, 1, h, w), (n, 3, h, w),
            or flat and square: (n, k * k), with k from 5 to 32.
        labels: the class of each input, from 0; or -1 and 1.
        name: distinguishes several pictures of an iteration.
        every: 10 draws a picture at every tenth call; the calls between show the picture before.

    Raises:
        TypeError: inputs, labels or scores are no array.
        ValueError: a shape does not fit, or ``every`` is no positive integer.
    """
    if not isinstance(every, int) or every < 1:
        raise ValueError(f"watch: every must be a positive integer, got {every!r}.")
    recorders = [hook for hook in thread_hooks() if isinstance(hook, FilmRecorder)]
    for recorder in recorders:
        if not recorder.is_cut:
            _watch(recorder, predict, inputs, labels, name, every)


def _watch(
    recorder: FilmRecorder,
    predict: Callable[[Any], Any],
    inputs: Any,
    labels: Any,
    name: str,
    every: int,
) -> None:
    host = _on_host("inputs", inputs)
    watched = recorder.film.watched
    subject = watched.subject(name, host, None if labels is None else _on_host("labels", labels))
    if subject.calls % every == 0:
        watched.add(subject, _predicted(predict, inputs, subject.inputs))
    subject.calls += 1
    recorder.watched(subject.number, subject.latest, subject.about)


def _on_host(argument: str, value: Any) -> Any:
    """A NumPy array.

    Raises:
        TypeError: the value is no Variable and no array.
    """
    array = value.raw if isinstance(value, Variable) else value
    if find_device(array) is not None:
        return numpy.asarray(to_host(array))
    raise TypeError(f"watch: {argument} must be a Variable or an array, got {describe(value)}.")


def _predicted(predict: Callable[[Any], Any], given: Any, host: Any) -> Any:
    """The scores of examples, as a NumPy array."""
    device = given.device if isinstance(given, Variable) else find_device(given)
    examples = host if device is None else device.from_host(host)
    if isinstance(given, Variable):
        examples = Variable(examples, requires_grad=False)
    undone = restored_generators(random.get_generator())
    with undone, without_hooks(), using_config(train=False, enable_backprop=False):
        scores = predict(examples)
    return _on_host("what predict gives", scores)
