"""Hosts with the rows that projections need."""

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
    """Open a host of the rows that projections need; more may stand before and after them."""

    def opened(*, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> Any:
        names = (*first, "session", "projection", *last)
        return heald_host(rows=[Row(id=name, plugin=name) for name in names])

    return opened
