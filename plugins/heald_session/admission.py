"""What an event must pass before it is committed."""

from __future__ import annotations

import attrs
import msgspec

from heald_session.contracts import Proposal, Session
from heald_session.errors import AppendRefused, EventInvalid, EventTypeUnknown
from heald_session.events import Event, EventType, NewEvent
from heald_session.hookspecs import append_guards
from heald_session.lossless import plain
from heald_session.positions import Seq
from heald_session.vocabulary import EventTypes

_REFUSALS = (Exception, SystemExit)


@attrs.frozen
class Admitted:
    """Data that was found right for its declared type."""

    type: EventType
    encoded: msgspec.Raw

    def event(self, seq: Seq, time: int, new: NewEvent) -> Event:
        """Make the event that the log keeps."""
        return Event(
            seq=seq,
            type=self.type.name,
            time=time,
            encoded=self.encoded,
            v=self.type.version,
            required=self.type.required,
            surface=new.surface,
            sources=new.sources,
        )


def admit(types: EventTypes, new: NewEvent) -> Admitted:
    """Check an event's type and data; raise what `Session.append` says it raises."""
    declared = types.find(new.type)
    if declared is None:
        raise EventTypeUnknown(new.type, types.names())
    data = plain(new.data)
    try:
        msgspec.convert(data, declared.schema, strict=True)
    except (msgspec.ValidationError, TypeError) as error:
        owner = types.owner(declared.name)
        raise EventInvalid(declared.name, owner, str(error)) from error
    return Admitted(declared, msgspec.Raw(msgspec.json.encode(data)))


def ask_guards(session: Session, admitted: Admitted, new: NewEvent) -> None:
    """Let the guards of a session's rows refuse an event; each gets a copy of the data."""
    name = admitted.type.name
    for guard in session.scope.collect(append_guards):
        data = msgspec.json.decode(admitted.encoded)
        event = attrs.evolve(new, type=name, data=data)
        try:
            guard.value(Proposal(session, event))
        except _REFUSALS as error:
            reason = str(error) or type(error).__name__
            raise AppendRefused(name, guard.origin.plugin, reason) from error
