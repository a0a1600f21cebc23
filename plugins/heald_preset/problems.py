"""Why a preset cannot be mounted."""

from __future__ import annotations

from collections.abc import Iterable

from heald import Fault


class PresetProblem(Exception):
    """A preset is broken; its text is the one reason that people see."""

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> PresetProblem:
        """Make one reason of everything that is wrong."""
        return cls("; ".join(str(fault) for fault in faults))
