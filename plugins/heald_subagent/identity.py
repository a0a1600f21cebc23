"""The `subagent` projection: the one interpretation of a child's descriptor."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from heald_projection import Unit
from heald_session import Event
from heald_subagent.descriptor import DESCRIPTOR_TYPE, Continuable, OneShot, parse
from heald_subagent.rows import Mode

KEY = "subagent"


class IdentityView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a child is, for everyone; `seq` proves whether it is the child's own."""

    mode: Mode
    label: str | UnsetType = UNSET
    seq: int


class OneShotIdentity(OneShot, frozen=True, kw_only=True, omit_defaults=True, tag="one-shot"):
    """A one-shot child's whole descriptor, and the event that holds it."""

    seq: int


class ContinuableIdentity(
    Continuable, frozen=True, kw_only=True, omit_defaults=True, tag="continuable"
):
    """A continuable child's whole descriptor, and the event that holds it."""

    seq: int


Identity = OneShotIdentity | ContinuableIdentity


class IdentityState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The projection's state: no identity is no key, so that it differs from every identity."""

    identity: Identity | UnsetType = UNSET


def _apply(state: dict[str, Any], event: Event) -> dict[str, Any]:
    """The last descriptor counts; one that cannot be read leaves no identity, not an earlier one.

    A fork of a healthy ancestor whose own descriptor is broken must not pass for the ancestor.
    """
    if parse(event.encoded) is None:
        return {} if state else state
    return {"identity": event.data | {"seq": event.seq}}


def _view(state: dict[str, Any]) -> dict[str, Any] | None:
    identity = state.get("identity")
    if identity is None:
        return None
    return {name: identity[name] for name in ("mode", "label", "seq") if name in identity}


IDENTITY = Unit(
    key=KEY,
    state_version=1,
    event_types=frozenset({DESCRIPTOR_TYPE}),
    initial=lambda _header, _cut: {},
    apply=_apply,
    view=_view,
    state_schema=IdentityState,
    view_schema=IdentityView | None,
)


def view_from(value: Any) -> IdentityView | None:
    """Take a view as a snapshot holds it; raises `msgspec.ValidationError` if it is not one."""
    return msgspec.convert(value, IdentityView | None)


def identity_from(state: Any) -> Identity | None:
    """Take the host state as projections hold it; None if there is no identity."""
    identity = msgspec.convert(state, IdentityState).identity
    return None if identity is UNSET else identity
