"""The hooks that projections own."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from heald import declare, observe, provide
from heald_projection.contracts import Projections
from heald_projection.unit import Unit
from heald_session import Seq, Session


@provide
def projections() -> Projections:
    """Fold sessions into projections."""
    ...


@declare(key=attrgetter("key"), version=attrgetter("state_version"))
def units() -> Iterable[Unit]:
    """Declare folds; read from every installed plugin class."""
    ...


@observe
def projection_changed(session: Session, key: str, value: Any, seq: Seq) -> None:
    """Hear that an event gave a projection with a view another state; `value` is the new view."""
