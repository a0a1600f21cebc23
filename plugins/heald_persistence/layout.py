r"""Where a session's files are and what is in them.

A session is one directory ``NAME`` under the root (``HEALD_HOME/sessions``), mode 0700, its files
0600. ``NAME`` is the session's id if that matches ``[A-Za-z0-9_-]{1,100}``; else it is ``~`` and
the lowercase hexadecimal SHA-256 of the id in UTF-8. Names that begin with a dot are sessions in
the making: they are not sessions yet, and nothing in them was acknowledged.

``session.json``
    Written once. One JSON object and a newline: ``header``, the members of `heald_session.Header`
    (those that have their default are absent), and ``inherited_event_count``, the cut. A reader
    refuses a ``header.version`` greater than it knows.

``tail.jsonl``
    Lines of JSON, each ended by ``\n``. The first is the tail's header: ``log_id`` (that of
    ``session.json``), ``base`` (the offset of the tail's first event) and ``sealed`` (how many
    bytes of sealed log come before it). Every further line is one event: ``seq``, ``type``,
    ``time``, ``data``, and where they apply ``v``, ``required``, ``surface``, ``sources``. ``seq``
    begins at ``base`` and grows by one a line. The last member of every line is ``sum``: eight
    lowercase hexadecimal digits of the CRC-32 (that of zlib) of the line's bytes before
    ``,"sum":``.

    What follows the last whole line was never acknowledged: bytes without a newline, one last line
    whose checksum is wrong, or zeros. A line that is wrong with whole lines after it is damage. The
    file grows at its end only; whatever else changes it puts a new file in its place by rename.

    This form is written with ``base`` 0 and ``sealed`` 0. A reader that does not know sealed logs
    refuses other values: it would take a part for the whole.

``lock``
    The writer holds ``flock(LOCK_EX)`` on it for as long as it may write, and lets it go by closing
    the file. Its text, a JSON object of ``pid``, ``host`` and ``since`` (milliseconds since the
    epoch), is for messages only: without the lock it means nothing.

``quarantine/``
    What was found after the last whole line, moved here before anything else was written.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import Any

import attrs
import msgspec

from heald_persistence.errors import FormatTooNew, SessionDamaged
from heald_session import FORMAT_VERSION, Header, LogOffset, SessionId, SessionNotFound

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
    def facts(self) -> Path:
        """The file that holds the header and the cut."""
        return self.path / "session.json"

    @property
    def tail(self) -> Path:
        """The file that holds the events."""
        return self.path / "tail.jsonl"

    @property
    def lock(self) -> Path:
        """The file whose lock is the right to write."""
        return self.path / "lock"

    @property
    def quarantine(self) -> Path:
        """The directory of what was found and never acknowledged."""
        return self.path / "quarantine"

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
    """Read `session.json`; raise `SessionNotFound`, `FormatTooNew` or `SessionDamaged`."""
    try:
        data = place.facts.read_bytes()
    except FileNotFoundError:
        if not place.path.exists():
            raise SessionNotFound(id) from None
        raise SessionDamaged(id, "session.json is missing") from None
    except OSError as error:
        raise SessionDamaged(id, f"session.json: {error.strerror}") from error
    facts = decode_facts(data, id)
    if facts.header.id != id:
        raise SessionDamaged(id, f"its files are those of session {facts.header.id!r}")
    return facts


def decode_facts(data: bytes, id: str) -> Facts:  # noqa: A002
    """Decode `session.json`; raise `FormatTooNew` or `SessionDamaged`."""
    try:
        version = msgspec.json.decode(data, type=_AnyFacts).header.version
        if version > FORMAT_VERSION:
            raise FormatTooNew(id, version)
        facts = msgspec.json.decode(data, type=Facts)
    except msgspec.MsgspecError as error:
        raise SessionDamaged(id, f"session.json: {error}") from error
    _check_cut(facts, id)
    return facts


def _check_cut(facts: Facts, id: str) -> None:  # noqa: A002
    cut: Any = facts.inherited_event_count
    if cut < 0 or (cut > 0 and not facts.header.is_seeded):
        raise SessionDamaged(id, f"session.json: {cut} events cannot have been inherited")
