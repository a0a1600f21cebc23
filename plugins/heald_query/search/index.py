"""The full-text index: its tables, and what is written to them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

import apsw
import attrs

from heald_query.search.numbering import INHERITED, ROLE, ROLES, SUBAGENT, Numbers
from heald_query.search.texts import Text
from heald_session import Header, LogOffset, Seq, SessionId
from heald_sqlite import Schema

SCHEMA = Schema(
    name="search",
    version=1,
    application_id=0x48454C53,
    script="""
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    log_id TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    witness TEXT NOT NULL,
    stamp TEXT,
    damaged INTEGER NOT NULL,
    cwd TEXT
);
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX documents_of_session ON documents (session);
CREATE VIRTUAL TABLE texts USING fts5 (
    words, parts, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co So'"
);
""",
)


_AT_ONCE = 2000
"""How many documents are removed in one transaction."""
_LATEST = 2**63 - 1
"""What SQLite has room for; the clock of a later time was wrong."""


@attrs.frozen
class Watermark:
    """How far a log is indexed."""

    log_id: str
    offset: LogOffset
    witness: str
    """A checksum of the last event that was read, which proves that the log still has it."""


@attrs.frozen
class Indexed:
    """What is remembered of a session."""

    watermark: Watermark
    stamp: str | None
    """As it was in the survey after which the log was read to its end."""
    damaged: bool
    """Whether some of the log could not be read."""


@attrs.frozen
class Document:
    """A text as it goes into the index."""

    text: Text
    inherited: bool
    words: str
    parts: str


@attrs.frozen(kw_only=True)
class Piece:
    """Documents of one log that follow one another, and how far it is indexed with them."""

    header: Header
    before: Watermark | None
    """What the index must say of the session, or else the piece does not fit on.

    A piece of the log's beginning has None: what was indexed before must be forgotten first.
    """
    after: Watermark
    documents: Sequence[Document] = ()
    stamp: str | None = None
    damaged: bool = False
    last: bool = False
    """Whether the log is indexed with it, as far as it was to be."""


def remembered(
    connection: apsw.Connection, ids: Collection[SessionId] | None = None
) -> dict[SessionId, Indexed]:
    """Return what is known of every session, or of some."""
    rows = connection.execute(_ALL) if ids is None else connection.execute(_SOME, (_list(ids),))
    return {
        SessionId(id_): Indexed(Watermark(log_id, LogOffset(at), witness), stamp, bool(damaged))
        for id_, log_id, at, witness, stamp, damaged in rows
    }


def add(connection: apsw.Connection, pieces: Sequence[Piece]) -> set[SessionId]:
    """Keep pieces; return the sessions of those that do not fit on, since another was quicker."""
    unfit: set[SessionId] = set()
    numbers = Numbers(lambda *ends: _last_between(connection, *ends))
    rows: list[tuple[int, int, Document]] = []
    for piece in pieces:
        row = connection.execute(_SESSION, (piece.header.id,)).fetchone()
        standing = None if row is None else Watermark(*row[1:])
        if standing != piece.before:
            unfit.add(piece.header.id)
            continue
        session = _advance(connection, row, piece)
        flags = SUBAGENT if piece.header.origin == "subagent" else 0
        for document in piece.documents:
            number = numbers.take(document.text.time, flags | _flags(document))
            rows.append((number, session, document))
    _insert(connection, sorted(rows, key=lambda row: row[0]))
    return unfit


def forget(connection: apsw.Connection, ids: Collection[SessionId]) -> bool:
    """Remove some of what is indexed of sessions; return whether nothing is left of them.

    What is left is of no log, so that whoever goes on with the session must begin anew.
    """
    room = _AT_ONCE
    for (number,) in list(connection.execute(_NUMBERS, (_list(ids),))):
        connection.execute(_DISOWN, (number,))
        documents = list(connection.execute(_DOCUMENTS, (number, room)))
        connection.executemany("DELETE FROM texts WHERE rowid = ?", documents)
        connection.executemany("DELETE FROM documents WHERE number = ?", documents)
        room -= len(documents)
        if not room:
            return False
        connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
    return True


def damaged(connection: apsw.Connection) -> tuple[int, frozenset[SessionId]]:
    """Return how many sessions are indexed, and those that could not be read wholly."""
    found = connection.execute("SELECT id FROM sessions WHERE damaged")
    ids = frozenset(SessionId(id_) for (id_,) in found)
    return connection.execute("SELECT count(*) FROM sessions").get, ids


def has_any(connection: apsw.Connection) -> bool:
    """Say whether any session is indexed."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM sessions)").get)


def texts_of(connection: apsw.Connection, id_: SessionId) -> Iterator[tuple[Seq, int, str]]:
    """Yield the texts of a session with the numbers of their roles, in no order."""
    for number, seq, text in connection.execute(_TEXTS, (id_,)):
        yield Seq(seq), number & ROLE, text


_ALL = 'SELECT id, log_id, "offset", witness, stamp, damaged FROM sessions'
_SOME = """
SELECT id, log_id, "offset", witness, stamp, damaged FROM sessions
WHERE id IN (SELECT value FROM json_each(?))
"""
_SESSION = 'SELECT number, log_id, "offset", witness FROM sessions WHERE id = ?'
_NUMBERS = "SELECT number FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
_DISOWN = """
UPDATE sessions SET log_id = '', "offset" = 0, witness = '', stamp = NULL WHERE number = ?
"""
_DOCUMENTS = "SELECT number FROM documents WHERE session = ? LIMIT ?"
_TEXTS = """
SELECT documents.number, seq, text FROM documents JOIN sessions ON sessions.number = session
WHERE sessions.id = ?
"""
_UPSERT = """
INSERT INTO sessions (number, id, log_id, "offset", witness, stamp, damaged, cwd)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET
    log_id = excluded.log_id, "offset" = excluded."offset", witness = excluded.witness,
    stamp = excluded.stamp, damaged = excluded.damaged, cwd = excluded.cwd
RETURNING number
"""


def _advance(connection: apsw.Connection, row: tuple[int, ...] | None, piece: Piece) -> int:
    """Move a session's watermark, and return its number."""
    number = None if row is None else row[0]
    header, after = piece.header, piece.after
    facts = (after.log_id, after.offset, after.witness, piece.stamp, piece.damaged, header.cwd)
    found: int = connection.execute(_UPSERT, (number, header.id, *facts)).get
    return found


def _insert(connection: apsw.Connection, rows: Sequence[tuple[int, int, Document]]) -> None:
    """Insert documents in the order of their numbers, since FTS5 writes out what goes back."""
    connection.executemany(
        "INSERT INTO documents (number, session, seq, time, text) VALUES (?, ?, ?, ?, ?)",
        [(n, s, d.text.seq, min(d.text.time, _LATEST), d.text.text) for n, s, d in rows],
    )
    connection.executemany(
        "INSERT INTO texts (rowid, words, parts) VALUES (?, ?, ?)",
        [(number, document.words, document.parts) for number, _, document in rows],
    )


def _last_between(connection: apsw.Connection, first: int, end: int) -> int | None:
    last: int | None = connection.execute(
        "SELECT max(number) FROM documents WHERE number >= ? AND number < ?", (first, end)
    ).get
    return last


def _flags(document: Document) -> int:
    return ROLES.index(document.text.role) | (INHERITED if document.inherited else 0)


def _list(ids: Collection[str]) -> str:
    return json.dumps(list(ids))
