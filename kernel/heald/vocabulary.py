"""Vocabulary of the whole process: what plugin classes declare, whether mounted or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import attrs

from heald.errors import VocabularyConflict
from heald.hooks import Declare
from heald.plugin import Plugin
from heald.shape import shape_of

T = TypeVar("T")


@attrs.frozen
class Entry(Generic[T]):
    """One thing that a plugin class declares."""

    key: str
    version: int
    value: T


@attrs.frozen
class Declared(Generic[T]):
    """An entry, the plugin that declares it, and whether the host runs that plugin."""

    entry: Entry[T]
    plugin: str
    mounted: bool


_asked: WeakKeyDictionary[type[Plugin[Any]], dict[str, tuple[Entry[Any], ...]]] = (
    WeakKeyDictionary()
)
_versions: WeakKeyDictionary[type[Plugin[Any]], Mapping[tuple[Declare[Any], str], int]] = (
    WeakKeyDictionary()
)


def declared(cls: type[Plugin[Any]], spec: Declare[T], attribute: str) -> tuple[Entry[T], ...]:
    """Return what a class declares by a class method, which is called once.

    Raises whatever the method, the key or the version raises, and `ValueError` if the class
    contradicts itself.
    """
    if (known := _asked.get(cls)) is None:
        known = _asked[cls] = {}
    if attribute not in known:
        values: Iterable[T] = getattr(cls, attribute)()
        entries = tuple(Entry(spec.key(value), spec.version(value), value) for value in values)
        versions = {entry.key: entry.version for entry in entries}
        for entry in entries:
            if versions[entry.key] != entry.version:
                raise ValueError(f"{entry.key!r} is declared in two versions by {attribute}")
        known[attribute] = entries
    return known[attribute]


def versions(cls: type[Plugin[Any]]) -> Mapping[tuple[Declare[Any], str], int]:
    """Return what a class declares by vocabulary and key, in which version; raises as `declared`.

    Worked out once: presets are planned by the hundred, with the same plugins.
    """
    if (known := _versions.get(cls)) is None:
        known = _versions[cls] = {
            (spec, entry.key): entry.version
            for spec, attribute in shape_of(cls).declares
            for entry in declared(cls, spec, attribute)
        }
    return known


class Vocabulary(Generic[T]):
    """The entries of one declare hook by key.

    Of two versions the one whose plugin is mounted in the host counts. With none mounted neither
    does, and asking for the key raises `VocabularyConflict`.
    """

    def __init__(self, spec: Declare[T], entries: Iterable[Declared[T]]) -> None:
        self._spec = spec
        self._chosen: dict[str, Declared[T]] = {}
        self._conflicts: dict[str, tuple[str, ...]] = {}
        by_key: dict[str, list[Declared[T]]] = {}
        for one in entries:
            by_key.setdefault(one.entry.key, []).append(one)
        for key, candidates in by_key.items():
            mounted = [one for one in candidates if one.mounted]
            if not mounted and len({one.entry.version for one in candidates}) > 1:
                owners = (
                    f"plugin {one.plugin} (version {one.entry.version})" for one in candidates
                )
                self._conflicts[key] = tuple(sorted(owners))
            else:
                self._chosen[key] = (mounted or candidates)[0]

    def get(self, key: str) -> T | None:
        """Return the entry, or None if nothing installed declares it."""
        if key in self._conflicts:
            raise VocabularyConflict(str(self._spec), key, self._conflicts[key])
        return self._chosen[key].entry.value if key in self._chosen else None

    def owner(self, key: str) -> str | None:
        """Return the name of the plugin that declares the entry."""
        return self._chosen[key].plugin if key in self._chosen else None

    @property
    def conflicts(self) -> Mapping[str, tuple[str, ...]]:
        """Keys that cannot be used, and who declares them."""
        return self._conflicts

    def __iter__(self) -> Iterator[T]:
        return (one.entry.value for one in self._chosen.values())

    def __contains__(self, key: object) -> bool:
        return key in self._chosen

    def __len__(self) -> int:
        return len(self._chosen)
