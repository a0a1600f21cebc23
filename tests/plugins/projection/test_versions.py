"""Units that several plugins declare, and units that come to be known while sessions are live."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import pytest

from heald import Discovery, Host, NoConfig, Plugin, Row, RowsFailed, VocabularyConflict, implements
from heald_projection import (
    ProjectionNotReady,
    Projections,
    Snapshot,
    Unit,
    projection_changed,
    projections,
    units,
)
from heald_session import Seq, Session, session_store
from heald_session.testing import append_unchecked

InstallUnits = Callable[..., None]
Install = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


async def new_session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None)


def installed_meanwhile(host: Host) -> None:
    """Look at what is installed again, as when rows change after an installation."""
    host.discovery = Discovery()
    host.revision += 1


def cold(service: Projections, session: Session) -> Any:
    fold = service.fold(session.header, session.cut, ["seqs"])
    for event in session.hot():
        fold.feed(event)
    return fold.state("seqs")


@pytest.mark.parametrize("mounted", [(), ("one",), ("two",), ("two", "one")])
async def test_one_key_and_version_of_two_plugins_is_one_unit_whatever_is_mounted(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit, mounted: tuple[str, ...]
) -> None:
    install_units("one", seqs)
    install_units("two", attrs.evolve(seqs, view=lambda state: state))
    async with open_rows(last=mounted) as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        append_unchecked(session, "made/up", {})
        preset = await host.mount("preset", [Row("again", "two"), Row("other", "one")])
        append_unchecked(session, "made/up", {})
        assert service.state(session, "seqs") == cold(service, session) == [0, 1]
        await preset.close()
        append_unchecked(session, "made/up", {})
        assert service.state(session, "seqs") == cold(service, session) == [0, 1, 2]


async def test_of_two_versions_the_one_mounted_in_the_host_is_read_live_and_cold(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    install_units("new", attrs.evolve(seqs, state_version=2, apply=lambda s, e: [*s, -e.seq]))
    install_units("old", seqs)
    for mounted, value in (("old", [0, 1]), ("new", [0, -1])):
        async with open_rows(last=(mounted,)) as host:
            session = await new_session(host)
            service = host.scope.require(projections)
            append_unchecked(session, "made/up", {})
            append_unchecked(session, "made/up", {})
            assert service.state(session, "seqs") == cold(service, session) == value
            versions = {state.key: state.state_version for state in service.cells(session)}
            assert versions["seqs"] == {"old": 1, "new": 2}[mounted]
            other = {"old": "new", "new": "old"}[mounted]
            with pytest.raises(RowsFailed, match="'seqs' version"):
                await host.mount("preset", [Row("other", other)])


async def test_of_two_versions_in_one_composition_the_later_row_fails(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    install_units("old", seqs)
    install_units("new", attrs.evolve(seqs, state_version=2))
    async with open_rows(last=("new", "old"), strict=False) as host:
        [failed] = host.composition.failed
        assert (failed.row, failed.stage) == ("old", "declare")
        session = await new_session(host)
        assert host.scope.require(projections).state(session, "seqs") == []


async def test_with_neither_version_mounted_only_a_read_of_that_key_fails_and_names_both(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    install_units("old", seqs, attrs.evolve(seqs, key="sound"))
    install_units("new", attrs.evolve(seqs, state_version=2))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        assert service.snapshot(session, ["sound"]) == Snapshot(0, {"sound": [0]})
        for read in (
            lambda: service.snapshot(session, ["sound", "seqs"]),
            lambda: service.state(session, "seqs"),
            lambda: cold(service, session),
        ):
            with pytest.raises(VocabularyConflict) as caught:
                read()
            assert caught.value.code == "VOCABULARY_CONFLICT"
            assert "plugin new (version 2) and plugin old (version 1)" in str(caught.value)
        with pytest.raises(VocabularyConflict):
            await service.ready(session, ["seqs"])
        assert "seqs" not in {state.key for state in service.cells(session)}


async def test_a_unit_that_becomes_known_late_catches_up_before_it_answers(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        append_unchecked(session, "made/up", {})
        assert service.snapshot(session, ["seqs"]) == Snapshot(0, {})
        install_units("late", seqs)
        installed_meanwhile(host)
        append_unchecked(session, "made/up", {})
        with pytest.raises(ProjectionNotReady):
            service.snapshot(session, ["seqs"])
        assert "seqs" not in {state.key for state in service.cells(session)}
        await service.ready(session, ["seqs", "nobodys"])
        append_unchecked(session, "made/up", {})
        assert service.snapshot(session, ["seqs"]) == Snapshot(2, {"seqs": [0, 1, 2]})


async def test_a_unit_that_becomes_known_late_catches_up_with_what_has_left_memory(
    install_units: InstallUnits, heald_host: Any, seqs: Unit
) -> None:
    rows = [
        Row("session", "session", {"hot_events": 20}),
        Row("persistence", "persistence"),
        Row("projection", "projection"),
    ]
    async with heald_host(rows=rows) as host:
        session = await new_session(host)
        for _ in range(50):
            append_unchecked(session, "made/up", {})
        await session.flush()
        assert session.hot_from > 0
        install_units("late", seqs, attrs.evolve(seqs, key="again"))
        installed_meanwhile(host)
        service = host.scope.require(projections)
        await service.ready(session, ["seqs", "again"])
        append_unchecked(session, "made/up", {})
        everything = list(range(51))
        read = service.snapshot(session, ["seqs", "again"])
        assert read == Snapshot(50, {"seqs": everything, "again": everything})


async def test_a_version_that_comes_to_count_is_filled_anew_and_the_other_is_told_no_more(
    install_units: InstallUnits, install: Install, open_rows: OpenHost, seqs: Unit, tmp_path: Path
) -> None:
    heard: list[tuple[str, Any, int]] = []

    class Listening(Plugin[NoConfig]):
        @implements(projection_changed)
        def hear(self, session: Session, key: str, value: Any, seq: Seq) -> None:
            if key == "seqs":
                heard.append((key, value, seq))

    class Newer(Plugin[NoConfig]):
        @classmethod
        @implements(units)
        def declare(cls) -> Iterable[Unit]:
            return [attrs.evolve(seqs, state_version=2, apply=lambda s, e: [*s, -e.seq])]

    install_units("made", seqs)
    install(listener=Listening)
    async with open_rows(last=("listener",)) as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        append_unchecked(session, "made/up", {})
        elsewhere = [place for place in sys.path if place != str(tmp_path / "site")]
        host.discovery = Discovery(elsewhere, program={"made": Newer})  # as after an upgrade
        host.revision += 1
        append_unchecked(session, "made/up", {})
        assert heard == [("seqs", [0], 0)]
        assert "seqs" not in {state.key for state in service.cells(session)}
        with pytest.raises(ProjectionNotReady):
            service.state(session, "seqs")
        await service.ready(session, ["seqs"])
        append_unchecked(session, "made/up", {})
        assert service.state(session, "seqs") == cold(service, session) == [0, -1, -2]
        assert heard[1:] == [("seqs", [0, -1, -2], 2)]
