"""What a preset resolves to now: rows with origins, and the generation they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import attrs

from heald import CompositionError, Host, Row, Stack, stack
from heald_preset.documents import Document
from heald_preset.problems import PresetProblem


@attrs.frozen
class Generation:
    """A preset as it is at one moment; two of equal `key` are the same."""

    preset: str
    stack: Stack
    key: str
    directories: tuple[Path, ...]
    """The preset's own, then that of what it extends, and so on."""


def resolve(chain: Sequence[Document], host: Host) -> Stack:
    """Stack a preset's documents above the host's rows, mounting nothing.

    Raises `PresetProblem` with what is wrong with it.
    """
    resolved = stacked(chain, host)
    check(resolved, host)
    return resolved


def stacked(chain: Sequence[Document], host: Host) -> Stack:
    """Return what documents come to; raises `PresetProblem` if they do not fit on each other."""
    try:
        return stack((document.layer for document in chain), host.env)
    except CompositionError as error:
        raise PresetProblem.of(error.faults) from error


def check(resolved: Stack, host: Host) -> None:
    """Raise `PresetProblem` with what is structurally wrong with rows above the host's."""
    if faults := host.check(resolved.rows):
        raise PresetProblem.of(faults)


def generation(preset: str, chain: Sequence[Document], host: Host) -> Generation:
    """Name what a preset resolves to; raises `PresetProblem` as `resolve` does."""
    resolved = resolve(chain, host)
    directories = tuple(document.directory for document in reversed(chain))
    return Generation(preset, resolved, _key(chain, resolved.rows, host), directories)


def _key(chain: Sequence[Document], rows: Sequence[Row], host: Host) -> str:
    plugins = {row.plugin: host.discovery.plugins[row.plugin] for row in rows if not row.disabled}
    identity = {
        "rows": [[row.id, row.plugin, row.config, row.disabled] for row in rows],
        "plugins": {name: [found.distribution, found.version] for name, found in plugins.items()},
        "host": host.revision,
        # Where a file is matters too: what a preset carries beside it is found from there.
        "files": [[document.layer.name, document.digest] for document in chain],
    }
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=str)
    return sha256(canonical.encode()).hexdigest()
