"""Errors of projections."""

from __future__ import annotations

import attrs

from heald import HealdError
from heald_session import Seq


@attrs.define
class ProjectionFaulted(HealdError):
    """A fold raised on an event; only a read that selects its key meets this."""

    code = "PROJECTION_FAULTED"
    key: str
    seq: Seq
    plugin: str | None
    reason: str

    def message(self) -> str:
        whose = f" of plugin {self.plugin}" if self.plugin else ""
        return f"projection {self.key!r}{whose} failed at event {self.seq}: {self.reason}"


@attrs.define
class ProjectionNotReady(HealdError):
    """A unit became known after the session was opened, and was not filled yet."""

    code = "PROJECTION_NOT_READY"
    key: str

    def message(self) -> str:
        return f"projection {self.key!r} is not filled yet; await projections.ready(session, keys)"


@attrs.define
class UnitInvalid(HealdError, ValueError):
    """A unit cannot be used."""

    code = "UNIT_INVALID"
    key: str
    reason: str

    def message(self) -> str:
        return f"projection unit {self.key!r}: {self.reason}"
