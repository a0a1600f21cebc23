"""Rows of a subagent listing, in the shape programs read them as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from heald_session import SessionId

ORIGIN = "subagent"
"""The `origin` in the header of a session that an agent delegated to."""

Activity = Literal["running", "inactive"]
Mode = Literal["one-shot", "continuable"]
Reason = Literal["corrupt", "unsupported", "unavailable"]


class ChildRow(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    kw_only=True,
    tag_field="kind",
    tag="child",
):
    """A child whose identity is known.

    `activity` says only whether it is live in this process; it is no outcome and no status.
    """

    id: SessionId
    activity: Activity
    has_children: bool
    mode: Mode
    label: str | None = None
    parent_id: SessionId | None = None
    """The direct parent; in a listing of descendants only."""
    depth: int | None = None
    """How many sessions down it is, children being 1; in a listing of descendants only."""


class DiagnosticRow(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    kw_only=True,
    tag_field="kind",
    tag="diagnostic",
):
    """A child whose identity cannot be told; nothing of its content is shown.

    `corrupt` is what its log says, or that it was deleted and made again while it was listed;
    `unavailable` is a log that could not be read this time; `unsupported` is kept in the type and
    never produced. Every listing looks again.
    """

    id: SessionId
    reason: Reason
    parent_id: SessionId | None = None
    depth: int | None = None


SubagentRow = ChildRow | DiagnosticRow
