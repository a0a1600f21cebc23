"""The plugin that keeps presets."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from heald import Plugin, RowContext, implements
from heald_commands import Command, commands
from heald_preset.authoring import Author
from heald_preset.contracts import PresetAuthoring, Presets
from heald_preset.events import AGENT_PRESET_SELECTED
from heald_preset.hookspecs import preset_authoring, presets
from heald_preset.preset_command import preset_command
from heald_preset.projection import AGENT_PRESET
from heald_preset.selections import Selections
from heald_preset.service import PresetService
from heald_preset.standing import House
from heald_projection import Unit, units
from heald_session import (
    AppendGuard,
    EventType,
    Session,
    append_guards,
    event_types,
    session_closed,
)


@attrs.frozen
class PresetConfig:
    """How presets are chosen."""

    default: str = "standard"
    """The preset of a session for which none is named; read anew for each such session."""


class PresetPlugin(Plugin[PresetConfig]):
    """Keeps the roster and the compositions that agents share."""

    def __init__(self, context: RowContext[PresetConfig]) -> None:
        super().__init__(context)
        self._house = House(self.scope, self.row)
        self._selections = Selections()
        self._service = PresetService(self.scope, self.row, self._house, self._selections)

    async def stop(self) -> None:
        await self._house.close()

    @implements(presets)
    def keep(self) -> Presets:
        return self._service

    @implements(preset_authoring)
    def write(self) -> PresetAuthoring:
        return Author(self.scope, self.row, self._service)

    @implements(append_guards)
    def refuse_selections(self) -> Iterable[AppendGuard]:
        return (self._selections.guard(),)

    @implements(session_closed)
    async def vacate(self, session: Session) -> None:
        await self._service.vacate(session)

    @implements(commands)
    def choose(self) -> Iterable[Command]:
        return (preset_command(self._service),)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (AGENT_PRESET_SELECTED,)

    @classmethod
    @implements(units)
    def declare_units(cls) -> Iterable[Unit]:
        return (AGENT_PRESET,)
