"""Turns the events of a reference log into ours: every event becomes one of the same seq.

Those of the conversation become the events that mean the same here. All others are kept as they are
under a type of their own, which nothing reads.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import msgspec

from heald_session import APPEND, Event, Seq, Surface
from heald_transfer.meanings import MEANINGS, Talk, Untranslatable
from heald_transfer.reference_lines import CHUNK, ReferenceEvent

PREFIX = "reference/"
"""How the type of an event begins that nothing here reads."""


@attrs.define
class Translation:
    """The events of one log so far, and what of them could not be carried."""

    events: list[Event] = attrs.field(factory=list)
    _talk: Talk = attrs.field(factory=Talk)
    _kept: Counter[str] = attrs.field(factory=Counter)

    def take(self, event: ReferenceEvent) -> None:
        """Translate the event that continues the log."""
        type_, data = self._meaning(event) or self._opaque(event)
        self.events.append(
            Event(
                Seq(event.seq),
                type_,
                self._time(event.time),
                msgspec.Raw(msgspec.json.encode(data)),
                surface=self._surface(event),
                sources=self._sources(event),
            )
        )
        self._name_model(event)

    def notes(self) -> tuple[str, ...]:
        """Say what could not be carried."""
        lost = dict(self._talk.lost)
        if waiting := self._talk.waiting():
            lost["messages that waited in the inbox"] = waiting
        notes = [f"not carried: {what} ({count})" for what, count in lost.items()]
        if self._kept:
            kept = ", ".join(f"{name} ({count})" for name, count in sorted(self._kept.items()))
            notes.append(f"kept under {PREFIX}, where nothing reads it: {kept}")
        return tuple(notes)

    def _meaning(self, event: ReferenceEvent) -> tuple[str, Any] | None:
        translate = MEANINGS.get(event.type)
        if translate is None:
            return None
        try:
            return translate(event.data, self._talk)
        except (Untranslatable, msgspec.ValidationError):
            self._talk.lost[f"{event.type} of a form that is not known"] += 1
            return None

    def _opaque(self, event: ReferenceEvent) -> tuple[str, Any]:
        self._kept[event.type] += 1
        return PREFIX + event.type, event.data

    def _time(self, time: int) -> int:
        """Return a time that does not run backwards."""
        if not self.events or time >= self.events[-1].time:
            return time
        self._talk.lost["times that ran backwards, set to the time before"] += 1
        return self.events[-1].time

    def _surface(self, event: ReferenceEvent) -> Surface | None:
        op = event.surface_op
        if op is None:
            return None
        if op == "append":
            return APPEND
        match op:
            case {"op": "replace", "start": int(first), "end": int(last)}:
                return Surface("replace", Seq(first), Seq(last))
        self._talk.lost["changes of what the model sees of a form that is not known"] += 1
        return None

    def _sources(self, event: ReferenceEvent) -> tuple[Seq, ...] | None:
        known = tuple(Seq(seq) for seq in event.source_event_seqs if 0 <= seq < event.seq)
        if len(known) < len(event.source_event_seqs):
            self._talk.lost["sources that are no earlier events"] += 1
        return known or None

    def _name_model(self, event: ReferenceEvent) -> None:
        """Name a step's model as soon as the log does, which is after the step began."""
        if self.events[-1].type == "step/start":
            self._talk.step = event.seq
        step, model = self._talk.step, self._talk.model
        if step is None or model is None or event.type == CHUNK:
            return
        began = self.events[step]
        data = began.data
        if data["model"] != model:
            encoded = msgspec.Raw(msgspec.json.encode({**data, "model": model}))
            self.events[step] = msgspec.structs.replace(began, encoded=encoded)
