"""The person's own presets as directories: made whole, and put away."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from heald_preset.errors import PresetExists
from heald_preset.problems import PresetProblem
from heald_preset.roster import Entry, Roster, id_problem

_TRASH = ".trash"
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


@attrs.frozen
class OwnPresets:
    """The directory that they are in; every method blocks, and raises `OSError`."""

    root: Path

    @contextmanager
    def making(self, preset: str, roster: Roster) -> Iterator[Path]:
        """Give a directory to fill, which becomes the preset at the end of the block.

        Whatever the block raises, nothing of it is left.
        """
        if (wrong := id_problem(preset)) is not None:
            raise PresetProblem(wrong)
        if (taken := next((e for e in roster.entries if e.id == preset), None)) is not None:
            raise PresetExists(preset, taken.root, taken.path)
        if os.path.lexists(self.root / preset):
            raise self._exists(preset)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.root / f".{preset}.{secrets.token_hex(4)}"
        beside.mkdir(mode=0o700)
        try:
            yield beside
            self._rename(beside, preset)
        except BaseException:
            shutil.rmtree(beside)
            raise

    def put_away(self, entry: Entry, now: int) -> Path:
        """Move a preset's directory to where nobody looks for presets; return where it is now."""
        trash = self.root / _TRASH
        trash.mkdir(mode=0o700, exist_ok=True)
        kept = trash / f"{entry.id}.{now}.{secrets.token_hex(4)}"
        entry.path.rename(kept)
        return kept

    def _rename(self, beside: Path, preset: str) -> None:
        try:
            beside.rename(self.root / preset)
        except OSError as error:  # somebody made it meanwhile
            raise self._exists(preset) if error.errno in _TAKEN else error from error

    def _exists(self, preset: str) -> PresetExists:
        return PresetExists(preset, "user", self.root / preset)


def write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet, for its owner alone."""
    with open(file, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as new:
        new.write(text)
