"""What a survey finds out about a directory, and how it reads that out of what tools returned."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from heald_run.languages import language_of

MARKER = "facts: "
"""Begins the line in which one agent of the survey hands its facts to another, as JSON."""


@attrs.frozen
class Measured:
    """Lines and bytes of one file; a binary file has no lines."""

    path: str
    lines: int | None
    size: int


@attrs.frozen
class Sizes:
    """What measuring every file came to."""

    files: int
    lines: int
    bytes: int
    unread: int
    """How many files could not be read."""
    by_language: dict[str, tuple[int, int]]
    """Files and lines for each language."""
    largest: tuple[tuple[str, int], ...]
    """Paths and bytes, largest first."""
    longest: tuple[str, ...]
    """Paths of text files, those with the most lines first."""


def measure_command(paths: Sequence[str]) -> str:
    """Return a shell command that prints the bytes and the text lines of each file."""
    names = " ".join(shlex.quote(f"./{path}") for path in paths)
    return f"wc -c -- {names} 2>/dev/null; echo ==; grep -cHI '' -- {names} 2>/dev/null; true"


def parse_measured(output: str) -> list[Measured]:
    """Read what `measure_command` printed."""
    sizes_part, _, lines_part = output.partition("\n==\n")
    if sizes_part.startswith("==\n"):
        sizes_part, lines_part = "", output.removeprefix("==\n")
    sizes: dict[str, int] = {}
    for line in sizes_part.splitlines():
        count, _, name = line.strip().partition(" ")
        if name.startswith("./") and count.isdigit():
            sizes[name.removeprefix("./")] = int(count)
    lines: dict[str, int] = {}
    for line in lines_part.splitlines():
        name, _, count = line.rpartition(":")
        if name.startswith("./") and count.isdigit():
            lines[name.removeprefix("./")] = int(count)
    return [
        Measured(path, lines.get(path, 0) if lines.get(path) or not size else None, size)
        for path, size in sizes.items()
    ]


def sum_up(measured: Iterable[Measured], asked: int) -> Sizes:
    """Add up measured files; `asked` is how many there were to measure."""
    found = list(measured)
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for item in found:
        language = "binary" if item.lines is None else language_of(item.path)
        files[language] += 1
        lines[language] += item.lines or 0
    ranked = sorted(found, key=lambda item: (-item.size, item.path))
    return Sizes(
        files=len(found),
        lines=sum(lines.values()),
        bytes=sum(item.size for item in found),
        unread=asked - len(found),
        by_language={
            language: (files[language], lines[language])
            for language in sorted(files, key=lambda key: (-lines[key], -files[key], key))
        },
        largest=tuple((item.path, item.size) for item in ranked[:5]),
        longest=tuple(
            item.path
            for item in sorted(found, key=lambda i: (-(i.lines or 0), i.path))
            if item.lines
        )[:5],
    )


def hand_over(facts: object) -> str:
    """Return the line by which an agent gives facts to the one that asked."""
    return MARKER + json.dumps(facts, ensure_ascii=False)


def handed_over(text: str) -> list[dict[str, Any]]:
    """Return the facts in a text, in order."""
    lines = (line.strip() for line in text.splitlines())
    return [json.loads(line.removeprefix(MARKER)) for line in lines if line.startswith(MARKER)]
