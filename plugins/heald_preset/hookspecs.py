"""The hooks that presets own."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from operator import attrgetter

from heald import collect, observe, provide
from heald_preset.contracts import PresetAuthoring, PresetRoot, Presets
from heald_session import Session


@provide
def presets() -> Presets:
    """Keep the roster and the standing compositions."""
    ...


@provide
def preset_authoring() -> PresetAuthoring:
    """Make, copy and remove the person's own presets, and choose the default."""
    ...


@collect(key=attrgetter("name"))
def preset_roots() -> Iterable[PresetRoot]:
    """Contribute directories of presets that a package ships."""
    ...


@observe
def preset_left(session: Session, leaving: AsyncExitStack) -> None:
    """A session has moved to another composition: what was made for it on the old one is to go.

    Called in the step that moved it, through its scope as it is now. What is pushed on `leaving` is
    undone soon after, in reverse, before the old composition may stop.
    """
