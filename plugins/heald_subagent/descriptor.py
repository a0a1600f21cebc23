"""The event that says what a child is: the only durable authority for its mode and label.

Only the `subagent` projection interprets it; everything else asks the projection.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from heald_session import EventType

DESCRIPTOR_TYPE = "subagent/descriptor"
DESCRIPTOR_VERSION: Literal[2] = 2
LARGEST = 65_536
"""Bytes of data above which a descriptor is not one: its projection is kept for every child."""


class _Descriptor(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="mode",
):
    """What both modes say; nothing unknown is accepted, a null no more than a wrong type."""

    version: Literal[2]
    provider: str
    """How the child came to be: `spawn` for one that started empty."""


class OneShot(_Descriptor, frozen=True, kw_only=True, omit_defaults=True, tag="one-shot"):
    """A child that does one task and returns the result."""

    label: str | UnsetType = UNSET


class Continuable(_Descriptor, frozen=True, kw_only=True, omit_defaults=True, tag="continuable"):
    """A child that is a conversation, with what is needed to resume it."""

    label: str
    agent_provider: str | UnsetType = UNSET
    """The model adapter, the word before the colon in `adapter:model`."""
    model: str | UnsetType = UNSET
    """The adapter's own name of the model."""
    persona: str | UnsetType = UNSET
    denied_tools: list[str] = []


Descriptor = OneShot | Continuable

DESCRIPTOR = EventType(DESCRIPTOR_TYPE, Descriptor)

_decoder = msgspec.json.Decoder(Descriptor)


def parse(encoded: msgspec.Raw) -> Descriptor | None:
    """Read a descriptor's data as it is stored; None for anything that is not exactly one."""
    if memoryview(encoded).nbytes > LARGEST:
        return None
    try:
        return _decoder.decode(encoded)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
