"""The report of a survey, written from the facts that its agents handed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from heald import counted

_LANGUAGES_SHOWN = 12
_MARKS_SHOWN = 5


def report(facts: Mapping[str, Any], *, max_files: int, max_marks: int) -> str:
    """Write the report; what is not among the facts is said to be unknown."""
    lines = [
        *_about_sizes(facts, max_files),
        *_about_marks(facts, max_marks),
        *_about_reading(facts),
        *_about_agents(facts),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _about_sizes(facts: Mapping[str, Any], max_files: int) -> Iterator[str]:
    sizes = facts.get("sizes")
    if sizes is None:
        yield "Files and lines: not known, the measuring agent gave no numbers."
        return
    if not any(sizes[kind] for kind in ("files", "unread", "unnamed", "links")):
        yield "The directory has no files."
        return
    yield f"{counted(sizes['files'], 'file')}, {counted(sizes['lines'], 'line')} of text"
    if facts.get("more_files"):
        yield f"(only the first {max_files:,} files were looked at; there are more)"
    if sizes["unread"]:
        yield f"({counted(sizes['unread'], 'file')} could not be read)"
    if sizes["unnamed"]:
        yield f"({counted(sizes['unnamed'], 'file')} with names that are not text were left out)"
    if sizes["links"]:
        yield f"({counted(sizes['links'], 'symbolic link')} left alone)"
    if sizes["files"]:
        yield from _tables(sizes)


def _tables(sizes: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "By language:"
    shown = list(sizes["by_language"].items())
    width = max(len(language) for language, _ in shown)
    for language, (files, lines) in shown[:_LANGUAGES_SHOWN]:
        noun = "file " if files == 1 else "files"
        yield f"  {language:<{width}}  {files:>6,} {noun}  {lines:>9,} lines"
    if len(shown) > _LANGUAGES_SHOWN:
        yield f"  and {len(shown) - _LANGUAGES_SHOWN} more"
    yield ""
    yield "Largest files:"
    for path, size in sizes["largest"]:
        yield f"  {size:>12,} bytes  {path}"


def _about_marks(facts: Mapping[str, Any], max_marks: int) -> Iterator[str]:
    marks = facts.get("marks")
    yield ""
    if marks is None:
        yield "Open TODO marks: not known, the searching agent gave no answer."
        return
    more = f" (at least; the search stops at {max_marks})" if facts.get("more_marks") else ""
    yield f"Open TODO marks, lines with TODO, FIXME or XXX: {len(marks)}{more}"
    for mark in marks[:_MARKS_SHOWN]:
        yield f"  {mark}"
    if len(marks) > _MARKS_SHOWN:
        yield f"  and {len(marks) - _MARKS_SHOWN} more"


def _about_reading(facts: Mapping[str, Any]) -> Iterator[str]:
    for reading in facts.get("read", []):
        yield ""
        yield f"{reading['path']} begins:"
        for line in reading["lines"]:
            yield f"  {line}"


def _about_agents(facts: Mapping[str, Any]) -> Iterator[str]:
    if listing := facts.get("agents"):
        yield ""
        yield "Subagents that can go on:"
        for ident, label in listing:
            yield f"  {label} ({ident})"
