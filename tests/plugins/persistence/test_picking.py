"""Reading a few types out of whole frames gives what decoding everything gives."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald_persistence.local import LocalPersistence
from heald_persistence.picking import lines_naming
from heald_persistence.testing import make_header
from heald_session import Event, LogOffset, Seq, SessionId

ONE = SessionId("one")
TYPES = ["acme/rare", "acme/rarely", 'acme/"quoted"', "acme/brötchen", "acme/usual"]
TEXT = st.text(max_size=20) | st.sampled_from(['"acme/rare"', '{"type":"acme/rare"}', "acme/rare"])


def line(event: Event, *, escaped: bool = False) -> bytes:
    """Return an event's line, with escapes that its type does not need if asked for."""
    body = msgspec.json.encode(event)[:-1]
    if escaped:
        name = event.type.replace("/", r"\/")
        body = body.replace(json.dumps(event.type).encode(), f'"{name}"'.encode(), 1)
    return b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body))


def event(seq: int, name: str, text: str) -> Event:
    return Event(Seq(seq), name, 1, msgspec.Raw(msgspec.json.encode({"text": text})))


@given(
    st.lists(st.tuples(st.sampled_from(TYPES), TEXT), min_size=1, max_size=40),
    st.sets(st.sampled_from(TYPES), min_size=1),
)
def test_the_lines_found_by_name_have_every_event_of_the_types(
    logged: list[tuple[str, str]], wanted: set[str]
) -> None:
    events = [event(seq, name, text) for seq, (name, text) in enumerate(logged)]
    raw = b"".join(map(line, events))
    found = lines_naming(raw, wanted, 1_000)
    assert found is not None
    seqs = [msgspec.json.decode(one, type=Event) for one in found.splitlines()]
    assert [one.seq for one in seqs if one.type in wanted] == [
        one.seq for one in events if one.type in wanted
    ]


def test_many_lines_are_not_looked_for_one_by_one() -> None:
    raw = b"".join(line(event(seq, "acme/usual", "")) for seq in range(16))
    assert lines_naming(raw, ["acme/usual"], 16) is None


@pytest.mark.parametrize("escaped", [False, True])
async def test_a_type_is_found_however_another_program_wrote_it(
    make_backend: Callable[..., LocalPersistence], root: Path, *, escaped: bool
) -> None:
    backend = make_backend(seal_bytes=4000)
    writer = await backend.create(make_header(), LogOffset(0))
    writer.append([event(0, "acme/usual", "")])
    await writer.close()
    with (root / ONE / "tail.jsonl").open("ab") as tail:
        tail.write(line(event(1, "acme/rare", "found"), escaped=escaped))
    writer = await backend.open(ONE)
    writer.append([event(seq, "acme/usual", "x" * 90) for seq in range(2, 60)])
    await writer.close()
    async with await backend.read(ONE) as log:
        rare = [e async for batch in log.batches(types=["acme/rare"]) for e in batch]
        assert [(e.seq, e.data) for e in rare] == [(1, {"text": "found"})]
