from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from heald import Host
from heald_agent import ModelFailed, agents
from heald_models_scripted import Reply, steps

HostWith = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.mark.parametrize(
    ("kind", "next_step"),
    [
        ("network", "check the server's address"),
        ("timeout", "check the server's address, or give it more time"),
        ("authentication", "check the key, and that the environment variable"),
        ("rate_limit", "wait and try again, or choose another model"),
        ("refused", "ask for something else"),
        ("invalid_request", "check the model's name"),
        ("server", "try again later"),
    ],
)
async def test_a_failed_request_says_what_to_do_about_its_kind(
    host_with: HostWith, tmp_path: Path, kind: str, next_step: str
) -> None:
    script = steps("no", [Reply(text="It is so.", failure=kind)])
    async with host_with(scripts=[script]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:no")
        await agent.send("go")
        error = (await agent.settled()).error
    assert isinstance(error, ModelFailed)
    assert str(error).startswith(f"model scripted:no: {kind}: ")
    assert f"; {next_step}" in str(error)
    assert ".;" not in str(error)


def test_a_kind_of_an_adapters_own_has_a_next_step_too() -> None:
    error = ModelFailed("odd:one", "eclipse", "it is dark.")
    assert str(error) == ("model odd:one: eclipse: it is dark; try again, or choose another model")
