"""Model requests beside the conversation: of no turn, while none is open."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from heald import CancelToken
from heald_agent.answers import Answering
from heald_agent.limits import Limits
from heald_agent.loop import Pace
from heald_agent.requests import adapter_of, request_of
from heald_session import AssistantMessage, Message, Session


@attrs.frozen
class LiveAside:
    """Asks the model that the agent had when the block was entered; implements `Aside`."""

    session: Session
    model: str
    cancel: CancelToken
    _pace: Pace

    async def ask(self, messages: Sequence[Message]) -> AssistantMessage:
        self.cancel.check()
        adapter = adapter_of(self.session.scope, self.model)
        request = request_of(self.session, self.model, messages)
        await self.session.flush()
        self.cancel.check()
        silence = self._pace.model_silence_s
        asked = Answering(self.session, adapter, request, silence, streams=False)
        return await asked.reply(Limits(self.cancel, grace=self._pace.cancel_grace_s))
