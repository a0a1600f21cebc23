"""The projections `asks` and `modelSelection`."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from heald_agent.events import ASK_DECIDED, ASK_OPENED, MODEL_SELECTED, AskOpened, ModelSelected
from heald_projection import Unit
from heald_session import Event, Header, LogOffset


class Asks(TypedDict):
    """The state of `asks`: how much was inherited, and the ask that is open."""

    cut: int
    open: dict[str, Any] | None


def _no_ask(_header: Header, cut: LogOffset) -> Asks:
    return {"cut": cut, "open": None}


def _asked(state: Asks, event: Event) -> Asks:
    if event.seq < state["cut"]:
        return state  # what a fork inherited is the source's to decide
    if event.type == ASK_OPENED.name:
        try:
            return {**state, "open": msgspec.to_builtins(event.data_as(AskOpened))}
        except msgspec.ValidationError:  # written under another schema: nobody could answer it
            return state
    opened, decided = state["open"], event.data
    closes = opened and isinstance(decided, dict) and decided.get("ask") == opened["id"]
    return {**state, "open": None} if closes else state


def _open_ask(state: Asks) -> dict[str, Any] | None:
    return state["open"]


class ModelSelection(TypedDict):
    """The state of `modelSelection`: what a person chose last."""

    model: str | None


def _no_model(_header: Header, _cut: LogOffset) -> ModelSelection:
    return {"model": None}


def _selected(state: ModelSelection, event: Event) -> ModelSelection:
    try:
        model = event.data_as(ModelSelected).model
    except msgspec.ValidationError:  # written under another schema: it chose nothing we can name
        return state
    return state if model == state["model"] else {"model": model}


def _model(state: ModelSelection) -> str | None:
    return state["model"]


ASKS = Unit(
    key="asks",
    state_version=1,
    event_types=frozenset({ASK_OPENED.name, ASK_DECIDED.name}),
    initial=_no_ask,
    apply=_asked,
    view=_open_ask,
    state_schema=Asks,
    view_schema=dict[str, Any] | None,
)
MODEL_SELECTION = Unit(
    key="modelSelection",
    state_version=1,
    event_types=frozenset({MODEL_SELECTED.name}),
    initial=_no_model,
    apply=_selected,
    view=_model,
    state_schema=ModelSelection,
    view_schema=str | None,
)
UNITS = (ASKS, MODEL_SELECTION)
