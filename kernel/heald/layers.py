"""Layers: TOML documents, applied in order, that turn an empty list into a composition's rows.

A document has `[[rows]]`, which insert, and `[[patch]]`, which change a row by its id. Both may say
`when = {platform = "...", env = "..."}`. A profile, a bundle, a patch file and a preset are all
documents; they differ only in the further keys they may have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from heald.documents import Layer
from heald.errors import CompositionError, did_you_mean
from heald.faults import Fault
from heald.interpolation import fill, holds
from heald.rows import Row

_FIELDS = ("plugin", "disabled", "config")
"""What somebody wrote in every row; what its configuration says comes after these."""


@attrs.frozen
class Stack:
    """What a stack of layers came to: rows in order, and notices that stop nothing."""

    rows: tuple[Row, ...]
    notices: tuple[str, ...]


def stack(layers: Iterable[Layer], env: Mapping[str, str]) -> Stack:
    """Apply layers in order to an empty list, then fill in the environment.

    Raises `CompositionError` naming every patch that matches nothing, every id that is taken and
    every variable that is unset.
    """
    rows: dict[str, Row] = {}
    faults: list[Fault] = []
    notices: list[str] = []
    for layer in layers:
        origins: dict[str, str] = dict.fromkeys(_FIELDS, layer.name)
        for table in layer.rows:
            if _applies(table, env):
                _insert(table, layer.name, origins, rows, faults)
        for table in layer.patches:
            if _applies(table, env):
                _patch(table, layer.name, rows, faults, notices)
    filled = [_filled(row, env, faults) if row.config else row for row in rows.values()]
    if faults:
        raise CompositionError(tuple(faults))
    return Stack(tuple(filled), tuple(notices))


def _applies(table: Mapping[str, Any], env: Mapping[str, str]) -> bool:
    return "when" not in table or holds(table["when"], env, sys.platform)


def _insert(
    table: Mapping[str, Any],
    file: str,
    origins: Mapping[str, str],
    rows: dict[str, Row],
    faults: list[Fault],
) -> None:
    id_, after = table["id"], table.get("after")
    if (taken := rows.get(id_)) is not None:
        message = f"the id is taken by a row of {taken.layer}; patch it instead"
        faults.append(Fault("ROW_DUPLICATE", message, file, id_, "id"))
        return
    if after is not None and after not in rows:
        message = f"no row {after!r}; {did_you_mean(after, rows)}"
        faults.append(Fault("ROW_UNKNOWN", message, file, id_, "after"))
        return
    config: dict[str, Any] = {}
    if "config" in table:
        config = dict(table["config"])
        origins = {**origins, **dict.fromkeys(_leaves(config), file)}
    disabled = table.get("disabled", False)
    rows[id_] = Row(id_, table["plugin"], config, disabled, file, origins, config)
    if after is not None:
        ids = list(rows)
        for later in ids[ids.index(after) + 1 : -1]:
            rows[later] = rows.pop(later)


def _patch(
    table: Mapping[str, Any],
    file: str,
    rows: dict[str, Row],
    faults: list[Fault],
    notices: list[str],
) -> None:
    id_ = table["row"]
    if (row := rows.get(id_)) is not None:
        rows[id_] = _patched(row, table, file)
        return
    message = f"no row {id_!r} to patch; {did_you_mean(id_, rows)}"
    if table.get("optional", False):
        notices.append(f"{file}: {message}")
    else:
        faults.append(Fault("ROW_UNKNOWN", message, file, id_, "row"))


def _patched(row: Row, table: Mapping[str, Any], file: str) -> Row:
    """Change the fields that a patch names, and forget who wrote fields that are no more."""
    changed = [field for field in ("plugin", "disabled") if field in table]
    config = row.config
    if (new := table.get("config")) is not None:
        if isinstance(merge := new.get("merge"), dict):
            config = _merge(config, merge)
            changed += _leaves(merge)
        else:
            config = dict(new)
            changed += ["config", *_leaves(config)]
    there = {*_FIELDS, *_leaves(config)}
    origins = {**row.origins, **dict.fromkeys(changed, file)}
    return Row(
        row.id,
        table.get("plugin", row.plugin),
        config,
        table.get("disabled", row.disabled),
        row.layer,
        {field: origin for field, origin in origins.items() if field in there},
        config,
    )


def _leaves(config: Mapping[str, Any], path: str = "config") -> list[str]:
    leaves = []
    for key, value in config.items():
        here = f"{path}.{key}"
        leaves += _leaves(value, here) if isinstance(value, dict) and value else [here]
    return leaves


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _filled(row: Row, env: Mapping[str, str], faults: list[Fault]) -> Row:
    """Fill the environment in; what a disabled row lacks does not matter."""
    wrong: list[tuple[str, str]] = []
    config = fill(row.config, env, "config", wrong)
    if not row.disabled:
        for field, message in wrong:
            faults.append(Fault("ENV_UNSET", message, row.origin_of(field), row.id, field))
    return Row(row.id, row.plugin, config, row.disabled, row.layer, row.origins, row.written)
