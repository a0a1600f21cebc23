"""What stands between the two `---` of a SKILL.md."""

from __future__ import annotations

import json
from typing import Any

import attrs
import yaml

from heald_skills.problems import SkillProblem

LONGEST_DESCRIPTION = 1_024
"""Characters of a description; the rest of a longer one is left out."""

_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@attrs.frozen
class FrontMatter:
    """What a skill says of itself."""

    name: str | None
    description: str
    extra: dict[str, Any]


def parsed(text: str) -> FrontMatter:
    """Parse front matter; raises `SkillProblem`."""
    entries = _plain(_mapping(text))
    name, description = entries.pop("name", None), entries.pop("description", None)
    if name is not None and not isinstance(name, str):
        raise SkillProblem(f"`name` is {name!r}, not text")
    if not isinstance(description, str) or not description.strip():
        raise SkillProblem("its front matter has no `description` that is text")
    return FrontMatter(name, _one_line(description), entries)


def _mapping(text: str) -> dict[Any, Any]:
    try:
        if "*" in text and any(map(_is_alias, yaml.parse(text, Loader=_Loader))):
            raise SkillProblem("its front matter has YAML aliases, which are not read")
        loaded = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, in C where there is one
    except yaml.YAMLError as error:
        raise SkillProblem(f"its front matter is no YAML: {_told(error)}") from error
    except (ValueError, TypeError, RecursionError, OverflowError) as error:  # a date of no year
        raise SkillProblem(f"its front matter cannot be read: {error}") from error
    if not isinstance(loaded, dict):
        raise SkillProblem(f"its front matter is {_kind(loaded)}, not `key: value` lines")
    return loaded


def _told(error: yaml.YAMLError) -> str:
    """Say what is wrong and in which line of the file; its first line is the `---`."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 2}: {error.problem}"
    return " ".join(str(error).split())


def _kind(loaded: object) -> str:
    return "empty" if loaded is None else f"a {type(loaded).__name__}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_DESCRIPTION else line[: LONGEST_DESCRIPTION - 3] + "..."


def _plain(entries: dict[Any, Any]) -> dict[str, Any]:
    """Return JSON values: dates and the like as text, keys that cannot be JSON left out."""
    try:
        text = json.dumps(entries, default=str, skipkeys=True, allow_nan=False, ensure_ascii=False)
        plain: dict[str, Any] = json.loads(text.encode())  # which half a surrogate pair cannot be
    except (ValueError, RecursionError) as error:
        raise SkillProblem(f"its front matter cannot be read: {error}") from error
    return plain


def _is_alias(event: yaml.Event) -> bool:
    return isinstance(event, yaml.AliasEvent)
