"""The hook that subagents own."""

from __future__ import annotations

from heald import provide
from heald_subagent.contracts import Subagents


@provide
def subagents() -> Subagents:
    """Run, address and list subagents."""
    ...
