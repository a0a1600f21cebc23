"""The verb `heald commands`: what a session can be told after a slash."""

from __future__ import annotations

from typing import Any

import click

from heald import Host, visible
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_commands.catalogue import Listed, listed
from heald_commands.hookspecs import command_directory
from heald_commands.places import place_of

_WIDEST = 80
"""Characters of a description that the table shows."""


@click.command("commands")
@click.argument("session", required=False)
@click.option("--preset", metavar="ID", help="As if the session ran on this preset.")
@click.option("--all", "show_all", is_flag=True, help="Show those whose name another one has, too.")
@json_option
@host_verb
async def list_commands(
    host: Host, *, session: str | None, preset: str | None, show_all: bool, as_json: bool
) -> None:
    """List the slash commands of a session, and whose they are.

    SESSION is an id or the beginning of one; without it, a new session in this directory on the
    default preset. `heald run --session SESSION "/NAME ..."` runs one.
    """
    async with place_of(host, session, preset=preset) as place:
        place.scope.require(command_directory)
        shown = [c for c in await listed(place.scope, place.cwd) if show_all or not c.hidden_by]
    if as_json:
        print_json([_object(each) for each in shown])
        return
    if not shown:
        click.echo("There are no commands here; a preset's rows bring some.")
        return
    headers = ("command", "description", "row", "plugin", "remark")
    print_table(headers if show_all else headers[:-1], (_row(c, show_all) for c in shown))


def _row(each: Listed, show_all: bool) -> tuple[object, ...]:
    description = " ".join(each.command.description.split())
    if len(description) > _WIDEST:
        description = description[: _WIDEST - 3] + "..."
    cells = (f"/{each.command.name}", description, each.origin.row, each.origin.plugin)
    remark = f"hidden by row {each.hidden_by.row}" if each.hidden_by else None
    return (*map(visible, cells), *((remark,) if show_all else ()))


def _object(each: Listed) -> dict[str, Any]:
    return {
        "name": each.command.name,
        "description": each.command.description,
        "row": each.origin.row,
        "plugin": each.origin.plugin,
        "hidden_by": each.hidden_by.row if each.hidden_by else None,
    }
