"""The rows of checkpoints: written all together, never backwards, read for exactly one log."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import apsw
import attrs
import msgspec

from heald_projection import CellState
from heald_projection_cache.contracts import Checkpoint
from heald_session import Header, LogOffset, SessionId


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
        return cls(header.id, msgspec.json.encode(facts).decode())


_UPSERT = """
INSERT INTO checkpoints (session_id, key, identity, state_version, "offset", witness, value)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id, key) DO UPDATE SET
    identity = excluded.identity, state_version = excluded.state_version,
    "offset" = excluded."offset", witness = excluded.witness, value = excluded.value
WHERE identity <> excluded.identity OR state_version <> excluded.state_version
    OR "offset" <= excluded."offset"
"""

_HIGHEST = """
SELECT "offset", witness, key, state_version, value FROM checkpoints
WHERE session_id = ?1 AND identity = ?2 AND "offset" =
    (SELECT max("offset") FROM checkpoints WHERE session_id = ?1 AND identity = ?2)
"""


def write(
    connection: apsw.Connection,
    log: LogIdentity,
    checkpoint: Checkpoint,
    faulted: Collection[str],
) -> None:
    """Move a session's rows to a checkpoint, and forget what is of another log or faulted."""
    connection.execute(
        "DELETE FROM checkpoints WHERE session_id = ? AND identity <> ?",
        (log.session_id, log.facts),
    )
    connection.executemany(
        "DELETE FROM checkpoints WHERE session_id = ? AND key = ?",
        [(log.session_id, key) for key in faulted],
    )
    connection.executemany(_UPSERT, list(_rows(log, checkpoint)))


def highest(
    connection: apsw.Connection, log: LogIdentity, keys: Collection[str]
) -> Checkpoint | None:
    """Return the selected states at the highest offset that is kept for a log."""
    rows = list(connection.execute(_HIGHEST, (log.session_id, log.facts)))
    if not rows:
        return None
    offset, witness = LogOffset(rows[0][0]), rows[0][1]
    states = (
        _state(key, version, offset, value) for _, _, key, version, value in rows if key in keys
    )
    return Checkpoint(offset, witness, tuple(state for state in states if state is not None))


def forget(connection: apsw.Connection, id: SessionId, checkpoint: Checkpoint) -> None:  # noqa: A002
    """Remove the rows of a checkpoint, and nothing that was written since."""
    connection.execute(
        'DELETE FROM checkpoints WHERE session_id = ? AND "offset" = ? AND witness = ?',
        (id, checkpoint.offset, checkpoint.witness),
    )


def _rows(
    log: LogIdentity, checkpoint: Checkpoint
) -> Iterator[tuple[str, str, str, int, int, str, str]]:
    for state in checkpoint.states:
        value = msgspec.json.encode(state.state).decode()
        yield (
            log.session_id,
            state.key,
            log.facts,
            state.state_version,
            checkpoint.offset,
            checkpoint.witness,
            value,
        )


def _state(key: str, version: int, offset: LogOffset, value: str) -> CellState | None:
    try:
        return CellState(key, version, offset, msgspec.json.decode(value))
    except (msgspec.DecodeError, TypeError):
        return None
