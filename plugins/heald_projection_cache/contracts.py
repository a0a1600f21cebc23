"""What the checkpoint store is to everyone else."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import attrs

from heald import CancelToken
from heald_projection import CellState, Snapshot
from heald_session import Event, Header, LogOffset, Session, SessionId, after


def witness_of(event: Event) -> str:
    """Return a short checksum of an event: what proves that a log still holds it."""
    digest = hashlib.blake2b(f"{event.seq} {event.time} {event.type} ".encode(), digest_size=12)
    digest.update(event.encoded)
    return digest.hexdigest()


@attrs.frozen
class Checkpoint:
    """States of one log that were all folded up to one offset."""

    offset: LogOffset
    witness: str
    """`witness_of` the last event before the offset."""
    states: tuple[CellState, ...]

    def follows(self, event: Event) -> bool:
        """Say whether `event` is the very event that the states were folded up to."""
        return after(event.seq) == self.offset and witness_of(event) == self.witness


class ProjectionCache(Protocol):
    """Keeps projection states of stored sessions; always optional, possibly stale."""

    async def cached_snapshot(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Snapshot | None:
        """Return views at the highest offset kept for exactly this log, reading no log.

        None if nothing is kept; a key that is not kept is absent.
        """
        ...

    async def cached_snapshots(
        self,
        logs: Sequence[tuple[Header, LogOffset]],
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Mapping[SessionId, Snapshot]:
        """Do what `cached_snapshot` does for many logs at once; those without are absent."""
        ...

    async def checkpoint(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Checkpoint | None:
        """Return states to base a fold on, None if nothing is kept for exactly this log.

        Whoever bases a fold on it first compares it with the log: it must not be beyond the end,
        and must follow the event before its offset. If it does not, `drop` it.
        """
        ...

    async def drop(self, header: Header, checkpoint: Checkpoint) -> None:
        """Forget states that a log was seen not to bear out; never raises."""
        ...

    async def save(self, session: Session) -> None:
        """Keep the states of a live session, up to what is durable; never raises."""
        ...
