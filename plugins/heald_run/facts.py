"""What a survey finds out about a directory, and how it reads that out of what tools returned."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import attrs

from heald_run.languages import language_of

_NEXT = "=="
"""Stands between the parts of what one measuring command prints."""
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
    links: int
    """How many symbolic links there were, which were left alone."""
    unnamed: int
    """How many files have names that text cannot hold."""
    unread: int
    """How many files could not be read."""
    by_language: dict[str, tuple[int, int]]
    """Files and lines for each language."""
    largest: tuple[tuple[str, int], ...]
    """Paths and bytes, largest first."""
    longest: tuple[str, ...]
    """Paths of text files, those with the most lines first."""


@attrs.frozen
class Measurement:
    """What one command measured: regular files, and the links that it did not follow."""

    files: tuple[Measured, ...]
    links: int


def measure_command(paths: Sequence[str]) -> str:
    """Return a shell command that prints the bytes and the text lines of each regular file."""
    named = "find " + " ".join(shlex.quote(f"./{path}") for path in paths) + " -prune"
    return (
        f"{named} -type f -exec wc -c -- {{}} + 2>/dev/null; echo {_NEXT}; "
        f"{named} -type f -exec grep -cHI '' -- {{}} + 2>/dev/null; echo {_NEXT}; "
        f"{named} -type l -print 2>/dev/null; true"
    )


def parse_measured(output: str) -> Measurement:
    """Read what `measure_command` printed."""
    sizes_part, lines_part, links_part = (*f"\n{output}".split(f"\n{_NEXT}"), "", "")[:3]
    lines = {name: int(count) for name, count in _pairs(lines_part, _as_grep_counts)}
    files = []
    for name, count in _pairs(sizes_part, _as_wc_counts):
        size = int(count)
        # Of a binary file, and of an empty one, grep counts no line.
        files.append(Measured(name, lines.get(name, 0) or (None if size else 0), size))
    links = sum(line.startswith("./") for line in links_part.split("\n"))
    return Measurement(tuple(files), links)


def _pairs(text: str, divide: Callable[[str], tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the name, without `./`, and the count of each line that has both."""
    for line in text.split("\n"):
        name, count = divide(line)
        if name.startswith("./") and count.isdigit():
            yield name.removeprefix("./"), count


def _as_grep_counts(line: str) -> tuple[str, str]:
    name, _, count = line.rpartition(":")
    return name, count


def _as_wc_counts(line: str) -> tuple[str, str]:
    count, _, name = line.strip().partition(" ")
    return name, count


def sum_up(measured: Iterable[Measurement], *, asked: int, unnamed: int) -> Sizes:
    """Add up what was measured of `asked` files; `unnamed` more could not be asked for."""
    parts = list(measured)
    found = [item for part in parts for item in part.files]
    links = sum(part.links for part in parts)
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
        links=links,
        unnamed=unnamed,
        unread=asked - len(found) - links,
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


def handed_over(text: str) -> Iterator[dict[str, Any]]:
    """Yield the facts in a text, in order."""
    for line in text.split("\n"):
        if line.startswith(MARKER):
            with suppress(ValueError):
                yield json.loads(line.removeprefix(MARKER))
