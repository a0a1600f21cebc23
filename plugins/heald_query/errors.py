"""Errors of the corpus."""

from __future__ import annotations

import attrs

from heald import HealdError
from heald_session import LogOffset, Seq


@attrs.define
class OffsetBeyondEnd(HealdError, ValueError):
    """A session was to be read at an offset that its log does not have."""

    code = "OFFSET_BEYOND_END"
    id: str
    at: LogOffset
    end: LogOffset

    def message(self) -> str:
        return f"session {self.id!r} has no offset {self.at}; choose one from 0 to {self.end}"


@attrs.define
class SessionIdAmbiguous(HealdError, LookupError):
    """The beginning of a session id fits several."""

    code = "SESSION_ID_AMBIGUOUS"
    prefix: str
    candidates: tuple[str, ...]

    def message(self) -> str:
        return f"{self.prefix!r} fits {', '.join(self.candidates)}; type more of the id"


@attrs.define
class SeqBeyondEnd(HealdError, LookupError):
    """A session was to be shown at an event that its log does not have."""

    code = "SEQ_BEYOND_END"
    id: str
    seq: Seq
    end: LogOffset

    def message(self) -> str:
        if self.end == 0:
            return f"session {self.id!r} has no event {self.seq}, nor any other yet"
        return f"session {self.id!r} has no event {self.seq}; its last is {self.end - 1}"


@attrs.define
class ProjectionUnknown(HealdError, LookupError):
    """A projection was asked for that no installed plugin declares."""

    code = "PROJECTION_UNKNOWN"
    key: str
    known: tuple[str, ...]

    def message(self) -> str:
        return f"there is no projection {self.key!r}; choose from {', '.join(self.known)}"
