"""Errors of agents."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from heald import HealdError, did_you_mean

_REMEDIES: Mapping[str, str] = {
    "network": "check the server's address and that it can be reached, then try again",
    "timeout": "check the server's address, or give it more time, and try again",
    "authentication": "check the key, and that the environment variable it comes from is set",
    "rate_limit": "wait and try again, or choose another model",
    "refused": "ask for something else, or choose another model",
    "invalid_request": "check the model's name and the configuration of the adapter's row",
    "server": "try again later, or choose another model",
}
"""What to do about each kind of failed request, whichever adapter it was."""


@attrs.define
class ModelUnknown(HealdError, LookupError):
    """A model was named whose adapter no row contributes."""

    code = "MODEL_UNKNOWN"
    model: str
    adapters: tuple[str, ...]

    def message(self) -> str:
        adapter = self.model.partition(":")[0]
        hint = did_you_mean(adapter, self.adapters)
        return f"no model adapter for {self.model!r} (write `adapter:model`); {hint}"


@attrs.define
class ModelNotConfigured(HealdError):
    """A turn was to run and nothing says on which model."""

    code = "MODEL_NOT_CONFIGURED"

    def message(self) -> str:
        return "no model is configured; name one with --model, or set it in the row `agent`"


@attrs.define
class CwdInvalid(HealdError, ValueError):
    """An agent cannot work where it was told to."""

    code = "CWD_INVALID"
    path: str
    reason: str

    def message(self) -> str:
        return f"cannot work in {self.path!r}: {self.reason}; name a directory that can be read"


@attrs.define
class ModelFailed(HealdError):
    """A model request failed; `kind` says how, for whoever decides about another try."""

    code = "MODEL_FAILED"
    model: str
    kind: str
    """One of network, timeout, authentication, rate_limit, refused, invalid_request, server."""
    reason: str

    def message(self) -> str:
        remedy = _REMEDIES.get(self.kind, "try again, or choose another model")
        return f"model {self.model}: {self.kind}: {self.reason.rstrip('.')}; {remedy}"


@attrs.define
class ToolError(HealdError):
    """A tool's body says that it could not do what was asked; the model reads the reason."""

    code = "TOOL_ERROR"
    reason: str

    def message(self) -> str:
        return self.reason


@attrs.define
class PromptSectionFailed(HealdError):
    """A part of the system prompt could not be made, so no request was sent without it."""

    code = "PROMPT_SECTION_FAILED"
    section: str
    row: str
    reason: str

    def message(self) -> str:
        return f"prompt section {self.section!r} of row {self.row} failed: {self.reason}"


@attrs.define
class RequestChanged(HealdError):
    """Middleware sent on another request than the log comes to; nothing was sent."""

    code = "REQUEST_CHANGED"
    model: str

    def message(self) -> str:
        return (
            f"a middleware of `model_call` changed the request to {self.model}; "
            f"what a model sees must be an event of the log"
        )


@attrs.define
class StepLimit(HealdError):
    """A turn wanted more model requests than a turn may make."""

    code = "STEP_LIMIT"
    steps: int

    def message(self) -> str:
        return (
            f"the turn reached its limit of {self.steps} steps; send a message to go on, "
            f"or raise `max_steps` of the row `agent`"
        )


@attrs.define
class TurnFailed(HealdError):
    """Something that is no error of Heald's own ended a turn; the log of the process has it all."""

    code = "TURN_FAILED"
    reason: str

    def message(self) -> str:
        return f"the turn ended unexpectedly: {self.reason}"


@attrs.define
class ToolInvalid(HealdError, TypeError):
    """A tool's arguments are no struct that a model could be shown."""

    code = "TOOL_INVALID"
    tool: str
    row: str
    reason: str

    def message(self) -> str:
        return f"tool {self.tool!r} of row {self.row} cannot be shown to a model: {self.reason}"


@attrs.define
class AgentExists(HealdError):
    """The session has an agent already."""

    code = "AGENT_EXISTS"
    session: str

    def message(self) -> str:
        return f"session {self.session!r} has an agent; use it"


@attrs.define
class AskNotOpen(HealdError, LookupError):
    """An ask was to be answered that does not wait for an answer, or no more."""

    code = "ASK_NOT_OPEN"
    session: str
    ask: str

    def message(self) -> str:
        return (
            f"session {self.session!r} has no open ask {self.ask!r}; it was decided, has expired, "
            f"or its session has no agent here"
        )


@attrs.define
class AnswerInvalid(HealdError, ValueError):
    """An answer does not fit what was asked; nothing was decided."""

    code = "ANSWER_INVALID"
    session: str
    ask: str
    reason: str

    def message(self) -> str:
        return f"ask {self.ask!r} of session {self.session!r} cannot be answered so: {self.reason}"


@attrs.define
class AgentAbsent(HealdError, LookupError):
    """Something of a session's agent was asked for that only a live agent can do."""

    code = "AGENT_ABSENT"
    session: str

    def message(self) -> str:
        return f"session {self.session!r} has no agent here; resume it, then try again"


@attrs.define
class AgentBusy(HealdError):
    """Something was asked for that is only done while no turn is open."""

    code = "AGENT_BUSY"
    session: str

    def message(self) -> str:
        return f"session {self.session!r} is in the middle of something; wait until it is settled"
