"""The hooks that presets own."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from heald import collect, provide
from heald_preset.contracts import PresetRoot, Presets


@provide
def presets() -> Presets:
    """Keep the roster and the standing compositions."""
    ...


@collect(key=attrgetter("name"))
def preset_roots() -> Iterable[PresetRoot]:
    """Contribute directories of presets that a package ships."""
    ...
