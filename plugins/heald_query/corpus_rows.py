"""The rows of stored sessions: what their headers said when they were read last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw
import attrs
import msgspec

from heald_persistence import StoredSession
from heald_query.contracts import SessionRecord
from heald_session import Header, LogOffset, SessionId
from heald_sqlite import Schema

SCHEMA = Schema(
    name="corpus",
    version=1,
    application_id=0x48454C51,
    script="""
CREATE TABLE sessions (
    name TEXT NOT NULL PRIMARY KEY,
    stamp TEXT NOT NULL,
    header TEXT NOT NULL,
    cut INTEGER
) WITHOUT ROWID
""",
)


@attrs.frozen
class Kept:
    """One stored session as it was when it was looked at last."""

    record: SessionRecord
    cut: LogOffset | None
    stamp: str | None
    """What storage is asked with whether it is still so; without one it is read again."""

    @classmethod
    def of(cls, stored: StoredSession) -> Kept:
        """Return what is kept of a stored session."""
        record = SessionRecord(
            SessionId(stored.name), stored.header, live=False, stored=True, problem=stored.problem
        )
        return cls(record, stored.cut, stored.stamp)

    @property
    def lasts(self) -> bool:
        """Whether it is worth a row: what is read again anyway is not."""
        return self.stamp is not None and self.record.header is not None


_decoder = msgspec.json.Decoder(Header)


def read(connection: apsw.Connection) -> dict[str, Kept]:
    """Return every row that makes sense."""
    kept = {}
    for name, stamp, header, cut in connection.execute("SELECT * FROM sessions"):
        try:
            facts = _decoder.decode(header)
        except (msgspec.MsgspecError, TypeError):
            continue  # which costs reading that session again
        record = SessionRecord(SessionId(name), facts, live=False, stored=True)
        kept[name] = Kept(record, None if cut is None else LogOffset(cut), stamp)
    return kept


def write(connection: apsw.Connection, changes: Mapping[str, Kept | None]) -> None:
    """Put rows in place of those with the same names; those that do not last go."""
    going = [(name,) for name, kept in changes.items() if kept is None or not kept.lasts]
    connection.executemany("DELETE FROM sessions WHERE name = ?", going)
    coming = (kept for kept in changes.values() if kept is not None and kept.lasts)
    connection.executemany("REPLACE INTO sessions VALUES (?, ?, ?, ?)", _rows(coming))


def _rows(coming: Iterable[Kept]) -> list[tuple[str, str | None, str, int | None]]:
    return [
        (kept.record.id, kept.stamp, msgspec.json.encode(kept.record.header).decode(), kept.cut)
        for kept in coming
    ]
