"""The suite that every storage backend must pass: subclass it and say what the backend is.

class TestMyBackend(PersistenceContract):
    @pytest.fixture
    def backend(self) -> SessionPersistence:
        return MyBackend(...)
"""

from heald_persistence.testing.contract import PersistenceContract
from heald_persistence.testing.logs import (
    ODD_IDS,
    blocks_in,
    make_events,
    make_header,
    make_large,
    read_all,
    same,
    store,
)

__all__ = [
    "ODD_IDS",
    "PersistenceContract",
    "blocks_in",
    "make_events",
    "make_header",
    "make_large",
    "read_all",
    "same",
    "store",
]
