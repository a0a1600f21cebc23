"""The preset of a session that names none: as it is set when the session is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from heald import CompositionError, Host
from heald.testing import HostFactory
from heald_agent import agents
from heald_preset import (
    DefaultSet,
    PresetInvalid,
    PresetNotFound,
    preset_authoring,
    presets,
)

Write = Callable[..., Path]


@pytest.fixture
async def host(heald_host: HostFactory) -> AsyncIterator[Host]:
    """Return a host of the default profile, whose files are in the test's home."""
    async with heald_host() as host:
        yield host


@pytest.fixture
def settings(heald_home: Path) -> Callable[[str], None]:
    """Return a function that writes the home's file."""

    def settings(text: str) -> None:
        (heald_home / "heald.toml").write_text(text)

    return settings


def default(preset: str) -> str:
    """Make the patch that sets a default."""
    return f'[[patch]]\nrow = "preset"\nconfig.merge = {{ default = "{preset}" }}\n'


async def runs_on(host: Host, cwd: Path) -> str | None:
    """Make an agent without naming a preset, and return which it runs on."""
    agent = await host.scope.require(agents).create(cwd=cwd)
    await agent.dispose()
    return agent.session.header.agent_preset


async def test_the_shipped_default_is_standard(host: Host, project: Path) -> None:
    assert await runs_on(host, project) == "standard"


async def test_a_host_that_runs_takes_a_new_default_for_its_next_session(
    host: Host, project: Path, settings: Callable[[str], None]
) -> None:
    assert await runs_on(host, project) == "standard"
    settings(default("minimal"))
    assert await runs_on(host, project) == "minimal"
    settings("")
    assert await runs_on(host, project) == "standard"


async def test_a_default_that_names_nothing_is_refused_and_nothing_takes_its_place(
    host: Host, project: Path, settings: Callable[[str], None]
) -> None:
    settings(default("gone"))

    assert await host.scope.require(presets).default() == "gone"
    with pytest.raises(PresetNotFound) as caught:
        await runs_on(host, project)
    assert caught.value.known == ("minimal", "standard")


async def test_a_default_that_is_broken_is_refused_with_its_reason(
    host: Host, project: Path, settings: Callable[[str], None], write: Write
) -> None:
    write("mine", "label =")
    settings(default("mine"))

    with pytest.raises(PresetInvalid, match="not TOML"):
        await runs_on(host, project)


async def test_settings_that_cannot_be_read_refuse_a_session_that_needs_them(
    host: Host, project: Path, settings: Callable[[str], None]
) -> None:
    settings("[[patch]")

    with pytest.raises(CompositionError, match="not TOML"):
        await runs_on(host, project)
    seat = await host.scope.require(presets).seat("minimal", None)
    await seat.release()


async def test_setting_it_writes_the_persons_file_and_holds_at_once(
    host: Host, project: Path, heald_home: Path
) -> None:
    file = heald_home / "heald.toml"

    done = await host.scope.require(preset_authoring).set_default("minimal", None)

    assert done == DefaultSet("minimal", file, "minimal", str(file))
    assert file.read_text() == default("minimal").replace("config", "optional = true\nconfig")
    assert await runs_on(host, project) == "minimal"


async def test_setting_it_keeps_what_a_person_wrote(
    host: Host, heald_home: Path, settings: Callable[[str], None]
) -> None:
    settings(f"# mine\n{default('standard')}# the end\n")

    await host.scope.require(preset_authoring).set_default("minimal", None)

    assert (heald_home / "heald.toml").read_text() == f"# mine\n{default('minimal')}# the end\n"


async def test_a_layer_that_comes_after_is_told(heald_host: HostFactory, tmp_path: Path) -> None:
    patch = tmp_path / "patch.toml"
    patch.write_text(default("standard"))
    async with heald_host(patches=[patch]) as host:
        done = await host.scope.require(preset_authoring).set_default("minimal", None)

    assert (done.holds, done.holds_by) == ("standard", str(patch))


async def test_what_is_no_usable_preset_cannot_be_the_default(
    host: Host, heald_home: Path, write: Write
) -> None:
    write("bad", "=")
    author = host.scope.require(preset_authoring)

    with pytest.raises(PresetNotFound):
        await author.set_default("minimul", None)
    with pytest.raises(PresetInvalid):
        await author.set_default("bad", None)

    assert not (heald_home / "heald.toml").exists()


async def test_defaults_set_at_once_leave_a_whole_file(host: Host, heald_home: Path) -> None:
    author = host.scope.require(preset_authoring)

    done = await asyncio.gather(
        *(author.set_default(preset, None) for preset in ("minimal", "standard") * 5)
    )

    text = (heald_home / "heald.toml").read_text()
    assert text in {
        default(preset).replace("config", "optional = true\nconfig")
        for preset in ("minimal", "standard")
    }
    assert len(done) == 10
