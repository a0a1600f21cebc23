"""What a survey makes of the directories of sessions, and of whatever else is beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import attrs

from heald import CancelToken, HealdError, raise_if_cancelled
from heald_persistence.contracts import StoredSession, Survey
from heald_persistence.directory import Directory, content_of
from heald_persistence.errors import SessionDamaged
from heald_persistence.layout import Facts, decode_facts, facts_in, name_of
from heald_session import SessionId, SessionNotFound

_FRESH = 100_000_000
"""Nanoseconds in which a file may change twice with one time: what is that new has no stamp."""
_EVERY = 64
"""After how many sessions a cancelled survey ends."""


@attrs.define
class _Surveyor:
    """Looks at the entries of one directory."""

    known: Mapping[str, str]
    logs: bool
    _changed: dict[str, StoredSession] = attrs.field(factory=dict)
    seen: set[str] = attrs.field(factory=set)
    """The names of what is there."""
    _hashed: dict[str, str] | None = None

    def look(self, entry: os.DirEntry[str]) -> None:
        """See whether an entry is as it is remembered, and read it if not."""
        name = self._name(entry.name)
        stamp = self.known.get(name)
        if stamp and stamp == self._stamp_of(entry):
            self.seen.add(name)
        elif (found := self._described(entry)) is not None:
            self.seen.add(found.name)
            self._changed[entry.name] = found

    def result(self) -> Survey:
        changed = tuple(self._changed[name] for name in sorted(self._changed))
        return Survey(changed, frozenset(self.known.keys() - self.seen))

    def _name(self, entry: str) -> str:
        """Return the id of the session that is remembered to have a directory of this name."""
        if entry[0] != "~":
            return entry
        if self._hashed is None:
            self._hashed = {name_of(SessionId(name)): name for name in self.known}
        return self._hashed.get(entry, entry)

    def _described(self, entry: os.DirEntry[str]) -> StoredSession | None:
        """Describe an entry; None if it has gone. What is broken has no stamp."""
        if not _is_directory(entry):
            return StoredSession(entry.name, None, problem="this is not a session's directory")
        try:
            facts, found = _facts_at(f"{entry.path}/session.json", entry.name)
        except (OSError, HealdError):
            return described(Path(entry.path), entry.name)
        fresh = time.time_ns() - found.st_ctime_ns < _FRESH
        return _of_facts(facts, entry.name, None if fresh else self._stamp(entry.path, found))

    def _stamp_of(self, entry: os.DirEntry[str]) -> str | None:
        """Return what an entry's stamp is now; None if it is no session's."""
        try:
            if not entry.is_dir(follow_symlinks=False):
                return None
            return self._stamp(entry.path, os.stat(f"{entry.path}/session.json"))  # noqa: PTH116
        except OSError:
            return None

    def _stamp(self, path: str, found: os.stat_result) -> str:
        stamp = _told(found)
        if not self.logs:
            return stamp
        try:
            return f"{stamp}/{_told(os.stat(f'{path}/tail.jsonl'))}"  # noqa: PTH116
        except OSError:
            return f"{stamp}/"


def surveyed(
    root: Path,
    known: Mapping[str, str],
    held: frozenset[str] = frozenset(),
    *,
    logs: bool,
    cancel: CancelToken | None = None,
) -> Survey:
    """Compare every entry of a directory of sessions with what is known; raises `OSError`.

    What is `held` has a writer here, so nobody else can have changed it: it need only be there.
    """
    surveyor = _Surveyor(known, logs)
    unchanged = {name for name in held if known.get(name)}
    try:
        entries = os.scandir(root)
    except FileNotFoundError:
        return Survey((), frozenset(known))
    with entries:
        for number, entry in enumerate(entries):
            if number % _EVERY == 0:
                raise_if_cancelled(cancel)
            name = entry.name
            if name in unchanged:
                surveyor.seen.add(name)
            elif name[0] != ".":
                surveyor.look(entry)
    return surveyor.result()


def described(path: Path, name: str) -> StoredSession | None:
    """Describe a directory that has, or had, a name among the sessions; None if it has gone."""
    try:
        with Directory.of(path, name) as directory:
            facts = facts_in(directory, name)
    except SessionNotFound:
        return None
    except SessionDamaged as error:
        return StoredSession(name, None, problem=error.reason)
    except HealdError as error:
        return StoredSession(name, None, problem=str(error))
    return _of_facts(facts, name)


def _of_facts(facts: Facts, name: str, stamp: str | None = None) -> StoredSession:
    if name_of(facts.header.id) != name:
        problem = f"its files are those of session {facts.header.id!r}"
        return StoredSession(name, None, problem=problem)
    return StoredSession(facts.header.id, facts.header, facts.cut, stamp=stamp)


def _facts_at(path: str, name: str) -> tuple[Facts, os.stat_result]:
    """Read `session.json` by its path; raises `OSError`, and then another way tells why."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data, found = content_of(fd)
    finally:
        os.close(fd)
    return decode_facts(data, name), found


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _told(found: os.stat_result) -> str:
    """Tell a file from every other and from what it was; nobody can set the time of a change."""
    return f"{found.st_ino}.{found.st_size}.{found.st_ctime_ns}"
