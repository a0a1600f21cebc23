"""A person for tests: somebody who is there, is asked, and answers as the test says."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Literal

import attrs

from heald import NoConfig, Plugin, implements
from heald_agent.asks import Answerer
from heald_agent.events import AskDecided, AskOpened
from heald_agent.hookspecs import agents, answerers, ask_opened
from heald_session import Session


@attrs.define(eq=False)
class Person:
    """Hears every ask of a host that has a row of `plugin()`.

    ```python
    person = Person()
    discovery = Discovery(program={"person": person.plugin()})
    ```
    """

    there: bool = True
    """Whether asks can be answered; they are denied at once while not."""
    _asked: deque[tuple[Session, AskOpened]] = attrs.field(factory=deque)
    _news: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def asked(self) -> AskOpened:
        """Wait until something is asked that was not answered, and return what is first."""
        while not self._asked:
            self._news.clear()
            await self._news.wait()
        return self._asked[0][1]

    async def answer(
        self, outcome: Literal["answered", "approved", "denied"], text: str | None = None
    ) -> AskDecided:
        """Wait until something is asked, and decide it; raises what `Agents.answer` raises."""
        await self.asked()
        session, ask = self._asked.popleft()
        registry = session.scope.require(agents)
        return await registry.answer(session.id, ask.id, outcome, text, by="person")

    def plugin(self) -> type[Plugin[NoConfig]]:
        """Make the plugin by which this person is there."""
        person = self

        class PersonPlugin(Plugin[NoConfig]):
            @implements(answerers)
            def attend(self) -> Iterable[Answerer]:
                return (lambda _session: person.there,)

            @implements(ask_opened)
            def hear(self, session: Session, ask: AskOpened) -> None:
                person._asked.append((session, ask))
                person._news.set()

        return PersonPlugin
