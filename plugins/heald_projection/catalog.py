"""The units this process knows, each checked before it is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import msgspec

from heald import Host, Vocabulary
from heald_projection.hookspecs import units
from heald_projection.unit import Unit
from heald_session import EventType, event_types

Schema = msgspec.json.Decoder[Any]
"""Decodes a value as the type it must fit; made once, since that takes longer than using it."""

_ANYTHING: Schema = msgspec.json.Decoder(Any)


@attrs.frozen(eq=False)
class KnownUnit:
    """A unit, the plugin that declares it, and what is wrong with it if anything is."""

    unit: Unit
    plugin: str | None
    types: frozenset[str] | None
    """The types it wants under every name they may be stored under; None is every type."""
    state: Schema
    view: Schema
    problem: str | None = None

    def same_as(self, other: KnownUnit) -> bool:
        """Say whether both are one unit: two plugins may declare it, whatever mounts or leaves."""
        if self is other:
            return True
        return (self.unit.key, self.unit.state_version) == (
            other.unit.key,
            other.unit.state_version,
        )


class Catalog:
    """Looks units up, and notices when the vocabulary of the process has changed."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._revision = -1
        """The host's, when the vocabulary was last looked at."""
        self._made_from: tuple[Vocabulary[Unit], Vocabulary[EventType]] | None = None
        self._known: dict[str, KnownUnit] = {}

    def find(self, key: str) -> KnownUnit | None:
        """Return the unit of a key, or None; raises `VocabularyConflict` if two claim it."""
        known = self._current().get(key)
        if known is None:
            self._host.vocabulary(units).get(key)
        return known

    def knows(self, known: KnownUnit) -> bool:
        """Say whether a unit is still what its key stands for."""
        current = self._current().get(known.unit.key)
        return current is not None and current.same_as(known)

    def __iter__(self) -> Iterator[KnownUnit]:
        return iter(self._current().values())

    def _current(self) -> dict[str, KnownUnit]:
        if self._host.revision == self._revision:
            return self._known
        self._revision = self._host.revision
        made_from = (self._host.vocabulary(units), self._host.vocabulary(event_types))
        last = self._made_from
        if last is None or last[0] is not made_from[0] or last[1] is not made_from[1]:
            vocabulary, types = made_from
            self._known = {u.key: _known(u, vocabulary.owner(u.key), types) for u in vocabulary}
            self._made_from = made_from
        return self._known


def _known(unit: Unit, plugin: str | None, types: Vocabulary[EventType]) -> KnownUnit:
    problem = _problem(unit)
    try:
        state = view = _schema(unit, "state_schema")
        if unit.view_schema != unit.state_schema:
            view = _schema(unit, "view_schema")
    except TypeError as error:
        state, view, problem = _ANYTHING, _ANYTHING, problem or str(error)
    wanted = frozenset[str]() if problem else _with_former_names(unit.event_types, types)
    return KnownUnit(unit, plugin, wanted, state, view, problem)


def _problem(unit: Unit) -> str | None:
    version: object = unit.state_version
    if type(version) is not int or version < 0:
        return f"state_version is {version!r}; use a whole number that is not negative"
    for name in ("initial", "apply", "view"):
        function = getattr(unit, name)
        if function is not None and _is_async(function):
            return f"{name} is async; a fold and its view are plain functions"
    return None


def _schema(unit: Unit, name: str) -> Schema:
    try:
        return msgspec.json.Decoder(getattr(unit, name))
    except TypeError as error:
        raise TypeError(f"{name} is no type that msgspec can convert to: {error}") from error


def _is_async(function: Callable[..., Any]) -> bool:
    """Say whether calling it makes a coroutine or an async generator."""
    parts = (function, getattr(function, "__call__"))  # noqa: B004, B009 - an object's own call
    checks = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(check(part) for check in checks for part in parts)


def _with_former_names(
    wanted: frozenset[str] | None, types: Vocabulary[EventType]
) -> frozenset[str] | None:
    """Add the names under which older logs hold the same types."""
    if wanted is None:
        return None
    former = (name for t in types if t.name in wanted for name in t.former)
    return wanted.union(former)
