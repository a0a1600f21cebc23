from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from heald import Discovery, Host, Row
from heald.testing import HostFactory

HERE = Path(__file__).parent
PERSISTENCE = Row("persistence", "persistence")

ENTRY_POINTS = """
[heald.plugins]
acme-notes = acme_session:NotesPlugin
acme-witness = acme_session:WitnessPlugin
acme-guard = acme_session:GuardPlugin
acme-units = acme_session:UnitsPlugin
acme-holder = acme_session:HolderPlugin
"""

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Discovery:
    """Install the made-up distribution."""
    info = tmp_path / "site" / "acme-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(HERE))
    return Discovery(path=[str(info.parent), *sys.path])


@pytest.fixture
def open_host(heald_host: HostFactory, acme: Discovery) -> OpenHost:
    """Open hosts with sessions on disk, the made-up distribution installed, and more rows."""

    @asynccontextmanager
    async def opened(
        *rows: Row,
        stored: bool = True,
        with_acme: bool = True,
        window: dict[str, int] | None = None,
        **more: Any,
    ) -> AsyncIterator[Host]:
        session = Row("session", "session", window or {})
        storage: Iterable[Row] = (PERSISTENCE,) if stored else ()
        discovery = acme if with_acme else None
        async with heald_host(rows=[session, *storage, *rows], discovery=discovery, **more) as host:
            yield host

    return opened


@pytest.fixture
async def host(open_host: OpenHost) -> AsyncIterator[Host]:
    async with open_host() as host:
        yield host


@pytest.fixture
def plugin_of() -> Callable[[Host, str], Any]:
    """Return the object that a row is."""

    def find(host: Host, row: str) -> Any:
        mounted = host.composition.mounted
        return next(one.plugin for one in mounted if one.planned.row.id == row)

    return find
