"""Names of events and gaps between events do not mix: each marked line must be refused.

Read by mypy, which reports an ignore that nothing needs; never run.
"""

from __future__ import annotations

from typing import assert_type

from heald_session import LogOffset, Seq, Session, after, before


async def kept_apart(session: Session, seq: Seq, offset: LogOffset) -> None:
    session.is_own(seq)
    session.is_own(offset)  # type: ignore[arg-type]
    session.is_own(3)  # type: ignore[arg-type]

    session.hot(offset)
    session.hot(seq)  # type: ignore[arg-type]
    session.hot(3)  # type: ignore[arg-type]

    session.read(before(seq), after(seq))
    session.read(seq)  # type: ignore[arg-type]
    session.read(offset, seq)  # type: ignore[arg-type]

    seq = offset  # type: ignore[assignment]
    offset = seq  # type: ignore[assignment]
    offset = 3  # type: ignore[assignment]

    session.append("acme/note", {}, sources=(seq,))
    session.append("acme/note", {}, sources=(offset,))  # type: ignore[arg-type]


async def told_apart_where_they_come_from(session: Session, seq: Seq, offset: LogOffset) -> None:
    assert_type(before(seq), LogOffset)
    assert_type(after(seq), LogOffset)
    before(offset)  # type: ignore[arg-type]
    after(offset)  # type: ignore[arg-type]

    assert_type(session.cut, LogOffset)
    assert_type(session.end, LogOffset)
    assert_type(session.flushed, LogOffset)
    assert_type(session.hot_from, LogOffset)
    for event in session.hot():
        assert_type(event.seq, Seq)
