"""What the shipped presets are made of."""

from __future__ import annotations

from heald import Row
from heald.testing import HostFactory
from heald_agent import prompt_sections, tools
from heald_commands import commands
from heald_preset import Presets, presets

ROWS = ("skills", "instructions", "plan", "todo", "ask", "compaction")
TOOLS = [
    *("read", "glob", "grep", "write", "edit"),
    "shell",
    *("subagent", "send_message", "wait_agents", "list_agents"),
    *("skill", "leave_plan", "todo", "ask_person"),
]


async def rows(service: Presets, preset: str) -> list[tuple[str, str]]:
    """Return the rows a preset comes to."""
    return [(row.id, row.plugin) for row in (await service.resolve(preset, None)).rows]


async def test_the_shipped_presets_name_exactly_their_rows(heald_host: HostFactory) -> None:
    async with heald_host() as host:
        service = host.scope.require(presets)

        assert [(p.id, p.problem) for p in await service.roster(None)] == [
            ("standard", None),
            ("minimal", None),
        ]
        assert await rows(service, "standard") == [
            ("persona", "persona"),
            ("files", "tools-files"),
            ("shell", "tools-shell"),
            ("agents", "tools-agents"),
            *((name, name) for name in ROWS),
        ]
        assert await rows(service, "minimal") == [
            ("persona", "persona"),
            ("shell", "tools-shell"),
            ("files", "tools-files"),
        ]


async def test_the_shipped_presets_have_exactly_their_tools_and_sections(
    heald_host: HostFactory,
) -> None:
    async with heald_host() as host:
        service = host.scope.require(presets)
        of_host = host.scope.collect(commands)
        found = {}
        for preset in ("standard", "minimal", "standard"):
            seat = await service.seat(preset, None)
            scope = seat.composition.scope
            found[preset] = (
                [tool.value.name for tool in scope.collect(tools)],
                [section.value.name for section in scope.collect(prompt_sections)],
                [c.value.name for c in scope.collect(commands)[: -len(of_host) or None]],
            )
            await seat.release()

    sections = ["persona", "skills", "instructions", "plan-mode"]
    assert found["standard"] == (TOOLS, sections, ["plan", "compact"])
    assert found["minimal"] == (["shell", "editor"], ["persona"], [])


async def test_no_host_row_contributes_a_tool_a_part_of_the_prompt_or_a_further_command(
    heald_host: HostFactory,
) -> None:
    async with heald_host() as host:
        assert host.scope.collect(tools) == ()
        assert host.scope.collect(prompt_sections) == ()
        of_host = {command.value.name for command in host.scope.collect(commands)}
        assert of_host <= {"model", "preset", "rename"}


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
            "shell",
            "files",
        ]
