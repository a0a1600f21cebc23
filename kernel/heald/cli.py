"""The `heald` command: the kernel's own verbs, and those that installed distributions bring.

Nothing here imports a plugin, or much of the kernel, until a verb is named: `--version`, `plugins
list` and `compose` answer at once, and work when every plugin is broken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import click
import importlib_metadata
from importlib_metadata import EntryPoint

from heald.discovery import VERBS, Discovery, Found
from heald.errors import HealdError, NameConflict, NotFound, VerbBroken, describe
from heald.output import Output
from heald.terminal import visible
from heald.verbs import Invocation

KERNEL = "heald (the kernel)"
_OWN = {
    "compose": "heald.compose_verb:compose",
    "plugins.list": "heald.plugins_verb:list_plugins",
}
"""The kernel's verbs, in the form that installed ones have; no other may take their names."""
_SHOWN = 3
"""How many verbs of a group its line of help names, so that it stays one line."""


class VerbUnknown(NotFound):
    """What was typed is no verb, which is wrong usage."""

    exit_code: ClassVar[int] = 2


class VerbGroup(click.Group):
    """A group whose commands are entry points, imported when they are named or listed."""

    def __init__(self, verbs: Callable[[], Iterable[tuple[str, Found]]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._verbs = verbs
        """Asked when first needed, as `--version` never does."""

    @cached_property
    def _below(self) -> dict[str, list[tuple[str, Found]]]:
        """What is below this group by first name: the rest of the path, and the entry point."""
        below: dict[str, list[tuple[str, Found]]] = {}
        for path, found in self._verbs():
            name, _, rest = path.partition(".")
            below.setdefault(name, []).append((rest, found))
        return below

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, in order."""
        return sorted(self._below)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; one that cannot be had says why when it is run."""
        below = self._without_hidden(self._below.get(cmd_name, []))
        leaves = [found for path, found in below if not path]
        if not below:
            return None
        if not leaves:
            names = sorted({path.partition(".")[0] for path, _ in below})
            shown = ", ".join(names[:_SHOWN] + ["..."] * (len(names) > _SHOWN))
            return VerbGroup(
                lambda: below,
                name=cmd_name,
                short_help=f"{shown}: see `{ctx.command_path} {cmd_name} --help`",
                no_args_is_help=True,
            )
        if len(below) > 1:
            owners = sorted({found.distribution for _, found in below})
            return _refusing(cmd_name, NameConflict("verb", cmd_name, tuple(owners)))
        return _loaded(cmd_name, leaves[0])

    def _without_hidden(self, below: list[tuple[str, Found]]) -> list[tuple[str, Found]]:
        """Leave out verbs that would take the place of one of the kernel's, and say so."""
        own = [path for path, found in below if found.distribution == KERNEL]
        if not own:
            return below
        kept = [item for item in below if item[1].distribution == KERNEL or (own[0] and item[0])]
        for _, found in (item for item in below if item not in kept):
            error = NameConflict("verb", found.name, (KERNEL, found.distribution))
            click.echo(f"heald: {error.code}: {error}", err=True)
        return kept

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; raise `NotFound` with the nearest name."""
        if args[0] not in self._below and not args[0].startswith("-"):
            raise VerbUnknown("verb", args[0], tuple(self._below))
        return super().resolve_command(ctx, args)


def _loaded(name: str, found: Found) -> click.Command:
    try:
        command = found.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a broken verb must not hide the others
        reason = f"does not import: {describe(error)}"
    else:
        if isinstance(command, click.Command):
            return command
        reason = f"is not a click command: {found.value}"
    return _refusing(name, VerbBroken(found.name.replace(".", " "), found.distribution, reason))


def _refusing(name: str, error: HealdError) -> click.Command:
    """Make a command that stands for one that cannot run: it raises whatever its arguments are."""

    def refuse() -> None:
        raise error

    return click.Command(
        name,
        callback=refuse,
        short_help=f"(broken: {error})",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def build(discovery: Discovery) -> click.Command:
    """Make the `heald` command from what is installed."""

    @click.pass_context
    def root(
        ctx: click.Context,
        home: Path | None,
        profile: str | None,
        patch: tuple[Path, ...],
        *,
        strict: bool,
    ) -> None:
        import logging  # noqa: PLC0415 - `--version` and `--help` log nothing

        logging.basicConfig(level=logging.WARNING, format="heald: %(message)s")
        ctx.obj = Invocation(home, profile, patch, strict, discovery)

    def verbs() -> list[tuple[str, Found]]:
        own = [Found(n, v, KERNEL, "", EntryPoint(n, v, VERBS)) for n, v in _OWN.items()]
        return [(found.name, found) for found in (*own, *_with_paths(discovery.every(VERBS)))]

    return VerbGroup(
        verbs,
        name="heald",
        callback=root,
        help="An agent harness in which everything is a plugin.",
        no_args_is_help=True,
        params=[
            click.Option(
                ["--home"],
                type=click.Path(file_okay=False, path_type=Path),
                help="Where sessions and settings live [$HEALD_HOME, else the data folder].",
            ),
            click.Option(["--profile"], help="Which profile composes the host."),
            click.Option(
                ["--patch"],
                type=click.Path(dir_okay=False, path_type=Path),
                multiple=True,
                help="A TOML file that changes rows of the host; may be repeated.",
            ),
            click.Option(["--strict"], is_flag=True, help="Refuse to run with a failed row."),
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_tell_version,
                help="Show the version and exit.",
            ),
        ],
    )


def _with_paths(entries: Iterable[Found]) -> Iterator[Found]:
    """Leave out entry points whose names are no path of words, and say so."""
    for found in entries:
        if all(found.name.split(".")):
            yield found
        else:
            place = f"the entry point {found.name!r} of distribution {found.distribution}"
            click.echo(f"heald: {place} is no verb: its name has an empty word", err=True)


def _tell_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"heald {importlib_metadata.version('heald')}")
        ctx.exit()


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 an error, 2 wrong usage, 130 interrupted."""
    output: Any = None if sys.stdout is None else Output(sys.stdout)
    with redirect_stdout(output):
        sys.exit(_run(args))


def _run(args: list[str] | None) -> int:
    """Run the command line and tell how it failed; return the exit code."""
    try:
        # click colours what goes to a terminal; https://no-color.org says who wants none.
        color = False if os.environ.get("NO_COLOR") else None
        run = build(Discovery()).main
        result = run(args, prog_name="heald", standalone_mode=False, color=color)
        if sys.stdout is not None:
            sys.stdout.flush()
    except HealdError as error:
        return _failed(error.exit_code, f"{error.code}: {error}")
    except click.exceptions.NoArgsIsHelpError as error:
        return _failed(error.exit_code, error.format_message(), mark="")
    except click.ClickException as error:
        return _failed(error.exit_code, _sentence(error))
    except (click.Abort, KeyboardInterrupt) as error:
        return _failed(getattr(error, "exit_code", 130), "interrupted")
    except BrokenPipeError:
        return 1
    return result if isinstance(result, int) else 0


def _failed(code: int, text: str, *, mark: str = "heald: ") -> int:
    lines = [visible(line) for line in text.split("\n")]  # a session's id may be anything
    click.echo(mark + "\n".join(lines), err=True)
    return code


def _sentence(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError):
        return error.format_message()
    sentence = " ".join(error.format_message().split()).removesuffix(".")
    command = error.ctx.command_path if error.ctx is not None else "heald"
    return f"USAGE: {sentence}; see `{command} --help`"
