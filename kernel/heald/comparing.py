"""What is different between two lists of rows, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

import attrs

from heald.rows import Row


@attrs.frozen
class FieldChange:
    """One field that is not the same; None where a row has no such field.

    `after` is no field that was written: it is the row that comes before, of those in both lists.
    """

    field: str
    old: object
    new: object
    old_origin: str | None
    new_origin: str | None


@attrs.frozen
class RowChange:
    """One row that is not the same in both lists."""

    row: str
    change: Literal["added", "removed", "changed"]
    fields: tuple[FieldChange, ...]


def differences(old: Sequence[Row], new: Sequence[Row]) -> tuple[RowChange, ...]:
    """Compare rows by id, their configuration as written: the old ones in order, then new ones."""
    olds, news = ({row.id: row for row in rows} for rows in (old, new))
    moved = _moved([id_ for id_ in olds if id_ in news], [id_ for id_ in news if id_ in olds])
    changes: list[RowChange] = []
    for id_ in dict.fromkeys([*olds, *news]):
        before, after = olds.get(id_), news.get(id_)
        fields = [*_changes(before, after), *moved.get(id_, ())]
        if before is None:
            changes.append(RowChange(id_, "added", tuple(fields)))
        elif after is None:
            changes.append(RowChange(id_, "removed", tuple(fields)))
        elif fields:
            changes.append(RowChange(id_, "changed", tuple(fields)))
    return tuple(changes)


def _changes(old: Row | None, new: Row | None) -> Iterator[FieldChange]:
    before, after = (row.fields() if row is not None else {} for row in (old, new))
    for field in dict.fromkeys([*before, *after]):
        if field not in before or field not in after or before[field] != after[field]:
            yield FieldChange(
                field,
                before.get(field),
                after.get(field),
                old.origin_of(field) if old is not None and field in before else None,
                new.origin_of(field) if new is not None and field in after else None,
            )


def _moved(old: Sequence[str], new: Sequence[str]) -> dict[str, tuple[FieldChange, ...]]:
    """Find the fewest rows, or nearly, that were moved to make one order of the other."""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    stayed = {id_ for block in blocks for id_ in old[block.a : block.a + block.size]}
    return {
        id_: (FieldChange("after", _before(id_, old), _before(id_, new), None, None),)
        for id_ in old
        if id_ not in stayed
    }


def _before(id_: str, ids: Sequence[str]) -> str | None:
    place = ids.index(id_)
    return ids[place - 1] if place else None
