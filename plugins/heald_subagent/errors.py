"""Errors of subagents."""

from __future__ import annotations

import attrs

from heald import HealdError, as_word, counted


@attrs.define
class SubagentProjectionsUnavailable(HealdError):
    """The listing needs the projection registry."""

    code = "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE"

    def message(self) -> str:
        return "subagents cannot be listed without projections; mount a row of plugin 'projection'"


@attrs.define
class SubagentSessionStoreUnavailable(HealdError):
    """The listing needs the session store."""

    code = "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE"

    def message(self) -> str:
        return "subagents cannot be listed without sessions; mount a row of plugin 'session'"


@attrs.define
class SubagentQueryUnavailable(HealdError):
    """The listing, and finding a child that is not live, need the query corpus."""

    code = "SUBAGENT_CONTROL_QUERY_UNAVAILABLE"

    def message(self) -> str:
        return "subagents cannot be found without the corpus; mount a row of plugin 'query'"


@attrs.define
class SubagentUnauthorized(HealdError):
    """Only the live parent of a child may send to it or wait for it."""

    code = "SUBAGENT_UNAUTHORIZED"
    child: str
    caller: str

    def message(self) -> str:
        return f"{self.caller!r} is not the live parent of {self.child!r}; see list_agents"


@attrs.define
class SubagentNotContinuable(HealdError):
    """The child cannot be sent messages."""

    code = "SUBAGENT_NOT_CONTINUABLE"
    child: str
    reason: str

    def message(self) -> str:
        return f"{self.child!r} cannot go on: {self.reason}; start another subagent"


@attrs.define
class SubagentNotLive(HealdError, LookupError):
    """A child was to be waited for that this process does not run."""

    code = "SUBAGENT_NOT_LIVE"
    child: str
    live: tuple[str, ...] = ()

    def message(self) -> str:
        known = ", ".join(self.live) or "none"
        return f"{self.child!r} is not live (live: {known}); a message to it resumes it"


@attrs.define
class DelegationInvalid(HealdError, ValueError):
    """What was to be delegated cannot be; no child was made."""

    code = "SUBAGENT_DELEGATION_INVALID"
    reason: str

    def message(self) -> str:
        return f"cannot delegate this: {self.reason}"


@attrs.define
class SubagentLimit(HealdError):
    """A limit on delegation is reached."""

    code = "SUBAGENT_LIMIT"
    limit: str
    """depth or breadth."""
    allowed: int
    blocking: tuple[str, ...] = ()

    def message(self) -> str:
        ids = f" ({', '.join(self.blocking)})" if self.blocking else ""
        advice = "do the work here" if self.limit == "depth" else "wait for one of them to finish"
        many = counted(self.allowed, "subagent")
        return f"the {self.limit} limit of {many} is reached{ids}; {advice}"


@attrs.define
class SessionNotSubagent(HealdError, LookupError):
    """A session was asked for as a subagent, and no agent delegated to it."""

    code = "SESSION_NOT_SUBAGENT"
    id: str

    def message(self) -> str:
        return (
            f"session {self.id!r} is no subagent; `heald sessions show {as_word(self.id)}` shows it"
        )


@attrs.define
class AgentNotInTree(HealdError, LookupError):
    """A tree was to be shown from an agent on that is not in it."""

    code = "AGENT_NOT_IN_TREE"
    id: str
    root: str

    def message(self) -> str:
        return f"{self.id!r} is no agent below {self.root!r}, or no longer; leave out --after"
