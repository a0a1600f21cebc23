"""Standing compositions: each generation is mounted once and shared by everyone who sits on it."""

from __future__ import annotations

import asyncio
from typing import Literal

import attrs

from heald import Composition, CompositionError, FailedRow, RowsFailed, Scope, ScopeClosed
from heald_preset.errors import PresetInvalid
from heald_preset.generations import Generation
from heald_preset.problems import PresetProblem


@attrs.define(eq=False)
class Standing:
    """One generation's composition, from the first who asked for it to the last who leaves."""

    generation: Generation
    state: Literal["starting", "live", "stopping"] = "starting"
    composition: Composition | None = None
    seats: int = 0
    """How many hold it or wait for it."""
    mounting: asyncio.Task[None] = attrs.field(init=False)
    stopping: asyncio.Task[None] | None = None


@attrs.define(eq=False)
class StandingSeat:
    """One of the seats that keep a standing composition mounted."""

    composition: Composition
    _standing: Standing
    _house: House
    _released: bool = False

    @property
    def preset(self) -> str:
        """The preset's id."""
        return self._standing.generation.preset

    @property
    def generation(self) -> str:
        """The key of what the preset resolved to."""
        return self._standing.generation.key

    def another(self) -> StandingSeat:
        """Take another seat on the same composition."""
        return self._house.beside(self._standing)

    async def release(self) -> None:
        """Give the seat up, once."""
        if not self._released:
            self._released = True
            await self._house.leave(self._standing)


class House:
    """The standing compositions of a host: at most one for each generation, and none unused."""

    def __init__(self, scope: Scope, row: str) -> None:
        self._scope = scope
        self._row = row
        self._standing: dict[str, Standing] = {}
        self._failures: dict[str, PresetInvalid] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    async def join(self, generation: Generation) -> StandingSeat:
        """Sit on a generation, mounting it if nobody does.

        Raises `PresetInvalid` if it cannot be mounted, without trying again what failed before.
        """
        self._refuse_failed(generation.key)
        standing = self._whole(generation.key) or self._begin(generation)
        standing.seats += 1
        try:
            await asyncio.wait({standing.mounting})
            self._refuse_failed(generation.key)
            return self._sit(standing)
        except BaseException:
            await self.leave(standing)
            raise

    def beside(self, standing: Standing) -> StandingSeat:
        """Take another seat on a composition that somebody holds, whatever became of its files."""
        seat = self._sit(standing)
        standing.seats += 1
        return seat

    async def try_out(self, generation: Generation) -> None:
        """Mount a generation apart from what stands, and stop it again.

        Raises `PresetInvalid` with every failed row. One that failed before and works now may be
        joined again.
        """
        composition = await self._mounted(generation)
        await composition.close()
        if composition.failed:
            raise _failed(generation.preset, composition.failed)
        self._failures.pop(generation.key, None)

    async def leave(self, standing: Standing) -> None:
        """Give up a seat; the last one out stops the composition and waits until it has."""
        standing.seats -= 1
        if standing.seats == 0:
            await asyncio.shield(self._stop(standing))

    async def close(self) -> None:
        """Stop every composition, whoever sits on it."""
        for standing in list(self._standing.values()):
            self._stop(standing)
        while self._stopping:
            await asyncio.wait(self._stopping)

    def _whole(self, key: str) -> Standing | None:
        """Return what stands, unless a row of it ended meanwhile: that is for those on it alone."""
        standing = self._standing.get(key)
        if standing is None or standing.composition is None or standing.composition.is_whole:
            return standing
        return None

    def _sit(self, standing: Standing) -> StandingSeat:
        if standing.state == "stopping":  # or the seat was released: nobody stops what has others
            raise ScopeClosed(self._row)
        if standing.composition is None:
            standing.mounting.result()  # raises what no row of the preset can be blamed for
            raise ScopeClosed(self._row)
        return StandingSeat(standing.composition, standing, self)

    def _refuse_failed(self, key: str) -> None:
        if (failure := self._failures.get(key)) is not None:
            raise attrs.evolve(failure)

    def _begin(self, generation: Generation) -> Standing:
        standing = Standing(generation)
        self._standing[generation.key] = standing
        standing.mounting = asyncio.create_task(
            self._mount(standing), name=f"mounting preset {generation.preset}"
        )
        return standing

    async def _mount(self, standing: Standing) -> None:
        try:
            standing.composition = await self._mounted(standing.generation)
        except PresetInvalid as error:
            self._failures[standing.generation.key] = attrs.evolve(error)  # without its frames
        else:
            standing.state = "live"
        finally:
            if standing.composition is None:
                self._forget(standing)

    async def _mounted(self, generation: Generation) -> Composition:
        name, host = f"preset {generation.preset}", self._scope.host
        try:
            return await host.mount(name, generation.stack.rows, generation.directories)
        except CompositionError as error:
            reason = str(PresetProblem.of(error.faults))
            raise PresetInvalid(generation.preset, reason) from error
        except RowsFailed as error:
            raise _failed(generation.preset, error.failed) from error

    def _stop(self, standing: Standing) -> asyncio.Task[None]:
        """Take a composition out of what can be joined, at once, and stop it in a task."""
        if standing.stopping is None:
            standing.state = "stopping"
            self._forget(standing)
            standing.stopping = asyncio.create_task(_undo(standing))
            self._stopping.add(standing.stopping)
            standing.stopping.add_done_callback(self._stopping.discard)
        return standing.stopping

    def _forget(self, standing: Standing) -> None:
        if self._standing.get(standing.generation.key) is standing:
            del self._standing[standing.generation.key]


async def _undo(standing: Standing) -> None:
    standing.mounting.cancel()
    await asyncio.wait({standing.mounting})
    if standing.composition is not None:
        await standing.composition.close()


def _failed(preset: str, failed: tuple[FailedRow, ...]) -> PresetInvalid:
    return PresetInvalid(preset, "rows failed; repair or disable each of them", failed)
