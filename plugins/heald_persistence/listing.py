"""What a list makes of the directories of sessions, and of whatever else is beside them."""

from __future__ import annotations

import os
from pathlib import Path

from heald import CancelToken, HealdError
from heald_persistence.contracts import StoredSession
from heald_persistence.errors import SessionDamaged
from heald_persistence.layout import facts_in, name_of
from heald_session import SessionNotFound


def stored_under(root: Path, cancel: CancelToken | None = None) -> list[StoredSession]:
    """Describe every entry of a directory of sessions; raises `OSError`."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    listed = []
    for entry in entries:
        if cancel is not None:
            cancel.check()
        if not entry.name.startswith(".") and (found := _of_entry(entry)) is not None:
            listed.append(found)
    return listed


def described(path: Path, name: str) -> StoredSession | None:
    """Describe a directory that has, or had, a name among the sessions; None if it has gone."""
    try:
        facts = facts_in(path, name)
    except SessionNotFound:
        return None
    except SessionDamaged as error:
        return StoredSession(name, None, problem=error.reason)
    except HealdError as error:
        return StoredSession(name, None, problem=str(error))
    if name_of(facts.header.id) != name:
        problem = f"its files are those of session {facts.header.id!r}"
        return StoredSession(name, None, problem=problem)
    return StoredSession(facts.header.id, facts.header, facts.cut)


def _of_entry(entry: os.DirEntry[str]) -> StoredSession | None:
    try:
        if not entry.is_dir(follow_symlinks=False):
            return StoredSession(entry.name, None, problem="this is not a session's directory")
    except OSError as error:
        return StoredSession(entry.name, None, problem=str(error))
    return described(Path(entry.path), entry.name)
