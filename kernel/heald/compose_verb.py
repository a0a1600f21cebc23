"""`heald compose`: the host's rows and where each field of them was written."""

from __future__ import annotations

import os

import click

from heald.errors import CompositionError
from heald.faults import Fault
from heald.layers import stack
from heald.planned import plugin_of
from heald.verbs import Invocation, json_option, print_json, print_row, row_as_json


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
        print_json([row_as_json(row) for row in stacked.rows])
    else:
        click.echo(f"profile {profile.name}, {len(stacked.rows)} rows, in the order of the layers:")
        for layer in profile.layers:
            click.echo(f"  {layer.name}")
        for row in stacked.rows:
            print_row(row, origins=True)
    for notice in stacked.notices:
        click.echo(f"heald: {notice}", err=True)
    found = [plugin_of(row, invocation.discovery) for row in stacked.rows if not row.disabled]
    if faults := tuple(item for item in found if isinstance(item, Fault)):
        raise CompositionError(faults)
