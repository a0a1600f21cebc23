"""What can go wrong with derived data that somebody asked to make anew."""

from __future__ import annotations

import attrs

from heald import HealdError


@attrs.define
class ResetFailed(HealdError):
    """A file of derived data could not be emptied."""

    code = "DERIVED_DATA_NOT_RESET"
    path: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.path} could not be emptied: {self.reason}; "
            "end the other Heald processes of this home, or delete the file, and try again"
        )
