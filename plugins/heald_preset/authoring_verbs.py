"""`heald presets copy`, `new`, `remove` and `use`: a person's own presets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from heald import Host
from heald.verbs import host_verb, json_option, print_json
from heald_preset.contracts import Preset
from heald_preset.hookspecs import preset_authoring, presets
from heald_query import find_session, session_query
from heald_session import session_store


@click.command("copy")
@click.argument("source", metavar="ID")
@click.argument("new", metavar="NEW")
@json_option
@host_verb
async def copy_preset(host: Host, source: str, new: str, *, as_json: bool) -> None:
    """Make a preset of your own out of another, with all that is in its directory.

    A copy stays as it is when the other one changes. To follow it, make a preset that extends it:
    `heald presets new NEW --extends ID`.
    """
    path = await host.scope.require(preset_authoring).copy(source, new, Path.cwd())
    _tell_made(new, path, as_json=as_json)


@click.command("new")
@click.argument("new", metavar="ID")
@click.option("--extends", metavar="ID", help="The preset whose rows it begins with.")
@json_option
@host_verb
async def new_preset(host: Host, new: str, *, extends: str | None, as_json: bool) -> None:
    """Make a preset of your own, with a file to start from."""
    path = await host.scope.require(preset_authoring).create(new, extends, Path.cwd())
    _tell_made(new, path, as_json=as_json)


def _tell_made(preset: str, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"id": preset, "path": str(path)})
        return
    click.echo(path / "preset.toml")
    click.echo(f"heald: edit it, then try it with `heald presets check {preset}`", err=True)


def _ask(ctx: click.Context, _: click.Parameter, yes: bool) -> bool:  # noqa: FBT001 - as click calls
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here, so say --yes")
    if not yes and not click.confirm(f"Remove preset {ctx.params['preset']}?", err=True):
        ctx.exit(1)
    return True


@click.command("remove")
@click.argument("preset", metavar="ID", is_eager=True)
@click.option("--yes", is_flag=True, callback=_ask, expose_value=False, help="Do not ask.")
@json_option
@host_verb
async def remove_preset(host: Host, preset: str, *, as_json: bool) -> None:
    """Take a preset of your own out of the list.

    Its directory is moved to where it can be had back from, and sessions that run on it keep what
    they have. A default that names it is cleared.
    """
    removed = await host.scope.require(preset_authoring).remove(preset, Path.cwd())
    roster = await host.scope.require(presets).roster(Path.cwd())
    if as_json:
        kept = str(removed.kept)
        print_json({"id": removed.id, "kept": kept, "default": removed.default})
    else:
        click.echo(f"preset {preset} is now in {removed.kept}")
    if removed.default == preset:
        click.echo("heald: it is still the default; see where in `heald compose`", err=True)
    elif removed.default is not None:
        click.echo(f"heald: it was the default, which is now {removed.default}", err=True)
    if broken := _without(preset, roster):
        click.echo(f"heald: presets that extend it are broken now: {', '.join(broken)}", err=True)


def _without(preset: str, roster: Sequence[Preset]) -> list[str]:
    """Return which presets extend one that is not there."""
    if any(other.id == preset for other in roster):
        return []
    return [other.id for other in roster if other.extends == preset and not other.shadowed]


@click.command("use")
@click.argument("preset", metavar="ID")
@click.option("--session", help="Choose it for this session, in which no turn has begun.")
@json_option
@host_verb
async def use_preset(host: Host, preset: str, *, session: str | None, as_json: bool) -> int:
    """Make a preset the default, for sessions that name none.

    It is written into heald.toml in the home. A host that runs already takes it for its next
    session, too. With --session nothing of that: it is chosen for one session that is stored.
    """
    if session is not None:
        await _use_in(host, preset, session, as_json=as_json)
        return 0
    chosen = await host.scope.require(preset_authoring).set_default(preset, Path.cwd())
    if as_json:
        print_json({"id": preset, "file": str(chosen.file), "default": chosen.holds})
    elif chosen.holds == preset:
        click.echo(f"preset {preset} is the default now ({chosen.file})")
    if chosen.holds != preset:
        told = f"{preset} was written into {chosen.file}, but {chosen.holds_by} comes after it"
        click.echo(f"heald: {told}: the default is {chosen.holds}", err=True)
        return 1
    roster = await host.scope.require(presets).roster(None)
    if all(other.id != preset for other in roster):
        told = f"{preset} is one of this project; elsewhere the default names nothing"
        click.echo(f"heald: {told}", err=True)
    return 0


async def _use_in(host: Host, preset: str, session: str, *, as_json: bool) -> None:
    """Switch one session, writing nothing else into it."""
    id_ = await find_session(host.scope.require(session_query), session)
    store = host.scope.require(session_store)
    live = await store.resume(id_)
    try:
        choice = await host.scope.require(presets).switch(live, preset)
    finally:
        await store.dispose(live)
    if as_json:
        print_json({"session": id_, "preset": choice.preset, "seq": choice.seq})
    else:
        already = " already" if choice.seq is None else ""
        click.echo(f"session {id_} runs on preset {choice.preset}{already}")
