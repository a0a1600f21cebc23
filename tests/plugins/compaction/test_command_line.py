from __future__ import annotations

import json
from pathlib import Path

from heald.testing import CommandRunner

PRESET = """
[[rows]]
id = "compaction"
plugin = "compaction"
config = { keep_chars = 0, prompt = "Sum up in three words." }
"""


def test_a_session_is_compacted_and_shown_whole_from_the_command_line(
    heald_cli: CommandRunner, heald_home: Path, tmp_path: Path
) -> None:
    folder = heald_home / "presets" / "mine"
    folder.mkdir(parents=True)
    (folder / "preset.toml").write_text(PRESET)
    words = ("--preset", "mine", "--model", "scripted:echo", "--json")
    ran = heald_cli("run", "a long story " * 20, *words, cwd=tmp_path)
    session = json.loads(ran.stdout)["session"]
    listed = json.loads(heald_cli("commands", session, "--json", cwd=tmp_path).stdout)
    assert "compact" in [command["name"] for command in listed]
    done = heald_cli("run", "--session", session, "/compact", cwd=tmp_path)
    assert done.stdout.startswith("The model now reads a summary of ")
    shown = heald_cli("sessions", "show", session, cwd=tmp_path).stdout
    assert "a long story a long story" in shown
    assert "history/summary" in shown
    refused = heald_cli("run", "--session", session, "/compact", cwd=tmp_path, code=1)
    assert "COMPACTION_NOT_NEEDED" in refused.stderr
