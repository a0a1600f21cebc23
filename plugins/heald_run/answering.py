"""What a line that a person typed means as the answer to an ask."""

from __future__ import annotations

from typing import Literal

from heald_agent import AskOpened

_YES = ("y", "yes")
_NO = ("", "n", "no")

Answer = tuple[Literal["answered", "approved", "denied"], str | None]


def answer_of(ask: AskOpened, line: str) -> Answer:
    """Return the outcome and the text: nothing but a plain yes approves anything."""
    line = line.strip()
    if ask.kind == "approval":
        return _decision(line)
    if not line:
        return "denied", None
    return "answered", _option(ask.options, line) or line


def _decision(line: str) -> Answer:
    if line.lower() in _YES:
        return "approved", None
    return "denied", None if line.lower() in _NO else line


def _option(options: list[str], line: str) -> str | None:
    """Return the option that a number stands for."""
    return {str(number): option for number, option in enumerate(options, 1)}.get(line)
