"""What a model gets when it traces where a session comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heald_session import SessionId, session_store

if TYPE_CHECKING:
    from tests.plugins.tools_sessions.conftest import OpenArchive

WHEN = "2023-11-14T22:13:20+00:00"


async def test_ancestors_and_descendants_are_told_with_their_titles(
    open_archive: OpenArchive,
) -> None:
    async with open_archive(more=["projection-cache"]) as archive:
        await archive.keep("root", "/loom", "weave a cloth")
        await archive.keep("part", "/loom", "wind", parent_session=SessionId("root"))
        facts = {"parent_session": SessionId("part"), "origin": "subagent", "delegation_depth": 1}
        await archive.keep("child", "/loom/warp", "count the threads", **facts)
        store = archive.host.scope.require(session_store)
        await store.fork_stored(SessionId("child"), id=SessionId("fork"))
        assert await archive.told("session_lineage", session="part") == [
            f"part, child of root, {WHEN}, wind",
            "ancestors, the nearest first:",
            f"- root, {WHEN}, weave a cloth",
            "descendants:",
            f"- child, subagent of part, {WHEN}, count the threads",
            f"- fork, fork of child, {WHEN}",
        ]


async def test_without_an_id_it_is_the_sessions_own(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        lines = await archive.told("session_lineage")
        assert lines == [
            f"own, {WHEN}, go",
            "ancestors, the nearest first: none",
            "descendants: none",
        ]


async def test_a_large_family_is_shown_in_part(open_archive: OpenArchive) -> None:
    async with open_archive() as archive:
        for n in range(103):
            await archive.keep(f"child-{n:03}", "/loom", parent_session=SessionId("own"))
        lines = await archive.told("session_lineage")
        assert len(lines) == 3 + 100 + 1
        assert lines[-1] == "[and 3 more; ask for the lineage of the last one]"
