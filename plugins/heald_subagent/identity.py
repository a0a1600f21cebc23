"""The `subagent` projection: the one interpretation of a child's descriptor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from heald_projection import Unit
from heald_session import Event, LogOffset
from heald_subagent.descriptor import DESCRIPTOR_TYPE, Continuable, OneShot, parse
from heald_subagent.rows import Mode

KEY = "subagent"


class OneShotView(
    msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="mode", tag="one-shot"
):
    """What a one-shot child is, for everyone; `seq` proves whether it is the child's own."""

    mode: ClassVar[Mode] = "one-shot"
    label: str | UnsetType = UNSET
    seq: int


class ContinuableView(
    msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="mode", tag="continuable"
):
    """What a continuable child is; it has a label to be called by."""

    mode: ClassVar[Mode] = "continuable"
    label: str
    seq: int


IdentityView = OneShotView | ContinuableView


_VIEWS: Mapping[Mode, type[IdentityView]] = {
    "one-shot": OneShotView,
    "continuable": ContinuableView,
}


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


def own_view(value: Any, cut: LogOffset) -> IdentityView | None:
    """Take a view that is the child's own: what it inherited says nothing of it.

    Raises `TypeError`, `KeyError` or `msgspec.ValidationError` if it is none.
    """
    if value is None:
        return None
    view = msgspec.convert(value, _VIEWS[value["mode"]])  # a union would take ten times as long
    return view if view.seq >= cut else None


def identity_from(state: Any, cut: LogOffset) -> Identity | None:
    """Take a child's own identity from the host state.

    Raises `msgspec.ValidationError` if it is none.
    """
    identity = msgspec.convert(state, IdentityState).identity
    return identity if identity is not UNSET and identity.seq >= cut else None
