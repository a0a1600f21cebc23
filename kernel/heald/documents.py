"""TOML documents that insert and patch rows: read, and refused where their form is wrong."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from heald.errors import CompositionError, did_you_mean
from heald.faults import Fault, FaultCode
from heald.interpolation import PLATFORMS
from heald.rows import id_fault

MAX_BYTES = 1_048_576
"""Far above any document that a person writes, and far below what would be slow to read."""
_USUAL_BYTES = 16_384
"""Asked for first: a buffer for the most there may be costs more than reading what there is."""
MAX_DEPTH = 64
"""Tables and arrays inside one another; everything that walks them may recurse."""

_FIELDS: Mapping[str, type] = {"plugin": str, "config": dict, "disabled": bool}
_FORMS: Mapping[str, tuple[Mapping[str, type], frozenset[str]]] = {
    "id": ({"id": str, **_FIELDS, "after": str, "when": dict}, frozenset({"id", "plugin"})),
    "row": ({"row": str, **_FIELDS, "optional": bool, "when": dict}, frozenset({"row"})),
}
"""What a row and a patch may have, and which of it they must, by the key that has the row's id."""
_NOTHING = "expected a value, got nothing"


@attrs.frozen
class Layer:
    """One document: the rows it inserts, the patches it makes, and its further keys."""

    name: str
    """What people see as the origin: the file's path, or who made it."""
    rows: Sequence[Mapping[str, Any]] = ()
    patches: Sequence[Mapping[str, Any]] = ()
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    content: bytes = attrs.field(default=b"", repr=False)
    """The file that it was read from, if it was."""


def read_layer(path: Path | str, *, keys: Collection[str] = (), name: str | None = None) -> Layer:
    """Read a document that may have `rows`, `patch` and the further top-level `keys`.

    Raises `CompositionError` with every fault: unreadable, a syntax error with its line, a key that
    is not known, a row or patch of the wrong form.
    """
    label = name or str(path)
    return parse_layer(_read(path, label), label, keys=keys)


def parse_layer(content: bytes, label: str, *, keys: Collection[str] = ()) -> Layer:
    """Make a layer of a document's bytes; `label` is what its origin is called.

    Raises `CompositionError` as `read_layer` does.
    """
    data = _parse(content, label)
    faults: list[Fault] = []
    _check_keys(data, ("rows", "patch", *keys), label, None, faults)
    rows = _tables(data, "rows", label, faults)
    patches = _tables(data, "patch", label, faults)
    for row in rows:
        _check_row(row, label, faults)
    for patch in patches:
        _check_patch(patch, label, faults)
    if faults:
        raise CompositionError(tuple(faults))
    extra = {key: data[key] for key in keys if key in data}
    return Layer(label, rows, patches, extra, content)


def _read(path: Path | str, label: str) -> bytes:
    """Read a file; a pipe that nobody writes would hold its reader for ever, so none is waited for.

    What the caller of the program has opened for it, such as `/dev/stdin`, may be a pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a directory cannot be read
                if not Path(path).is_relative_to("/dev"):
                    raise _invalid("LAYER_UNREADABLE", "is not an ordinary file", label)
                os.set_blocking(descriptor, True)
            content = _whole(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _invalid("LAYER_UNREADABLE", f"cannot be read: {error.strerror}", label) from error
    if len(content) > MAX_BYTES:
        raise _invalid("LAYER_UNREADABLE", f"is larger than {MAX_BYTES} bytes", label)
    return content


def _whole(descriptor: int) -> bytes:
    """Return what is in a file, up to a byte more than there may be."""
    content = b""
    while len(content) <= MAX_BYTES and (piece := os.read(descriptor, _USUAL_BYTES)):
        content += piece
    return content


def _parse(content: bytes, label: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid("LAYER_SYNTAX", f"not UTF-8 (at line {line})", label) from error
    except tomllib.TOMLDecodeError as error:
        last = content.removesuffix(b"\n").count(b"\n") + 1
        reason = str(error).replace("at end of document", f"at line {last}")
        raise _invalid("LAYER_SYNTAX", f"not TOML: {reason}", label) from error
    except ValueError as error:  # a number of more digits than Python reads
        raise _invalid("LAYER_SYNTAX", f"not TOML: {error}", label) from error
    except RecursionError as error:
        raise _too_deep(label) from error
    if _depth(data) > MAX_DEPTH:
        raise _too_deep(label)
    return data


def _depth(data: Mapping[str, Any]) -> int:
    """Measure how deep tables and arrays go, level by level, since a dotted key nests unbounded."""
    depth, level = 0, [data]
    while level and depth <= MAX_DEPTH:
        inner: list[Any] = []
        for table in level:
            inner += table.values() if type(table) is dict else table
        depth, level = depth + 1, [value for value in inner if type(value) in (dict, list)]
    return depth


def _too_deep(label: str) -> CompositionError:
    return _invalid("LAYER_SYNTAX", f"tables nest more than {MAX_DEPTH} deep", label)


def _invalid(code: FaultCode, message: str, file: str) -> CompositionError:
    return CompositionError((Fault(code, message, file),))


def _tables(
    data: Mapping[str, Any], key: str, file: str, faults: list[Fault]
) -> list[dict[str, Any]]:
    value = data.get(key, [])
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    faults.append(Fault("LAYER_INVALID", f"expected tables [[{key}]]", file, field=key))
    return []


def _check_row(row: Mapping[str, Any], file: str, faults: list[Fault]) -> None:
    id_ = _check_form(row, "id", file, faults)
    if id_ is not None and (fault := id_fault(id_, file)) is not None:
        faults.append(fault)


def _check_patch(patch: Mapping[str, Any], file: str, faults: list[Fault]) -> None:
    row = _check_form(patch, "row", file, faults)
    if row is None:
        return
    if patch.keys().isdisjoint(_FIELDS):
        message = f"changes nothing; expected one of {', '.join(_FIELDS)}"
        faults.append(Fault("LAYER_INVALID", message, file, row, "row"))
    config = patch.get("config")
    if isinstance(config, dict) and isinstance(config.get("merge"), dict) and len(config) > 1:
        message = "expected `merge` alone, or the whole configuration without it"
        faults.append(Fault("LAYER_INVALID", message, file, row, "config"))


def _check_form(table: Mapping[str, Any], name: str, file: str, faults: list[Fault]) -> str | None:
    """Find keys that are unknown, missing or of the wrong type; return the id of the row."""
    kinds, needed = _FORMS[name]
    row = table[name] if isinstance(table.get(name), str) else None
    _check_keys(table, kinds, file, row, faults)
    if missing := needed - table.keys():
        faults += [Fault("LAYER_INVALID", _NOTHING, file, row, key) for key in sorted(missing)]
    for key, value in table.items():
        if not isinstance(value, kinds.get(key, object)):
            message = f"expected {kinds[key].__name__}, got {type(value).__name__} {value!r}"
            faults.append(Fault("LAYER_INVALID", message, file, row, key))
    if isinstance(when := table.get("when"), dict):
        _check_when(when, file, row, faults)
    return row


def _check_keys(
    data: Mapping[str, Any],
    known: Collection[str],
    file: str,
    row: str | None,
    faults: list[Fault],
    *,
    path: str = "",
) -> None:
    for key in data:
        if key not in known:
            message = f"unknown key; {did_you_mean(key, known)}"
            faults.append(Fault("LAYER_KEY_UNKNOWN", message, file, row, f"{path}{key}"))


def _check_when(
    when: Mapping[str, object], file: str, row: str | None, faults: list[Fault]
) -> None:
    _check_keys(when, ("platform", "env"), file, row, faults, path="when.")
    for key in ("platform", "env"):
        if not isinstance(when.get(key, ""), str):
            message = f"expected str, got {type(when[key]).__name__} {when[key]!r}"
            faults.append(Fault("LAYER_INVALID", message, file, row, f"when.{key}"))
    platform = when.get("platform", "linux")
    if isinstance(platform, str) and platform not in PLATFORMS:
        message = f"no platform {platform!r}; {did_you_mean(platform, PLATFORMS)}"
        faults.append(Fault("LAYER_INVALID", message, file, row, "when.platform"))
