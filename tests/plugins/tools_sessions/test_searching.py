"""What a model finds when it searches sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heald_session import SessionId, TurnContext, session_store

if TYPE_CHECKING:
    from tests.plugins.tools_sessions.conftest import OpenArchive

NOTHING = ["(nothing found)"]
HOW_TO_READ = "[read_session with session=ID and around=SEQ shows what stands around a hit]"
MORE = "[there are more: add words, or raise limit]"
DAY = 86_400_000


async def test_the_model_is_shown_three_tools_that_say_what_everything_is_for(
    open_archive: OpenArchive,
) -> None:
    async with open_archive() as archive:
        await archive.call("session_lineage")
        context = archive.agent.session.context()
        assert isinstance(context, TurnContext)
        assert [tool.name for tool in context.tools] == [
            "search_sessions",
            "read_session",
            "session_lineage",
        ]
        for tool in context.tools:
            assert len(tool.description) > 100
            assert all(part["description"] for part in tool.parameters["properties"].values())
            assert tool.parameters["additionalProperties"] is False


async def test_a_hit_says_where_when_and_by_whom_the_words_were_written(
    open_archive: OpenArchive,
) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom/warp", "nothing here", "the shuttle flies")
        assert await archive.told("search_sessions", query="shuttle") == [
            "old, seq 2, 2023-11-14T22:13:20+00:00, user: the shuttle flies",
            HOW_TO_READ,
        ]


async def test_the_call_that_searches_is_not_what_it_finds(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        assert await archive.told("search_sessions", query="shuttle") == NOTHING


async def test_what_was_said_in_the_session_itself_is_found_and_marked(
    open_archive: OpenArchive,
) -> None:
    async with open_archive() as archive:
        await archive.agent.send("wind the bobbin")
        await archive.agent.settled()
        hit, _ = await archive.told("search_sessions", query="bobbin")
        assert hit.startswith("own (this session), seq ")


async def test_only_so_many_hits_are_shown_and_that_there_are_more_is_said(
    open_archive: OpenArchive,
) -> None:
    async with open_archive() as archive:
        await archive.keep("old", "/loom", "heddle one", "heddle two", "heddle three")
        *hits, how, more = await archive.told("search_sessions", query="heddle", limit=2)
        assert (len(hits), how, more) == (2, HOW_TO_READ, MORE)
        *hits, how = await archive.told("search_sessions", query="heddle one", limit=1)
        assert (len(hits), how) == (1, HOW_TO_READ)


async def test_a_search_is_narrowed_by_who_wrote_and_when(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        old = archive.host.now()
        archive.host.now = lambda: old - 10 * DAY
        await archive.keep("older", "/loom", "treadle")
        archive.host.now = lambda: old
        await archive.keep("newer", "/loom", "treadle")

        async def found(**more: str) -> list[str]:
            lines = await archive.told("search_sessions", query="treadle", **more)
            return sorted(line.partition(",")[0] for line in lines if ", seq " in line)

        assert await found(role="user") == ["newer", "older"]
        assert await found(role="user", since="2023-11-10") == ["newer"]
        assert await found(role="user", since="2023-11-14T23:13:20+01:00") == ["newer"]
        assert await found(role="user", since="2023-11-14T22:13:21") == []
        # What the earlier searches gave back are tool texts, each with the word in it.
        assert await found(role="assistant", since="2023-11-15") == []
        result = await archive.call("search_sessions", query="x", since="last week")
        assert result.is_error
        assert result.text == "since='last week' is no date; write it like 2025-01-31"


async def test_what_a_fork_took_over_is_found_only_when_asked_for(
    open_archive: OpenArchive,
) -> None:
    async with open_archive() as archive:
        await archive.keep("source", "/loom", "castle")
        store = archive.host.scope.require(session_store)
        await store.fork_stored(SessionId("source"), id=SessionId("fork"))

        async def found(**more: bool) -> list[str]:
            lines = await archive.told("search_sessions", query="castle", role="user", **more)
            return sorted(line.partition(",")[0] for line in lines if ", seq " in line)

        assert await found() == ["source"]
        assert await found(inherited=True) == ["fork", "source"]


@pytest.mark.parametrize("query", ['"', "a AND (", "NEAR(", "*", "-", "col:x", "'"])
async def test_no_words_are_an_error(open_archive: OpenArchive, query: str) -> None:
    async with open_archive() as archive:
        result = await archive.call("search_sessions", query=query)
        assert not result.is_error
