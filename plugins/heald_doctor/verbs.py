"""The verb `heald doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from heald import CompositionError, Host
from heald.verbs import host_verb, json_option, print_json
from heald_doctor.examination import KnownCheck, chosen, examine, known_checks
from heald_doctor.printing import print_known, print_report, report_object
from heald_doctor.rows import refused_check


@click.command()
@click.argument("checks", nargs=-1, metavar="[CHECK]...")
@click.option("--rebuild", is_flag=True, help="First make anew what the checks look at.")
@click.option("--list", "only_list", is_flag=True, help="Say which checks there are; make none.")
@json_option
@click.pass_context
def doctor(
    context: click.Context,
    *,
    checks: tuple[str, ...],
    rebuild: bool,
    only_list: bool,
    as_json: bool,
) -> None:
    """Check what is derived against what it is derived from, and show the rows that failed.

    Makes every check, or each CHECK that is named, and changes nothing. With --rebuild what they
    look at is first made anew from the logs, wherever that is possible and without asking: nothing
    that is rebuilt holds anything that the logs do not. The exit code is 1 if there is an error,
    which is something that is lost or does not work; warnings cost time only and leave it 0.
    """
    if only_list and rebuild:
        raise click.UsageError("--list makes no check, so it cannot be combined with --rebuild")
    try:
        _examine_host(names=checks, rebuild=rebuild, only_list=only_list, as_json=as_json)
    except CompositionError as error:
        click.echo("No other check can be made until the rows fit together.", err=True)
        refused = [KnownCheck(refused_check(error))]
        context.exit(asyncio.run(_tell(refused, only_list=only_list, as_json=as_json)))


@host_verb
async def _examine_host(
    host: Host, *, names: Sequence[str], rebuild: bool, only_list: bool, as_json: bool
) -> int:
    known = chosen(known_checks(host), names, rebuild=rebuild)
    return await _tell(known, rebuild=rebuild, only_list=only_list, as_json=as_json)


async def _tell(
    known: Sequence[KnownCheck], *, rebuild: bool = False, only_list: bool, as_json: bool
) -> int:
    """Print the checks, or what they find; return the exit code."""
    if only_list:
        print_known(known, as_json=as_json)
        return 0
    width = max(len(one.check.name) for one in known)
    reports = []
    for one in known:
        reports.append(await examine(one, rebuild=rebuild))
        if not as_json:
            print_report(reports[-1], width)
    if as_json:
        print_json([report_object(report) for report in reports])
    return 1 if any(report.has_errors for report in reports) else 0
