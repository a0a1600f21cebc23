"""Projections: small values folded from a session's events, the same live, cold or checkpointed."""

from heald_projection.contracts import Fold, KeptViews, Projections
from heald_projection.errors import ProjectionFaulted, ProjectionNotReady, UnitInvalid
from heald_projection.hookspecs import projection_changed, projections, units
from heald_projection.unit import CellState, Snapshot, Unit

__all__ = [
    "CellState",
    "Fold",
    "KeptViews",
    "ProjectionFaulted",
    "ProjectionNotReady",
    "Projections",
    "Snapshot",
    "Unit",
    "UnitInvalid",
    "projection_changed",
    "projections",
    "units",
]
