"""Makes checks, and anew what they look at; whatever a plugin raises is itself a finding."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import attrs

from heald import HealdError, Host, NotFound, RowOrigin, describe
from heald_doctor.check import Check, Finding, Progress
from heald_doctor.hookspecs import checks
from heald_doctor.progress_bar import progress_shown
from heald_doctor.rows import ROWS, rows_check

T = TypeVar("T")
_logger = logging.getLogger("heald_doctor")


@attrs.frozen
class KnownCheck:
    """A check, and whose it is."""

    check: Check
    origin: RowOrigin | None = None
    """None for the doctor's own, which needs no row."""

    @property
    def plugin(self) -> str:
        return "doctor" if self.origin is None else self.origin.plugin


@attrs.frozen(kw_only=True)
class Report:
    """What a check found."""

    known: KnownCheck
    findings: tuple[Finding, ...]
    rebuilt: bool = False
    """Whether what it looks at was made anew before."""

    @property
    def has_errors(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


def known_checks(host: Host) -> list[KnownCheck]:
    """Return every check in row order, after the doctor's own, which is there in any host."""
    others = [c for c in host.scope.collect(checks) if c.value.name != ROWS]
    return [KnownCheck(rows_check(host)), *(KnownCheck(c.value, c.origin) for c in others)]


def chosen(known: Sequence[KnownCheck], names: Sequence[str], *, rebuild: bool) -> list[KnownCheck]:
    """Return the named checks in the order of the names, without names all.

    Raises `NotFound` for a name that no check has, or with `rebuild` none that can be rebuilt.
    """
    by_name = {one.check.name: one for one in known}
    rebuildable = [name for name, one in by_name.items() if one.check.rebuild is not None]
    for name in names:
        if name not in by_name:
            raise NotFound("check", name, tuple(by_name))
        if rebuild and name not in rebuildable:
            raise NotFound("check that can be rebuilt", name, tuple(rebuildable))
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(known)


async def examine(known: KnownCheck, *, rebuild: bool) -> Report:
    """Make a check, with `rebuild` after making anew what it looks at."""
    findings: list[Finding] = []
    rebuilt = False
    if rebuild and (make := known.check.rebuild) is not None:
        made = await _contained(known, "rebuilding", make)
        rebuilt = not isinstance(made, Finding)
        findings += [made] if isinstance(made, Finding) else []
    found = await _contained(known, "checking", partial(_run, known.check))
    findings += [found] if isinstance(found, Finding) else found
    return Report(known=known, findings=tuple(findings), rebuilt=rebuilt)


async def _run(check: Check, progress: Progress) -> Sequence[Finding]:
    found: tuple[object, ...] = tuple(await check.run(progress))
    findings = [one for one in found if isinstance(one, Finding)]
    if odd := [one for one in found if one not in findings]:
        raise TypeError(f"{odd[0]!r} is no Finding")
    return findings


async def _contained(
    known: KnownCheck, doing: str, call: Callable[[Progress], Awaitable[T]]
) -> T | Finding:
    """Return what a plugin's function returns, or what it raises as a finding."""
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    try:
        with progress_shown(f"{doing} {known.check.name}") as progress:
            return await call(progress)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if task and task.cancelling() > asked and isinstance(error, asyncio.CancelledError):
            raise
        return _broken(known, doing, error)


def _broken(known: KnownCheck, doing: str, error: BaseException) -> Finding:
    owner = f"plugin {known.plugin}"
    if known.origin is not None:
        owner += f", distribution {known.origin.distribution}"
    if isinstance(error, HealdError):
        reason = f"{error.code}: {error}"
    else:
        reason = describe(error)
        _logger.error("%s %s (%s) failed", doing, known.check.name, owner, exc_info=error)
    return Finding(
        severity="error",
        message=f"{doing} failed ({owner}): {reason}",
        remedy=None if isinstance(error, HealdError) else "report it to who makes the plugin",
    )
