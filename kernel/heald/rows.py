"""A row: one use of a plugin in a composition, and where each of its fields was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from heald.faults import Fault

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@attrs.frozen
class Row:
    """One use of a plugin, as the layers left it.

    `origins` maps each field (`plugin`, `disabled`, `config.a.b`) to the layer that wrote it last;
    `written` is the configuration before `${env:...}` was filled in, so that it can be shown.
    """

    id: str
    plugin: str
    config: Mapping[str, object] = attrs.field(factory=dict, repr=False)
    """Left out of the representation, since the environment may have filled in a secret."""
    disabled: bool = False
    layer: str = "program"
    """The layer that inserted the row."""
    origins: Mapping[str, str] = attrs.field(factory=dict)
    written: Mapping[str, object] = attrs.field(factory=dict)

    def fields(self) -> dict[str, object]:
        """Return what the row says by field, its configuration as written."""
        disabled = {"disabled": True} if self.disabled else {}
        return {"plugin": self.plugin, **disabled, **dict(_leaves(self.written, "config"))}

    def origin_of(self, field: str) -> str:
        """Return the layer that wrote a field, or the nearest field above it, last."""
        while field:
            if field in self.origins:
                return self.origins[field]
            field = field[: max(field.rfind("."), field.rfind("["), 0)]
        return self.layer


def _leaves(config: Mapping[str, Any], path: str) -> Iterator[tuple[str, object]]:
    for key, value in config.items():
        here = f"{path}.{key}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield here, value


@attrs.frozen
class RowOrigin:
    """Whose a contribution is: the row, its plugin, the distribution and the file that named it."""

    row: str
    plugin: str
    distribution: str
    file: str

    def __str__(self) -> str:
        return f"row {self.row} ({self.plugin}, {self.file})"


def is_id(name: str) -> bool:
    """Say whether a name may be a row's id or a profile's: one word, safe in paths and lists."""
    return _ID.fullmatch(name) is not None


def id_fault(name: str, file: str) -> Fault | None:
    """Return what is wrong with a row's id, if anything is."""
    if is_id(name):
        return None
    message = f"{name!r} is no row id; begin with a letter or digit, then letters, digits, _ . -"
    return Fault("ROW_ID_INVALID", message, file, name, "id")
