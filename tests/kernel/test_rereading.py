"""What a running host would be made of now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heald import CompositionError, Layer, Row

if TYPE_CHECKING:
    from tests.kernel.conftest import Site

CONFIG = "@attrs.frozen\nclass C:\n    by: str = 'nobody'"


@pytest.fixture
def home(site: Site) -> Path:
    """Return the home's file, where a row of a configurable plugin is inserted."""
    site.plugin("idle", before=CONFIG, base="Plugin[C]")
    site.plugin("other", before=CONFIG, base="Plugin[C]")
    files = {"heald_pack/__init__.py": "", "heald_pack/default.toml": ""}
    site.install("heald-pack", files, profiles={"default": "heald_pack:default.toml"})
    site.home.mkdir()
    return write(site.home / "heald.toml", "one")


def write(file: Path, by: str, plugin: str = "idle", key: str = "by") -> Path:
    """Write a home's file with a row."""
    row = f'[[rows]]\nid = "a"\nplugin = "{plugin}"\nconfig = {{ {key} = "{by}" }}\n'
    return write_text(file, row)


def write_text(file: Path, text: str) -> Path:
    """Write a file whatever it says."""
    file.write_text(text)
    return file


async def test_a_rows_configuration_is_read_again_while_it_runs_with_what_it_had(
    site: Site, home: Path
) -> None:
    async with site.host() as host:
        (row,) = host.composition.mounted
        assert host.reread("a").by == "one"

        write(home, "two")

        assert (host.reread("a").by, row.plugin.config.by) == ("two", "one")
        assert [row.config for row in host.recompose().rows] == [{"by": "two"}]


async def test_every_layer_counts_again(site: Site, home: Path) -> None:
    env = {"WHO": "env"}
    patch = Layer("mine", patches=[{"row": "a", "config": {"by": "${env:WHO}"}}])
    async with site.host(patches=(patch,), env=env) as host:
        write(home, "two")
        assert host.reread("a").by == "env"
        env["WHO"] = "changed"
        assert host.reread("a").by == "changed"


async def test_a_row_that_is_no_more_there_keeps_what_it_runs_with(site: Site, home: Path) -> None:
    async with site.host() as host:
        write(home, "two", plugin="other")
        assert host.reread("a").by == "one"
        write_text(home, "")
        assert host.reread("a").by == "one"


async def test_what_is_wrong_with_the_files_now_is_raised(site: Site, home: Path) -> None:
    async with site.host() as host:
        write_text(home, "[[rows]")
        with pytest.raises(CompositionError, match="not TOML"):
            host.reread("a")
        write(home, "x", key="bye")
        with pytest.raises(CompositionError, match="did you mean 'by'"):
            host.reread("a")


async def test_a_host_of_given_rows_stays_what_it_is(site: Site, home: Path) -> None:
    async with site.host(Row("a", "idle", {"by": "program"})) as host:
        write(home, "two")
        assert host.reread("a").by == "program"
