"""Makes, copies and removes the person's own presets, and chooses the default."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import attrs

from heald import FileUnwritable, HealdError, Scope, clear_setting, edit_toml, write_setting
from heald_preset.contracts import DefaultSet, PresetRemoved
from heald_preset.copying import copy_tree
from heald_preset.drafts import draft, draft_extending
from heald_preset.errors import PresetInvalid, PresetNotFound, PresetReadOnly
from heald_preset.own import OwnPresets, write_new
from heald_preset.problems import PresetProblem
from heald_preset.roots import roots, user_root
from heald_preset.roster import FILE, Entry, Roster
from heald_preset.service import PresetService

T = TypeVar("T")
_DEFAULT = "default"
_NOT_COPIED = ("label", "order")
"""With these in common nobody could tell two presets apart in a list."""


@attrs.frozen
class Author:
    """Writes below the person's root of presets, in a thread."""

    _scope: Scope
    _row: str
    _service: PresetService

    async def copy(self, source: str, new: str, cwd: Path | None) -> Path:
        """Copy a preset's whole directory."""

        def copy(roster: Roster) -> Path:
            original = roster.entry(source)
            roster.document(original)
            with self._own.making(new, roster) as directory:
                copy_tree(original.path, directory)
                _take_names_out(directory / FILE)
            return self._own.root / new

        return await self._write(new, copy, cwd)

    async def create(self, new: str, extends: str | None, cwd: Path | None) -> Path:
        """Make a preset with a file to start from."""
        text = draft(new)
        if extends is not None:
            rows = (await self._service.resolve(extends, cwd)).rows
            text = draft_extending(new, extends, rows)

        def create(roster: Roster) -> Path:
            with self._own.making(new, roster) as directory:
                write_new(directory / FILE, text)
            return self._own.root / new

        return await self._write(new, create, cwd)

    async def remove(self, preset: str, cwd: Path | None) -> PresetRemoved:
        """Move a preset's directory out of the roster, and clear a default that named it."""
        now, default = self._scope.host.now(), await self._service.default()

        def remove(roster: Roster) -> tuple[Path, bool]:
            entry = self._removable(roster, preset)
            others = [e for e in roster.entries if e.id == preset and e is not entry]
            return self._own.put_away(entry, now), default == preset and not others

        kept, was_default = await self._write(preset, remove, cwd)
        if not was_default:
            return PresetRemoved(preset, kept)
        home = self._scope.host.home
        await asyncio.to_thread(clear_setting, home, self._row, _DEFAULT, preset)
        return PresetRemoved(preset, kept, await self._service.default())

    async def set_default(self, preset: str, cwd: Path | None) -> DefaultSet:
        """Write the person's default into the home's file."""
        await self._service.resolve(preset, cwd)
        home = self._scope.host.home
        file = await asyncio.to_thread(write_setting, home, self._row, _DEFAULT, preset)
        origin = await asyncio.to_thread(self._default_origin)
        return DefaultSet(preset, file, await self._service.default(), origin)

    @property
    def _own(self) -> OwnPresets:
        return OwnPresets(user_root(self._scope).path)

    def _default_origin(self) -> str:
        rows = self._scope.host.recompose().rows
        row = next((row for row in rows if row.id == self._row), None)
        return row.origin_of(f"config.{_DEFAULT}") if row is not None else "the running host"

    def _removable(self, roster: Roster, preset: str) -> Entry:
        found = [entry for entry in roster.entries if entry.id == preset]
        for entry in found:
            if entry.path.parent == self._own.root:
                return entry
        if found:
            raise PresetReadOnly(preset, found[0].root, found[0].path)
        raise PresetNotFound(preset, roster.ids())

    async def _write(self, preset: str, call: Callable[[Roster], T], cwd: Path | None) -> T:
        """Do something with the roster as it is, in a thread."""
        found = roots(self._scope, cwd)
        try:
            return await asyncio.to_thread(lambda: call(Roster(found)))
        except PresetProblem as error:
            raise PresetInvalid(preset, str(error)) from error
        except HealdError:
            raise
        except OSError as error:
            path = str(self._own.root / preset)
            raise FileUnwritable(path, error.strerror or str(error)) from error


def _take_names_out(file: Path) -> None:
    def change(document: Any) -> None:
        for key in _NOT_COPIED:
            document.pop(key, None)

    try:
        text = edit_toml(file.read_bytes().decode(), change)
    except ValueError as error:
        raise PresetProblem(f"{file.name}: its form cannot be kept in a copy: {error}") from error
    file.write_bytes(text.encode())
