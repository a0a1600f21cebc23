"""The hook that the checkpoint store owns."""

from __future__ import annotations

from heald import provide
from heald_projection_cache.contracts import ProjectionCache


@provide
def projection_cache() -> ProjectionCache:
    """Keep checkpoints of projections, so that a cold read need not fold from the start."""
    ...
