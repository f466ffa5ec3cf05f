"""What all tests share: the strict backend is known, and random tests are repeatable."""

from __future__ import annotations

import hypothesis
import strict_backend

import tinynode as tn

tn.register_backend(strict_backend)

# the same examples in every run, and no time limit for one of them: machines differ
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tests")
