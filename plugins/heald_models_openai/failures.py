"""What failed requests mean: errors of the client as kinds of `ModelFailed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heald import describe
from heald_models_openai.server import Server

if TYPE_CHECKING:
    from openai import OpenAIError

_BY_STATUS = {401: "authentication", 403: "authentication", 408: "timeout", 429: "rate_limit"}
_REFUSALS = frozenset(("content_filter", "content_policy_violation"))
_LIMITS = frozenset(("rate_limit_exceeded", "insufficient_quota"))


def kind_of(error: OpenAIError) -> str:
    """Return the kind of failure that an error of the client is."""
    import openai  # noqa: PLC0415 - whoever has such an error has it loaded

    if isinstance(error, openai.APITimeoutError):
        return "timeout"
    if isinstance(error, openai.APIConnectionError):
        return "network"
    code = getattr(error, "code", None)
    if code in _REFUSALS:
        return "refused"
    if isinstance(error, openai.APIStatusError):
        return _kind_of_status(error.status_code)
    return "rate_limit" if code in _LIMITS else "server"


def said_by(error: BaseException) -> str:
    """Return what an error says in one line, with what caused it."""
    parts = [str(error) or type(error).__name__]
    if (cause := error.__cause__) is not None:
        parts.append(describe(cause))
    return " ".join(" (".join(parts).split()) + ")" * (len(parts) - 1)


def reason_of(said: str, kind: str, server: Server) -> str:
    """Return why a request failed: which server, as whom if that is the matter, and what was said.

    The key is not in it, whoever said it.
    """
    asked = server.address
    if kind == "authentication":
        variable = server.key_variable
        asked += f" with the key in {variable}" if server.key else f" without a key in {variable}"
    return server.redacted(f"{asked}: {said}")


def _kind_of_status(status: int) -> str:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "server" if status >= 500 else "invalid_request"  # noqa: PLR2004 - HTTP's own border
