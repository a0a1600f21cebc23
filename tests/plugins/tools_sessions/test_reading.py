"""What a model gets when it reads events of a session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heald_session import session_store

if TYPE_CHECKING:
    from tests.plugins.tools_sessions.conftest import OpenArchive

CUT = "…"


def seqs(lines: list[str]) -> list[int]:
    return [int(line[:5]) for line in lines if re.match(r" *\d+  ", line[:7])]


async def test_a_session_is_read_from_its_beginning_to_its_end(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom/warp", "wind\nthe bobbin")
        lines = await archive.told("read_session", session="old")
        assert lines[0] == "session old in /loom/warp"
        assert seqs(lines) == [0, 1, 2]
        assert [line for line in lines if line.startswith(" " * 8)] == [
            "        wind",
            "        the bobbin",
        ]
        assert "user/message" in lines[2]
        assert lines[-1] == "[the end: 3 events]"


async def test_a_part_says_how_to_go_on(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", *map(str, range(8)))
        lines = await archive.told("read_session", session="old", limit=4)
        assert seqs(lines) == [0, 1, 2, 3]
        assert lines[-1] == "[events 0 to 3 of 10; go on with start=4]"
        lines = await archive.told("read_session", session="old", start=4, limit=4)
        assert seqs(lines) == [4, 5, 6, 7]
        lines = await archive.told("read_session", session="old", start=8)
        assert (seqs(lines), lines[-1]) == ([8, 9], "[the end: 10 events]")


@pytest.mark.parametrize(
    ("around", "limit", "shown"),
    [(5, 4, [3, 4, 5, 6]), (0, 4, [0, 1, 2, 3]), (9, 4, [7, 8, 9]), (5, 1, [5])],
)
async def test_what_stands_around_an_event_is_shown(
    open_archive: OpenArchive, around: int, limit: int, shown: list[int]
) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", *map(str, range(8)))
        lines = await archive.told("read_session", session="old", around=around, limit=limit)
        assert seqs(lines) == shown


async def test_a_negative_start_counts_from_the_end(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", *map(str, range(8)))
        assert seqs(await archive.told("read_session", session="old", start=-2)) == [8, 9]
        lines = await archive.told("read_session", session="old", start=-99, limit=2)
        assert seqs(lines) == [0, 1]


async def test_the_beginning_of_an_id_is_enough_if_only_one_fits(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        await archive.keep("abc", "/loom")
        await archive.keep("abd", "/loom")
        lines = await archive.told("read_session", session="abc")
        assert lines[0] == "session abc in /loom"
        result = await archive.call("read_session", session="ab")
        assert result.is_error
        assert result.text.startswith("SESSION_ID_AMBIGUOUS: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"start": 3}, "session old has 3 events; there is none at 3"),
        ({"around": 7}, "session old has 3 events; there is none at 7"),
        ({"around": 1, "start": 1}, "exclude each other"),
        ({"limit": 101}, "Invalid arguments"),
    ],
)
async def test_what_cannot_be_read_is_an_error_that_says_why(
    open_archive: OpenArchive, arguments: dict[str, int], says: str
) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", "x")
        result = await archive.call("read_session", session="old", **arguments)
        assert result.is_error
        assert says in result.text


async def test_a_long_event_is_cut_and_more_of_it_is_shown_alone(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", "x" * 20_000, "short", "y" * 200_000)
        lines = await archive.told("read_session", session="old")
        assert sum(map(len, lines)) < 10_000
        assert lines[-2] == (
            f"[cut, where `{CUT}` ends them: 1, 3; start=SEQ with limit=1 shows more of one]"
        )
        alone = await archive.told("read_session", session="old", start=1, limit=1)
        assert "x" * 20_000 in alone[2]
        assert not any(line.startswith("[cut") for line in alone)
        alone = await archive.told("read_session", session="old", start=3, limit=1)
        assert 30_000 < sum(map(len, alone)) < 31_000


async def test_what_does_not_fit_is_left_for_the_next_part(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", *(f"{n} " + "x" * 3_000 for n in range(30)))
        seen: list[int] = []
        start: int | None = 0
        while start is not None:
            lines = await archive.told("read_session", session="old", start=start, limit=100)
            assert sum(map(len, lines)) < 31_000
            seen += seqs(lines)
            found = re.search(r"start=(\d+)\]$", lines[-1])
            start = int(found[1]) if found else None
        assert seen == list(range(32))


async def test_a_gap_is_shown_in_its_place(open_archive: OpenArchive, heald_home: Path) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", "the warp", "the weft")
        tail = heald_home / "sessions" / "old" / "tail.jsonl"
        tail.write_bytes(tail.read_bytes().replace(b"the warp", b"the_warp"))
        lines = await archive.told("read_session", session="old")
        assert seqs(lines) == [0, 2, 3]
        assert "1 event from 1 on cannot be read" in lines[2]


async def test_a_live_session_is_read_as_it_is(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        store = archive.host.scope.require(session_store)
        other = await store.create(cwd="/loom")
        other.append("turn/start", {"turn": 1})
        lines = await archive.told("read_session", session=other.id)
        assert seqs(lines) == [0]
