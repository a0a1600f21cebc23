"""The README's two commands are the ones that are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
MAIN_JOB = "python -m pip install . && heald demo"
TESTS = "python -m pip install nox && nox"


def test_the_readme_has_one_command_for_the_main_job_and_one_for_the_tests() -> None:
    assert f"$ {MAIN_JOB}\n" in README
    assert f"$ {TESTS}\n" in README


@pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="the checkout's scripts are not here")
def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    assert TESTS in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
