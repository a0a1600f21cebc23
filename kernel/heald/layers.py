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


@attrs.define
class _Draft:
    """A row while layers are still changing it."""

    id: str
    plugin: str
    layer: str
    config: dict[str, Any] = attrs.field(factory=dict)
    disabled: bool = False
    origins: dict[str, str] = attrs.field(factory=dict)

    def note(self, file: str, fields: Iterable[str]) -> None:
        """Remember who wrote these fields, and forget fields that are no more."""
        self.origins.update(dict.fromkeys(fields, file))
        there = {"plugin", "disabled", "config", *_leaves(self.config)}
        self.origins = {field: origin for field, origin in self.origins.items() if field in there}


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
    drafts: list[_Draft] = []
    faults: list[Fault] = []
    notices: list[str] = []
    for layer in layers:
        for table in layer.rows:
            if _applies(table, env):
                _insert(table, layer.name, drafts, faults)
        for table in layer.patches:
            if _applies(table, env):
                _patch(table, layer.name, drafts, faults, notices)
    rows = tuple(_finish(draft, env, faults) for draft in drafts)
    if faults:
        raise CompositionError(tuple(faults))
    return Stack(rows, tuple(notices))


def _applies(table: Mapping[str, Any], env: Mapping[str, str]) -> bool:
    return holds(table.get("when", {}), env, sys.platform)


def _insert(table: Mapping[str, Any], file: str, drafts: list[_Draft], faults: list[Fault]) -> None:
    id_, at = table["id"], len(drafts)
    if (taken := _of_id(drafts, id_)) is not None:
        message = f"the id is taken by a row of {taken.layer}; patch it instead"
        faults.append(Fault("ROW_DUPLICATE", message, file, id_, "id"))
        return
    if (after := table.get("after")) is not None:
        ids = [draft.id for draft in drafts]
        if after not in ids:
            message = f"no row {after!r}; {did_you_mean(after, ids)}"
            faults.append(Fault("ROW_UNKNOWN", message, file, id_, "after"))
            return
        at = ids.index(after) + 1
    config = dict(table.get("config", {}))
    origins = dict.fromkeys(["plugin", "disabled", "config", *_leaves(config)], file)
    draft = _Draft(id_, table["plugin"], file, config, table.get("disabled", False), origins)
    drafts.insert(at, draft)


def _patch(
    table: Mapping[str, Any],
    file: str,
    drafts: list[_Draft],
    faults: list[Fault],
    notices: list[str],
) -> None:
    id_ = table["row"]
    if (draft := _of_id(drafts, id_)) is None:
        message = f"no row {id_!r} to patch; {did_you_mean(id_, [d.id for d in drafts])}"
        if table.get("optional", False):
            notices.append(f"{file}: {message}")
        else:
            faults.append(Fault("ROW_UNKNOWN", message, file, id_, "row"))
        return
    if "plugin" in table:
        draft.plugin = table["plugin"]
        draft.note(file, ["plugin"])
    if "disabled" in table:
        draft.disabled = table["disabled"]
        draft.note(file, ["disabled"])
    if "config" in table:
        config = table["config"]
        if isinstance(config.get("merge"), dict):
            draft.config = _merge(draft.config, config["merge"])
            draft.note(file, _leaves(config["merge"]))
        else:
            draft.config = dict(config)
            draft.note(file, ["config", *_leaves(config)])


def _of_id(drafts: list[_Draft], id_: str) -> _Draft | None:
    for draft in drafts:
        if draft.id == id_:
            return draft
    return None


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


def _finish(draft: _Draft, env: Mapping[str, str], faults: list[Fault]) -> Row:
    wrong: list[tuple[str, str]] = []
    row = Row(
        draft.id,
        draft.plugin,
        fill(draft.config, env, "config", wrong),
        disabled=draft.disabled,
        layer=draft.layer,
        origins=draft.origins,
        written=draft.config,
    )
    if not row.disabled:
        for field, message in wrong:
            faults.append(Fault("ENV_UNSET", message, row.origin_of(field), row.id, field))
    return row
