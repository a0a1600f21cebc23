from __future__ import annotations

from collections.abc import Callable

import pytest

from heald_persistence import SessionPersistence
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import PersistenceContract


class TestLocalBackend(PersistenceContract):
    @pytest.fixture
    def backend(self, make_backend: Callable[..., LocalPersistence]) -> SessionPersistence:
        return make_backend()

    async def test_logs_outlive_the_process(self, backend: SessionPersistence) -> None:
        assert backend.outlives_process
