"""The row of the session tools: chosen by a preset, never there by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heald import CompositionError, Row
from heald.testing import HostFactory
from heald_agent import tools
from heald_preset import presets

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "let-a-model-search-sessions.md"
SESSION_TOOLS = ["search_sessions", "read_session", "session_lineage"]


async def test_a_preset_that_names_the_row_as_the_docs_do_has_the_tools(
    heald_host: HostFactory, heald_home: Path
) -> None:
    found = re.search(r":caption: presets/(\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    path = heald_home / "presets" / found[1]
    path.parent.mkdir(parents=True)
    path.write_text(found[2])
    async with heald_host() as host:
        seat = await host.scope.require(presets).seat("archivist", None)
        names = [tool.value.name for tool in seat.composition.scope.collect(tools)]
        assert names[-3:] == SESSION_TOOLS
        assert len(names) > len(SESSION_TOOLS)
        await seat.release()


@pytest.mark.parametrize("preset", ["standard", "minimal"])
async def test_no_shipped_preset_has_them(heald_host: HostFactory, preset: str) -> None:
    async with heald_host() as host:
        seat = await host.scope.require(presets).seat(preset, None)
        names = {tool.value.name for tool in seat.composition.scope.collect(tools)}
        assert names.isdisjoint(SESSION_TOOLS)
        await seat.release()


async def test_the_row_needs_the_query(heald_host: HostFactory) -> None:
    with pytest.raises(CompositionError, match="plugin 'query'"):
        async with heald_host(rows=[Row("tools-sessions", "tools-sessions")]):
            pass
