"""Mounting and stopping: a transaction, undone in reverse, whatever comes in between."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heald import CompositionError, Row, RowsFailed, Scope, ScopeClosed

if TYPE_CHECKING:
    from tests.kernel.conftest import Site

TRACED = """
async def start(self):
    trace.append(f"start {self.row}")
    self.stack.callback(trace.append, f"undone {self.row} 1")
    self.stack.push_async_callback(self.undo)

async def undo(self):
    await asyncio.sleep(0)
    trace.append(f"undone {self.row} 2")

async def stop(self): trace.append(f"stop {self.row}")
"""
GATED = """
async def start(self):
    self.stack.callback(trace.append, f"undone {self.row}")
    starting.set()
    await may_start.wait()
"""
GATES = "starting, may_start = asyncio.Event(), asyncio.Event()"


async def test_rows_stop_in_reverse_and_each_is_undone_once_in_reverse(
    site: Site, loom: Any
) -> None:
    site.plugin("one", f"requires = (shed,)\n{TRACED}")
    site.plugin("two", f"{TRACED}\n@implements(shed)\ndef it(self): return 'open'")
    async with site.host("one", "two") as host:
        assert loom.trace == ["start two", "start one"]
        assert [row.id for row in host.composition.mounted] == ["one", "two"]
        loom.trace.clear()
    assert loom.trace == [
        *("stop one", "undone one 2", "undone one 1"),
        *("stop two", "undone two 2", "undone two 1"),
    ]
    await host.composition.close()
    assert len(loom.trace) == 6


async def test_a_rows_hooks_vanish_before_its_stop_begins(site: Site, loom: Any) -> None:
    site.plugin(
        "near",
        """
        async def stop(self): trace.append(f"{self.scope.find(shed)} {self.scope.find(warp)}")

        @implements(shed)
        def it(self): return "open"
        """,
    )
    site.plugin("far", "@implements(warp)\ndef it(self): return 'held'")
    async with site.host("far", "near"):
        pass
    assert loom.trace == ["None held"]


async def test_a_row_runs_in_one_task_from_construction_to_the_end(site: Site, loom: Any) -> None:
    site.plugin(
        "one",
        """
        def __init__(self, context):
            super().__init__(context)
            self.note()

        def note(self): trace.append(str(id(asyncio.current_task())))

        async def start(self):
            self.note()
            self.stack.callback(self.note)

        async def stop(self): self.note()
        """,
    )
    async with site.host("one"):
        pass
    assert len(loom.trace) == 4
    assert len(set(loom.trace)) == 1


async def test_a_plugin_is_given_its_row_configuration_scope_and_logger(site: Site) -> None:
    site.plugin(
        "one",
        "async def start(self): kept.append(self)",
        before="@attrs.frozen\nclass C:\n    size: int = 1\nkept = []",
        base="Plugin[C]",
    )
    async with site.host(Row("a", "one", {"size": 2}), Row("b", "one")) as host:
        first, second = __import__("heald_one").kept
        assert (first.row, first.config.size) == ("a", 2)
        assert (second.row, second.config.size) == ("b", 1)
        assert first.scope.host is host
        assert first.scope is not second.scope
        assert first.logger.name == "heald_one"
        assert host.constructed == 2


async def test_a_failed_preset_is_undone_in_reverse_and_leaves_no_trace_in_lookups(
    site: Site, loom: Any
) -> None:
    site.plugin("one", TRACED + "\n@implements(shed)\ndef it(self): return 'open'")
    site.plugin("two", TRACED)
    site.plugin("bad", "async def start(self): raise RuntimeError('boom')")
    site.plugin("idle")
    async with site.host("idle") as host:
        scope = host.scope
        with pytest.raises(RowsFailed):
            await host.mount("preset", [Row(n, n) for n in ("one", "bad", "two")])
        stops = [line for line in loom.trace if not line.startswith("start")]
        assert stops[0] == "stop two"
        assert stops[3] == "stop one"
        assert scope.find(loom.shed) is None
        await (await host.mount("preset", [Row("one", "one")])).close()


async def test_two_rows_that_contribute_one_key_are_both_named(site: Site, loom: Any) -> None:
    site.plugin("one", f"{TRACED}\n@implements(threads)\ndef it(self): return [RED]", before=RED)
    site.plugin(
        "two",
        "@implements(threads)\ndef it(self): return [heald_one.RED]",
        before="import heald_one",
    )
    rows = [Row("a", "one", layer="one.toml"), Row("b", "two", layer="two.toml")]
    async with site.host(*rows) as host:
        (failed,) = host.composition.failed
        assert (failed.row, failed.stage) == ("b", "collect")
        for word in ("loom.threads 'red'", "row b (two, two.toml)", "row a (one, one.toml)"):
            assert word in failed.reason
        assert [c.origin.row for c in host.scope.collect(loom.threads)] == ["a"]

        loom.trace.clear()
        with pytest.raises(RowsFailed, match="is taken by row a"):
            await host.mount("preset", rows)
        assert loom.trace == ["start a", "stop a", "undone a 2", "undone a 1"]


RED = "RED = Word('red')"


async def test_one_row_that_contributes_two_things_of_one_key_fails(site: Site) -> None:
    site.plugin("one", "@implements(threads)\ndef it(self): return [Word('a', 1), Word('a', 2)]")
    async with site.host("one") as host:
        (failed,) = host.composition.failed
        assert failed.stage == "collect"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return None", "TypeError: 'NoneType' object is not iterable"),
        ("return [Word([])]", "TypeError: unhashable type: 'list'"),
        ("return [object()]", "AttributeError: 'object' object has no attribute 'key'"),
    ],
)
async def test_a_contribution_that_cannot_be_told_apart_fails_its_row(
    site: Site, body: str, reason: str
) -> None:
    site.plugin("bad", f"@implements(threads)\ndef it(self): {body}")
    site.plugin("good")
    async with site.host("bad", "good") as host:
        (failed,) = host.composition.failed
        assert (failed.stage, failed.reason) == ("collect", reason)


async def test_cancelling_whoever_mounts_undoes_everything(site: Site, loom: Any) -> None:
    site.plugin("done", TRACED)
    site.plugin("gated", GATED, before=GATES)
    site.plugin("idle")
    gates = importlib.import_module("heald_gated")
    async with site.host("idle") as host:
        mounting = asyncio.ensure_future(
            host.mount("preset", [Row("done", "done"), Row("gated", "gated")])
        )
        await gates.starting.wait()
        mounting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mounting
        assert loom.trace == [
            "start done",
            "undone gated",
            "stop done",
            "undone done 2",
            "undone done 1",
        ]


async def test_cancelling_whoever_opens_a_host_undoes_everything(site: Site, loom: Any) -> None:
    site.plugin("done", TRACED)
    site.plugin("gated", GATED, before=GATES)

    gates = importlib.import_module("heald_gated")

    async def main() -> None:
        async with site.host("done", "gated"):
            raise AssertionError("composed")

    opening = asyncio.ensure_future(main())
    await gates.starting.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert loom.trace[-1] == "undone done 1"


async def test_cancelling_at_any_step_undoes_what_was_done_by_then_and_leaves_no_task(
    site: Site, loom: Any
) -> None:
    site.plugin("one", TRACED + "\n@implements(shed)\ndef it(self): return 'open'")
    site.plugin("two", "requires = (shed,)\n" + TRACED)

    async def main() -> None:
        async with site.host("two", "one") as host:
            preset = await host.mount("preset", [Row("a", "two"), Row("b", "two")])
            await host.mount("another", [Row("c", "two")])
            await asyncio.sleep(0)
            await preset.close()

    steps, task = 0, asyncio.ensure_future(main())
    while True:
        loom.trace.clear()
        for _ in range(steps):
            await asyncio.sleep(0)
        done = task.done()
        task.cancel()
        await asyncio.wait({task})
        started = [line.split()[1] for line in loom.trace if line.startswith("start")]
        undone = [line.split()[1] for line in loom.trace if line.endswith(" 1")]
        assert sorted(started) == sorted(undone), (steps, loom.trace)
        assert asyncio.all_tasks() == {asyncio.current_task()}, steps
        if done:
            assert sorted(started) == ["a", "b", "c", "one", "two"]
            break
        assert task.cancelled(), steps
        steps, task = steps + 1, asyncio.ensure_future(main())
    assert steps > 20


async def test_closing_goes_on_to_the_end_when_whoever_closes_is_cancelled(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "slow",
        """
        async def stop(self):
            stopping.set()
            await may_stop.wait()
            trace.append("stopped")
        """,
        before="stopping, may_stop = asyncio.Event(), asyncio.Event()",
    )
    site.plugin("first", "async def stop(self): trace.append('first')")
    async with site.host("first", "slow") as host:
        module = __import__("heald_slow")
        closing = asyncio.ensure_future(host.composition.close())
        await module.stopping.wait()
        closing.cancel()
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.sleep(0)
        assert not closing.done()
        module.may_stop.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert loom.trace == ["stopped", "first"]


async def test_everyone_who_closes_waits_for_the_same_end(site: Site, loom: Any) -> None:
    site.plugin("one", TRACED)
    async with site.host("one") as host:
        preset = await host.mount("preset", [Row("two", "one")])
        await asyncio.gather(preset.close(), host.composition.close(), preset.close())
    assert loom.trace.count("stop two") == 1
    assert loom.trace.index("undone two 1") < loom.trace.index("stop one")


async def test_closing_while_a_composition_mounts_undoes_that_too(site: Site, loom: Any) -> None:
    site.plugin("gated", GATED, before=GATES)
    site.plugin("never", "async def start(self): trace.append('never')")
    site.plugin("idle")
    gates = importlib.import_module("heald_gated")
    async with site.host("idle") as host:
        mounting = asyncio.ensure_future(
            host.mount("preset", [Row("gated", "gated"), Row("never", "never")])
        )
        await gates.starting.wait()
        closing = asyncio.ensure_future(host.composition.close())
        await asyncio.sleep(0)
        gates.may_start.set()
        with pytest.raises(ScopeClosed, match="composition preset has stopped"):
            await mounting
        await closing
        assert loom.trace == ["undone gated"]
        with pytest.raises(ScopeClosed, match="composition host has stopped"):
            await host.mount("late", [Row("idle", "idle")])


async def test_the_host_stops_its_presets_first(site: Site, loom: Any) -> None:
    site.plugin("one", TRACED)
    async with site.host("one") as host:
        await host.mount("a", [Row("two", "one")])
        await host.mount("b", [Row("three", "one")])
    stops = [line for line in loom.trace if line.startswith("stop")]
    assert stops == ["stop two", "stop three", "stop one"]


async def test_a_preset_sees_what_the_host_has_and_never_the_other_way(
    site: Site, loom: Any
) -> None:
    site.plugin("far", "@implements(threads)\ndef it(self): return [Word(self.row)]")
    site.plugin("needs", "requires = (shed,)")
    site.plugin("frame", "@implements(shed)\ndef it(self): return 'open'")
    async with site.host("frame", "far") as host:
        preset = await host.mount("preset", [Row("needs", "needs"), Row("near", "far")])
        assert preset.parent is host.composition
        keys = [c.value.key for c in preset.scope.collect(loom.threads)]
        assert keys == ["near", "far"]
        assert [c.value.key for c in Scope(host.composition).collect(loom.threads)] == ["far"]
        with pytest.raises(CompositionError):
            await host.mount("again", [Row("needs", "needs"), Row("needs", "needs")])


async def test_the_revision_grows_with_the_hosts_rows_and_not_with_presets(site: Site) -> None:
    site.plugin("one")
    async with site.host("one") as host:
        before = host.revision
        await (await host.mount("preset", [Row("two", "one")])).close()
        assert host.revision == before
    assert host.revision > before


async def test_an_open_host_has_one_clock_and_a_home_that_need_not_exist(site: Site) -> None:
    site.plugin("one")
    async with site.host("one") as host:
        assert host.home == site.home
        assert not site.home.exists()
        earlier = host.now()
        assert isinstance(earlier, int)
        assert host.now() >= earlier


async def test_pluggy_keeps_who_implements_what(site: Site) -> None:
    site.plugin(
        "one",
        """
        @implements(shed)
        def it(self): return "open"

        @implements(cut)
        async def hear(self, cloth): ...

        @implements(dyed)
        async def paint(self, request, call_next): return await call_next(request)

        @classmethod
        @implements(patterns)
        def declared(cls): return ()
        """,
    )
    async with site.host("one") as host:
        registry = host.composition._registry
        (row,) = host.composition.mounted
        assert registry.list_name_plugin() == [("one", row.plugin)]
        names = {caller.name for caller in registry.get_hookcallers(row.plugin) or ()}
        assert names == {"loom__shed", "loom__cut", "loom__dyed"}
    assert registry.list_name_plugin() == []


async def test_rows_find_the_directories_that_came_with_them_from_their_start_on(
    site: Site, loom: Any, tmp_path: Path
) -> None:
    site.plugin("one", "async def start(self): trace.append(self.scope.composition.directories)")
    async with site.host("one") as host:
        near, far = tmp_path / "near", tmp_path / "far"
        preset = await host.mount("preset", [Row("b", "one")], [near, far])

        assert loom.trace == [(), (near, far)]
        assert preset.scope.composition.directories == (near, far)
