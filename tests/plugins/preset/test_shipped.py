"""What the shipped presets are made of."""

from __future__ import annotations

from heald import Row
from heald.testing import HostFactory
from heald_agent import prompt_sections, tools
from heald_commands import commands
from heald_preset import Presets, presets


def rows(service: Presets, preset: str) -> list[tuple[str, str]]:
    """Return the rows a preset comes to."""
    return [(row.id, row.plugin) for row in service.resolve(preset, None).rows]


async def test_the_shipped_presets_name_exactly_their_rows(heald_host: HostFactory) -> None:
    async with heald_host() as host:
        service = host.scope.require(presets)

        assert [(p.id, p.problem) for p in service.roster(None)] == [
            ("standard", None),
            ("minimal", None),
        ]
        assert rows(service, "standard") == [
            ("persona", "persona"),
            ("files", "tools-files"),
            ("shell", "tools-shell"),
            ("agents", "tools-agents"),
        ]
        assert rows(service, "minimal") == [
            ("persona", "persona"),
            ("files", "tools-files"),
            ("shell", "tools-shell"),
        ]


async def test_the_shipped_presets_have_exactly_their_tools_and_sections(
    heald_host: HostFactory,
) -> None:
    async with heald_host() as host:
        service = host.scope.require(presets)
        found = {}
        for preset in ("standard", "minimal", "standard"):
            seat = await service.seat(preset, None)
            scope = seat.composition.scope
            found[preset] = (
                [tool.value.name for tool in scope.collect(tools)],
                [section.value.name for section in scope.collect(prompt_sections)],
                [command.value.name for command in scope.collect(commands)],
            )
            await seat.release()

    delegation = ["subagent", "send_message", "wait_agents", "list_agents"]
    files = ["read", "glob", "grep", "write", "edit"]
    assert found["standard"] == ([*files, "shell", *delegation], ["persona"], [])
    assert found["minimal"] == (["read", "write", "edit", "shell"], ["persona"], [])


async def test_no_host_row_contributes_a_tool_or_a_part_of_the_prompt(
    heald_host: HostFactory,
) -> None:
    async with heald_host() as host:
        assert host.scope.collect(tools) == ()
        assert host.scope.collect(prompt_sections) == ()
        assert host.scope.collect(commands) == ()


async def test_a_second_session_on_standard_constructs_no_plugin(heald_host: HostFactory) -> None:
    async with heald_host() as host:
        service = host.scope.require(presets)
        await service.seat("standard", None)
        before = host.constructed

        await service.seat("standard", None)

        assert host.constructed == before


async def test_presets_need_nothing_beside_them(heald_host: HostFactory) -> None:
    async with heald_host(rows=[Row("preset", "preset")]) as host:
        seat = await host.scope.require(presets).seat("minimal", None)

        assert [row.planned.row.id for row in seat.composition.mounted] == [
            "persona",
            "files",
            "shell",
        ]
