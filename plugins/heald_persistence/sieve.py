"""Takes the good lines out of a part of a log, and says what is lost between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal

import attrs

from heald_persistence.contracts import Damage
from heald_persistence.errors import SessionDamaged
from heald_persistence.lines import BadLine, event_of
from heald_session import Event, LogOffset

Part = list[Event] | Damage
"""What reading yields: events in order, and what stands between them."""


@attrs.define
class Sieve:
    """Where in the log a run of lines is, and what was wrong since the last good one."""

    file: str
    next: int
    """The seq that the next good line should have."""
    kind: Literal["frame", "line", "missing"] = "line"
    types: frozenset[str] | None = None
    limit: int | None = None
    """The offset that the run ends at, if it is known."""
    reason: str | None = None
    """Why events may be missing with nothing wrong in their place."""
    _fault: tuple[int, str] | None = None

    def take(self, offset: int, line: bytes) -> list[Damage | Event]:
        """Return the event of a line, and before it what was lost since the last."""
        try:
            event = event_of(line)
        except BadLine as error:
            self.spoil(offset, str(error))
            return []
        lost = event.seq - self.next
        if lost < 0 or (self.limit is not None and event.seq >= self.limit):
            self.spoil(offset, f"it has seq {event.seq}")
            return []
        found: list[Damage | Event] = []
        if lost or self._fault is not None:
            found.append(self._lost(offset, lost))
        self.next = event.seq + 1
        return [*found, event]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was wrong since the last good line."""
        return self._fault is None

    def spoil(self, offset: int, reason: str) -> None:
        """Note that something is wrong here; the first of a run counts."""
        if self._fault is None:
            self._fault = offset, reason

    def end(self, offset: int) -> Damage | None:
        """Return what is lost, or wrong, at the end of the run."""
        lost = None if self.limit is None else self.limit - self.next
        if self._fault is None and not lost:
            return None
        return self._lost(offset, lost)

    def _lost(self, offset: int, count: int | None) -> Damage:
        kind: Literal["frame", "line", "missing"] = self.kind
        if self._fault is None:
            self._fault = (offset, self.reason or "events are missing before it")
            kind = kind if self.reason else "missing"
        (offset, reason), self._fault = self._fault, None
        first = LogOffset(self.next)
        return Damage(
            kind=kind,
            file=self.file,
            offset=offset,
            first=first,
            count=count,
            types=self.types,
            reason=reason,
        )


def sift(sieve: Sieve, lines: Iterable[tuple[int, bytes]]) -> Iterator[Part]:
    """Yield the events of lines in batches, with the damage between them."""
    batch: list[Event] = []
    for offset, line in lines:
        for found in sieve.take(offset, line):
            if isinstance(found, Event):
                batch.append(found)
            else:
                if batch:
                    yield batch
                batch = []
                yield found
    if batch:
        yield batch


def concerns(damage: Damage, start: int, stop: int | None, wanted: Collection[str] | None) -> bool:
    """Say whether what is lost may have been among what is wanted."""
    if damage.count == 0:
        return False
    end = None if damage.count is None else damage.first + damage.count
    if (stop is not None and damage.first >= stop) or (end is not None and end <= start):
        return False
    return wanted is None or damage.types is None or not damage.types.isdisjoint(wanted)


def error_of(id: str, damage: Damage) -> SessionDamaged:  # noqa: A002
    """Make the error of a damage."""
    where = f"{damage.file} at byte {damage.offset}"
    if damage.count == 0:
        return SessionDamaged(id, f"{where}: {damage.reason}")
    if damage.count is None:
        lost = f"event {damage.first} and what follows"
    elif damage.count == 1:
        lost = f"event {damage.first}"
    else:
        lost = f"events {damage.first} to {damage.first + damage.count - 1}"
    return SessionDamaged(id, f"{lost}: {where}: {damage.reason}")
