"""The projection `tokenUsage`: what the answered model requests of a session took."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from heald_projection import Unit
from heald_session.conversation import StepStart, Usage
from heald_session.events import Event
from heald_session.header import Header
from heald_session.positions import LogOffset, Seq


class Tokens(TypedDict):
    """Sums over requests whose answers told what they took."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """How many of the input tokens the providers had cached."""


class TokenUsage(Tokens):
    """All tokens of a session, inherited events included, and those of each model."""

    inherited: Tokens
    """How many of them are in events that came from another session, and are counted there too."""
    models: dict[str, Tokens]
    """By `adapter:name`; what no step named a model for is in the totals only."""


class _Answer(msgspec.Struct):
    """What counts of an `assistant/message`: the rest can be long, and need not be decoded."""

    usage: Usage | None = None


_answer = msgspec.json.Decoder(_Answer).decode


class _Usage(TokenUsage):
    cut: int
    """Where the session's own events begin."""
    model: str | None
    """What the latest step asks."""


_NONE: Tokens = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}


def _nothing_yet(_header: Header, cut: LogOffset) -> _Usage:
    return {**_NONE, "inherited": _NONE, "models": {}, "cut": cut, "model": None}


def _apply(state: _Usage, event: Event) -> _Usage:
    if event.type == "step/start":
        return _asking(state, event)
    usage = _usage(event)
    return state if usage is None else _counted(state, usage, event.seq)


def _asking(state: _Usage, event: Event) -> _Usage:
    try:
        model = event.data_as(StepStart).model
    except msgspec.DecodeError:
        model = None
    return state if model == state["model"] else {**state, "model": model}


def _usage(event: Event) -> Usage | None:
    """Return what the request took that an event answers, if it answers one and tells."""
    replaces = event.surface is not None and event.surface.op == "replace"
    if replaces and event.type == "assistant/message":
        return None  # it tells again what was answered; a summary was asked for
    try:
        return _answer(event.encoded).usage
    except msgspec.DecodeError:
        return None


def _counted(state: _Usage, usage: Usage, seq: Seq) -> _Usage:
    model, models, inherited = state["model"], state["models"], state["inherited"]
    if model is not None:
        models = {**models, model: _sum(models.get(model, _NONE), usage)}
    if seq < state["cut"]:
        inherited = _sum(inherited, usage)
    return {**state, **_sum(state, usage), "inherited": inherited, "models": models}


def _sum(tokens: Tokens, usage: Usage) -> Tokens:
    return {
        "input_tokens": tokens["input_tokens"] + usage.input_tokens,
        "output_tokens": tokens["output_tokens"] + usage.output_tokens,
        "cached_tokens": tokens["cached_tokens"] + usage.cached_tokens,
    }


def _view(state: _Usage) -> TokenUsage:
    return {
        "input_tokens": state["input_tokens"],
        "output_tokens": state["output_tokens"],
        "cached_tokens": state["cached_tokens"],
        "inherited": state["inherited"],
        "models": state["models"],
    }


TOKEN_USAGE = Unit(
    key="tokenUsage",
    state_version=2,
    event_types=frozenset({"step/start", "assistant/message", "history/summary"}),
    initial=_nothing_yet,
    apply=_apply,
    view=_view,
    state_schema=_Usage,
    view_schema=TokenUsage,
)
