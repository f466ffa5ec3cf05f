"""Tests that cannot run in several threads at once, and why.

With the plug-in pytest-run-parallel, ``pytest --parallel-threads=4`` runs each test in four
threads at once, and tests with the mark ``thread_unsafe`` in one. Without the plug-in the marks
change nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

OF_A_THREAD = "the fixture changes settings, and settings belong to the thread of the fixture"
PARSING = "Python 3.11's ast.parse is not safe in threads"
OF_THE_PROCESS = "the test is about a value of the whole process"
SHARED = "all threads would change one object of the test"

FIXTURES = {
    "blas": OF_THE_PROCESS,
    "compiler": OF_A_THREAD,
    "cupy": OF_THE_PROCESS,
    "device": OF_A_THREAD,
    "native_cache": OF_A_THREAD,
    "own_settings": OF_THE_PROCESS,
    "registry": OF_THE_PROCESS,
    "restore": OF_THE_PROCESS,
    "scale_class": OF_THE_PROCESS,
    "seeded": OF_THE_PROCESS,
}
"""Fixtures, and why a test with such a fixture runs in one thread."""

TESTS = {
    "core/test_random.py": OF_THE_PROCESS,
    "core/test_configuration.py": OF_THE_PROCESS,
    "devices/test_host_data.py::test_a_film_says_which_step_copied": PARSING,
    "devices/test_host_data.py::test_copies_are_counted": OF_THE_PROCESS,
    "functions/test_facts.py::test_facts_are_read": PARSING,
    "functions/test_function_options.py::test_the_default_generator": OF_THE_PROCESS,
    "net/test_compile.py::test_an_array_that_a_function_in_backward": SHARED,
    "net/test_compile_commit.py::test_a_result_that_a_node_keeps": SHARED,
    "functions/test_half_precision.py::test_half_precision_gives_what_double_gives[cupy": "the "
    "stand-in for CuPy compiles into one file",
    "net/test_compile_signature.py::test_a_change_of_training_where": SHARED,
    "net/test_compile_updates.py::test_a_first": "tracemalloc counts the whole process",
    "net/test_compile_updates.py::test_an_update_of_another_class": SHARED,
    "net/test_net.py::test_a_class_that_nobody_registered": OF_THE_PROCESS,
    "net/test_net.py::test_trap_d_an_output_that_nobody_uses": OF_THE_PROCESS,
    "net/test_net.py::test_zero_fill_leaves_empty_names_alone": OF_THE_PROCESS,
    "net/test_net.py::test_the_library_registers_at_the_first_use": OF_THE_PROCESS,
    "net/test_net_serialization.py::test_dropout_draws_from": OF_THE_PROCESS,
    "net/test_net_serialization.py::test_an_operator_of_ones_own": OF_THE_PROCESS,
    "net/test_net_serialization.py::test_a_class_": OF_THE_PROCESS,
    "net/test_passes.py::test_each_pass_is_short": PARSING,
    "net/test_surroundings.py::test_a_mutable_default": SHARED,
    "net/test_surroundings.py::test_other_containers": SHARED,
}
"""The beginnings of names of tests, below ``tests/``, and the reason."""


def mark(item: Any) -> None:
    """Mark a test that runs in one thread."""
    fixtures = item._fixtureinfo.name2fixturedefs  # without the arguments of parametrize
    reasons = [why for name, why in FIXTURES.items() if name in fixtures]
    place = item.nodeid.partition("tests/")[2]
    reasons += [why for name, why in TESTS.items() if place.startswith(name)]
    if reasons:
        item.add_marker(pytest.mark.thread_unsafe(reason=reasons[0]))
