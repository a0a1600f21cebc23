"""Searches files for a regular expression, in a process of its own.

A regular expression can take for ever on one line, and nothing can interrupt it there: this process
can be killed. It reads a request as JSON from standard input and writes JSON lines: texts as they
are found, then an object that says how the search ended. It imports nothing slow.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from heald_tools_files.lines import lines, sniff
from heald_tools_files.names import shown
from heald_tools_files.patterns import PathPattern
from heald_tools_files.tree import Budget, Walk

_LONGEST_LINE = 1_000_000
"""Bytes of one line that are searched."""
_SHOWN = 400
"""Characters of one line that are shown."""
_BEFORE_MATCH = 100


class _Found(NamedTuple):
    number: int
    text: str
    match: re.Match[str] | None
    """None for a line that is only shown as context."""


class _Search:
    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.cwd = Path(request["cwd"])
        flags = re.IGNORECASE if request["ignore_case"] else 0
        self.pattern = re.compile(request["pattern"], flags)
        self.budget = Budget(request["entries"], request["seconds"], int)
        self.matches = 0
        self.characters = 0
        self.bytes = 0
        self.skipped = {"unreadable": 0, "binary": 0, "long": 0}
        self.walk: Walk | None = None
        self.ended: str | None = None

    def run(self) -> dict[str, Any]:
        for path in self._paths():
            self._search_file(path)
            if self.ended or not self.budget.watch():
                break
        self.skipped["unreadable"] += self.walk.unreadable if self.walk else 0
        return {
            "matches": self.matches,
            "full": self.ended,
            "spent": self.budget.spent,
            **self.skipped,
        }

    def _paths(self) -> Iterator[str]:
        root = Path(self.request["root"])
        if not root.is_dir():
            yield str(root)
            return
        wanted = PathPattern(self.request["glob"] or "*")
        self.walk = Walk(root, self.budget)
        for entry in self.walk.files(wanted.leads_into):
            if not entry.is_link and wanted.matches(entry.names):
                yield entry.path

    def _search_file(self, path: str) -> None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
                return
            with open(path, "rb") as file:  # noqa: PTH123
                if sniff(file):
                    self.skipped["binary"] += 1
                    return
                self._emit(shown(path, self.cwd), self._lines(file))
        except OSError:
            self.skipped["unreadable"] += 1

    def _lines(self, file: Any) -> Iterator[_Found]:
        for number, line in enumerate(lines(file, _LONGEST_LINE, int), 1):
            self.bytes += line.length
            if self.bytes > self.request["bytes"]:
                self.budget.spend(f"{self.request['bytes'] >> 20:,} MiB")
                return
            if number % 4096 == 0 and not self.budget.watch():
                return
            if not line.is_whole:
                self.skipped["long"] += 1
            text = line.kept.decode("utf-8", "replace")
            yield _Found(number, text, self.pattern.search(text))

    def _emit(self, name: str, found: Iterator[_Found]) -> None:
        context = self.request["context"]
        before: deque[_Found] = deque(maxlen=context)
        after, last = 0, 0
        for line in found:
            if line.match is None and not after:
                before.append(line)
                continue
            if line.match is not None and self._is_full():
                return
            group = [*before, line]
            before.clear()
            if context and last and group[0].number > last + 1:
                self._say("--")
            for one in group:
                self._say(_format(name, one))
            last = line.number
            after = context if line.match is not None else after - 1

    def _is_full(self) -> bool:
        if self.matches == self.request["limit"]:
            self.ended = f"{self.matches:,} matches"
        elif self.characters > self.request["characters"]:
            self.ended = f"{self.matches:,} matches with {self.characters:,} characters"
        else:
            self.matches += 1
        return self.ended is not None

    def _say(self, text: str) -> None:
        self.characters += len(text)
        _write(text)


def _format(name: str, line: _Found) -> str:
    mark = "-" if line.match is None else ":"
    return f"{name}{mark}{line.number}{mark}{_clip(line)}"


def _clip(line: _Found) -> str:
    """Return what surrounds the match of a long line."""
    if len(line.text) <= _SHOWN:
        return line.text
    start = max(0, line.match.start() - _BEFORE_MATCH) if line.match else 0
    end = start + _SHOWN
    left, right = "..." if start else "", "..." if end < len(line.text) else ""
    return f"{left}{line.text[start:end]}{right}"


def _write(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve one request."""
    warnings.simplefilter("ignore")  # of what a later Python will make of an expression
    request = json.load(sys.stdin)
    try:
        search = _Search(request)
    except re.error as error:
        _write({"invalid": str(error.msg), "position": error.pos})
    except (OverflowError, RecursionError) as error:
        _write({"invalid": str(error), "position": None})
    else:
        _write(search.run())
