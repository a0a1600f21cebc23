"""Structures a row's configuration strictly, and says everything that is wrong with it at once."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args

import attrs

from heald.errors import describe, nearest
from heald.interpolation import FromEnvironment
from heald.values import (
    PLAIN,
    Unexpected,
    is_from_environment,
    name_of,
    one_of_enum,
    one_of_literal,
    origin,
    plain,
    show,
)

Field: TypeAlias = "attrs.Attribute[Any]"
_ALIASES = "heald.aliases"


def setting(
    *,
    default: Any = attrs.NOTHING,
    factory: Callable[[], Any] | None = None,
    aliases: tuple[str, ...] = (),
    validator: Callable[[Any, Any, Any], Any] | None = None,
) -> Any:
    """Make a configuration field; `aliases` are its earlier names, accepted with a notice."""
    return attrs.field(
        default=default, factory=factory, validator=validator, metadata={_ALIASES: aliases}
    )


@attrs.frozen
class Wrong:
    """One wrong value: where it is, and what is the matter."""

    path: str
    message: str


class Structured(NamedTuple):
    """The outcome of structuring: a configuration, or everything that is wrong with the data."""

    config: Any
    wrong: tuple[Wrong, ...] = ()
    notices: tuple[str, ...] = ()


def structure(data: Mapping[str, object], cls: type[Any]) -> Structured:
    """Turn plain data into a configuration object, refusing everything that is not exactly it."""
    if not data:
        try:
            attrs.resolve_types(cls)
            return Structured(cls())
        except Exception:  # noqa: BLE001, S110 - what is wrong with it is said below
            pass
    try:
        reading = _idle.pop()
    except IndexError:
        reading = _Reading()
    config = reading.at("", data, cls)
    wrong, notices = reading.outcome()
    _idle.append(reading)
    return Structured(None if wrong else config, wrong, notices)


class _Reading:
    """One pass over a row's data: cattrs dispatches on types, and these hooks are the strict part.

    A hook for a plain value raises `Unexpected`. One for a table or an array asks `at` for each
    value inside, which notes what is wrong there and goes on.
    """

    def __init__(self) -> None:
        from cattrs import Converter  # noqa: PLC0415 - composing alone needs it, and it is slow

        self.wrong: list[Wrong] = []
        self.notices: list[str] = []
        self._path = ""
        self._converter = Converter()
        for kind in PLAIN:
            self._converter.register_structure_hook(kind, plain)
        self._converter.register_structure_hook(enum.Enum, one_of_enum)
        for check, hook in (
            (attrs.has, self._table),
            (lambda kind: origin(kind) is Literal, one_of_literal),
            (lambda kind: origin(kind) in _ARRAYS, self._array),
            (lambda kind: origin(kind) in _MAPPINGS, self._mapping),
            (lambda kind: origin(kind) in (Union, UnionType), self._union),
        ):
            self._converter.register_structure_hook_func(check, hook)

    def outcome(self) -> tuple[tuple[Wrong, ...], tuple[str, ...]]:
        """Return what was noted, and forget it."""
        noted = tuple(self.wrong), tuple(self.notices)
        self.wrong, self.notices = [], []
        return noted

    def at(self, step: str, value: Any, kind: Any) -> Any:
        """Structure the value one step further in; note what is wrong with it and return None."""
        if type(value) is kind and kind in PLAIN:  # as most are: no need to look for its hook
            return value
        outside, self._path = self._path, _join(self._path, step)
        try:
            return self._converter.structure(value, kind)
        except Unexpected as error:
            self._note(str(error))
        except Exception as error:  # noqa: BLE001 - a type may refuse a value in its own way
            why = "" if is_from_environment(value) else f" ({describe(error)})"
            self._note(f"expected {name_of(kind)}, got {show(value)}{why}")
        finally:
            self._path = outside
        return None

    def _note(self, message: str, step: str = "") -> None:
        self.wrong.append(Wrong(_join(self._path, step), message))

    def _table(self, value: Any, cls: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unexpected("a table", value)
        attrs.resolve_types(cls)
        fields = {field.name: field for field in attrs.fields(cls) if field.init}
        before = len(self.wrong)
        given = self._renamed(value, fields.values())
        values = {}
        for name, field in fields.items():
            if name in given:
                values[name] = self.at(name, given[name], field.type or Any)
            elif field.default is attrs.NOTHING:
                self._note("expected a value, got nothing", name)
        for key in given:
            if key not in fields:
                self._note(_unknown(key, fields), key)
        if len(self.wrong) > before:
            return None
        return self._built(cls, fields, values, given)

    def _renamed(self, value: Mapping[str, Any], fields: Iterable[Field]) -> dict[str, Any]:
        """Move values that stand under a field's earlier name to its name."""
        given = dict(value)
        for field in fields:
            for alias in field.metadata.get(_ALIASES, ()):
                if alias in given and field.name in given:
                    message = (
                        f"is the earlier name of {field.name!r}, which is given too; remove it"
                    )
                    self._note(message, alias)
                    del given[alias]
                elif alias in given:
                    given[field.name] = given.pop(alias)
                    old, new = (_join(self._path, name) for name in (alias, field.name))
                    self.notices.append(f"config.{old} is now config.{new}; rename it")
        return given

    def _built(
        self, cls: Any, fields: Mapping[str, Field], values: dict[str, Any], given: dict[str, Any]
    ) -> Any:
        """Construct the class; if it refuses, ask all validators: attrs stops at the first."""
        try:
            return cls(**{str(fields[name].alias): value for name, value in values.items()})
        except Exception as error:  # noqa: BLE001 - validators raise what they like
            refused = error
        before = len(self.wrong)
        hidden = {name for name in values if is_from_environment(given[name])}
        partial = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(partial, name, value)
        for name, value in values.items():
            field = fields[name]
            try:
                if field.validator is not None:
                    field.validator(partial, field, value)
            except (TypeError, ValueError) as error:
                got = show(FromEnvironment()) if name in hidden else show(value)
                reason = "" if hidden else f": {error.args[0] if error.args else describe(error)}"
                self._note(f"expected a value that fits, got {got}{reason}", name)
        if len(self.wrong) == before:
            self._note(type(refused).__name__ if hidden else describe(refused))
        return None

    def _array(self, value: Any, kind: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise Unexpected("an array", value)
        kinds = get_args(kind) or (Any, ...)
        if origin(kind) is tuple and kinds[-1] is not ...:
            if len(value) != len(kinds):
                raise Unexpected(f"an array of {len(kinds)}", value)
        else:
            kinds = (kinds[0],) * len(value)
        items = [
            self.at(f"[{n}]", item, inner)
            for n, (item, inner) in enumerate(zip(value, kinds, strict=True))
        ]
        return _ARRAYS[origin(kind)](items)

    def _mapping(self, value: Any, kind: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unexpected("a table", value)
        key_kind, inner = get_args(kind) or (str, Any)
        return {
            self.at(key, key, key_kind): self.at(key, item, inner) for key, item in value.items()
        }

    def _union(self, value: Any, kind: Any) -> Any:
        """Take the first kind that fits; else tell what is wrong with the one that nearly did."""
        nearly: list[list[Wrong]] = []
        for branch in get_args(kind):
            before = len(self.wrong)
            try:
                if branch is not NoneType:
                    fitting = self._converter.structure(value, branch)
                elif value is None:
                    fitting = None
                else:
                    continue
            except Unexpected:
                continue
            wrong = self.wrong[before:]
            if not wrong:
                return fitting
            del self.wrong[before:]
            nearly.append(wrong)
        if not nearly:
            raise Unexpected(name_of(kind), value)
        nearest_miss = min(nearly, key=len)
        self.wrong += nearest_miss
        return None


_ARRAYS: Mapping[Any, Callable[[list[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    AbstractSet: frozenset,
}
_MAPPINGS = (dict, Mapping)
_idle: list[_Reading] = []
"""Those to be used again, since making one costs far more than reading a row's data."""


def _unknown(key: str, known: Collection[str]) -> str:
    match = nearest(key, known)
    hint = f"did you mean {match!r}?" if match else f"known: {', '.join(known) or 'none'}"
    return f"expected a known key, got {key!r}; {hint}"


def _join(path: str, step: str) -> str:
    return f"{path}.{step}" if path and step and not step.startswith("[") else path + step
