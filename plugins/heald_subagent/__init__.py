"""Subagents: children that an agent delegates to, and the listing that knows each of them."""

from heald_subagent.contracts import ChildResult, Delegation, Subagents
from heald_subagent.errors import (
    DelegationInvalid,
    SubagentLimit,
    SubagentNotContinuable,
    SubagentNotLive,
    SubagentProjectionsUnavailable,
    SubagentQueryUnavailable,
    SubagentSessionStoreUnavailable,
    SubagentUnauthorized,
)
from heald_subagent.hookspecs import subagents
from heald_subagent.rows import ChildRow, DiagnosticRow, SubagentRow

__all__ = [
    "ChildResult",
    "ChildRow",
    "Delegation",
    "DelegationInvalid",
    "DiagnosticRow",
    "SubagentLimit",
    "SubagentNotContinuable",
    "SubagentNotLive",
    "SubagentProjectionsUnavailable",
    "SubagentQueryUnavailable",
    "SubagentRow",
    "SubagentSessionStoreUnavailable",
    "SubagentUnauthorized",
    "Subagents",
    "subagents",
]
