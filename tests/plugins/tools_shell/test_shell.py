from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import CancelToken, CompositionError
from heald_agent import ToolError
from heald_tools_shell.output import Output
from heald_tools_shell.processes import session_members

Run = Callable[..., Coroutine[Any, Any, str]]
Opened = Callable[..., AbstractAsyncContextManager[Any]]


def runs(pid: int) -> bool:
    """Say whether a process is there and not just waiting to be taken leave of."""
    try:
        return pid in session_members(os.getsid(pid))
    except ProcessLookupError:
        return False


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def pid_in(path: Path) -> int:
    """Wait until a command has written the pid it speaks of."""

    def wait() -> int:
        while not (path.exists() and path.read_text().endswith("\n")):
            time.sleep(0.01)
        return int(path.read_text())

    return await asyncio.to_thread(wait)


async def gone(pid: int) -> None:
    def wait() -> None:
        while runs(pid):
            time.sleep(0.01)

    await asyncio.to_thread(wait)


async def test_output_and_errors_come_together_with_the_status(sh: Run) -> None:
    assert await sh("echo one; echo two >&2; echo three; false") == (
        "one\ntwo\nthree\n[exit status 1]"
    )
    assert await sh("true") == "[exit status 0]"
    assert await sh("printf 'no end'") == "no end\n[exit status 0]"


async def test_the_directory_and_the_environment_stay(sh: Run, tmp_path: Path) -> None:
    assert await sh("pwd; mkdir in; cd in; export WHO=me; greet() { echo hello $WHO; }") == (
        f"{tmp_path / 'work'}\n[exit status 0]"
    )
    assert await sh("pwd; greet; sh -c 'echo $WHO'") == (
        f"{tmp_path / 'work' / 'in'}\nhello me\nme\n[exit status 0]"
    )


async def test_a_command_may_have_many_lines(sh: Run) -> None:
    assert await sh(
        "cat <<'X'\nit's \"so\" $HOME `x`\nX\nfor n in 1 2\ndo echo $n # '\ndone\n"
    ) == ('it\'s "so" $HOME `x`\n1\n2\n[exit status 0]')


async def test_a_command_longer_than_a_pipe_holds(sh: Run) -> None:
    text = "x" * 300_000
    assert await sh(f"v={text}; echo ${{#v}}") == "300000\n[exit status 0]"


async def test_what_reads_standard_input_gets_its_end(sh: Run) -> None:
    assert await sh("cat; read line || echo nothing; wc -c") == "nothing\n0\n[exit status 0]"
    assert await sh("echo after") == "after\n[exit status 0]"


async def test_a_syntax_error_leaves_the_shell_alive(sh: Run) -> None:
    await sh("v=kept")
    text = await sh("if then '")
    assert text.endswith(("[exit status 2]", "[exit status 1]"))
    assert await sh("echo $v") == "kept\n[exit status 0]"


async def test_output_cannot_be_taken_for_the_end_of_a_command(sh: Run) -> None:
    forged = "printf '%s 0\\n' 0123456789abcdef0123456789abcdef"
    text = await sh(f"{forged}; {forged} >&7; cat /proc/self/fd/7 2>&1; sleep 0.1; echo end; false")
    assert text.startswith("0123456789abcdef0123456789abcdef 0\n")
    assert text.endswith("end\n[exit status 1]")


async def test_what_a_command_leaves_running_keeps_nobody_waiting(sh: Run, tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        text = await sh(f"sleep 600 & echo $! > {tmp_path}/pid; echo started")
    assert text == "started\n[exit status 0]"
    assert runs(await pid_in(tmp_path / "pid"))


async def test_what_is_written_between_calls_comes_with_the_next(sh: Run, tmp_path: Path) -> None:
    await sh(f"(while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo late; >{tmp_path}/gone) &")
    (tmp_path / "go").touch()
    assert await sh(f"while [ ! -e {tmp_path}/gone ]; do sleep 0.01; done; echo now") == (
        "late\nnow\n[exit status 0]"
    )


async def test_a_command_that_ends_the_shell_is_reported(sh: Run, tmp_path: Path) -> None:
    await sh("cd /; export WHO=me")
    assert await sh("echo bye; exit 3") == (
        "bye\n[the shell ended (exit status 3) and its environment is lost; "
        "the next call starts a new one]"
    )
    assert await sh("pwd; echo $WHO") == f"{tmp_path / 'work'}\n\n[exit status 0]"
    assert "killed by SIGKILL" in await sh("kill -9 $$")


async def test_what_an_ended_shell_left_behind_is_killed(sh: Run, tmp_path: Path) -> None:
    await sh(f"sleep 600 & echo $! > {tmp_path}/pid; exit")
    assert not runs(await pid_in(tmp_path / "pid"))


async def test_a_shell_that_ended_between_calls_is_told(sh: Run) -> None:
    pid = int((await sh("echo $$")).split("\n")[0])
    await sh("(sleep 0.05; kill -9 $$) &")
    await gone(pid)
    assert "ended (killed by SIGKILL)" in await sh("echo new")
    assert int((await sh("echo $$")).split("\n")[0]) != pid


async def test_bytes_that_are_not_utf8_are_replaced(sh: Run) -> None:
    assert await sh(r"printf 'a\377b\0c\303'; printf '\251\n'") == (
        "a\N{REPLACEMENT CHARACTER}b\0cé\n[exit status 0]"
    )


async def test_much_output_keeps_its_head_and_its_tail(shells: Opened) -> None:
    async with shells({"max_output": 1_000}) as opened:
        sh = opened.on(await opened.agent())
        text = await sh("seq 1 1000000")
        assert text.startswith("1\n2\n3\n")
        assert text.endswith("\n999999\n1000000\n[exit status 0]")
        assert "characters are left out ...]" in text
        assert len(text) < 1_200


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(1, 20))
def test_bounded_output_says_exactly_what_is_missing(chunks: list[bytes], limit: int) -> None:
    output = Output(limit)
    for chunk in chunks:
        output.feed(chunk)
    text, whole = output.text(), b"".join(chunks).decode("utf-8", "replace")
    half = max(1, limit // 2)
    if len(whole) <= 2 * half:
        assert text == whole
    else:
        missing = len(whole) - 2 * half
        assert text == (
            f"{whole[:half]}\n[... {missing:,} characters are left out ...]\n{whole[-half:]}"
        )


@pytest.mark.parametrize("inner", ["sleep 600", "timeout 600 sleep 600", "sh -c 'sleep 600; :'"])
async def test_a_command_that_takes_too_long_is_killed_with_everything_it_started(
    sh: Run, tmp_path: Path, inner: str
) -> None:
    command = f"(({inner}) & echo $! > {tmp_path}/pid; wait); echo never"
    with pytest.raises(ToolError) as caught:
        await sh(f"echo so far; {command}", timeout_s=0.5)
    assert caught.value.reason == (
        "so far\n[timed out after 0.5 s: the shell and everything it started was killed; "
        "the next call starts a new one]"
    )
    assert not runs(await pid_in(tmp_path / "pid"))
    assert await sh("echo again") == "again\n[exit status 0]"


async def test_a_cancelled_command_is_killed_and_says_what_it_wrote(
    sh: Run, tmp_path: Path
) -> None:
    cancel = CancelToken()
    call = asyncio.ensure_future(sh(f"echo so far; echo $$ > {tmp_path}/pid; sleep 600", cancel))
    pid = await pid_in(tmp_path / "pid")
    cancel.cancel("user")
    with pytest.raises(ToolError, match=r"so far\n\[cancelled \(user\): the shell"):
        await call
    assert session_members(pid) == []
    assert await sh("echo again") == "again\n[exit status 0]"


async def test_a_command_whose_task_is_cancelled_is_killed(sh: Run, tmp_path: Path) -> None:
    call = asyncio.ensure_future(sh(f"echo $$ > {tmp_path}/pid; sleep 600"))
    pid = await pid_in(tmp_path / "pid")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert session_members(pid) == []


async def test_two_agents_have_two_shells(shells: Opened) -> None:
    async with shells() as opened:
        one, two = opened.on(await opened.agent()), opened.on(await opened.agent())
        await one("cd /; WHO=one")
        assert await two("echo $WHO; pwd") == f"\n{opened.work}\n[exit status 0]"
        assert (await one("echo $$")) != (await two("echo $$"))


async def test_disposing_of_an_agent_leaves_none_of_its_processes(shells: Opened) -> None:
    async with shells() as opened:
        agent, other = await opened.agent(), await opened.agent()
        pid = int((await opened.on(agent)("sleep 600 & echo $$")).split("\n")[0])
        kept = int((await opened.on(other)("echo $$")).split("\n")[0])
        assert len(session_members(pid)) == 2
        await agent.dispose()
        assert session_members(pid) == []
        assert session_members(kept) == [kept]
    assert session_members(kept) == []


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc knows")
async def test_shells_leave_no_descriptor_open(shells: Opened) -> None:
    async with shells() as opened:
        sh = opened.on(await opened.agent())
        await sh("true")
        before = open_descriptors()
        for _ in range(5):
            await sh("exit")
            await sh("true")
        assert open_descriptors() == before


async def test_a_directory_that_is_gone_is_said_plainly(shells: Opened) -> None:
    async with shells() as opened:
        sh = opened.on(await opened.agent())
        opened.work.rmdir()
        with pytest.raises(ToolError, match="no shell could be started in"):
            await sh("pwd")


async def test_a_machine_without_the_shell_has_sh(shells: Opened) -> None:
    async with shells({"program": "no-such-shell"}) as opened:
        assert await opened.on(await opened.agent())("echo here") == "here\n[exit status 0]"


@pytest.mark.parametrize("command", ["a\0b", "echo \ud800"])
async def test_a_command_that_no_shell_can_read_is_refused(shells: Opened, command: str) -> None:
    async with shells() as opened:
        with pytest.raises(ToolError, match="a command"):
            await opened.on(await opened.agent())(command)


@pytest.mark.parametrize("config", [{"timeout_s": 0}, {"max_output": -1}, {"program": 3}])
async def test_a_wrong_configuration_is_refused(shells: Opened, config: dict[str, object]) -> None:
    with pytest.raises(CompositionError, match="row shell"):
        async with shells(config):
            pass
