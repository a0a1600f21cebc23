"""Where a session's files are, and what its header file holds.

The page *The format of a session's log* in the reference says of every byte what it means.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import Any

import attrs
import msgspec

from heald import HealdError
from heald_persistence.directory import Directory, unreadable
from heald_persistence.errors import FormatTooNew, HeaderDamaged
from heald_session import FORMAT_VERSION, Header, LogOffset, SessionId

FACTS = "session.json"
TAIL = "tail.jsonl"
LOG = "log.jsonl.zst"
INDEX = "log.idx"
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,100}")


def name_of(id: SessionId) -> str:  # noqa: A002
    """Return the name of a session's directory."""
    if _PLAIN.fullmatch(id):
        return id
    return "~" + hashlib.sha256(id.encode()).hexdigest()


@attrs.frozen
class Place:
    """A session's directory."""

    path: Path

    @property
    def name(self) -> str:
        """The directory's name among the sessions."""
        return self.path.name

    @property
    def facts(self) -> Path:
        """The file that holds the header and the cut."""
        return self.path / FACTS

    @property
    def tail(self) -> Path:
        """The file that holds the events."""
        return self.path / TAIL

    @property
    def log(self) -> Path:
        """The file that holds the sealed events, which come before those of the tail."""
        return self.path / LOG

    @property
    def index(self) -> Path:
        """The file that repeats what the zone maps say."""
        return self.path / INDEX

    @property
    def lock(self) -> Path:
        """The file whose lock is the right to write."""
        return self.path / "lock"

    @property
    def quarantine(self) -> Path:
        """The directory of what was found and never acknowledged."""
        return self.path / "quarantine"

    def leavings(self) -> list[Path]:
        """Return the files that a dead writer was making; only who has the lease may ask."""
        return [*self.path.glob(".tail.jsonl.*"), *self.path.glob(".log.*")]

    def in_the_making(self) -> Place:
        """Return where to build it before it gets its name."""
        return Place(self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}"))


class Facts(msgspec.Struct, frozen=True):
    """What `session.json` holds."""

    header: Header
    inherited_event_count: int

    @property
    def cut(self) -> LogOffset:
        """How many events were inherited."""
        return LogOffset(self.inherited_event_count)


class _Version(msgspec.Struct):
    version: int


class _AnyFacts(msgspec.Struct):
    header: _Version


def encode_facts(header: Header, cut: LogOffset) -> bytes:
    """Return what `session.json` holds of a session."""
    return msgspec.json.encode(Facts(header, cut)) + b"\n"


def read_facts(place: Place, id: SessionId) -> Facts:  # noqa: A002
    """Read `session.json`.

    Raises `SessionNotFound`, `FormatTooNew`, `SessionDamaged` or `StorageUnavailable`.
    """
    with Directory.of(place.path, id) as directory:
        return own_facts(directory, id)


def own_facts(directory: Directory, id: SessionId) -> Facts:  # noqa: A002
    """Read `session.json` of the directory that a session should have; as `read_facts`."""
    facts = facts_in(directory, id)
    if facts.header.id != id:
        raise HeaderDamaged(id, f"its files are those of session {facts.header.id!r}")
    return facts


def facts_in(directory: Directory, id: str) -> Facts:  # noqa: A002
    """Read `session.json` of a directory, whosever it is; as `read_facts`."""
    try:
        data = directory.content(FACTS)
    except FileNotFoundError:
        raise HeaderDamaged(id, f"{FACTS} is missing") from None
    except OSError as error:
        raise unreadable(directory.path / FACTS, id, error, HeaderDamaged) from error
    return decode_facts(data, id)


def decode_facts(data: bytes, id: str) -> Facts:  # noqa: A002
    """Decode `session.json`; raise `FormatTooNew` or `SessionDamaged`."""
    try:
        facts = msgspec.json.decode(data, type=Facts)
    except msgspec.MsgspecError as error:
        raise _undecodable(data, id, error) from error
    if facts.header.version > FORMAT_VERSION:
        raise FormatTooNew(id, facts.header.version)
    _check_cut(facts, id)
    return facts


def _undecodable(data: bytes, id: str, error: Exception) -> HealdError:  # noqa: A002
    """Tell a header of a later format, which may have any form, from one that is broken."""
    try:
        version = msgspec.json.decode(data, type=_AnyFacts).header.version
    except msgspec.MsgspecError as worse:
        return HeaderDamaged(id, f"session.json: {worse}")
    if version > FORMAT_VERSION:
        return FormatTooNew(id, version)
    return HeaderDamaged(id, f"session.json: {error}")


def _check_cut(facts: Facts, id: str) -> None:  # noqa: A002
    cut: Any = facts.inherited_event_count
    if cut < 0 or (cut > 0 and not facts.header.is_seeded):
        raise HeaderDamaged(id, f"session.json: {cut} events cannot have been inherited")
