"""Presets: directories that name the rows an agent runs on, and the compositions they become."""

from heald_preset.contracts import (
    DefaultSet,
    Preset,
    PresetAuthoring,
    PresetChoice,
    PresetRemoved,
    PresetRoot,
    Presets,
    Seat,
)
from heald_preset.errors import (
    PresetConflict,
    PresetExists,
    PresetGone,
    PresetInvalid,
    PresetLocked,
    PresetNotFound,
    PresetReadOnly,
    PresetRootUnreadable,
)
from heald_preset.events import AgentPresetSelected
from heald_preset.hookspecs import preset_authoring, preset_left, preset_roots, presets

__all__ = [
    "AgentPresetSelected",
    "DefaultSet",
    "Preset",
    "PresetAuthoring",
    "PresetChoice",
    "PresetConflict",
    "PresetExists",
    "PresetGone",
    "PresetInvalid",
    "PresetLocked",
    "PresetNotFound",
    "PresetReadOnly",
    "PresetRemoved",
    "PresetRoot",
    "PresetRootUnreadable",
    "Presets",
    "Seat",
    "preset_authoring",
    "preset_left",
    "preset_roots",
    "presets",
]
