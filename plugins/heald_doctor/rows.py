"""The check `rows`: what of the composition does not run, or does not do what it should."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from heald import CompositionError, FailedRow, Fault, Host
from heald_doctor.check import Check, Finding, Progress

ROWS = "rows"


def rows_check(host: Host) -> Check:
    """Make the check of a running host's rows."""
    return _check(lambda: [*map(_failed, host.composition.failed), *_failures(host)])


def refused_check(error: CompositionError) -> Check:
    """Make the check of rows that do not even fit together."""
    return _check(lambda: map(_faulty, error.faults))


def _check(findings: Callable[[], Iterable[Finding]]) -> Check:
    async def run(_: Progress) -> Sequence[Finding]:
        return tuple(findings())

    return Check(name=ROWS, about="the rows of the host's composition", run=run)


def _failed(row: FailedRow) -> Finding:
    if row.because_of:
        remedy = f"it comes back with {', '.join(row.because_of)}"
    else:
        remedy = f"repair or update {row.distribution}, or disable the row in a patch"
    return Finding(severity="error", message=str(row), remedy=remedy)


def _failures(host: Host) -> Iterator[Finding]:
    for plugin, count in host.composition.listener_failures().items():
        times = "once" if count == 1 else f"{count} times"
        yield Finding(
            severity="warning",
            message=f"a listener of plugin {plugin} raised {times} since the host was opened",
            remedy="standard error has what it raised; the others were told all the same",
        )


def _faulty(fault: Fault) -> Finding:
    remedy = "`heald compose` shows where the row comes from" if fault.row else None
    return Finding(severity="error", message=f"{fault.code}: {fault}", remedy=remedy)
