"""Errors of compaction."""

from __future__ import annotations

import attrs

from heald import HealdError


@attrs.define
class CompactionNotNeeded(HealdError):
    """There is too little that a summary could replace."""

    code = "COMPACTION_NOT_NEEDED"
    session: str
    kept: int
    """How many characters of the newest messages stay as they are."""

    def message(self) -> str:
        return (
            f"session {self.session!r} has too little to compact: the newest messages, up to "
            f"{self.kept:,} characters, stay as they are; go on with it"
        )


@attrs.define
class SummaryUnusable(HealdError):
    """The model's answer could not take the place of what was said, so nothing was replaced."""

    code = "SUMMARY_UNUSABLE"
    model: str
    reason: str

    def message(self) -> str:
        return (
            f"model {self.model} gave no summary that can be used: {self.reason}; "
            f"nothing was replaced; try again, or choose another model"
        )
