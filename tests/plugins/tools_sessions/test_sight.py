"""A session sees those of its directory and below it; what it may not see is as if it were not."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heald_session import SessionId, session_store

if TYPE_CHECKING:
    from tests.plugins.tools_sessions.conftest import Archive, OpenArchive


async def sees(archive: Archive, id: str) -> bool:  # noqa: A002
    """Say whether the agent may read a session; all three tools must agree on it."""
    result = await archive.call("read_session", session=id)
    traced = await archive.call("session_lineage", session=id)
    found = await archive.call("search_sessions", query="shed", role="user", limit=50)
    hits = [line.partition(",")[0] for line in found.text.splitlines()]
    assert result.is_error == traced.is_error == (id not in hits)
    if result.is_error:
        assert result.text.startswith(f"SESSION_NOT_FOUND: no session {id!r}")
    return not result.is_error


@pytest.mark.parametrize("own", ["/loom", "/loom/", "/loom/.", "/other/../loom", "//loom"])
async def test_a_session_sees_its_own_directory_and_what_is_below_it(
    open_archive: OpenArchive, own: str
) -> None:
    async with open_archive(own) as archive:
        cwds = ["/loom", "/loom/", "/loom/warp", "/loom/warp/../weft", "/x/../loom"]
        for number, cwd in enumerate(cwds):
            await archive.keep(f"s{number}", cwd, "shed")
        assert [await sees(archive, f"s{n}") for n in range(len(cwds))] == [True] * len(cwds)


@pytest.mark.parametrize(
    "cwd",
    ["/", "/loo", "/loom2", "/loom-warp", "/loom/..", "/loom/../secret", "loom", "", "/LOOM", None],
)
async def test_a_session_does_not_see_other_directories(
    open_archive: OpenArchive, cwd: str | None
) -> None:
    async with open_archive("/loom") as archive:
        await archive.keep("other", cwd, "shed")
        assert not await sees(archive, "other")


@pytest.mark.parametrize("own", [None, "", "loom", "./loom", "../loom"])
async def test_a_session_that_is_nowhere_sees_only_itself(
    open_archive: OpenArchive, own: str | None
) -> None:
    async with open_archive(own) as archive:
        for number, cwd in enumerate((None, "", "loom", "loom/warp", "/loom", "/")):
            await archive.keep(f"s{number}", cwd, "shed")
        assert not any([await sees(archive, f"s{n}") for n in range(6)])
        await archive.agent.send("shed")
        await archive.agent.settled()
        assert await sees_itself(archive)


async def sees_itself(archive: Archive) -> bool:
    hits = await archive.told("search_sessions", query="shed", role="user")
    read = await archive.told("read_session", session="own", limit=1)
    traced = await archive.told("session_lineage")
    return all("own" in lines[0] for lines in (hits, read, traced))


async def test_a_link_is_another_directory_and_is_not_followed(
    open_archive: OpenArchive, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (outside / "back").symlink_to(inside)
    async with open_archive(str(inside)) as archive:
        await archive.keep("linked", str(inside / "link"), "shed")
        await archive.keep("target", str(outside), "shed")
        await archive.keep("back", str(outside / "back"), "shed")
        assert await sees(archive, "linked")
        assert not await sees(archive, "target")
        assert not await sees(archive, "back")


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search_sessions", {"query": "shed", "limit": 1}),
    ("search_sessions", {"query": "shed", "limit": 50, "inherited": True}),
    ("search_sessions", {"query": "secret"}),
    ("search_sessions", {"query": "shed another", "limit": 50}),
    ("read_session", {"session": "hidden-middle"}),
    ("read_session", {"session": "hidden"}),
    ("read_session", {"session": "hid"}),
    ("read_session", {"session": "hidden-broken"}),
    ("read_session", {"session": "seen-"}),
    ("read_session", {"session": "s"}),
    ("read_session", {"session": "secret-of-no-likeness"}),
    ("session_lineage", {"session": "hidden-top"}),
    ("session_lineage", {"session": "seen-top"}),
    ("session_lineage", {"session": "seen-below"}),
    ("session_lineage", {"session": "seen-below-seen"}),
    ("session_lineage", {"session": "seen-beside"}),
]


async def everything_told(archive: Archive) -> list[str]:
    return [(await archive.call(tool, **arguments)).text for tool, arguments in CALLS]


async def fill(archive: Archive, home: Path, *, hidden: bool) -> None:
    """Make a family whose members stand in two directories, with or without those of the other."""

    moments = count(archive.host.now())

    async def keep(id: str, parent: str | None, *texts: str) -> None:  # noqa: A002
        cwd = "/loom/warp" if id.startswith("seen") else "/secret"
        moment = next(moments)
        if hidden or cwd != "/secret":
            archive.host.now = lambda: moment
            parent_session = None if parent is None else SessionId(parent)
            await archive.keep(id, cwd, *texts, parent_session=parent_session)

    await keep("hidden-top", None, "shed secret")
    await keep("seen-top", "hidden-top", "shed", "another shed")
    await keep("hidden-middle", "seen-top", "shed secret shed")
    await keep("seen-below", "hidden-middle", "shed")
    await keep("seen-below-seen", "seen-below", "shed")
    await keep("seen-beside", "seen-top", "shed")
    await keep("hidden-broken", "seen-top", "shed")
    if hidden:
        store = archive.host.scope.require(session_store)
        await store.fork_stored(SessionId("hidden-middle"), id=SessionId("hidden-fork"))
        (home / "sessions" / "hidden-broken" / "session.json").write_text("{")


async def test_whatever_is_called_hidden_sessions_are_as_if_they_did_not_exist(
    open_archive: OpenArchive, tmp_path: Path
) -> None:
    told = []
    for hidden in (True, False):
        home = tmp_path / f"home-{hidden}"
        home.mkdir()
        async with open_archive("/loom", home=home) as archive:
            await fill(archive, home, hidden=hidden)
            told.append(await everything_told(archive))
    for call, with_hidden, without in zip(CALLS, *told, strict=True):
        assert with_hidden == without, call
    assert "seen-top" in told[0][1]


async def test_a_session_that_cannot_be_searched_wholly_is_named_if_it_may_be_seen(
    open_archive: OpenArchive, heald_home: Path
) -> None:
    async with open_archive("/loom") as archive:
        for name, cwd in (("seen", "/loom"), ("hidden", "/secret")):
            await archive.keep(name, cwd, "the shed", "the weft")
            tail = heald_home / "sessions" / name / "tail.jsonl"
            tail.write_bytes(tail.read_bytes().replace(b"the shed", b"the_shed"))
        lines = await archive.told("search_sessions", query="weft", role="user")
        assert lines[0].startswith("seen, ")
        assert lines[-1] == "[not searched, or not wholly, because they cannot be read: seen]"
