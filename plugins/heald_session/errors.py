"""Errors of sessions."""

from __future__ import annotations

import attrs

from heald import HealdError, did_you_mean, shortened
from heald_session.positions import LogOffset, SessionId

_SHOWN = 60
"""How many characters of what was given are repeated; it may be of any length."""


@attrs.define
class SessionNotFound(HealdError, LookupError):
    """No live or stored session has this id."""

    code = "SESSION_NOT_FOUND"
    id: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        hint = did_you_mean(self.id, self.known) if self.known else "see `heald sessions list`"
        return f"no session {self.id!r}; {hint}"


@attrs.define
class SessionIdTaken(HealdError):
    """A session with this id is live or stored."""

    code = "SESSION_ID_TAKEN"
    id: str

    def message(self) -> str:
        return f"session {self.id!r} exists; resume it, or choose another id"


@attrs.define
class SessionIdInvalid(HealdError, ValueError):
    """The text cannot be a session id."""

    code = "SESSION_ID_INVALID"
    id: str
    reason: str

    def message(self) -> str:
        return (
            f"{shortened(self.id, _SHOWN)!r} cannot be a session id: {self.reason}; see "
            "`heald sessions list` for those there are, and leave it out where a session is made"
        )


@attrs.define
class HeaderInvalid(HealdError, ValueError):
    """A session's creation facts cannot be stored."""

    code = "HEADER_INVALID"
    id: str
    field: str
    reason: str

    def message(self) -> str:
        return f"session {self.id!r} cannot be made: its {self.field} {self.reason}"


@attrs.define
class SessionClosed(HealdError, RuntimeError):
    """The session was disposed of; nothing more can be appended."""

    code = "SESSION_CLOSED"
    id: str

    def message(self) -> str:
        return f"session {self.id!r} is closed; resume it to go on"


@attrs.define
class EventTypeUnknown(HealdError, LookupError):
    """An event of a type that no installed plugin declares was to be written."""

    code = "EVENT_TYPE_UNKNOWN"
    type: str
    known: tuple[str, ...]

    def message(self) -> str:
        hint = did_you_mean(self.type, self.known)
        return f"no event type {self.type!r}; {hint} A plugin declares its own by `event_types`."


@attrs.define
class EventInvalid(HealdError, ValueError):
    """An event's data is not what its type was declared to hold; nothing was appended."""

    code = "EVENT_INVALID"
    type: str
    plugin: str | None
    """The plugin that declared the type."""
    reason: str

    def message(self) -> str:
        whose = f" (declared by plugin {self.plugin})" if self.plugin else ""
        return f"{self.type}{whose}: {self.reason}"


@attrs.define
class DataNotJson(HealdError, ValueError):
    """Data would not survive JSON unchanged."""

    code = "DATA_NOT_JSON"
    path: str
    reason: str

    def message(self) -> str:
        return f"{self.path}: {self.reason}; use plain JSON values"


@attrs.define
class AppendRefused(HealdError):
    """A guard refused an event before it was committed."""

    code = "APPEND_REFUSED"
    type: str
    plugin: str
    reason: str

    def message(self) -> str:
        return f"{self.type} was refused by plugin {self.plugin}: {self.reason}"


@attrs.define
class AppendReentrant(HealdError, RuntimeError):
    """An append was tried while another of the same session was being told to observers."""

    code = "APPEND_REENTRANT"
    id: str
    type: str

    def message(self) -> str:
        inside = f"from inside a guard or an observer of {self.id!r}"
        return f"{self.type} was appended {inside}; do it afterwards"


@attrs.define
class CutInvalid(HealdError, ValueError):
    """A session cannot be forked at this place."""

    code = "CUT_INVALID"
    id: str
    cut: LogOffset
    reason: str

    def message(self) -> str:
        return f"cannot fork {self.id!r} at {self.cut}: {self.reason}"


@attrs.define
class LogNeedsPlugin(HealdError):
    """A log has events that must be understood, and nothing installed does."""

    code = "LOG_NEEDS_PLUGIN"
    id: SessionId
    types: tuple[str, ...]

    def message(self) -> str:
        return f"session {self.id!r} needs a plugin that declares {', '.join(self.types)}"


@attrs.define
class TitleEmpty(HealdError, ValueError):
    """A session was to be given a title without a visible character."""

    code = "TITLE_EMPTY"

    def message(self) -> str:
        return "a title has at least one visible character; write /rename TITLE"
