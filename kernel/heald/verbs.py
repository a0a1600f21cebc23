"""What a command-line verb needs: a host, and output that people and programs can read.

A verb is a click command that an entry point in the group `heald.verbs` names; the entry point's
name is its path, so `sessions.list` is `heald sessions list`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import attrs
import click

from heald.discovery import Discovery

if TYPE_CHECKING:
    from heald.host import Host
    from heald.profiles import Profile
    from heald.rows import Row

P = ParamSpec("P")


@attrs.frozen
class Invocation:
    """The options before the verb: which host to compose."""

    named_home: Path | None = None
    profile: str | None = None
    patches: tuple[Path, ...] = ()
    strict: bool = False
    discovery: Discovery = attrs.field(factory=Discovery, repr=False)

    @property
    def home(self) -> Path:
        """Where everything lives; raises `HomeInvalid` if there is no telling."""
        from heald.profiles import home_directory  # noqa: PLC0415 - `--version` has no home

        return self.named_home if self.named_home is not None else home_directory()

    def read_profile(self) -> Profile:
        """Read the layers of the host these options describe."""
        from heald.profiles import read_profile  # noqa: PLC0415 - nor has it a profile

        return read_profile(self.home, self.discovery, name=self.profile, patches=self.patches)

    def open_host(self) -> AbstractAsyncContextManager[Host]:
        """Compose the host these options describe."""
        from heald.host import open_host  # noqa: PLC0415 - listing plugins composes nothing

        return open_host(
            home=self.home,
            profile=self.profile,
            patches=self.patches,
            strict=self.strict,
            discovery=self.discovery,
        )


def host_verb(
    function: Callable[Concatenate[Host, P], Coroutine[Any, Any, int | None]],
) -> Callable[P, None]:
    """Turn an async function of a host into a click callback.

    Failed rows are told on standard error. The function's result is the exit code. Ctrl-C cancels
    the function, which may finish what must be finished, and the process exits with 130. SIGTERM
    and SIGHUP do the same, with 128 and the signal's number.
    """
    import asyncio  # noqa: PLC0415 - the kernel's own verbs run no host

    from heald.interrupts import Interrupts  # noqa: PLC0415 - as asyncio

    def callback(*args: P.args, **kwargs: P.kwargs) -> None:
        context = click.get_current_context()
        invocation = context.find_object(Invocation) or Invocation()

        async def main(interrupts: Interrupts) -> int | None:
            interrupts.cancel_with(asyncio.current_task())
            async with invocation.open_host() as host:
                return await function(host, *args, **kwargs)

        with Interrupts() as interrupts:
            code = asyncio.run(main(interrupts))
        context.exit(code or 0)

    return update_wrapper(callback, function)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs instead of text."
)


def print_json(value: object) -> None:
    """Print a value as JSON, two spaces deep, in the characters it has."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in aligned columns; the headers are bold on a terminal."""
    cells = [[_one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in (headers, *cells)) for n in range(len(headers))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()

    click.echo(click.style(line(headers), bold=True))  # which echo takes off again for a file
    for row in cells:
        click.echo(line(row))


def _one_line(cell: object) -> str:
    return "-" if cell is None else " ".join(str(cell).split())


def print_row(row: Row, *, origins: bool) -> None:
    """Print a row field by field as written, with `origins` the layer that wrote each."""

    def line(text: str, field: str) -> None:
        click.echo(f"{text}  [{row.origin_of(field)}]" if origins else text)

    click.echo("")
    line(f"{row.id} (disabled)" if row.disabled else row.id, "")
    for field, value in row.fields().items():
        line(f"  {field} = {as_written(value)}", field)


def as_written(value: object) -> str:
    """Return a value of a row's field in one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def row_as_json(row: Row) -> dict[str, Any]:
    """Return what `--json` prints of a row; its configuration as written."""
    return {
        "id": row.id,
        "plugin": row.plugin,
        "disabled": row.disabled,
        "config": json.loads(json.dumps(row.written, default=str)),
        "layer": row.layer,
        "origins": dict(row.origins),
    }
