"""Hosts with a corpus."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def open_rows(heald_host: HostFactory) -> OpenHost:
    """Open a host of the rows that a corpus is made of."""

    def opened(*, without: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> Any:
        names = ("session", "persistence", "projection", "projection-cache", "query", *last)
        rows = [Row(id=name, plugin=name) for name in names if name not in without]
        return heald_host(rows=rows)

    return opened
