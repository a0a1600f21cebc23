"""Compositions that agents share: mounted once, replaced by edits, stopped by the last to leave."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType

import pytest

from heald import Host, Row, Scope
from heald_preset import PresetInvalid, PresetNotFound, Presets, Seat, presets
from heald_session import Session, SessionClosed, SessionStore, session_store

Write = Callable[..., Path]
OpenPresets = Callable[..., AbstractAsyncContextManager[Host]]


def row(word: str, *, name: str = "word", plugin: str = "word", fail: bool = False) -> str:
    """Make a preset's row that contributes a word."""
    config = f'{{ word = "{word}", fail = {str(fail).lower()} }}'
    return f'[[rows]]\nid = "{name}"\nplugin = "{plugin}"\nconfig = {config}\n'


Seated = Callable[[str], Awaitable[tuple[Session, Seat]]]


def words(scope: Scope, probes: ModuleType) -> list[str]:
    """Return the words a scope sees, nearest first."""
    return [found.value for found in scope.collect(probes.words)]


@pytest.fixture
def seated(service: Presets, store: SessionStore) -> Seated:
    """Return a function that makes a session on a preset."""

    async def make(preset: str) -> tuple[Session, Seat]:
        seat = await service.seat(preset, None)
        session = await store.create(
            cwd=None, agent_preset=seat.preset, composition=seat.composition
        )
        service.occupy(session, seat)
        return session, seat

    return make


@pytest.fixture
def _in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files without a thread, so that callers arrive in the order in which they set out."""

    async def at_once(call: Callable[..., object], *args: object) -> object:
        return call(*args)

    monkeypatch.setattr(asyncio, "to_thread", at_once)


async def test_two_sessions_on_one_preset_share_its_composition(
    host: Host, seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a") + row("b", name="other"))
    before = host.constructed

    one, seat = await seated("mine")
    assert host.constructed == before + 2
    two, other = await seated("mine")

    assert host.constructed == before + 2
    assert one.scope.composition is two.scope.composition is seat.composition
    assert seat.generation == other.generation
    assert words(one.scope, probes) == ["a", "b", "host"]


async def test_two_presets_never_see_each_others_rows(
    seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("a", row("a"))
    write("b", row("b"))
    one, _ = await seated("a")
    two, _ = await seated("b")
    probes.log.clear()

    one.scope.notify(probes.spoken, "hello")

    assert words(one.scope, probes) == ["a", "host"]
    assert words(two.scope, probes) == ["b", "host"]
    assert probes.log == ["a heard hello", "host heard hello"]


async def test_presets_of_equal_content_stand_apart(seated: Seated, write: Write) -> None:
    write("a", row("same"))
    write("b", row("same"))

    (_, one), (_, two) = await seated("a"), await seated("b")

    assert (one.preset, two.preset) == ("a", "b")
    assert one.composition is not two.composition


async def test_the_last_one_out_stops_the_composition_in_reverse(
    store: SessionStore, seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a") + row("b", name="other"))
    one, _ = await seated("mine")
    two, _ = await seated("mine")
    probes.log.clear()

    await store.dispose(one)
    assert probes.log == []
    assert words(two.scope, probes) == ["a", "b", "host"]

    await store.dispose(two)
    assert probes.log == ["stop b", "undone b", "stop a", "undone a"]


async def test_releasing_twice_gives_up_one_seat(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    one = await service.seat("mine", None)
    two = await service.seat("mine", None)

    await one.release()
    await one.release()

    assert words(two.composition.scope, probes) == ["a", "host"]
    await two.release()
    assert probes.log[-1] == "undone a"


@pytest.mark.usefixtures("_in_order")
async def test_callers_that_race_share_one_mount(
    host: Host, service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    before = host.constructed

    seats = await asyncio.gather(*(service.seat("mine", None) for _ in range(20)))

    assert host.constructed == before + 1
    assert len({id(seat.composition) for seat in seats}) == 1
    for seat in seats[1:]:
        await seat.release()
    assert "stop a" not in probes.log
    await seats[0].release()
    assert probes.log.count("stop a") == 1


@pytest.mark.usefixtures("_in_order")
async def test_a_caller_that_gives_up_leaves_the_mount_to_the_others(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    probes.gate.clear()
    probes.starting.clear()
    impatient = asyncio.create_task(service.seat("mine", None))
    patient = asyncio.create_task(service.seat("mine", None))
    await probes.starting.wait()

    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    probes.gate.set()
    seat = await patient

    assert words(seat.composition.scope, probes) == ["a", "host"]
    await seat.release()
    assert probes.log[1:] == ["start a", "stop a", "undone a"]


@pytest.mark.usefixtures("_in_order")
async def test_when_every_caller_gives_up_the_mount_is_undone(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    probes.gate.clear()
    probes.starting.clear()
    callers = [asyncio.create_task(service.seat("mine", None)) for _ in range(3)]
    await probes.starting.wait()

    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    assert probes.log[1:] == ["start a", "undone a"]

    probes.gate.set()
    seat = await service.seat("mine", None)
    assert words(seat.composition.scope, probes) == ["a", "host"]


@pytest.mark.usefixtures("_in_order")
async def test_joining_one_that_stops_starts_another(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    first = await service.seat("mine", None)

    leaving = asyncio.create_task(first.release())
    await asyncio.sleep(0)
    second = await service.seat("mine", None)
    await leaving

    assert second.composition is not first.composition
    assert second.generation == first.generation
    assert words(second.composition.scope, probes) == ["a", "host"]


async def test_an_edit_starts_a_new_generation_and_running_sessions_keep_theirs(
    store: SessionStore, seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("mine", row("old"))
    running, old = await seated("mine")

    write("mine", row("new"))
    later, new = await seated("mine")

    assert old.generation != new.generation
    assert words(running.scope, probes) == ["old", "host"]
    assert words(later.scope, probes) == ["new", "host"]
    await store.dispose(running)
    assert probes.log[-2:] == ["stop old", "undone old"]
    assert words(later.scope, probes) == ["new", "host"]


async def test_an_edit_of_what_a_preset_extends_starts_a_new_generation(
    service: Presets, write: Write
) -> None:
    write("base", row("a"))
    write("mine", 'extends = "base"')
    old = await service.seat("mine", None)

    write("base", "# the same rows\n" + row("a"))
    new = await service.seat("mine", None)

    assert old.generation != new.generation


async def test_a_variable_that_is_used_makes_a_generation_and_another_does_not(
    open_presets: OpenPresets, write: Write
) -> None:
    write("mine", row("${env:WORD:-none}"))
    env = {"OTHER": "1"}
    async with open_presets(env=env) as host:
        service = host.scope.require(presets)

        async def generation() -> str:
            seat = await service.seat("mine", None)
            await seat.release()
            return seat.generation

        first = await generation()
        env["OTHER"] = "2"
        assert await generation() == first
        env["WORD"] = "some"
        assert await generation() != first


async def test_another_version_of_a_plugin_makes_another_generation(
    open_presets: OpenPresets, probes: ModuleType, write: Write
) -> None:
    write("mine", row("a"))
    assert probes.__file__
    site = Path(probes.__file__).parent
    generations = []
    for version in ("1.0", "1.1"):
        metadata = f"Metadata-Version: 2.1\nName: probes\nVersion: {version}\n"
        (site / "probes-1.0.dist-info" / "METADATA").write_text(metadata)
        async with open_presets() as host:
            seat = await host.scope.require(presets).seat("mine", None)
            generations.append(seat.generation)

    assert generations[0] != generations[1]


async def test_two_hosts_name_the_same_generation_alike(
    open_presets: OpenPresets, write: Write
) -> None:
    write("mine", row("a"))
    generations = set()
    for _ in range(2):
        async with open_presets() as host:
            seat = await host.scope.require(presets).seat("mine", None)
            generations.add(seat.generation)

    assert len(generations) == 1


async def test_a_failed_mount_names_every_failed_row_and_leaves_nothing_behind(
    host: Host, service: Presets, write: Write, probes: ModuleType
) -> None:
    text = row("a") + row("b", name="bad", fail=True)
    write("mine", text + row("c", name="absent", plugin="broken-import"))

    with pytest.raises(PresetInvalid) as caught:
        await service.seat("mine", None)

    assert {(failed.row, failed.stage) for failed in caught.value.failed} == {
        ("bad", "start"),
        ("absent", "import"),
    }
    assert "RuntimeError: no b" in str(caught.value)
    assert probes.log[1:] == ["start a", "start b", "undone b", "stop a", "undone a"]
    assert words(host.scope, probes) == ["host"]


async def test_a_failed_mount_is_not_tried_again_until_something_changes(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a", fail=True))
    for _ in range(3):
        with pytest.raises(PresetInvalid) as caught:
            await service.seat("mine", None)
        assert [failed.row for failed in caught.value.failed] == ["word"]
    assert probes.log.count("start a") == 1

    write("mine", row("a"))
    seat = await service.seat("mine", None)

    assert words(seat.composition.scope, probes) == ["a", "host"]


async def test_everyone_who_waits_for_a_mount_that_fails_is_told(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a", fail=True))

    results = await asyncio.gather(
        *(service.seat("mine", None) for _ in range(5)), return_exceptions=True
    )

    assert all(isinstance(result, PresetInvalid) for result in results)
    assert len({id(result) for result in results}) == 5
    assert probes.log.count("start a") == 1


async def test_a_presets_service_hides_the_hosts_for_its_sessions_only(
    host: Host, seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("mine", row("loud", plugin="voice"))
    write("plain", row("a"))

    mine, _ = await seated("mine")
    plain, _ = await seated("plain")

    assert mine.scope.require(probes.voice) == "loud"
    assert plain.scope.require(probes.voice) == "host"
    assert host.scope.require(probes.voice) == "host"


async def test_a_child_joins_its_parents_generation_though_the_file_is_gone(
    store: SessionStore, service: Presets, seated: Seated, write: Write, probes: ModuleType
) -> None:
    file = write("mine", row("a"))
    parent, seat = await seated("mine")
    file.unlink()

    beside = await service.seat_beside(parent)
    assert beside is not None
    child = await store.create(cwd=None, parent_session=parent.id, agent_preset=beside.preset)
    service.occupy(child, beside)

    assert child.scope.composition is parent.scope.composition
    assert (beside.preset, beside.generation) == (seat.preset, seat.generation)
    await store.dispose(parent)
    assert words(child.scope, probes) == ["a", "host"]
    await store.dispose(child)
    assert probes.log[-1] == "undone a"


async def test_a_session_on_the_hosts_rows_has_no_seat_beside_it(
    store: SessionStore, service: Presets
) -> None:
    session = await store.create(cwd=None)

    assert await service.seat_beside(session) is None


async def test_a_session_that_takes_another_seat_gives_up_both_as_it_closes(
    store: SessionStore, service: Presets, seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("a", row("a"))
    write("b", row("b"))
    session, _ = await seated("a")
    service.occupy(session, await service.seat("b", None))

    assert words(session.scope, probes) == ["b", "host"]
    await store.dispose(session)
    assert {"undone a", "undone b"} <= set(probes.log)


async def test_a_closed_session_can_take_no_seat(
    store: SessionStore, service: Presets, write: Write
) -> None:
    write("mine", row("a"))
    seat = await service.seat("mine", None)
    session = await store.create(cwd=None)
    await store.dispose(session)

    with pytest.raises(SessionClosed):
        service.occupy(session, seat)


async def test_an_id_that_is_resumed_after_closing_takes_a_seat_of_its_own(
    store: SessionStore, seated: Seated, service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    first, _ = await seated("mine")
    await store.dispose(first)

    seat = await service.seat("mine", None)
    again = await store.create(cwd=None, id=first.id)
    service.occupy(again, seat)

    assert words(again.scope, probes) == ["a", "host"]
    await store.dispose(again)
    assert probes.log.count("undone a") == 2


async def test_closing_the_host_stops_every_composition(
    open_presets: OpenPresets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    async with open_presets(Row("session", "session")) as host:
        service, store = host.scope.require(presets), host.scope.require(session_store)
        session = await store.create(cwd=None)
        service.occupy(session, await service.seat("mine", None))

    assert probes.log == ["start a", "stop a", "undone a"]


async def test_running_a_preset_writes_nothing_beside_it(
    store: SessionStore, seated: Seated, write: Write
) -> None:
    file = write("mine", row("a"))
    before = (file.stat().st_mtime_ns, file.read_bytes())

    session, _ = await seated("mine")
    await store.dispose(session)

    assert (file.stat().st_mtime_ns, file.read_bytes()) == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


async def first_of(tasks: list[asyncio.Task[list[Seat]]]) -> None:
    """Wait until one of some tasks is done."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


@pytest.mark.parametrize("seed", range(20))
async def test_however_callers_come_go_edit_and_give_up_nothing_is_shared_wrongly_or_left_behind(
    service: Presets, write: Write, probes: ModuleType, seed: int
) -> None:
    chance = random.Random(seed)
    file = write("mine", "")
    seats: list[Seat] = []
    waiting: list[asyncio.Task[list[Seat]]] = []

    async def join() -> list[Seat]:
        return [await service.seat("mine", None)]

    async def leave(seat: Seat) -> list[Seat]:
        await seat.release()
        return []

    def edit() -> None:  # whole, as an editor that renames does it
        write("mine-new", row(chance.choice("ab"))).replace(file)

    edit()
    for _ in range(100):
        act = chance.choice(["join", "join", "leave", "edit", "cancel", "wait", "wait"])
        if act == "join":
            waiting.append(asyncio.create_task(join()))
        elif act == "leave" and seats:
            waiting.append(asyncio.create_task(leave(seats.pop(chance.randrange(len(seats))))))
        elif act == "edit":
            edit()
        elif act == "cancel" and waiting:
            chance.choice(waiting).cancel()
        await (first_of(waiting) if act == "wait" and waiting else asyncio.sleep(0))
        done = [task for task in waiting if task.done()]
        waiting = [task for task in waiting if not task.done()]
        seats += [seat for task in done if not task.cancelled() for seat in task.result()]
        live = {seat.generation: seat.composition for seat in seats}
        assert all(live[seat.generation] is seat.composition for seat in seats)
        for seat in seats:
            assert len(words(seat.composition.scope, probes)) == 2

    await asyncio.gather(*waiting, return_exceptions=True)
    seats += [seat for task in waiting if not task.cancelled() for seat in task.result()]
    await asyncio.gather(*(seat.release() for seat in seats))
    started, undone = ([x for x in probes.log if x.startswith(w)] for w in ("start", "undone"))
    assert len(started) == len(undone) + 1, "the host's own word is all that runs"


async def test_a_preset_that_lost_a_row_is_mounted_anew_for_whoever_comes_later(
    service: Presets, seated: Seated, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a") + row("b", name="other", plugin="frail"))
    early, seat = await seated("mine")

    await probes.break_frail()
    late, other = await seated("mine")

    assert words(early.scope, probes) == ["a", "host"]
    assert words(late.scope, probes) == ["a", "b", "host"]
    assert seat.generation == other.generation
    beside = await service.seat_beside(early)
    assert beside is not None
    assert beside.composition is early.scope.composition


async def test_what_a_preset_carries_is_found_from_its_composition_nearest_first(
    seated: Seated, write: Write, user: Path
) -> None:
    write("base", row("a"))
    write("middle", 'extends = "base"')
    write("mine", 'extends = "middle"')

    session, seat = await seated("mine")

    directories = (user / "mine", user / "middle", user / "base")
    assert seat.composition.directories == directories
    assert session.scope.composition.directories == directories


async def test_an_edit_of_what_lies_beside_the_file_makes_no_generation(
    service: Presets, write: Write
) -> None:
    asset = write("mine", row("a")).parent / "skills" / "review" / "SKILL.md"
    first = await service.seat("mine", None)

    asset.parent.mkdir(parents=True)
    for text in ("one", "two"):
        asset.write_text(text)
        again = await service.seat("mine", None)
        assert again.composition is first.composition


async def test_a_condition_that_comes_to_hold_makes_a_generation(
    open_presets: OpenPresets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a") + row("b", name="other") + 'when = { env = "MORE" }\n')
    env: dict[str, str] = {}
    async with open_presets(env=env) as host:
        service = host.scope.require(presets)
        old = await service.seat("mine", None)
        env["MORE"] = "1"
        new = await service.seat("mine", None)

        assert words(old.composition.scope, probes) == ["a"]
        assert words(new.composition.scope, probes) == ["a", "b"]


async def test_a_failure_is_forgotten_when_the_environment_or_what_is_extended_changes(
    open_presets: OpenPresets, write: Write, probes: ModuleType
) -> None:
    write("base", row("${env:WORD:-none}", fail=True))
    write("mine", 'extends = "base"')
    env: dict[str, str] = {}
    async with open_presets(env=env) as host:
        service = host.scope.require(presets)

        async def fails() -> int:
            with pytest.raises(PresetInvalid):
                await service.seat("mine", None)
            return len([line for line in probes.log if line.startswith("start")])

        assert [await fails(), await fails()] == [1, 1]
        env["WORD"] = "some"
        assert [await fails(), await fails()] == [2, 2]
        write("base", "# changed\n" + row("${env:WORD:-none}", fail=True))
        assert [await fails(), await fails()] == [3, 3]


async def test_a_check_mounts_for_nobody_and_leaves_nothing(
    host: Host, service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a"))
    seat = await service.seat("mine", None)
    probes.log.clear()

    await service.check("mine", None)

    assert probes.log == ["start a", "stop a", "undone a"]
    assert words(seat.composition.scope, probes) == ["a", "host"]
    assert words(host.scope, probes) == ["host"]


async def test_a_check_tells_every_row_that_fails_to_start_or_to_stop(
    service: Presets, write: Write
) -> None:
    write(
        "mine",
        row("a", fail=True) + row("b", name="b") + row("c", name="c", plugin="broken-import"),
    )
    write("late", row("a", name="late", plugin="grumpy"))
    write("absent", row("a", plugin="wurd"))

    found = {}
    for preset in ("mine", "late", "absent"):
        with pytest.raises(PresetInvalid) as caught:
            await service.check(preset, None)
        found[preset] = {(failed.row, failed.stage) for failed in caught.value.failed}

    assert found == {
        "mine": {("word", "start"), ("c", "import")},
        "late": {("late", "stop")},
        "absent": set(),
    }
    with pytest.raises(PresetNotFound):
        await service.check("gone", None)


async def test_a_check_that_succeeds_lets_a_preset_be_tried_again(
    service: Presets, write: Write, probes: ModuleType
) -> None:
    write("mine", row("a", plugin="moody"))
    probes.mood.append("bad")
    for _ in range(2):
        with pytest.raises(PresetInvalid):
            await service.seat("mine", None)
    assert probes.log.count("start a") == 1

    probes.mood.clear()
    with pytest.raises(PresetInvalid):
        await service.seat("mine", None)
    await service.check("mine", None)
    seat = await service.seat("mine", None)

    assert words(seat.composition.scope, probes) == ["a", "host"]
