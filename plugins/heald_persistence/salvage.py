"""Examines stored logs, and makes damaged ones writable again from what can be read of them.

Salvaging writes a whole new log and a whole new tail beside the old. Then the old tail is taken
away, so that no reader can take one for the other's; the new log gets its name, and last the new
tail. The old files have other names under ``quarantine/`` before anything is taken away. If it is
cut short between, the tail is missing, and the next time goes on from there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs
import msgspec

from heald import CancelToken, raise_if_cancelled
from heald_persistence import disk
from heald_persistence.contracts import Damage
from heald_persistence.directory import Directory
from heald_persistence.errors import SessionDamaged
from heald_persistence.index import Region, encode_index, write_index
from heald_persistence.layout import Facts, Place, own_facts
from heald_persistence.lines import TailHeader, line_of
from heald_persistence.reading import LocalLog
from heald_persistence.sealing import blocks_of, regions_of
from heald_session import Event, LogOffset, Seq, SessionId

LOST = "event/lost"
"""The type of the events that stand in the places of lost ones, so that every seq stays true."""
_AT_WORK = ".salvage-"
_DONE = "salvage-"


def examine(place: Place, id: SessionId, cancel: CancelToken | None) -> list[Damage]:  # noqa: A002
    """Return what is wrong with a stored session; blocks. Raises `SessionNotFound`."""
    with Directory.of(place.path, id) as directory:
        try:
            facts = own_facts(directory, id)
        except SessionDamaged as error:
            return [_header_damage(error.reason)]
        with contextlib.closing(LocalLog.open(directory, facts)) as log:
            return [*_damage_of(log, cancel)]


@attrs.frozen
class Salvage:
    """Replaces the files of one session; its lease is held. Every method blocks."""

    place: Place
    facts: Facts
    aim: int
    now: int

    def run(self) -> list[Damage]:
        """Return what was wrong and is no more; raises `OSError`, and then the log is as it was."""
        for left in self.place.leavings():
            left.unlink(missing_ok=True)
        kept = self._interrupted()
        with (
            Directory(kept or self.place.path) as files,
            Directory(self.place.path) as blobs,
            contextlib.closing(LocalLog.open(files, self.facts, blobs)) as log,
        ):
            found = [*_damage_of(log, None)]
            if not found and kept is None:
                return []
            rescue = Rescue(self.place, self.facts, self.aim)
            regions = rescue.write(log)
        self._replace(rescue, regions, kept or self._keep())
        return found

    def _interrupted(self) -> Path | None:
        """Return where an earlier salvage that did not end keeps the files; forget one that did."""
        for kept in self.place.quarantine.glob(_AT_WORK + "*"):
            if not self.place.tail.exists() and (kept / self.place.tail.name).exists():
                return kept
            self._name(kept)
        return None

    def _keep(self) -> Path:
        """Give the files that are to be replaced other names."""
        if not self.place.quarantine.exists():
            disk.make_directory(self.place.quarantine)
            disk.sync_directory(self.place.path)
        kept = self.place.quarantine / f"{_AT_WORK}{self.now}-{secrets.token_hex(4)}"
        disk.make_directory(kept)
        for path in (self.place.facts, self.place.log, self.place.index, self.place.tail):
            if path.exists():
                _link(path, kept / path.name)
        disk.sync_directory(kept)
        disk.sync_directory(self.place.quarantine)
        return kept

    def _replace(self, rescue: Rescue, regions: list[Region], kept: Path) -> None:
        self.place.index.unlink(missing_ok=True)
        self.place.tail.unlink(missing_ok=True)
        disk.sync_directory(self.place.path)
        if regions:
            disk.rename(rescue.log, self.place.log)
        else:
            self.place.log.unlink(missing_ok=True)
            rescue.log.unlink()
        disk.sync_directory(self.place.path)
        disk.rename(rescue.tail, self.place.tail)
        disk.sync_directory(self.place.path)
        with contextlib.suppress(OSError):
            write_index(self.place.index, encode_index(regions, self.facts.header.log_id))
        self._name(kept)

    def _name(self, kept: Path) -> None:
        disk.rename(kept, kept.with_name(_DONE + kept.name.removeprefix(_AT_WORK)))
        disk.sync_directory(self.place.quarantine)


class Rescue:
    """A new log and a new tail, written beside those that they will replace."""

    def __init__(self, place: Place, facts: Facts, aim: int) -> None:
        nonce = secrets.token_hex(4)
        self.log = place.path / f".log.jsonl.zst.{nonce}"
        self.tail = place.path / f".tail.jsonl.{nonce}"
        self._facts = facts
        self._aim = aim

    def write(self, log: LocalLog) -> list[Region]:
        """Write what can be read of a log; return the regions of the new one."""
        regions: list[Region] = []
        waiting: list[bytes] = []
        size = place = 0
        fd = disk.create(self.log)
        try:
            for line in rescued_lines(log, self._facts):
                waiting.append(line)
                size += len(line)
                if size >= self._aim:
                    blocks, rest = blocks_of(waiting, self._aim)
                    waiting, size = [*rest], sum(map(len, rest))
                    regions += regions_of(blocks, place)
                    place = regions[-1].stop if regions else 0
                    disk.write(fd, b"".join(block.stored for block in blocks))
            disk.sync(fd)
        finally:
            os.close(fd)
        base = regions[-1].end if regions else 0
        header = TailHeader(self._facts.header.log_id, base, place)
        disk.write_file(self.tail, line_of(header) + b"".join(waiting))
        return regions


def rescued_lines(log: LocalLog, facts: Facts) -> Iterator[bytes]:
    """Yield a line for every event of a log, in the place of a lost one a line that says so."""
    seq, time = 0, facts.header.created_at
    for part in log.parts():
        if isinstance(part, Damage):
            for lost in range(max(seq, part.first), part.first + (part.count or 0)):
                yield line_of(_lost(lost, time, part))
                seq = lost + 1
            continue
        for event in part:
            if event.seq != seq:
                continue
            (whole,) = log.filled(event)
            yield line_of(_lost(seq, event.time, whole) if isinstance(whole, Damage) else event)
            seq, time = event.seq + 1, event.time


def _lost(seq: int, time: int, damage: Damage) -> Event:
    data = {"file": damage.file, "offset": damage.offset, "reason": damage.reason}
    return Event(Seq(seq), LOST, time, msgspec.Raw(msgspec.json.encode(data)))


def _damage_of(log: LocalLog, cancel: CancelToken | None) -> Iterator[Damage]:
    for part in log.examined():
        raise_if_cancelled(cancel)
        if isinstance(part, Damage):
            yield part


def _header_damage(reason: str) -> Damage:
    return Damage(
        kind="header",
        file="session.json",
        offset=0,
        first=LogOffset(0),
        count=None,
        types=None,
        reason=reason,
    )


def _link(old: Path, new: Path) -> None:
    try:
        disk.link(old, new)
    except OSError:  # a file system without links
        shutil.copyfile(old, new)
        fd = disk.append_to(new)
        try:
            disk.sync(fd)
        finally:
            os.close(fd)
