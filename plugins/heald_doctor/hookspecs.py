"""The hook that the doctor owns."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from heald import collect
from heald_doctor.check import Check


@collect(key=attrgetter("name"))
def checks() -> Iterable[Check]:
    """Contribute what `heald doctor` looks at."""
    ...
