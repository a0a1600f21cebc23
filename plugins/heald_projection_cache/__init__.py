"""Checkpoints: projection states of stored sessions, derived and always optional."""

from heald_projection_cache.contracts import Checkpoint, ProjectionCache, witness_of
from heald_projection_cache.hookspecs import projection_cache

__all__ = ["Checkpoint", "ProjectionCache", "projection_cache", "witness_of"]
