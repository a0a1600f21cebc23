"""Errors that callers may meet: a stable code, fields, and a sentence that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

import attrs

from heald.faults import FailedRow, Fault
from heald.wording import counted


class HealdError(Exception):
    """The base of every error Heald raises on purpose.

    A subclass is an attrs class: its fields are data, `code` names the kind for programs and never
    changes meaning, and `message` makes the sentence for people.
    """

    code: ClassVar[str] = "HEALD_ERROR"
    exit_code: ClassVar[int] = 1

    def message(self) -> str:
        """Say what happened and what to do next."""
        return " ".join(str(arg) for arg in self.args) or type(self).__name__

    def __str__(self) -> str:
        return self.message()

    def fields(self) -> dict[str, object]:
        """Return the error's data by field name, for logs and `--json`."""
        return {a.name: getattr(self, a.name) for a in getattr(type(self), "__attrs_attrs__", ())}


def describe(error: BaseException) -> str:
    """Return an error as one line with its type, whatever its own `__str__` does."""
    name = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - a stranger's error must not break the telling of it
        text = "(it cannot be shown)"
    return f"{name}: {text}" if text else name


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` was most likely meant to be."""
    matches = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: the nearest known word, else all of them."""
    words = sorted(known)
    if (match := nearest(word, words)) is not None:
        return f"did you mean {match!r}?"
    return f"known: {', '.join(words)}" if words else "there are none"


@attrs.define
class CompositionError(HealdError):
    """The rows do not fit together; nothing was started. `faults` names every culprit."""

    code: ClassVar[str] = "COMPOSITION_INVALID"
    faults: tuple[Fault, ...]

    def message(self) -> str:
        """List the faults, one a line."""
        lines = [f"  {fault.code}: {fault}" for fault in self.faults]
        count = counted(len(lines), "fault")
        return "\n".join([f"the composition has {count}; mend each and try again", *lines])


@attrs.define
class RowsFailed(HealdError):
    """Rows failed in a composition that accepts no failed row; what had started was undone."""

    code: ClassVar[str] = "ROWS_FAILED"
    composition: str
    failed: tuple[FailedRow, ...]

    def message(self) -> str:
        """List the failed rows, one a line."""
        head = f"{self.composition}: rows failed; repair or disable each of them"
        return "\n".join([head, *(f"  {failed}" for failed in self.failed)])


@attrs.define
class ServiceAbsent(HealdError, LookupError):
    """A service was required where no mounted row provides it."""

    code: ClassVar[str] = "SERVICE_ABSENT"
    service: str
    package: str
    plugin: str | None
    """The plugin whose package owns the specification, if one is installed."""
    failed: FailedRow | None = None

    def message(self) -> str:
        """Say which row is missing or failed."""
        if self.failed is not None:
            return f"no {self.service}: {self.failed}"
        if self.plugin is None:
            return f"no {self.service}: install a distribution that has {self.package}"
        return f"no {self.service}: add or enable a row of plugin {self.plugin!r} ({self.package})"


@attrs.define
class ScopeClosed(HealdError, RuntimeError):
    """Something was looked up where nothing runs any more."""

    code: ClassVar[str] = "SCOPE_CLOSED"
    owner: str
    """The row or composition that has stopped."""

    def message(self) -> str:
        """Say who has stopped, and how a late call is avoided."""
        return f"{self.owner} has stopped; end its timers and tasks in the row's exit stack"


@attrs.define
class Cancelled(HealdError):
    """The caller's token was cancelled before the work was done."""

    code: ClassVar[str] = "CANCELLED"
    exit_code: ClassVar[int] = 130
    cause: str = "cancelled"

    def message(self) -> str:
        """Give the cause."""
        return f"cancelled ({self.cause}); nothing more was done"


@attrs.define
class VocabularyConflict(HealdError):
    """Two installed plugins declare the same key in different versions, and no row decides."""

    code: ClassVar[str] = "VOCABULARY_CONFLICT"
    spec: str
    key: str
    declared_by: tuple[str, ...]

    def message(self) -> str:
        """Name everyone who declares it."""
        owners = " and ".join(self.declared_by)
        return f"{self.spec} {self.key!r} is declared by {owners}; mount one of them in the host"


@attrs.define
class HookSpecError(HealdError, TypeError):
    """A function cannot be a hook specification."""

    code: ClassVar[str] = "HOOK_SPEC_INVALID"
    name: str
    reason: str

    def message(self) -> str:
        """Name the function and what is wrong with it."""
        return f"hook specification {self.name}: {self.reason}"


@attrs.define
class NotFound(HealdError, LookupError):
    """A name from the command line or a program names nothing."""

    code: ClassVar[str] = "NOT_FOUND"
    kind: str
    name: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        """Name the nearest thing that there is."""
        return f"no {self.kind} {self.name!r}; {did_you_mean(self.name, self.known)}"


@attrs.define
class NameConflict(HealdError):
    """Two distributions brought the same name, and neither can be preferred."""

    code: ClassVar[str] = "NAME_CONFLICT"
    kind: str
    name: str
    distributions: tuple[str, ...]

    def message(self) -> str:
        """Name both distributions."""
        owners = " and ".join(self.distributions)
        return f"{self.kind} {self.name!r} comes from {owners}; uninstall one of them"


@attrs.define
class VerbBroken(HealdError):
    """A verb is installed but cannot be used."""

    code: ClassVar[str] = "VERB_BROKEN"
    verb: str
    distribution: str
    reason: str

    def message(self) -> str:
        """Say whose the verb is and what is wrong with it."""
        return (
            f"{self.verb!r} of distribution {self.distribution} {self.reason}; "
            "repair or uninstall that distribution"
        )


@attrs.define
class OutputFailed(HealdError):
    """Standard output did not take what was to be printed."""

    code: ClassVar[str] = "OUTPUT_FAILED"
    reason: str

    def message(self) -> str:
        """Give the system's reason."""
        return f"standard output cannot be written: {self.reason}; make room, or send it elsewhere"


@attrs.define
class FileUnwritable(HealdError, OSError):
    """A file of the person's cannot be written; it is as it was."""

    code: ClassVar[str] = "FILE_UNWRITABLE"
    path: str
    reason: str

    def message(self) -> str:
        """Give the reason."""
        return f"{self.path} cannot be written: {self.reason}"


@attrs.define
class HomeInvalid(HealdError):
    """The directory where everything lives cannot be one."""

    code: ClassVar[str] = "HOME_INVALID"
    path: str
    reason: str

    def message(self) -> str:
        """Say what is wrong with it."""
        return f"{self.path} {self.reason}; name a directory with --home or HEALD_HOME"


@attrs.define
class DataFileMissing(HealdError):
    """An installed distribution names a data file that is not there."""

    code: ClassVar[str] = "DATA_FILE_MISSING"
    entry_point: str
    value: str
    distribution: str

    def message(self) -> str:
        """Name the distribution to repair."""
        return (
            f"{self.entry_point} names {self.value}, which is not there; "
            f"reinstall the distribution {self.distribution}"
        )
