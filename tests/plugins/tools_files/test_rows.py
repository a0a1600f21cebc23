from __future__ import annotations

import pytest

from heald import CompositionError, Row
from heald.testing import HostFactory
from heald_agent import tools


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, ["read", "glob", "grep", "write", "edit"]),
        ({"tools": ["edit", "read"]}, ["edit", "read"]),
        ({"tools": []}, []),
    ],
)
async def test_a_row_has_the_tools_it_names(
    heald_host: HostFactory, config: dict[str, object], names: list[str]
) -> None:
    async with heald_host(rows=[Row("files", "tools-files", config)]) as host:
        assert [c.value.name for c in host.scope.collect(tools)] == names


async def test_tools_that_change_nothing_may_run_beside_each_other(heald_host: HostFactory) -> None:
    async with heald_host(rows=[Row("files", "tools-files")]) as host:
        parallel = {c.value.name for c in host.scope.collect(tools) if c.value.parallel}
        changing = {c.value.name for c in host.scope.collect(tools) if c.value.changes}
    assert parallel == {"read", "glob", "grep"}
    assert changing == {"write", "edit"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"tools": ["raed"]}, "no tool 'raed'; did you mean 'read'?"),
        ({"tools": ["read", "read"]}, "'read' is named more than once"),
        ({"tools": "read"}, "config.tools"),
        ({"write_outsid": True}, "did you mean 'write_outside'"),
        ({"search_s": 0}, "it must be more than 0"),
    ],
)
async def test_a_wrong_configuration_is_refused_before_anything_starts(
    heald_host: HostFactory, config: dict[str, object], message: str
) -> None:
    with pytest.raises(CompositionError) as caught:
        async with heald_host(rows=[Row("files", "tools-files", config)]):
            pass
    assert message in str(caught.value)
    assert "row files" in str(caught.value)
