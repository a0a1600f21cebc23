"""Ignore rules: what the `.gitignore` files that apply to a path say about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILE = ".gitignore"
_MOST_BYTES = 1_000_000


@attrs.frozen
class IgnoreRules:
    """The rules of one directory, and those of the directories above it."""

    spec: GitIgnoreSpec
    depth: int
    """How many names lead from the top to the directory."""
    above: IgnoreRules | None

    def ignore(self, names: Sequence[str], *, directory: bool) -> bool:
        """Say whether a path, as names from the top, is ignored; the nearest rule decides."""
        rules: IgnoreRules | None = self
        while rules is not None:
            path = "/".join(names[rules.depth :]) + ("/" if directory else "")
            if (decided := rules.spec.check_file(path).include) is not None:
                return decided
            rules = rules.above
        return False


@attrs.frozen
class Ground:
    """Where a walk begins: its names from the top of the work tree, and the rules above it."""

    names: tuple[str, ...]
    rules: IgnoreRules | None


def rules_in(directory: Path, depth: int, above: IgnoreRules | None) -> IgnoreRules | None:
    """Add a directory's rules to those above it; rules that cannot be read are not there."""
    try:
        with (directory / FILE).open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return above
    return IgnoreRules(_spec(text), depth, above)


def ground(root: Path) -> Ground:
    """Find the git work tree that a directory is in, and what its rules above there say.

    A directory that is itself ignored and was asked for by name is walked without those rules.
    """
    top = next((place for place in (root, *root.parents) if _is_work_tree(place)), root)
    names = root.relative_to(top).parts
    rules: IgnoreRules | None = None
    for depth in range(len(names)):
        rules = rules_in(top.joinpath(*names[:depth]), depth, rules)
    if rules is not None and rules.ignore(names, directory=True):
        rules = None
    return Ground(names, rules)


def _is_work_tree(place: Path) -> bool:
    return os.path.exists(place / ".git")  # noqa: PTH110 - False, not an error, behind a shut door


def _spec(text: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - many trees have no such file

    kept = []
    for line in text.split("\n"):
        pattern = line.removesuffix("\r")
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:  # git passes over a pattern that is none
            continue
        kept.append(pattern)
    return GitIgnoreSpec.from_lines(kept)
