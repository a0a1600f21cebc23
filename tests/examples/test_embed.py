"""The example of a program that embeds Heald does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "embed.py"


def test_the_embedding_script_answers_and_prints_its_log(heald_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env=os.environ | {"HEALD_HOME": str(heald_home)},
        capture_output=True,
        text=True,
        check=True,
    )
    answer, *events = done.stdout.splitlines()
    assert answer == "There are 12 spools of it."
    assert events[:2] == ["0 model/selected", "1 inbox/message"]
    assert events[-1].endswith("turn/end")
    assert done.stderr == ""
