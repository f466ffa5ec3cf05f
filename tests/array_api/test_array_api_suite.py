"""The public suite array-api-tests, run on the namespace over NumPy.

Set ``ARRAY_API_TESTS`` to a checkout of github.com/data-apis/array-api-tests with submodules:

    ARRAY_API_TESTS=../array-api-tests python -m pytest tests/array_api/test_array_api_suite.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LEAST_PASSED = 1345
SUITE = os.environ.get("ARRAY_API_TESTS")


@pytest.mark.slow
@pytest.mark.skipif(not SUITE, reason="ARRAY_API_TESTS names no checkout of array-api-tests")
def test_the_public_suite_passes_as_far_as_numpy_does() -> None:
    checkout = Path(str(SUITE))
    assert (checkout / "array_api_tests").is_dir(), f"{checkout} is no checkout of array-api-tests"
    module = "exec('import tinynode as tn; xp = tn.array_namespace()')"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "array_api_tests",
            "--max-examples=5",
            "-n",
            "auto",
        ],
        cwd=checkout,
        env={**os.environ, "ARRAY_API_TESTS_MODULE": module},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted, done.stdout[-3000:] + done.stderr[-3000:]
    failed = "\n".join(re.findall(r"^FAILED .*", done.stdout, re.MULTILINE))
    assert int(counted[1]) >= LEAST_PASSED, failed
