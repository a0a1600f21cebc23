"""Describes presets to people, the broken ones too."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import attrs

from heald import Host, Stack
from heald_preset.contracts import Preset
from heald_preset.documents import Document
from heald_preset.generations import check, stacked
from heald_preset.problems import PresetProblem
from heald_preset.roster import Entry, Roster


@attrs.define
class _Found:
    """What is known of an entry so far."""

    entry: Entry
    document: Document | None = None
    chain: tuple[Document, ...] = ()
    stack: Stack | None = None
    problem: str | None = None


def listed(roster: Roster, host: Host) -> list[Preset]:
    """Describe every preset, by the order they ask for and then by id."""

    def read(found: _Found) -> None:
        found.document = roster.document(found.entry)

    def follow(found: _Found) -> None:
        found.chain = roster.chain(found.entry)

    def pile(found: _Found) -> None:
        found.stack = stacked(found.chain, host)

    def judge(found: _Found) -> None:
        if found.stack is not None:
            check(found.stack, host)

    every = [_Found(entry) for entry in roster.entries]
    # Step by step for all of them: taking one preset after the other through every step takes half
    # as long again, since each step's code and data would have to come back to the processor.
    for step in (read, follow, pile, judge):
        _take(step, every)
    return sorted(map(_described, every), key=attrgetter("order", "id"))


def _take(step: Callable[[_Found], None], every: list[_Found]) -> None:
    for found in every:
        if found.problem is None:
            try:
                step(found)
            except PresetProblem as error:
                found.problem = str(error)


def _described(found: _Found) -> Preset:
    entry, document = found.entry, found.document
    facts = (entry.id, entry.root, entry.path)
    if document is None:
        return Preset(*facts, label=entry.id, problem=found.problem, shadowed=entry.shadowed)
    return Preset(
        *facts,
        label=document.label or entry.id,
        description=document.description,
        order=document.order,
        extends=document.extends,
        problem=found.problem,
        shadowed=entry.shadowed,
    )
