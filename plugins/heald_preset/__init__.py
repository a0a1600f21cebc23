"""Presets: directories that name the rows an agent runs on, and the compositions they become."""

from heald_preset.contracts import Preset, PresetRoot, Presets, Seat
from heald_preset.errors import (
    PresetConflict,
    PresetInvalid,
    PresetNotFound,
    PresetRootUnreadable,
)
from heald_preset.events import AgentPresetSelected
from heald_preset.hookspecs import preset_roots, presets

__all__ = [
    "AgentPresetSelected",
    "Preset",
    "PresetConflict",
    "PresetInvalid",
    "PresetNotFound",
    "PresetRoot",
    "PresetRootUnreadable",
    "Presets",
    "Seat",
    "preset_roots",
    "presets",
]
