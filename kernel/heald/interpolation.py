"""What configuration takes from where it runs: `${env:NAME}` in values, and the tests of `when`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$(\$)?\{env:([^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

PLATFORMS = {"linux": "linux", "macos": "darwin", "windows": "win32"}
"""What `when.platform` may say, and how the `sys.platform` it means begins."""


class FromEnvironment(str):
    """A value that the environment filled in: it may stand for a number, and is not to be shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<from the environment>"


def fill(value: Any, env: Mapping[str, str], path: str, wrong: list[tuple[str, str]]) -> Any:
    """Return a copy of `value` with every reference filled in.

    `${env:NAME:-default}` has a default, without `}` in it; `$${env:NAME}` stands for itself. A
    reference that cannot be filled in is added to `wrong` as (field, message).
    """
    if isinstance(value, dict):
        return {key: fill(item, env, f"{path}.{key}", wrong) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, env, f"{path}[{n}]", wrong) for n, item in enumerate(value)]
    if not isinstance(value, str) or "${env:" not in value:
        return value
    filled = False

    def replace(match: re.Match[str]) -> str:
        nonlocal filled
        escaped, reference = match.groups()
        if escaped:
            return match.group(0)[1:]
        filled = True
        name, has_default, default = reference.partition(":-")
        if not _VARIABLE.fullmatch(name):
            wrong.append(
                (path, f"expected ${{env:NAME}} or ${{env:NAME:-default}}, got {match[0]}")
            )
        elif name not in env and not has_default:
            hint = f"set it or write ${{env:{name}:-default}}"
            wrong.append((path, f"environment variable {name} is not set; {hint}"))
        return env.get(name, default)

    text = _REFERENCE.sub(replace, value)
    return FromEnvironment(text) if filled else text


def holds(when: Mapping[str, str], env: Mapping[str, str], platform: str) -> bool:
    """Say whether a `when` table is true: every condition it names must be.

    `env` names a variable that must be set and not empty.
    """
    on = "platform" not in when or platform.startswith(PLATFORMS[when["platform"]])
    return on and ("env" not in when or bool(env.get(when["env"])))
