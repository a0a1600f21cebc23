"""`heald plugins list`: what is installed, told without importing any of it."""

from __future__ import annotations

import os

import click

from heald.discovery import PLUGINS
from heald.errors import HealdError
from heald.layers import stack
from heald.verbs import Invocation, json_option, print_json, print_table


@click.command("list")
@json_option
@click.pass_context
def list_plugins(context: click.Context, *, as_json: bool) -> None:
    """List every installed plugin, whose it is, and the host rows that use it.

    Imports none of them, so it works when they are broken. What is wrong with names or layers is
    told beside the list, and makes the exit code 1.
    """
    invocation = context.ensure_object(Invocation)
    discovery = invocation.discovery
    rows = _rows_by_plugin(invocation)
    found = discovery.every(PLUGINS)
    for conflict in discovery.conflicts.values():
        click.echo(f"heald: {conflict.code}: {conflict}", err=True)
    if as_json:
        print_json(
            [
                {
                    "name": item.name,
                    "distribution": item.distribution,
                    "version": item.version,
                    "entry_point": item.value,
                    "rows": None if rows is None else rows.get(item.name, []),
                }
                for item in found
            ]
        )
    else:
        print_table(
            ("plugin", "distribution", "entry point", "host rows"),
            (
                (
                    f.name,
                    f"{f.distribution} {f.version}",
                    f.value,
                    "?" if rows is None else ", ".join(rows.get(f.name, [])) or "-",
                )
                for f in found
            ),
        )
    context.exit(1 if rows is None or discovery.conflicts else 0)


def _rows_by_plugin(invocation: Invocation) -> dict[str, list[str]] | None:
    """Return the ids of the host's enabled rows by plugin; None if the layers do not tell."""
    try:
        rows = stack(invocation.read_profile().layers, os.environ).rows
    except HealdError as error:
        click.echo(f"heald: {error.code}: {error}", err=True)
        click.echo("heald: the host rows are not known until that is mended", err=True)
        return None
    by_plugin: dict[str, list[str]] = {}
    for row in rows:
        if not row.disabled:
            by_plugin.setdefault(row.plugin, []).append(row.id)
    return by_plugin
