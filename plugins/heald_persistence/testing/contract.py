"""The suite as a whole."""

from __future__ import annotations

import pytest

from heald_persistence.contracts import SessionPersistence
from heald_persistence.testing.births import BirthContract
from heald_persistence.testing.forks import ForkContract
from heald_persistence.testing.readers import ReaderContract
from heald_persistence.testing.surveys import SurveyContract
from heald_persistence.testing.trash import TrashContract
from heald_persistence.testing.writers import WriterContract


@pytest.mark.asyncio
class PersistenceContract(
    BirthContract, WriterContract, ReaderContract, ForkContract, SurveyContract, TrashContract
):
    """What must be true of a backend; every test gets a fresh, empty one."""

    @pytest.fixture
    def backend(self) -> SessionPersistence:
        """Return the backend under test."""
        raise NotImplementedError
