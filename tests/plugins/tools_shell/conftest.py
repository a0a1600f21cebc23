"""Real agents with a shell tool, called as the turn loop calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

from heald import CancelToken, Host, Row
from heald.testing import HostFactory
from heald_agent import Agent, ToolContext, agents, tools


@attrs.frozen
class Shells:
    """A host whose agents have the shell tool."""

    host: Host
    work: Path

    async def agent(self) -> Agent:
        return await self.host.scope.require(agents).create(cwd=self.work)

    def on(self, agent: Agent) -> Callable[..., Coroutine[Any, Any, str]]:
        """Return the tool of one agent."""
        (tool,) = (c.value for c in agent.session.scope.collect(tools))

        async def run(command: str, cancel: CancelToken | None = None, **written: Any) -> str:
            context = ToolContext(
                agent=agent, call_id="call", cwd=self.work, cancel=cancel or CancelToken()
            )
            arguments = msgspec.convert({"command": command, **written}, tool.arguments)
            return await tool.run(arguments, context)

        return run


@pytest.fixture
def shells(
    heald_host: HostFactory, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[Shells]]:
    work = tmp_path / "work"
    work.mkdir()

    @asynccontextmanager
    async def opened(config: Mapping[str, Any] | None = None) -> AsyncIterator[Shells]:
        rows = [
            Row("session", "session"),
            Row("agent", "agent"),
            Row("shell", "tools-shell", config or {}),
        ]
        async with heald_host(rows=rows) as host:
            yield Shells(host, work)

    return opened


@pytest.fixture(params=["bash", "sh"])
async def sh(
    request: pytest.FixtureRequest, shells: Callable[..., AbstractAsyncContextManager[Shells]]
) -> AsyncIterator[Callable[..., Coroutine[Any, Any, str]]]:
    async with shells({"program": request.param, "timeout_s": 20}) as opened:
        yield opened.on(await opened.agent())
