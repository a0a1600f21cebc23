"""`heald presets list`, `show`, `check` and `diff`: which presets there are, and what they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from heald import FieldChange, Host, RowChange, counted, differences
from heald.verbs import (
    as_written,
    host_verb,
    json_option,
    print_json,
    print_row,
    print_table,
    row_as_json,
)
from heald_preset.contracts import Preset, Presets
from heald_preset.errors import PresetInvalid
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
    default = await service.default()
    shown = [p for p in await service.roster(Path.cwd()) if show_all or not p.shadowed]
    if as_json:
        print_json([_preset_json(preset, default) for preset in shown])
    else:
        print_table(
            ("preset", "label", "root", "problem"),
            ((_marked(p, default), p.label, _root(p), p.problem) for p in shown),
        )
    if all(preset.id != default for preset in shown):
        hint = "choose one with `heald presets use ID`"
        click.echo(f"heald: the default is {default!r}, which is not there; {hint}", err=True)


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
    rows = (await host.scope.require(presets).resolve(preset, Path.cwd())).rows
    if as_json:
        print_json({"id": preset, "rows": [row_as_json(row) for row in rows]})
        return
    click.echo(f"preset {preset}: {counted(len(rows), 'row')}")
    for row in rows:
        print_row(row, origins=origins)


@click.command("check")
@click.argument("preset", metavar="[ID]", required=False)
@click.option("--all", "check_all", is_flag=True, help="Check every preset that is listed.")
@json_option
@host_verb
async def check_preset(host: Host, preset: str | None, *, check_all: bool, as_json: bool) -> int:
    """Start every row of a preset for once, and stop it again.

    All that is wrong is told at once. The exit code is 1 if there is anything.
    """
    if (preset is None) != check_all:
        raise click.UsageError("name one preset, or say --all")
    service = host.scope.require(presets)
    listed = [] if preset else await service.roster(Path.cwd())
    names = [preset] if preset else [p.id for p in listed if not p.shadowed]
    outcomes = [(name, await _checked(service, name)) for name in names]
    if as_json:
        print_json([_outcome_json(name, error) for name, error in outcomes])
    else:
        for name, error in outcomes:
            click.echo(f"preset {name!r}: works" if error is None else str(error))
    return int(any(error for _, error in outcomes))


async def _checked(service: Presets, preset: str) -> PresetInvalid | None:
    try:
        await service.check(preset, Path.cwd())
    except PresetInvalid as error:
        return error
    return None


def _outcome_json(preset: str, error: PresetInvalid | None) -> dict[str, Any]:
    return {
        "id": preset,
        "problem": error.reason if error else None,
        "failed": [attrs.asdict(failed) for failed in error.failed] if error else [],
    }


@click.command("diff")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@json_option
@host_verb
async def diff_presets(host: Host, old: str, new: str, *, as_json: bool) -> None:
    """Print how the rows of preset B differ from those of A, and which file wrote each field.

    A line with - holds for A, a line with + for B. References to the environment are shown as
    written.
    """
    service = host.scope.require(presets)
    rows = [(await service.resolve(preset, Path.cwd())).rows for preset in (old, new)]
    changes = differences(*rows)
    if as_json:
        print_json([attrs.asdict(change) for change in changes])
    elif not changes:
        click.echo(f"{old} and {new} come to the same rows")
    else:
        click.echo("\n\n".join("\n".join(_lines(change)) for change in changes))


def _lines(change: RowChange) -> Iterator[str]:
    yield change.row if change.change == "changed" else f"{change.row} ({change.change})"
    for field in change.fields:
        yield from _field_lines(field)


def _field_lines(field: FieldChange) -> Iterator[str]:
    sides = (("-", field.old, field.old_origin), ("+", field.new, field.new_origin))
    for sign, value, origin in sides:
        if origin is not None:
            yield f"  {sign} {field.field} = {as_written(value)}  [{origin}]"
        elif field.field == "after":
            yield f"  {sign} stands " + (f"after {value}" if value else "first")
