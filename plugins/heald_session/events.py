"""Events, and the declarations that say what an event's data must be."""

from __future__ import annotations

import builtins
from typing import Any, Literal, TypeVar

import attrs
import msgspec

from heald_session.positions import Seq

T = TypeVar("T")


class Surface(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How an event changes what the model sees.

    `append` adds it to the end. `replace` puts it in the place of the surface events from `first`
    to `last`, both included: it shadows them for the model, and people still read them.
    """

    op: Literal["append", "replace"]
    first: Seq | None = None
    last: Seq | None = None


APPEND = Surface("append")


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing that happened in a session, as it is in the log.

    `time` is in integer milliseconds since the epoch and never runs backwards in a log. The data
    stays encoded until it is asked for, and whoever asks gets a copy.
    """

    seq: Seq
    type: str
    time: int
    encoded: msgspec.Raw = msgspec.field(name="data")
    v: int = 1
    """The version of the data's schema."""
    required: bool = False
    """Whether a reader that does not know the type must refuse the log."""
    surface: Surface | None = None
    sources: tuple[Seq, ...] | None = None
    """Earlier events that this one was made from."""

    @property
    def data(self) -> Any:
        """The data, decoded afresh: plain JSON values that are the caller's to change."""
        return msgspec.json.decode(self.encoded)

    def data_as(self, kind: builtins.type[T]) -> T:
        """Decode the data as a type; raises `msgspec.ValidationError` if it is not one."""
        return msgspec.json.decode(self.encoded, type=kind)


@attrs.frozen
class NewEvent:
    """An event before it has a place in a log."""

    type: str
    data: Any
    surface: Surface | None = None
    sources: tuple[Seq, ...] | None = None


@attrs.frozen
class EventType:
    """A declared kind of event: plugins declare theirs through `heald_session.event_types`.

    `schema` is any type msgspec can convert JSON to; data is checked against it when written and
    never when read. Use a struct with `forbid_unknown_fields=True`.
    """

    name: str
    """A past participle or `noun/verb`, never an import path."""
    schema: Any
    version: int = 1
    required: bool = False
    former: tuple[str, ...] = ()
    """Earlier names of the type, under which stored events may be found."""
