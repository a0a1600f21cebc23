"""The lines of a reference log after its header: events, and packed runs that stand for several."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import msgspec

from heald_transfer.arrivals import Unfit

CHUNK = "assistant/chunk"
"""The type of a stream chunk, and so of every event that a packed run stands for."""

_RUNS = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
"""Packed runs, and the member that has one entry for each event of theirs."""


class ReferenceEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An event as the reference system stores it."""

    type: str
    seq: int
    time: int
    data: Any = None
    surface_op: Any = None
    source_event_seqs: tuple[int, ...] = ()


class _Run(msgspec.Struct, frozen=True):
    """A packed run of stream chunks; `dt` has the milliseconds between them."""

    type: str
    seq0: int
    time0: int
    data: dict[str, Any]


def events_of(line: bytes, seq: int) -> Iterator[ReferenceEvent]:
    """Yield what a line holds, which begins at event `seq`; raises `Unfit`."""
    found = _decoded(line, seq)
    try:
        if found.get("type") in _RUNS and "seq0" in found:
            yield from _unpacked(msgspec.convert(found, _Run))
        else:
            yield msgspec.convert(found, ReferenceEvent)
    except msgspec.ValidationError as error:
        raise Unfit(f"the line of event {seq} cannot be read ({error})") from error


def _decoded(line: bytes, seq: int) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _decoded_loosely(line, seq)
    if not isinstance(found, dict):
        raise Unfit(f"the line of event {seq} is no object")
    return found


def _decoded_loosely(line: bytes, seq: int) -> Any:
    """Decode a line with half a surrogate pair, which no file of ours holds: it becomes U+FFFD."""
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False, allow_nan=False)
        return msgspec.json.decode(
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise Unfit(f"the line of event {seq} cannot be read ({error})") from error


def _unpacked(run: _Run) -> Iterator[ReferenceEvent]:
    member = _RUNS[run.type]
    parts, waits = run.data.get(member), run.data.get("dt")
    if not isinstance(parts, list) or not isinstance(waits, list) or len(waits) + 1 != len(parts):
        raise Unfit(f"the packed run at event {run.seq0} does not fit together")
    if not all(type(wait) is int for wait in waits):
        raise Unfit(f"the packed run at event {run.seq0} has times that are none")
    facts = {name: value for name, value in run.data.items() if name not in (member, "dt")}
    kind = run.type.removesuffix("s")
    for n, (part, time) in enumerate(zip(parts, accumulate(waits, initial=run.time0), strict=True)):
        yield ReferenceEvent(CHUNK, run.seq0 + n, time, {**facts, "type": kind, "part": part})
