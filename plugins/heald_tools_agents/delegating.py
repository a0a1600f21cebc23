"""The tools `subagent`, `send_message` and `wait_agents`."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from heald_agent import Tool, ToolContext, ToolError
from heald_session import SessionId
from heald_subagent import ChildResult, Delegation, subagents

DEFAULT_WAIT = 600.0


class SubagentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model says to delegate a task."""

    task: Annotated[
        str,
        Meta(
            min_length=1,
            description="Everything the subagent needs: what to do, where to look, what to bring "
            "back, what to leave alone. It sees nothing of this conversation.",
        ),
    ]
    label: Annotated[
        str | None,
        Meta(description="A short name, shown to people. Required for a continuable subagent."),
    ] = None
    mode: Annotated[
        Literal["one-shot", "continuable"],
        Meta(
            description="one-shot: wait for the subagent and get its result. continuable: get its "
            "id at once and go on; talk to it with send_message, collect it with wait_agents."
        ),
    ] = "one-shot"
    preset: Annotated[
        str | None,
        Meta(description="Run it on another preset than yours; leave out unless asked to."),
    ] = None


class MessageArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model says to send a message."""

    to: Annotated[str, Meta(description="The id of a continuable subagent of yours.")]
    text: Annotated[str, Meta(min_length=1, description="What to tell it.")]


class WaitArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model says to wait for subagents."""

    ids: Annotated[
        list[str] | None,
        Meta(description="Which subagents to wait for; leave out for all that are live."),
    ] = None
    timeout_s: Annotated[
        float, Meta(ge=0, le=86_400, description="Stop waiting after this many seconds.")
    ] = DEFAULT_WAIT


async def _delegate(arguments: SubagentArguments, context: ToolContext) -> str:
    service = context.agent.session.scope.require(subagents)
    delegation = Delegation(task=arguments.task, label=arguments.label, preset=arguments.preset)
    if arguments.mode == "continuable":
        id = await service.start(context.agent, delegation)  # noqa: A001 - what it is
        return (
            f"Subagent {id} ({arguments.label}) has accepted the task and works on it. "
            f"You will get a message when it is done, or call wait_agents."
        )
    result = await service.run_one_shot(context.agent, delegation, cancel=context.cancel)
    if result.outcome != "completed":
        raise ToolError(_told(result))
    return _told(result)


async def _send(arguments: MessageArguments, context: ToolContext) -> str:
    service = context.agent.session.scope.require(subagents)
    await service.send(context.agent, SessionId(arguments.to), arguments.text)
    return f"Subagent {arguments.to} has accepted the message."


async def _wait(arguments: WaitArguments, context: ToolContext) -> str:
    service = context.agent.session.scope.require(subagents)
    results = await service.wait(
        context.agent,
        [SessionId(id_) for id_ in arguments.ids or ()],
        timeout=arguments.timeout_s,
        cancel=context.cancel,
    )
    return "\n\n".join(map(_told, results)) or "(no subagents to wait for)"


def _told(result: ChildResult) -> str:
    return f"Subagent {result.id} {result.outcome}:\n{result.text or '(it said nothing)'}"


SUBAGENT = Tool(
    name="subagent",
    description=(
        "Give a task to a subagent: another agent with tools like yours, in the same directory, "
        "that starts with an empty conversation. Use it for work that stands on its own and would "
        "fill your context, or for several independent tasks: call it several times in one step "
        "and they run side by side. A one-shot subagent (the default) returns its closing message "
        "and is gone. A continuable one stays and can be sent further messages. You answer for "
        "what comes back, so check it. Do small things yourself."
    ),
    arguments=SubagentArguments,
    run=_delegate,
    parallel=True,
    timeout=math.inf,  # as long as its turns take, which have limits of their own
)

SEND_MESSAGE = Tool(
    name="send_message",
    description=(
        "Send a message to a continuable subagent that you started. It reads it at the start of "
        "its next turn: now if it is idle, else when its present turn is over. A subagent that is "
        "inactive is resumed. This does not wait for the answer; call wait_agents for that."
    ),
    arguments=MessageArguments,
    run=_send,
    parallel=True,
)

WAIT_AGENTS = Tool(
    name="wait_agents",
    description=(
        "Wait until continuable subagents of yours have nothing left to do, and get the closing "
        "message of each. One that is still at work when the time is over is reported as running "
        "and works on. What you collect here is not sent to you as a message again."
    ),
    arguments=WaitArguments,
    run=_wait,
    parallel=True,
    changes=False,
    timeout=math.inf,  # it has an argument for that
)
