"""Assertions for tests of programs with tinynode.

    def test_the_compiled_step_is_the_eager_one():
        tn.testing.assert_same_run(eager_step, compiled_step)

Checks of derivatives are in ``tinynode.gradient_check``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinynode.errors import describe
from tinynode.show import Film, compare, record

__all__ = ["assert_same_run"]
__dir__ = __all__.copy  # for completion


def assert_same_run(
    run_a: Film | Callable[[], Any],
    run_b: Film | Callable[[], Any],
    *,
    tolerance: float | None = None,
) -> None:
    """Refuse two runs that differ in a step, forward, backward or in an update.

        >>> w = tn.asarray([1.0, 2.0], requires_grad=True)
        >>> tn.testing.assert_same_run(lambda: F.sum(w * w), lambda: F.sum(w * w))

    Args:
        run_a: a film of ``tn.show.record``, or a function without arguments, which is filmed.
        run_b: the other run, in the same form.
        tolerance: as for ``tn.show.compare``.

    Raises:
        AssertionError: a step differs; the message names the first one, the function and the
            array.
        TypeError: an argument is neither a film nor a function.
    """
    films = [_film(name, run) for name, run in (("run_a", run_a), ("run_b", run_b))]
    found = compare(films[0], films[1], tolerance=tolerance)
    if found:
        raise AssertionError(f"assert_same_run: the runs differ.\n{found}")


def _film(name: str, run: Any) -> Film:
    if isinstance(run, Film):
        return run
    if not callable(run):
        raise TypeError(
            f"assert_same_run: {name} must be a film of tn.show.record(), or a function without "
            f"arguments, got {describe(run)}."
        )
    with record(name) as film:
        run()
    return film
