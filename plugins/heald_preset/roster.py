"""One look at every root: which presets there are, and what each is made from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import attrs

from heald import did_you_mean
from heald_preset.contracts import PresetRoot
from heald_preset.documents import Document, read_document
from heald_preset.errors import PresetNotFound, PresetRootUnreadable
from heald_preset.problems import PresetProblem

FILE = "preset.toml"
"""What makes a directory a preset."""
_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


def id_problem(name: str) -> str | None:
    """Return why a name cannot be a preset's id, if it cannot."""
    if _ID.fullmatch(name):
        return None
    return f"{name!r} cannot be an id; name it to match {_ID.pattern}"


@attrs.define(eq=False)
class Entry:
    """A preset's directory, whatever is in it."""

    id: str
    _root: PresetRoot
    shadowed: bool

    @property
    def root(self) -> str:
        """What people see as the origin."""
        return self._root.name

    @cached_property
    def path(self) -> Path:
        """The directory; made when asked for, since most entries are only looked past."""
        return self._root.path / self.id

    @property
    def file(self) -> str:
        """What makes it a preset; plain text, since a roster opens hundreds at once."""
        return f"{self._root.path}/{self.id}/{FILE}"


class Roster:
    """The presets of some roots as they are now.

    It answers one question and is thrown away, so an edit is seen by the next; each file is read
    once, so the answer is of one moment.
    """

    def __init__(self, roots: Iterable[PresetRoot]) -> None:
        self.entries = tuple(_entries(roots))
        self._by_id = {entry.id: entry for entry in self.entries if not entry.shadowed}
        self._read: dict[Entry, Document | str] = {}
        """What each file says, or what is wrong with it."""

    def entry(self, preset: str) -> Entry:
        """Return the entry that an id names; raises `PresetNotFound` listing the ids there are."""
        if (entry := self._by_id.get(preset)) is None:
            raise PresetNotFound(preset, self.ids())
        return entry

    def document(self, entry: Entry) -> Document:
        """Return what an entry's file says; raises `PresetProblem`."""
        if (found := self._read.get(entry)) is None:
            found = self._read[entry] = _document(entry)
        if isinstance(found, str):
            raise PresetProblem(found)
        return found

    def chain(self, entry: Entry) -> tuple[Document, ...]:
        """Return an entry's document after those it extends, the first of them first.

        Raises `PresetProblem`: one of them is broken or is not there, or they extend each other.
        """
        entries = [entry]
        documents = [self.document(entry)]
        while (base := documents[-1].extends) is not None:
            where = f"{documents[-1].layer.name}: extends"
            if (found := self._by_id.get(base)) is None:
                raise PresetProblem(
                    f"{where}: no preset {base!r}; {did_you_mean(base, self.ids())}"
                )
            if found in entries:
                circle = " -> ".join([*(e.id for e in entries[entries.index(found) :]), base])
                raise PresetProblem(f"{where}: presets extend each other: {circle}")
            entries.append(found)
            documents.append(self.document(found))
        return tuple(reversed(documents))

    def ids(self) -> tuple[str, ...]:
        """Return the ids there are, sorted."""
        return tuple(sorted({entry.id for entry in self.entries if _ID.fullmatch(entry.id)}))


def _document(entry: Entry) -> Document | str:
    if (wrong := id_problem(entry.id)) is not None:
        return f"{entry.path}: {wrong}"
    try:
        return read_document(entry.file)
    except PresetProblem as error:
        return str(error)


def _entries(roots: Iterable[PresetRoot]) -> Iterator[Entry]:
    seen: set[str] = set()
    for root in roots:
        names = _names(root)
        for name in names:
            yield Entry(name, root, shadowed=name in seen)
        seen.update(names)


def _names(root: PresetRoot) -> list[str]:
    """Return the names in a root that could be presets: not files, and not hidden."""
    try:
        with os.scandir(root.path) as found:
            return sorted(
                entry.name
                for entry in found
                if not entry.name.startswith(".") and not entry.is_file(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PresetRootUnreadable(root.name, root.path, error.strerror or str(error)) from error
