"""What a preset resolves to now: rows with origins, and the generation they are."""

from __future__ import annotations

import json
from hashlib import sha256

import attrs

from heald import CompositionError, Host, Row, Stack, stack
from heald_preset.documents import Document
from heald_preset.problems import PresetProblem
from heald_preset.roster import Entry, Roster


@attrs.frozen
class Generation:
    """A preset as it is at one moment; two of equal `key` are the same."""

    preset: str
    stack: Stack
    key: str


def resolve(roster: Roster, entry: Entry, host: Host) -> Generation:
    """Resolve an entry above the host's rows, mounting nothing.

    Raises `PresetProblem` with what is wrong with it.
    """
    chain = roster.chain(entry)
    try:
        stacked = stack((document.layer for document in chain), host.env)
    except CompositionError as error:
        raise PresetProblem.of(error.faults) from error
    if faults := host.check(stacked.rows):
        raise PresetProblem.of(faults)
    return Generation(entry.id, stacked, _key(chain, stacked.rows, host))


def _key(chain: tuple[Document, ...], rows: tuple[Row, ...], host: Host) -> str:
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
