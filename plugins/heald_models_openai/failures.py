"""What failed requests mean: errors of the client as kinds of `ModelFailed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def reason_of(error: BaseException, secret: str | None) -> str:
    """Return what the client says in one line, with what caused it, and without the key."""
    parts = [str(error) or type(error).__name__]
    if (cause := error.__cause__) is not None:
        parts.append(f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__)
    reason = " ".join(" (".join(parts).split()) + ")" * (len(parts) - 1)
    return reason.replace(secret, "[key]") if secret else reason


def _kind_of_status(status: int) -> str:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "server" if status >= 500 else "invalid_request"  # noqa: PLR2004 - HTTP's own border
