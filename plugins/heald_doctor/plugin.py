"""The doctor's row."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_doctor.check import Check
from heald_doctor.hookspecs import checks
from heald_doctor.rows import rows_check


class DoctorPlugin(Plugin[NoConfig]):
    """Contributes the check `rows`, so that no other row's has its name."""

    @implements(checks)
    def contribute_checks(self) -> Iterable[Check]:
        return (rows_check(self.scope.host),)
