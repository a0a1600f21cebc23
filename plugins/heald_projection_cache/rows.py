"""The rows of checkpoints: written all together, never backwards, read for exactly one log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import apsw
import attrs
import msgspec

from heald_projection import CellState
from heald_projection_cache.contracts import Checkpoint
from heald_session import Header, LogOffset, SessionId
from heald_sqlite import Schema

SCHEMA = Schema(
    name="checkpoints",
    version=2,
    application_id=0x48454C43,
    script="""
CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    identity TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    witness TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE states (
    session_id TEXT NOT NULL,
    key TEXT NOT NULL,
    state_version INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session_id, key)
) WITHOUT ROWID;
""",
)
"""A session's states are all of its one offset, so a value that did not change stays as it is."""

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


@attrs.frozen
class LogIdentity:
    """Which log states belong to: a session's id names a slot, and another log may fill it."""

    session_id: SessionId
    facts: str

    @classmethod
    def of(cls, header: Header, cut: LogOffset) -> LogIdentity:
        """Return the identity of a log with this header and this cut."""
        facts = (
            header.version,
            header.log_id,
            header.created_at,
            header.cwd,
            header.is_seeded,
            cut,
        )
        return cls(header.id, _ENCODER.encode(facts).decode())


@attrs.frozen
class Row:
    """One kept state, not decoded yet."""

    key: str
    state_version: int
    value: str

    def state(self, offset: LogOffset) -> CellState | None:
        """Return the state, or None if the value is not JSON."""
        try:
            return CellState(self.key, self.state_version, offset, _DECODER.decode(self.value))
        except (msgspec.DecodeError, TypeError, RecursionError):
            return None


@attrs.frozen
class Kept:
    """What is kept for one log: rows that are all of one offset."""

    log: LogIdentity
    offset: LogOffset
    witness: str
    rows: tuple[Row, ...]

    def checkpoint(self, keys: Collection[str]) -> Checkpoint:
        """Return the states of these keys that can be read."""
        states = (row.state(self.offset) for row in self.rows if row.key in keys)
        return Checkpoint(self.offset, self.witness, tuple(s for s in states if s is not None))


_SESSION = """
INSERT INTO sessions VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    identity = excluded.identity, "offset" = excluded."offset", witness = excluded.witness
WHERE (identity, "offset", witness) <> (excluded.identity, excluded."offset", excluded.witness)
"""

_STATE = """
INSERT INTO states VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET state_version = excluded.state_version, value = excluded.value
WHERE (state_version, value) <> (excluded.state_version, excluded.value)
"""

_VALUE = """(
    SELECT value FROM states WHERE session_id = s.session_id AND key = ? AND state_version = ?
)"""


def write(connection: apsw.Connection, log: LogIdentity, checkpoint: Checkpoint) -> None:
    """Move a session to a checkpoint whole, unless a newer one of the same versions is kept.

    What the checkpoint does not have is forgotten: it is not of that offset.
    """
    rows = [Row(s.key, s.state_version, _encoded(s.state)) for s in checkpoint.states]
    if _is_newer(connection, log, checkpoint.offset, rows):
        return
    connection.execute(_SESSION, (log.session_id, log.facts, checkpoint.offset, checkpoint.witness))
    connection.execute(
        "DELETE FROM states WHERE session_id = ? AND key NOT IN (SELECT value FROM json_each(?))",
        (log.session_id, _encoded([row.key for row in rows])),
    )
    connection.executemany(
        _STATE, [(log.session_id, row.key, row.state_version, row.value) for row in rows]
    )


def values(
    connection: apsw.Connection, logs: Iterable[LogIdentity], versions: Mapping[str, int]
) -> Iterator[tuple[SessionId, LogOffset, Sequence[str | None]]]:
    """Yield the offset that is kept for exactly each log, and the values of these keys.

    Every value of a session is a column, since rows cost more to fetch than anything else here.
    """
    facts = {log.session_id: log.facts for log in logs}
    columns = "".join(f", {_VALUE}" for _ in versions)
    query = (
        f'SELECT s.session_id, s.identity, s."offset"{columns}'  # noqa: S608 - of our own words
        " FROM json_each(?) AS wanted JOIN sessions AS s ON s.session_id = wanted.value"
    )
    wanted = _encoded(list(facts))
    for id_, identity, offset, *found in connection.execute(
        query, (*chain.from_iterable(versions.items()), wanted)
    ):
        if facts[id_] == identity:
            yield id_, offset, found


def kept_ids(connection: apsw.Connection) -> list[SessionId]:
    """Return every session that something is kept for."""
    query = "SELECT session_id FROM sessions ORDER BY session_id"
    return [SessionId(id_) for (id_,) in connection.execute(query)]


def kept_for(connection: apsw.Connection, id: SessionId) -> Kept | None:  # noqa: A002
    """Return all that is kept for a session, whichever log it is of."""
    query = 'SELECT identity, "offset", witness FROM sessions WHERE session_id = ?'
    session = connection.execute(query, (id,)).fetchone()
    if session is None:
        return None
    facts, offset, witness = session
    query = "SELECT key, state_version, value FROM states WHERE session_id = ?"
    rows = tuple(Row(*row) for row in connection.execute(query, (id,)))
    return Kept(LogIdentity(id, facts), LogOffset(offset), witness, rows)


def forget(connection: apsw.Connection, id: SessionId, checkpoint: Checkpoint) -> None:  # noqa: A002
    """Remove the rows of a checkpoint, and nothing that was written since."""
    connection.execute(
        'DELETE FROM sessions WHERE session_id = ? AND "offset" = ? AND witness = ?',
        (id, checkpoint.offset, checkpoint.witness),
    )
    if connection.changes():
        connection.execute("DELETE FROM states WHERE session_id = ?", (id,))


def forget_session(connection: apsw.Connection, id: SessionId) -> None:  # noqa: A002
    """Remove everything that is kept for a session."""
    for table in ("sessions", "states"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (id,))  # noqa: S608


def _is_newer(
    connection: apsw.Connection, log: LogIdentity, offset: LogOffset, rows: Iterable[Row]
) -> bool:
    """Say whether what is kept is newer and stays; what is of another version of it does not."""
    found = kept_for(connection, log.session_id)
    if found is None or found.log != log or found.offset <= offset:
        return False
    versions = {row.key: row.state_version for row in rows}
    other = [r.key for r in found.rows if versions.get(r.key, r.state_version) != r.state_version]
    connection.executemany(
        "DELETE FROM states WHERE session_id = ? AND key = ?",
        [(log.session_id, key) for key in other],
    )
    return len(other) < len(found.rows)


def _encoded(value: Any) -> str:
    return _ENCODER.encode(value).decode()
