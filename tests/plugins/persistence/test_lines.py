"""Lines that are right are decoded all at once, and give what they give one by one."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald_persistence.lines import BadLine, event_of, line_of, whole_events_of
from heald_persistence.testing import make_events

LINES = [line_of(event) for event in make_events(6, start=3)]
RAW = b"".join(LINES)


def test_whole_lines_are_decoded() -> None:
    found = whole_events_of(RAW, 3)
    assert found is not None
    assert [event.seq for event in found] == [3, 4, 5, 6, 7, 8]


@given(st.lists(st.sampled_from(LINES), max_size=8), st.integers(2, 5))
def test_lines_that_are_missing_doubled_or_moved_are_not_taken_for_whole(
    lines: list[bytes], first: int
) -> None:
    seqs = [event_of(line).seq for line in lines]
    found = whole_events_of(b"".join(lines), first)
    assert (found is not None) == (seqs == [*range(first, first + len(lines))])


@given(st.data())
def test_no_changed_byte_goes_unnoticed(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(RAW) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != RAW[place]))
    changed = RAW[:place] + bytes([byte]) + RAW[place + 1 :]
    assert whole_events_of(changed, 3) is None


@given(st.integers(0, len(RAW)))
def test_a_torn_line_is_not_taken_for_whole(length: int) -> None:
    torn = RAW[:length]
    found = whole_events_of(torn, 3)
    ends = {sum(map(len, LINES[:count])) for count in range(len(LINES) + 1)}
    assert (found is not None) == (length in ends)


def test_a_line_whose_checksum_is_right_and_that_is_no_event_is_not_taken_for_one() -> None:
    body = LINES[0][: LINES[0].rindex(b',"sum"')].replace(b'"seq"', b'"sea"')
    line = b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body))
    assert whole_events_of(line, 3) is None
    with pytest.raises(BadLine) as bad:
        event_of(line)
    assert bad.value.intact
