"""Hosts with the rows that projections need, and units that installed plugins declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from heald import Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_projection import Unit, units
from heald_session import Event

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
Install = Callable[..., None]


@pytest.fixture
def open_rows(heald_host: HostFactory) -> OpenHost:
    """Open a host of the rows that projections need; more may stand before and after them."""

    def opened(
        *, first: tuple[str, ...] = (), last: tuple[str, ...] = (), strict: bool = True
    ) -> Any:
        names = (*first, "session", "projection", *last)
        return heald_host(rows=[Row(id=name, plugin=name) for name in names], strict=strict)

    return opened


@pytest.fixture
def seqs() -> Unit:
    """Return a unit that keeps what it saw of a log."""

    def collect(state: list[int], event: Event) -> list[int]:
        return [*state, event.seq]

    return Unit(
        key="seqs",
        state_version=1,
        event_types=None,
        initial=lambda _header, _cut: [],
        apply=collect,
        view=lambda state: state,
    )


@pytest.fixture
def install_units(install: Install) -> Callable[..., None]:
    """Install a plugin that declares units: `install_units("name", unit, ...)`."""

    def install_named(name: str, *declared: Unit) -> None:
        class Declaring(Plugin[NoConfig]):
            @classmethod
            @implements(units)
            def declare(cls) -> Iterable[Unit]:
                return declared

        install(**{name: Declaring})

    return install_named
