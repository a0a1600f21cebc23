"""What `heald doctor` prints of checks and of what they found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import click

from heald import counted, visible
from heald.verbs import print_json, print_table
from heald_doctor.check import Check, Finding
from heald_doctor.examination import KnownCheck, Report


def print_known(known: Sequence[KnownCheck], *, as_json: bool) -> None:
    """Print which checks there are."""
    if as_json:
        print_json([_known_object(one) for one in known])
        return
    rows = ((one.check.name, one.plugin, _yes(one), one.check.about) for one in known)
    print_table(("check", "plugin", "can be rebuilt", "looks at"), rows)


def print_report(report: Report, width: int) -> None:
    """Print a line for a check, and its findings below it."""
    check = report.known.check
    click.echo(f"{check.name.ljust(width)}  {_verdict(report)}")
    for finding in report.findings:
        for line in _lines(finding, check):
            click.echo(line)


def _known_object(known: KnownCheck) -> dict[str, object]:
    """Return what `--json` prints of a check."""
    check = known.check
    return {
        "name": check.name,
        "about": check.about,
        "plugin": known.plugin,
        "can_rebuild": check.rebuild is not None,
    }


def report_object(report: Report) -> dict[str, object]:
    """Return what `--json` prints of a check that was made."""
    findings = [attrs.asdict(finding) for finding in report.findings]
    return _known_object(report.known) | {"rebuilt": report.rebuilt, "findings": findings}


def _yes(known: KnownCheck) -> str:
    return "no" if known.check.rebuild is None else "yes"


def _verdict(report: Report) -> str:
    count = len(report.findings)
    many = counted(count, "finding")
    verdict = click.style(many, fg="red" if report.has_errors else "yellow") if count else "ok"
    return f"rebuilt, {verdict}" if report.rebuilt else verdict


def _lines(finding: Finding, check: Check) -> Iterator[str]:
    yield visible(f"  {finding.severity}: {finding.message}")
    if finding.remedy is not None:
        yield visible(f"    {finding.remedy}")
    elif check.rebuild is not None:
        yield f"    `heald doctor {check.name} --rebuild` makes it anew"
