"""What is wrong with a composition: faults of its structure, and rows that failed."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

FaultCode: TypeAlias = Literal[
    "BUNDLE_UNKNOWN",
    "CONFIG_INVALID",
    "ENV_UNSET",
    "HOOK_SIGNATURE",
    "HOOK_UNKNOWN",
    "LAYER_INVALID",
    "LAYER_KEY_UNKNOWN",
    "LAYER_SYNTAX",
    "LAYER_UNREADABLE",
    "PLUGIN_CONFLICT",
    "PLUGIN_INVALID",
    "PLUGIN_UNKNOWN",
    "PROFILE_UNKNOWN",
    "REQUIREMENT_CYCLE",
    "REQUIREMENT_UNMET",
    "ROW_DUPLICATE",
    "ROW_ID_INVALID",
    "ROW_UNKNOWN",
    "SERVICE_CONFLICT",
]
"""Everything that can be structurally wrong with a composition."""


@attrs.frozen
class Fault:
    """One thing that is wrong with a composition, and where."""

    code: FaultCode
    message: str
    file: str | None = None
    row: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = [self.file, f"row {self.row}" if self.row else None, self.field]
        return ": ".join([*(part for part in place if part), self.message])


@attrs.frozen
class FailedRow:
    """A row that is not running: at which stage it failed, and why."""

    row: str
    plugin: str
    distribution: str
    stage: str
    """One of import, declare, requires, construct, start, provide, collect, run, stop."""
    reason: str
    because_of: tuple[str, ...] = ()
    """The rows whose failure made this one fail, if that is the reason."""

    def __str__(self) -> str:
        return (
            f"row {self.row} (plugin {self.plugin}, distribution {self.distribution}) "
            f"failed at {self.stage}: {self.reason}"
        )
