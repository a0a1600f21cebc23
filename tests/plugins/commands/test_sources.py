"""Commands that come and go while their row runs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path

import attrs
import pytest

from heald import Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_commands import (
    Command,
    CommandCall,
    CommandDirectory,
    CommandRan,
    CommandSource,
    CommandUnknown,
    command_directory,
    command_sources,
    commands,
)
from heald_session import Session, session_store

Install = Callable[..., None]


@attrs.define
class Names:
    """A source whose commands are named by a list, and say whose they are."""

    whose: str
    names: list[str] = attrs.field(factory=list)
    asked: list[tuple[str | None, Path | None]] = attrs.field(factory=list)
    broken: bool = False

    async def catalogue(self, cwd: Path | None) -> Sequence[Command]:
        self.asked.append((None, cwd))
        if self.broken:
            raise OSError("the disk is gone")
        return [self._command(name) for name in self.names]

    async def find(self, name: str, cwd: Path | None) -> Command | None:
        self.asked.append((name, cwd))
        if self.broken:
            raise OSError("the disk is gone")
        return self._command(name) if name in self.names else None

    def _command(self, name: str) -> Command:
        async def run(call: CommandCall) -> str:
            return f"{name} of {self.whose}: {call.arguments}"

        return Command(name, f"{name} of {self.whose}", run)


ONE, OTHER = Names("one"), Names("other")


class SourcesPlugin(Plugin[NoConfig]):
    @implements(command_sources)
    def bring(self) -> Iterable[CommandSource]:
        return (ONE,)

    @implements(commands)
    def bring_fixed(self) -> Iterable[Command]:
        return (Names("a row")._command("fixed"),)


class OtherPlugin(Plugin[NoConfig]):
    @implements(command_sources)
    def bring(self) -> Iterable[CommandSource]:
        return (OTHER,)


@pytest.fixture
async def host(heald_host: HostFactory, install: Install) -> AsyncIterator[Host]:
    """Return a host with two rows whose commands come and go."""
    for source in (ONE, OTHER):
        source.names, source.asked, source.broken = [], [], False
    install(sources=SourcesPlugin, other=OtherPlugin)
    rows = [Row(name, name) for name in ("session", "commands", "sources", "other")]
    async with heald_host(rows=rows) as host:
        yield host


@pytest.fixture
def directory(host: Host) -> CommandDirectory:
    """Return the host's command directory."""
    return host.scope.require(command_directory)


@pytest.fixture
async def session(host: Host, tmp_path: Path) -> Session:
    """Return a live session."""
    return await host.scope.require(session_store).create(cwd=str(tmp_path))


async def test_what_a_source_has_now_is_listed_and_runs(
    directory: CommandDirectory, session: Session, tmp_path: Path
) -> None:
    assert "new" not in [found.value.name for found in await directory.catalogue(session)]

    ONE.names.append("new")

    (found,) = [c for c in await directory.catalogue(session) if c.value.name == "new"]
    assert found.origin.row == "sources"
    assert await directory.run(session, "/new words") == "new of one: words"
    (ran,) = [e.data_as(CommandRan) for e in session.hot() if e.type == "command/ran"]
    assert ran == CommandRan("new", "words", "new of one: words")
    assert ONE.asked[-1] == ("new", tmp_path)

    ONE.names.clear()

    with pytest.raises(CommandUnknown):
        await directory.run(session, "/new")


async def test_a_command_of_a_row_wins_and_its_name_is_looked_up_in_no_source(
    directory: CommandDirectory, session: Session
) -> None:
    ONE.names.append("fixed")

    assert await directory.run(session, "/fixed") == "fixed of a row: "
    assert ONE.asked == []
    (found,) = [c for c in await directory.catalogue(session) if c.value.name == "fixed"]
    assert found.value.description == "fixed of a row"


async def test_of_two_sources_the_earlier_row_has_the_name(
    directory: CommandDirectory, session: Session
) -> None:
    ONE.names.append("same")
    OTHER.names.append("same")

    assert await directory.run(session, "/same") == "same of one: "
    names = [found.value.name for found in await directory.catalogue(session)]
    assert names.count("same") == 1


async def test_a_source_that_fails_is_told_of_and_the_others_are_there(
    directory: CommandDirectory, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    ONE.broken = True
    OTHER.names.append("still")

    with caplog.at_level(logging.ERROR, logger="heald_commands"):
        names = [found.value.name for found in await directory.catalogue(session)]
        assert await directory.run(session, "/still") == "still of other: "

    assert "still" in names
    assert [record.getMessage() for record in caplog.records] == [
        "commands of row sources cannot be listed",
        "commands of row sources cannot be searched",
    ]


async def test_an_unknown_name_among_thousands_is_told_without_all_of_them(
    directory: CommandDirectory, session: Session
) -> None:
    ONE.names.extend(f"command-{number}" for number in range(5_000))

    with pytest.raises(CommandUnknown) as near:
        await directory.run(session, "/comand-77")
    with pytest.raises(CommandUnknown) as far:
        await directory.run(session, "/xyzzy")

    assert "did you mean 'command-77'?" in str(near.value)
    assert "`heald commands` lists the 5,00" in str(far.value)
    assert len(str(far.value)) < 200
