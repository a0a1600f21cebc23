"""What a host tells its rows before it stops."""

from __future__ import annotations

import asyncio

from heald import Deadlines, Discovery, NoConfig, Plugin, Row, host_closing, implements
from heald.testing import HostFactory


async def test_a_closing_host_is_told_of_while_rows_of_every_composition_run(
    heald_host: HostFactory,
) -> None:
    seen: list[str] = []

    class Worker(Plugin[NoConfig]):
        @implements(host_closing)
        async def closing(self) -> None:
            seen.append("told")

        async def stop(self) -> None:
            seen.append("worker stopped")

    class Needed(Plugin[NoConfig]):
        async def stop(self) -> None:
            seen.append("needed stopped")

    discovery = Discovery(program={"worker": Worker, "needed": Needed})
    async with heald_host(rows=[Row("worker", "worker")], discovery=discovery) as host:
        await host.mount("preset", [Row("needed", "needed")])
    assert seen == ["told", "needed stopped", "worker stopped"]


async def test_a_listener_that_raises_or_waits_for_ever_does_not_keep_the_host(
    heald_host: HostFactory,
) -> None:
    stopped: list[str] = []

    class Raising(Plugin[NoConfig]):
        @implements(host_closing)
        async def closing(self) -> None:
            raise RuntimeError("no")

    class Waiting(Plugin[NoConfig]):
        @implements(host_closing)
        async def closing(self) -> None:
            await asyncio.Event().wait()

        async def stop(self) -> None:
            stopped.append(self.row)

    discovery = Discovery(program={"raising": Raising, "waiting": Waiting})
    async with heald_host(
        rows=[Row("raising", "raising"), Row("waiting", "waiting")],
        discovery=discovery,
        deadlines=Deadlines(stop=0.05),
    ):
        pass
    assert stopped == ["waiting"]
