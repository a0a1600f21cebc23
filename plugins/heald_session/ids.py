"""Ids and headers of sessions: how ids are made, and what may be one of either."""

from __future__ import annotations

import secrets

from heald_session.errors import HeaderInvalid, SessionIdInvalid
from heald_session.header import Header
from heald_session.positions import SessionId

MAX_LENGTH = 300


def new_id() -> SessionId:
    """Make an id that no other session has: 16 lowercase hexadecimal digits."""
    return SessionId(secrets.token_hex(8))


def new_log_id() -> str:
    """Make what tells two sessions apart that had the same id in turn."""
    return secrets.token_hex(16)


def checked_id(id: SessionId) -> SessionId:  # noqa: A002
    """Return the id if it can be one; raise `SessionIdInvalid`."""
    if type(id) is not str:
        raise SessionIdInvalid(str(id), "it is not plain text")
    if not id:
        raise SessionIdInvalid(id, "it is empty")
    if len(id) > MAX_LENGTH:
        raise SessionIdInvalid(id, f"it has more than {MAX_LENGTH} characters")
    if not _is_text(id):
        raise SessionIdInvalid(id, "it has a lone surrogate, which no file can hold")
    return id


def checked_header(header: Header) -> Header:
    """Return a header if it can be stored; raise `HeaderInvalid`."""
    for field in header.__struct_fields__:
        value = getattr(header, field)
        if isinstance(value, str) and not _is_text(value):
            raise HeaderInvalid(header.id, field, "has a lone surrogate, which no file can hold")
    return header


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)
