"""One headless run: send a task, follow it, and tell how it ended."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

import attrs
import click
import msgspec

from heald import Host, home_directory
from heald.verbs import Invocation
from heald_agent import Agent, TurnOutcome
from heald_commands import command_directory
from heald_persistence import session_persistence
from heald_projection import projections
from heald_run.views import progress_shown
from heald_session import Session, SessionId
from heald_subagent import subagents

INTERRUPTED = "interrupted"
"""The cause that is recorded when the person pressed Ctrl-C."""


@attrs.frozen
class Finished:
    """How a run ended, in the shape programs read as JSON."""

    session: SessionId
    outcome: str
    """completed, aborted or failed."""
    text: str
    turns: int
    tools: dict[str, int]
    """How often the session called each tool."""
    children: list[dict[str, Any]]
    """The rows of the subagent listing."""
    cause: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return attrs.asdict(self)


async def run_task(host: Host, agent: Agent, task: str, *, quiet: bool) -> Finished:
    """Send a task, or run a slash command and the turn that it may start; tell how that ended.

    When the caller is cancelled, as by Ctrl-C, that is the turn's end: it is recorded as aborted
    and told like any other, and the session can be resumed.
    """
    before = None
    async with progress_shown(host, agent.session, quiet=quiet):
        try:
            before = await agent.settled()
            said = await _begin(agent, task)
            outcome = await agent.settled()
            if outcome is before:
                outcome = TurnOutcome(0, "completed", said)
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # a turn that was about to open can only be ended once it has
            agent.cancel(INTERRUPTED)
            outcome = await agent.settled()
            if before is None or outcome is before or outcome.turn == 0:
                outcome = TurnOutcome(0, "aborted", "", INTERRUPTED)
    return await _finish(host, agent, outcome)


async def _begin(agent: Agent, task: str) -> str:
    """Set off what a person typed; return what a command says, which no turn may follow."""
    if task.startswith("/"):
        directory = agent.session.scope.require(command_directory)
        return await directory.run(agent.session, task)
    await agent.send(task)
    return ""


async def _finish(host: Host, agent: Agent, outcome: TurnOutcome) -> Finished:
    """Dispose of an agent and gather what its session came to."""
    session = agent.session
    stats = _stats(session)
    await agent.dispose()
    return Finished(
        session=session.id,
        outcome=outcome.outcome,
        text=outcome.text,
        turns=stats.get("turns", 0),
        tools=stats.get("tools", {}),
        children=await _children(host, session.id),
        cause=outcome.cause,
    )


def _stats(session: Session) -> dict[str, Any]:
    registry = session.scope.find(projections)
    values = registry.snapshot(session, ["sessionStats"]).values if registry is not None else {}
    return values.get("sessionStats") or {}


async def _children(host: Host, session: SessionId) -> list[dict[str, Any]]:
    service = host.scope.find(subagents)
    rows = await service.list_children(session) if service is not None else ()
    return [msgspec.to_builtins(row) for row in rows]


def command(host: Host, *words: str) -> str:
    """Return a command line that reaches this host's sessions, to be shown to a person."""
    invocation = click.get_current_context().find_object(Invocation) or Invocation()
    before = [] if host.home == home_directory(host.env) else ["--home", str(host.home)]
    before += ["--profile", invocation.profile] if invocation.profile else []
    before += [word for patch in invocation.patches for word in ("--patch", str(patch))]
    return shlex.join(["heald", *before, *words])


def tell_how_to_go_on(host: Host, session: SessionId) -> None:
    """Print the session's id and the commands that look further, if it was kept."""
    click.echo(f"\nsession {session}")
    if host.scope.find(session_persistence) is None:
        click.echo("  it was not kept: no row keeps sessions")
        return
    for words, what in (
        (("sessions", "show", session), "the whole log"),
        (("agents", "list", session), "its subagents"),
        (("run", "--session", session, "..."), "go on"),
    ):
        click.echo(f"  {command(host, *words)}  # {what}")
