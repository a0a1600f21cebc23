"""`heald compose`: the host's rows and where each field of them was written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import click

from heald.errors import CompositionError, Fault
from heald.layers import stack
from heald.planned import plugin_of
from heald.rows import Row
from heald.verbs import Invocation, json_option, print_json


@click.command()
@json_option
@click.pass_obj
def compose(invocation: Invocation, *, as_json: bool) -> None:
    """Print the rows that the host is made of, with the origin of each row and field.

    Reads files only: no plugin is imported, and environment references are shown as written.
    """
    profile = invocation.read_profile()
    stacked = stack(profile.layers, os.environ)
    if as_json:
        print_json([_as_json(row) for row in stacked.rows])
    else:
        click.echo(f"profile {profile.name}, {len(stacked.rows)} rows, in the order of the layers:")
        for layer in profile.layers:
            click.echo(f"  {layer.name}")
        for row in stacked.rows:
            _print(row)
    for notice in stacked.notices:
        click.echo(f"heald: {notice}", err=True)
    found = [plugin_of(row, invocation.discovery) for row in stacked.rows if not row.disabled]
    if faults := tuple(item for item in found if isinstance(item, Fault)):
        raise CompositionError(faults)


def _print(row: Row) -> None:
    state = " (disabled)" if row.disabled else ""
    click.echo(f"\n{row.id}{state}  [{row.layer}]")
    click.echo(f"  plugin = {json.dumps(row.plugin)}  [{row.origin_of('plugin')}]")
    if row.disabled:
        click.echo(f"  disabled = true  [{row.origin_of('disabled')}]")
    for field, value in _leaves(row.written):
        shown = json.dumps(value, ensure_ascii=False, default=str)
        click.echo(f"  {field} = {shown}  [{row.origin_of(field)}]")


def _leaves(config: Mapping[str, Any], path: str = "config") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        here = f"{path}.{key}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield here, value


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "plugin": row.plugin,
        "disabled": row.disabled,
        "config": json.loads(json.dumps(row.written, default=str)),
        "layer": row.layer,
        "origins": dict(row.origins),
    }
