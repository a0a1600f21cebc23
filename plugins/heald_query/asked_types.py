"""The types of event that a person asked for, and hints on those that nothing has."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Iterable, Iterator

from heald import Host
from heald_persistence import Damage
from heald_session import Event, event_types


class TypesAsked:
    """Notes which of the types occur, so that a misspelt one is not taken for an absent one."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._seen: set[str] = set()

    async def noting(self, items: AsyncIterator[Event | Damage]) -> AsyncIterator[Event | Damage]:
        """Pass on what is shown, noting its types."""
        async for item in items:
            if isinstance(item, Event):
                self._seen.add(item.type)
            yield item

    def hints(self, host: Host) -> Iterator[str]:
        """Yield a hint for each type that did not occur and that no plugin declares."""
        declared = [one.name for one in host.vocabulary(event_types)]
        for name in self.names:
            if name not in self._seen and name not in declared:
                near = difflib.get_close_matches(name, declared, n=1)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                yield f"no event of type {name!r} was shown, and no plugin declares it{meant}"
