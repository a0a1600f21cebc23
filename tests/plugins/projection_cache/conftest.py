"""Hosts that keep sessions on disk, with or without checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory

USUAL = ("session", "persistence", "projection", "projection-cache", "query")
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def open_rows(heald_host: HostFactory) -> OpenHost:
    """Open a host of the rows that checkpoints need."""

    def opened(*, without: str = "", last: tuple[str, ...] = (), **options: Any) -> Any:
        names = [n for n in USUAL if n != without] + [*last]
        rows = [Row(id=name, plugin=name) for name in names]
        return heald_host(rows=rows, **options)

    return opened
