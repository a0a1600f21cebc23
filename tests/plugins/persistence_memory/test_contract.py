from __future__ import annotations

import pytest

from heald_persistence import SessionPersistence
from heald_persistence.testing import PersistenceContract
from heald_persistence_memory.memory import MemoryPersistence


class TestMemoryBackend(PersistenceContract):
    @pytest.fixture
    def backend(self) -> SessionPersistence:
        return MemoryPersistence()

    async def test_logs_go_with_the_process(self, backend: SessionPersistence) -> None:
        assert not backend.outlives_process
