"""The verb `heald skills`: which skills a session's agent has, and what keeps others away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from heald import Host, Scope, visible
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_commands import commands, place_of
from heald_skills.contracts import Skill
from heald_skills.hookspecs import skills

_WIDEST = 80
"""Characters of a description that the table shows."""


@click.command("skills")
@click.argument("session", required=False)
@click.option("--preset", metavar="ID", help="As if the session ran on this preset.")
@click.option("--all", "show_all", is_flag=True, help="Show skills that another root hides, too.")
@json_option
@host_verb
async def list_skills(
    host: Host, *, session: str | None, preset: str | None, show_all: bool, as_json: bool
) -> None:
    """List the skills of a session, and what is wrong with those that cannot be used.

    SESSION is an id or the beginning of one; without it, a new session in this directory on the
    default preset. Where several roots have a skill of one name the first wins: the preset's and
    those of what it extends, the project's in .heald/skills, yours in HEALD_HOME/skills, packages'.
    """
    async with place_of(host, session, preset=preset) as place:
        service = place.scope.find(skills)
        found = await service.catalogue(place.cwd) if service is not None else ()
        taken = _commands(place.scope)
    shown = [skill for skill in found if show_all or not skill.hidden]
    if as_json:
        print_json([_object(skill, taken) for skill in shown])
    elif service is None:
        click.echo(
            f"Preset {place.preset} has no skills." if place.preset else "No row has skills."
        )
    elif not shown:
        click.echo("There are no skills here; .heald/skills/NAME/SKILL.md makes one.")
    else:
        print_table(
            ("skill", "description", "root", "remark"), (_row(skill, taken) for skill in shown)
        )


def _commands(scope: Scope) -> Mapping[str, str]:
    """Return which row has each name as a command, which a skill of that name is then not."""
    return {found.value.name: found.origin.row for found in scope.collect(commands)}


def _row(skill: Skill, taken: Mapping[str, str]) -> tuple[str | None, ...]:
    description = skill.description
    if len(description) > _WIDEST:
        description = description[: _WIDEST - 3] + "..."
    remark = _remark(skill, taken)
    cells = (skill.name, description, f"{skill.root}{' (hidden)' if skill.hidden else ''}")
    return (*map(visible, cells), None if remark is None else visible(remark))


def _remark(skill: Skill, taken: Mapping[str, str]) -> str | None:
    if skill.problem is None and skill.name in taken:
        return f"/{skill.name} is a command of row {taken[skill.name]}"
    return skill.problem


def _object(skill: Skill, taken: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": visible(skill.name),
        "description": skill.description,
        "root": skill.root,
        "directory": visible(str(skill.directory)),
        "extra": dict(skill.extra),
        "problem": skill.problem,
        "hidden": skill.hidden,
        "command_of": taken.get(skill.name),
    }
