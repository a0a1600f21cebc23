"""A host on whose preset `planning` there is plan mode, and on `plain` there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import attrs
import pytest

from heald import Discovery, Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import Agent, agents
from heald_agent.testing import Person
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_projection import projections
from heald_session import ToolResult

NAMES = (
    "session",
    "persistence",
    "projection",
    "query",
    "preset",
    "commands",
    "models-scripted",
    "person",
    "scripts",
)


@attrs.define
class Desk:
    """A host, the person on it, and a model that makes the calls a test puts into `calls`."""

    host: Host
    person: Person
    calls: list[Call]

    async def agent(self, cwd: Path, preset: str = "planning") -> Agent:
        create = self.host.scope.require(agents).create
        return await create(cwd=cwd, preset=preset, model="scripted:obeys")

    async def results(self, agent: Agent, *calls: Call) -> Sequence[ToolResult]:
        """Have an agent make calls, one a step, and return what they gave."""
        self.calls[:] = calls
        before = len(agent.session.history())
        await agent.send("go")
        await agent.settled()
        return [m for m in agent.session.history()[before:] if isinstance(m, ToolResult)]

    def plan(self, agent: Agent) -> object:
        service = self.host.scope.require(projections)
        return service.snapshot(agent.session, ["plan"]).values["plan"]


OpenDesk = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def desk(heald_host: HostFactory, heald_home: Path) -> OpenDesk:
    """Return a factory of desks; `person` is who sits there."""
    rows = {"planning": ("plan", "files", "todo", "shell"), "plain": ("files",)}
    for name, chosen in rows.items():
        folder = heald_home / "presets" / name
        folder.mkdir(parents=True)
        plugins = {"files": "tools-files", "shell": "tools-shell"}
        text = "".join(
            f'[[rows]]\nid = "{row}"\nplugin = "{plugins.get(row, row)}"\n' for row in chosen
        )
        (folder / "preset.toml").write_text(text)

    @asynccontextmanager
    async def factory(
        person: Person | None = None, without: Iterable[str] = ()
    ) -> AsyncIterator[Desk]:
        person = person if person is not None else Person()
        calls: list[Call] = []

        def play(conversation: Conversation) -> Reply:
            if conversation.step < len(calls):
                return Reply(calls=(calls[conversation.step],))
            return Reply(text="done")

        class Scripts(Plugin[NoConfig]):
            @implements(scripts)
            def give(self) -> Iterable[Script]:
                return [Script("obeys", play)]

        hosted = [Row(n, n) for n in NAMES if n not in without] + [Row("agent", "agent")]
        discovery = Discovery(program={"person": person.plugin(), "scripts": Scripts})
        async with heald_host(rows=hosted, discovery=discovery) as host:
            yield Desk(host, person, calls)

    return factory
