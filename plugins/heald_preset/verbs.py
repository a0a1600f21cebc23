"""`heald presets`: which presets there are, and what each comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heald import Host
from heald.verbs import (
    host_verb,
    json_option,
    print_json,
    print_row,
    print_table,
    row_as_json,
)
from heald_preset.contracts import Preset
from heald_preset.hookspecs import presets


@click.command("list")
@click.option("--all", "show_all", is_flag=True, help="Show presets that another root hides, too.")
@json_option
@host_verb
async def list_presets(host: Host, *, show_all: bool, as_json: bool) -> None:
    """List the presets that a session in this directory can choose.

    A preset that cannot be used is listed with what is wrong with it. The default is marked with
    an asterisk. Where several roots have a preset of one id the first wins: the shipped ones,
    those of packages, the project's in .heald/presets, yours in HEALD_HOME/presets.
    """
    service = host.scope.require(presets)
    default = service.default()
    shown = [p for p in service.roster(Path.cwd()) if show_all or not p.shadowed]
    if as_json:
        print_json([_preset_json(preset, default) for preset in shown])
        return
    print_table(
        ("preset", "label", "root", "problem"),
        ((_marked(p, default), p.label, _root(p), p.problem) for p in shown),
    )


def _marked(preset: Preset, default: str) -> str:
    return f"{preset.id} *" if preset.id == default and not preset.shadowed else preset.id


def _root(preset: Preset) -> str:
    return f"{preset.root} (hidden)" if preset.shadowed else preset.root


def _preset_json(preset: Preset, default: str) -> dict[str, Any]:
    return {
        "id": preset.id,
        "label": preset.label,
        "description": preset.description,
        "order": preset.order,
        "root": preset.root,
        "path": str(preset.path),
        "extends": preset.extends,
        "default": preset.id == default and not preset.shadowed,
        "shadowed": preset.shadowed,
        "problem": preset.problem,
    }


@click.command("show")
@click.argument("preset", metavar="ID")
@click.option("--origins", is_flag=True, help="Say which file wrote each field.")
@json_option
@host_verb
async def show_preset(host: Host, preset: str, *, origins: bool, as_json: bool) -> None:
    """Print the rows that a preset comes to, after what it extends and every patch.

    References to the environment are shown as written. JSON always has the origins.
    """
    rows = host.scope.require(presets).resolve(preset, Path.cwd()).rows
    if as_json:
        print_json({"id": preset, "rows": [row_as_json(row) for row in rows]})
        return
    click.echo(f"preset {preset}: {len(rows)} rows")
    for row in rows:
        print_row(row, origins=origins)
