"""The kernel without plugins, and without any one of those that are shipped."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from heald import Discovery, Row, open_host, stack
from heald.planning import plan
from heald.profiles import read_profile
from heald.testing import HostFactory

DEFAULT = stack(read_profile(Path("/no-such-home"), Discovery(), name="default").layers, {}).rows
"""The rows of the profile that a person gets who has written none."""


async def test_a_host_without_rows_opens_and_closes(tmp_path: Path) -> None:
    async with open_host(home=tmp_path, rows=[], env={}) as host:
        assert host.composition.mounted == ()
        assert host.constructed == 0


async def test_the_default_profile_composes_with_every_row(heald_host: HostFactory) -> None:
    async with heald_host() as host:
        mounted = [row.id for row in host.composition.mounted]
        assert mounted == [row.id for row in DEFAULT if not row.disabled]
        assert host.composition.failed == ()


@pytest.mark.parametrize("absent", [row.id for row in DEFAULT])
async def test_the_host_composes_without_any_one_row_and_its_dependants(
    heald_host: HostFactory, absent: str
) -> None:
    needs = plan(DEFAULT, Discovery()).needs
    off = {absent}
    while more := {id_ for id_, needed in needs.items() if off & set(needed)} - off:
        off |= more
    rows: list[Row] = [attrs.evolve(row, disabled=row.disabled or row.id in off) for row in DEFAULT]
    async with heald_host(rows=rows) as host:
        mounted = {row.id for row in host.composition.mounted}
        assert mounted == {row.id for row in DEFAULT if not row.disabled} - off


async def test_a_host_of_a_test_lives_in_the_tests_own_home_if_none_is_named(
    heald_host: HostFactory, heald_home: Path
) -> None:
    async with heald_host(home=None, rows=[]) as host:
        assert host.home == heald_home
