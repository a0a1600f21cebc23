"""Event types by every name they have or had, as the installed plugins declare them."""

from __future__ import annotations

import attrs

from heald import Host, Vocabulary
from heald_session.events import EventType
from heald_session.hookspecs import event_types


@attrs.define(eq=False)
class EventTypes:
    """Looks event types up; follows what is installed and mounted."""

    _host: Host
    _read: Vocabulary[EventType] | None = None
    _former: dict[str, str] = attrs.field(factory=dict)

    def find(self, name: str) -> EventType | None:
        """Return the type with this name or former name.

        Raises `VocabularyConflict` if plugins disagree and no mounted one decides.
        """
        vocabulary = self._current()
        return vocabulary.get(name) or vocabulary.get(self._former.get(name, name))

    def owner(self, name: str) -> str | None:
        """Return the name of the plugin that declares a type."""
        return self._current().owner(name)

    def names(self) -> tuple[str, ...]:
        """Return the present name of every type."""
        return tuple(sorted(declared.name for declared in self._current()))

    def _current(self) -> Vocabulary[EventType]:
        vocabulary = self._host.vocabulary(event_types)
        if vocabulary is not self._read:
            self._read = vocabulary
            self._former = {old: kept.name for kept in vocabulary for old in kept.former}
        return vocabulary
