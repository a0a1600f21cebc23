"""Event types by every name they have or had, as the installed plugins declare them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from heald import Host, Vocabulary
from heald_session.errors import EventInvalid
from heald_session.events import EventType
from heald_session.hookspecs import event_types


@attrs.frozen
class KnownType:
    """A declared type, ready to check data with."""

    name: str
    """Its present name."""
    version: int
    required: bool
    owner: str | None
    """The plugin that declares it."""
    decode: Callable[[bytes], Any]
    """Makes data what the schema says; raises `msgspec.ValidationError` if it does not fit."""


@attrs.define(eq=False)
class EventTypes:
    """Looks event types up; follows what is installed and mounted."""

    _host: Host
    _revision: int = -1
    """The host's, when the vocabulary was last looked at."""
    _read: Vocabulary[EventType] | None = None
    _former: dict[str, str] = attrs.field(factory=dict)
    _known: dict[str, KnownType] = attrs.field(factory=dict)
    """What was looked up since the vocabulary last changed, by the name that was asked for."""

    def find(self, name: str) -> KnownType | None:
        """Return the type with this name or former name.

        Raises `VocabularyConflict` if plugins disagree and no mounted one decides, and
        `EventInvalid` if nothing can be checked with the schema that was declared.
        """
        if self._host.revision == self._revision and (known := self._known.get(name)) is not None:
            return known
        vocabulary = self._current()
        if (declared := self._declared(vocabulary, name)) is None:
            return None
        known = self._known[name] = _known(declared, vocabulary.owner(declared.name))
        return known

    def understands(self, name: str) -> bool:
        """Say whether a type has this name or former name; raises `VocabularyConflict`."""
        return self._declared(self._current(), name) is not None

    def names(self) -> tuple[str, ...]:
        """Return the present name of every type."""
        return tuple(sorted(declared.name for declared in self._current()))

    def _declared(self, vocabulary: Vocabulary[EventType], name: str) -> EventType | None:
        return vocabulary.get(name) or vocabulary.get(self._former.get(name, name))

    def _current(self) -> Vocabulary[EventType]:
        self._revision = self._host.revision
        vocabulary = self._host.vocabulary(event_types)
        if vocabulary is not self._read:
            self._read = vocabulary
            self._former = {old: kept.name for kept in vocabulary for old in kept.former}
            self._known = {}
        return vocabulary


def _known(declared: EventType, owner: str | None) -> KnownType:
    try:
        decoder = msgspec.json.Decoder(declared.schema, strict=True)
    except TypeError as error:
        raise EventInvalid(declared.name, owner, f"its schema cannot be used: {error}") from error
    name, version, required = declared.name, declared.version, declared.required
    return KnownType(name, version, required, owner, decoder.decode)
