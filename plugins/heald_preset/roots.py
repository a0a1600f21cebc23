"""The directories that presets are looked for in, in the order in which the first one wins."""

from __future__ import annotations

from pathlib import Path

from heald import Scope
from heald_preset.contracts import PresetRoot
from heald_preset.hookspecs import preset_roots

SHIPPED = PresetRoot("shipped", Path(__file__).parent / "shipped")


def roots(scope: Scope, cwd: Path | None) -> tuple[PresetRoot, ...]:
    """Return a session's roots: shipped, of packages, of its directory's project, the user's.

    Without a directory there is no project.
    """
    packaged = (contribution.value for contribution in scope.collect(preset_roots))
    project = () if cwd is None else (PresetRoot("project", cwd / ".heald" / "presets"),)
    return (SHIPPED, *packaged, *project, user_root(scope))


def user_root(scope: Scope) -> PresetRoot:
    """Return the person's own root, the only one that is written to."""
    return PresetRoot("user", scope.host.home / "presets")
