"""`heald sessions new`: a session that is there before anything is said in it."""

from __future__ import annotations

from pathlib import Path

import click

from heald import Host
from heald.verbs import host_verb, json_option, print_json
from heald_persistence import session_persistence
from heald_preset.events import AGENT_PRESET_SELECTED, AgentPresetSelected
from heald_preset.hookspecs import presets
from heald_session import NewEvent, SessionRenamed, session_store


@click.command("new")
@click.option("--preset", metavar="ID", help="The preset it runs on; see `heald presets list`.")
@click.option(
    "--cwd",
    default=".",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="The directory it works in, if not this one.",
)
@click.option("--title", help="What to call it.")
@json_option
@host_verb
async def new_session(
    host: Host, *, preset: str | None, cwd: Path, title: str | None, as_json: bool
) -> None:
    """Make a session without starting a turn, and print its id.

    Its preset can be changed until the first turn: `heald presets use ID --session SESSION`.
    """
    if title is not None and not title.strip():
        raise click.BadParameter("a title has at least one visible character", param_hint="--title")
    host.scope.require(session_persistence)
    seat = await host.scope.require(presets).seat(preset, cwd)
    try:
        chosen = AgentPresetSelected(seat.preset)
        first = [NewEvent(AGENT_PRESET_SELECTED.name, chosen)]
        first += [] if title is None else [NewEvent("session/renamed", SessionRenamed(title))]
        session = await host.scope.require(session_store).create(
            cwd=str(cwd),
            agent_preset=seat.preset,
            first=first,
            composition=seat.composition,
        )
        await host.scope.require(session_store).dispose(session)
    finally:
        await seat.release()
    if as_json:
        print_json({"id": session.id, "preset": seat.preset, "cwd": session.header.cwd})
        return
    click.echo(session.id)
    click.echo(f'heald: go on with `heald run --session {session.id} "..."`', err=True)
