"""What is exported and imported again is the same session in another life."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heald import Host
from heald.testing import CommandRunner
from heald_persistence import SessionDamaged, session_persistence
from heald_query import session_query
from heald_session import (
    APPEND,
    FORMAT_VERSION,
    Event,
    Header,
    LogOffset,
    Seq,
    SessionId,
    SessionNotFound,
    Surface,
    session_store,
)
from heald_transfer import ExportExists, ExportUnwritable, NothingToImport
from heald_transfer.exporting import export_to, with_descendants
from heald_transfer.importing import files_in

KEYS = ("title", "sessionStats")

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
plain_events = st.tuples(
    st.sampled_from(["user/message", "assistant/message", "turn/start", "acme/thing"]),
    values | st.fixed_dictionaries({"id": texts, "text": texts}),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([None, APPEND, Surface("replace", Seq(0), Seq(0))]),
)


def log_of(drawn: list[Any]) -> list[Event]:
    return [
        Event(
            Seq(n),
            type_,
            1000 + n,
            msgspec.Raw(msgspec.json.encode(data)),
            v=v,
            required=required,
            surface=surface,
            sources=(Seq(n - 1),) if n % 3 == 2 else None,
        )
        for n, (type_, data, v, required, surface) in enumerate(drawn)
    ]


async def keep(host: Host, header: Header, cut: int, events: list[Event]) -> None:
    storage = host.scope.require(session_persistence)
    writer = await storage.create(header, LogOffset(cut))
    writer.append(events)
    await writer.flush()
    await writer.close()


def without_life(found: tuple[Header, int, list[Event]]) -> tuple[Header, int, list[bytes]]:
    header, cut, events = found
    header = msgspec.structs.replace(header, log_id="")
    return header, cut, [msgspec.json.encode(event) for event in events]


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
async def test_an_export_brings_back_the_same_log_and_the_same_fold(
    keeping: Any, kept: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    parent = log_of(data.draw(st.lists(plain_events, min_size=1, max_size=12)))
    cut = data.draw(st.integers(0, len(parent)))
    child = parent[:cut] + log_of(data.draw(st.lists(plain_events, min_size=20, max_size=25)))[cut:]
    facts: dict[str, Any] = {"version": FORMAT_VERSION, "log_id": "x", "cwd": data.draw(texts)}
    first = Header(id=SessionId("first"), created_at=5, **facts)
    second = Header(
        id=SessionId("sécond/ /.."),
        created_at=6,
        parent_session=first.id,
        is_seeded=cut > 0,
        origin=data.draw(st.sampled_from([None, "subagent"])),
        delegation_depth=1,
        agent_preset="standard",
        **facts,
    )
    file = there / "both.heald.zst"
    async with keeping(here) as host:
        await keep(host, first, 0, parent)
        await keep(host, second, cut, child)
        ids = [first.id, second.id]
        await export_to(file, host.scope.require(session_query), ids, replace=False)
        before = [without_life(await kept(host).stored(id_)) for id_ in ids]
        folds = [await kept(host).fold(id_, *KEYS) for id_ in ids]
    async with keeping(there) as host:
        done = await kept(host).bring(file)
        assert [(one.id, one.error) for one in done] == [(id_, None) for id_ in ids]
        assert [without_life(await kept(host).stored(id_)) for id_ in ids] == before
        assert [await kept(host).fold(id_, *KEYS) for id_ in ids] == folds
        lives = {(await kept(host).stored(id_))[0].log_id for id_ in ids}
        assert len(lives) == 2
        assert "x" not in lives


@pytest.fixture
async def exported(keeping: Any, tmp_path: Path) -> Path:
    """Return a file with two sessions, the second a fork of the first."""
    async with keeping(tmp_path / "origin") as host:
        store = host.scope.require(session_store)
        first = await store.create(cwd="/loom", id=SessionId("first"))
        first.append("turn/start", {"turn": 1})
        first.append("user/message", {"id": "m", "text": "Hello"}, surface=APPEND)
        first.append("turn/end", {"turn": 1, "outcome": "completed"})
        await first.flush()
        second = await store.fork(first.id, id=SessionId("second"))
        second.append("turn/start", {"turn": 2})
        second.append("turn/end", {"turn": 2, "outcome": "completed"})
        await second.flush()
        query = host.scope.require(session_query)
        path = tmp_path / "two.heald.zst"
        await export_to(path, query, [first.id, second.id], replace=False)
        return path


async def test_payloads_that_are_kept_apart_go_along(
    keeping: Any, kept: Any, tmp_path: Path
) -> None:
    large = "0123456789abcdef" * 40_000
    file = tmp_path / "x.heald.zst"
    async with keeping(tmp_path / "here") as host:
        session = await host.scope.require(session_store).create(cwd=None, id=SessionId("large"))
        session.append("inbox/message", {"id": "a", "text": large})
        session.append("inbox/message", {"id": "b", "text": "small"})
        await session.flush()
        await export_to(file, host.scope.require(session_query), [session.id], replace=False)
    async with keeping(tmp_path / "there") as host:
        await kept(host).bring(file)
        _, _, events = await kept(host).stored("large")
        assert [event.data["text"] for event in events] == [large, "small"]
    assert file.stat().st_size < 10_000


@pytest.mark.usefixtures("exported")
async def test_a_damaged_session_is_not_exported_and_leaves_no_file(
    keeping: Any, tmp_path: Path
) -> None:
    tail = tmp_path / "origin" / "sessions" / "first" / "tail.jsonl"
    data = await asyncio.to_thread(tail.read_bytes)
    await asyncio.to_thread(tail.write_bytes, data.replace(b"Hello", b"Hullo"))
    async with keeping(tmp_path / "origin") as host:
        query = host.scope.require(session_query)
        with pytest.raises(SessionDamaged):
            await export_to(tmp_path / "x", query, [SessionId("first")], replace=False)
    assert not await asyncio.to_thread((tmp_path / "x").exists)


async def test_an_id_that_is_taken_is_refused_and_the_others_are_imported(
    keeping: Any, kept: Any, exported: Path
) -> None:
    async with keeping() as host:
        store = host.scope.require(session_store)
        own = await store.create(cwd="/mine", id=SessionId("first"))
        own.append("turn/start", {"turn": 1})
        await store.dispose(own)
        done = await kept(host).bring(exported)
        assert [(one.id, one.error and one.error.code) for one in done] == [
            ("first", "SESSION_ID_TAKEN"),
            ("second", None),
        ]
        assert (await kept(host).stored("first"))[0].cwd == "/mine"


async def test_a_file_that_is_cut_short_gives_its_whole_sessions_and_nothing_of_the_others(
    keeping: Any, kept: Any, exported: Path, tmp_path: Path
) -> None:
    whole = await asyncio.to_thread(exported.read_bytes)
    left = set()
    for cut in {*range(0, len(whole), 17), len(whole) - 1}:
        home = tmp_path / f"home-{cut}"
        await asyncio.to_thread(exported.write_bytes, whole[:cut])
        async with keeping(home) as host:
            *good, last = await kept(host).bring(exported)
            assert last.error is not None
            assert last.error.code == "FILE_UNREADABLE"
            there = await kept(host).names()
            assert there == [one.id for one in good]
            left.add(tuple(there))
    assert left == {(), ("first",)}


async def test_a_file_is_replaced_only_if_that_was_asked_for(
    keeping: Any, exported: Path, tmp_path: Path
) -> None:
    before = await asyncio.to_thread(exported.read_bytes)
    async with keeping(tmp_path / "origin") as host:
        query = host.scope.require(session_query)
        with pytest.raises(ExportExists):
            await export_to(exported, query, [SessionId("first")], replace=False)
        with pytest.raises(SessionNotFound):
            await export_to(exported, query, [SessionId("nobody")], replace=True)
        assert await asyncio.to_thread(exported.read_bytes) == before
        await export_to(exported, query, [SessionId("first")], replace=True)
        assert await asyncio.to_thread(exported.read_bytes) != before
        with pytest.raises(ExportUnwritable):
            await export_to(tmp_path / "no" / "x", query, [SessionId("first")], replace=False)
    left = await asyncio.to_thread(lambda: list(tmp_path.glob(".*")))
    assert left == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"heald_export": 2, "sessions": 1}, "needs a newer Heald"),
        ({"heald_export": "one"}, "manifest"),
        ({"heald_export": 1, "sessions": 1}, "0 of 1 sessions"),
        ({"type": "session", "version": 7, "id": "a", "createdAt": 1}, "version 7"),
        ({"hello": 1}, "no export"),
    ],
)
async def test_what_cannot_be_understood_is_refused_by_name(
    keeping: Any, kept: Any, tmp_path: Path, line: object, says: str
) -> None:
    path = tmp_path / "x.heald.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(line).encode()))
    async with keeping() as host:
        (one,) = await kept(host).bring(path)
    assert one.error is not None
    assert says in str(one.error)
    assert str(path) in str(one.error)


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([{"seq": 1, "type": "a", "time": 1, "data": 1}], "event 1 where 0"),
        ([{"seq": 0, "type": "a", "data": 1}], "event 0"),
        (
            [
                {"seq": 0, "type": "a", "time": 2, "data": 1},
                {"seq": 1, "type": "a", "time": 1, "data": 1},
            ],
            "earlier",
        ),
    ],
)
async def test_a_log_that_does_not_hold_together_is_not_imported(
    keeping: Any, kept: Any, tmp_path: Path, events: list[object], says: str
) -> None:
    header = {"version": 1, "id": "a", "log_id": "x", "created_at": 1}
    facts = {"session": header, "inherited_event_count": 0, "events": len(events)}
    lines = [{"heald_export": 1, "sessions": 1}, facts, *events]
    path = tmp_path / "x.heald.zst"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_bytes(zstandard.ZstdCompressor().compress(text.encode()))
    async with keeping() as host:
        (one,) = await kept(host).bring(path)
        assert one.error is not None
        assert says in str(one.error)
        assert await kept(host).names() == []


async def test_descendants_are_taken_once_each_though_parents_form_a_circle(
    keeping: Any,
) -> None:
    async with keeping() as host:
        parents = {"a": "c", "b": "a", "c": "b", "d": "c", "other": None}
        for n, (id_, parent) in enumerate(parents.items()):
            header = Header(
                version=FORMAT_VERSION,
                id=SessionId(id_),
                log_id=id_,
                created_at=n,
                parent_session=None if parent is None else SessionId(parent),
            )
            await keep(host, header, 0, log_of([("acme/thing", 1, 1, False, None)]))
        query = host.scope.require(session_query)
        assert await with_descendants(query, SessionId("a")) == ["a", "b", "c", "d"]


def test_the_command_line_moves_a_family(
    heald_cli: CommandRunner, exported: Path, tmp_path: Path
) -> None:
    done = heald_cli("sessions", "import", str(exported))
    assert done.stdout.splitlines() == ["imported first (3 events)", "imported second (5 events)"]
    listed = json.loads(heald_cli("sessions", "list", "--json").stdout)
    titles = [one["projections"]["values"]["title"] for one in listed]
    assert titles == [{"text": "Hello"}] * 2  # though nobody has opened them yet

    again = heald_cli("sessions", "import", str(tmp_path), "--json", code=1)
    report = json.loads(again.stdout)
    assert [(one["id"], one["imported"], one["problem"]["code"]) for one in report] == [
        ("first", False, "SESSION_ID_TAKEN"),
        ("second", False, "SESSION_ID_TAKEN"),
    ]

    file = tmp_path / "again.heald.zst"
    heald_cli("sessions", "export", "fir", "-o", str(file), "--descendants")
    assert file.stat().st_mode & 0o777 == 0o600
    lines = zstandard.ZstdDecompressor().stream_reader(file.read_bytes(), read_across_frames=True)
    assert len(lines.read().splitlines()) == 1 + (1 + 3) + (1 + 5)
    refused = heald_cli("sessions", "export", "first", "-o", str(file), code=1)
    assert "EXPORT_EXISTS" in refused.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


async def test_a_directory_is_searched_for_what_can_be_imported(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    with pytest.raises(NothingToImport):
        files_in(tmp_path)
    for name in ("z.heald.zst", "a/b/session.jsonl.zstd", "a/log.jsonl.zst", "a/b/readme.md"):
        tmp_path.joinpath(name).touch()
    assert files_in(tmp_path) == [deep / "session.jsonl.zstd", tmp_path / "z.heald.zst"]
    assert files_in(deep / "readme.md") == [deep / "readme.md"]
