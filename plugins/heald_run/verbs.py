"""The verbs `heald run` and `heald demo`."""

from __future__ import annotations

from pathlib import Path

import click

from heald import Host
from heald.verbs import host_verb, json_option, print_json
from heald_agent import CwdInvalid, agents
from heald_query import SessionFilter, find_session, session_query
from heald_run.errors import NothingToContinue, OptionsConflict, TaskEmpty
from heald_run.runs import Finished, run_task, tell_how_to_go_on
from heald_run.survey import SURVEY_MODEL, SURVEY_TASK
from heald_session import SessionId


@click.command()
@click.argument("task")
@click.option(
    "--preset", metavar="ID", help="The preset of a new session; see `heald presets list`."
)
@click.option("--model", help="The model, as `adapter:model`: `openai:gpt-5`, `scripted:survey`.")
@click.option(
    "--continue", "latest", is_flag=True, help="Go on with this directory's latest session."
)
@click.option("--session", help="Go on with the session of this id.")
@click.option(
    "--continue-as",
    metavar="ID",
    help="The preset to go on with if the one the session ran on is not there any more.",
)
@json_option
@host_verb
async def run(
    host: Host,
    *,
    task: str,
    preset: str | None,
    model: str | None,
    latest: bool,
    session: str | None,
    continue_as: str | None,
    as_json: bool,
) -> int:
    """Let an agent work on TASK in the current directory, and print its answer.

    A TASK that begins with a slash is a command of the session: most run without a model, a skill
    starts a turn. What happens meanwhile is shown on standard error. The exit code is 0 if the turn
    was completed, 1 if it failed and 130 if it was interrupted; the session can be resumed in every
    case.
    """
    if latest and session is not None:
        raise OptionsConflict(("--continue", "--session"))
    if preset is not None and continue_as is not None:
        raise OptionsConflict(("--preset", "--continue-as"))
    if continue_as is not None and not latest and session is None:
        raise click.UsageError("--continue-as needs --session or --continue")
    if not task.strip():
        raise TaskEmpty
    cwd = _directory(Path())
    registry = host.scope.require(agents)
    if latest:
        session = await _latest(host, cwd)
    if session is not None:
        id_ = await find_session(host.scope.require(session_query), session)
        agent = await registry.resume(id_, preset=preset, continue_as=continue_as, model=model)
    else:
        agent = await registry.create(cwd=cwd, preset=preset, model=model)
    if agent.model is None and not task.startswith("/"):
        _say_that_no_model_is_configured(host)
        agent.use_model(SURVEY_MODEL, chosen=False)
    finished = await run_task(host, agent, task, quiet=as_json)
    return _conclude(host, finished, as_json=as_json)


@click.command()
@click.argument("directory", default=".", type=click.Path(readable=False, path_type=Path))
@json_option
@host_verb
async def demo(host: Host, *, directory: Path, as_json: bool) -> int:
    """Survey DIRECTORY with a scripted agent and three subagents; no key, no network.

    The agent uses the real tools on the real files and changes none of them. Its report says what
    the directory holds, and the commands below it look at what was logged.
    """
    registry = host.scope.require(agents)
    agent = await registry.create(cwd=_directory(directory), preset="standard", model=SURVEY_MODEL)
    finished = await run_task(host, agent, SURVEY_TASK, quiet=as_json)
    return _conclude(host, finished, as_json=as_json)


def _conclude(host: Host, finished: Finished, *, as_json: bool) -> int:
    if as_json:
        print_json(finished.as_json())
    else:
        if finished.text:
            click.echo(finished.text)
        if finished.outcome == "failed":
            click.echo(f"heald: {finished.cause}", err=True)  # which begins with a code
        elif finished.outcome == "aborted":
            click.echo(f"heald: the turn was aborted: {finished.cause}", err=True)
        tell_how_to_go_on(host, finished.session)
    return 0 if finished.outcome == "completed" else 1


def _directory(path: Path) -> Path:
    """Return the absolute path of a directory; raise `CwdInvalid` if we are nowhere."""
    try:
        return path.resolve()
    except OSError as error:
        raise CwdInvalid(
            str(path), f"the directory you are in is gone ({error.strerror})"
        ) from error


async def _latest(host: Host, cwd: Path) -> SessionId:
    """Return the session of this directory in which something happened last."""
    here = SessionFilter(cwd=str(cwd), subagents=False)
    records = await host.scope.require(session_query).list_sessions(here, order="-activity")
    for record in records:
        if record.header and record.header.cwd == str(cwd) and record.header.origin is None:
            return record.id
    raise NothingToContinue(str(cwd))


def _say_that_no_model_is_configured(host: Host) -> None:
    click.echo(
        "heald: no model is configured, so a scripted survey of this directory plays instead.\n"
        "heald: set OPENAI_API_KEY and name a model with --model openai:NAME, or for good write\n"
        f"heald: these lines into {host.home / 'heald.toml'}:\n"
        '  [[patch]]\n  row = "agent"\n  config.merge = { model = "openai:NAME" }',
        err=True,
    )
