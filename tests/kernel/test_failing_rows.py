"""A plugin that fails at any stage is a failed row; in the host the others live."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from heald import Deadlines, Row, RowsFailed

if TYPE_CHECKING:
    from tests.kernel.conftest import Site

LATE = Deadlines(start=0.05, stop=0.05, grace=0.05)

STAGES = {
    "import": ("", "RAISE"),
    "construct": ("def __init__(self, context): RAISE", ""),
    "start": ("async def start(self): RAISE", ""),
    "provide": ("@implements(weft)\ndef it(self): RAISE", ""),
    "collect": ("@implements(notes)\ndef it(self):\n    yield 'n'\n    RAISE", ""),
    "declare": ("@classmethod\n@implements(patterns)\ndef it(cls): RAISE", ""),
}
RAISES = {"error": "raise RuntimeError('boom')", "exit": "sys.exit('boom')"}


def install(site: Site, stage: str, how: str) -> None:
    """Install a plugin that fails, one that needs it, one that needs that, and a good one."""
    body, before = (text.replace("RAISE", RAISES[how]) for text in STAGES[stage])
    body += "\n@implements(shed)\ndef shed_of_mine(self): return 'open'"
    site.plugin("bad", body, before=before)
    site.plugin("needy", "requires = (shed,)\n@implements(warp)\ndef it(self): return 'held'")
    site.plugin("needier", "requires = (warp,)")
    site.plugin("good", "@implements(threads)\ndef it(self): return [Word('red')]")


@pytest.mark.parametrize("how", RAISES)
@pytest.mark.parametrize("stage", STAGES)
async def test_a_row_that_fails_names_stage_plugin_and_distribution_and_the_others_live(
    site: Site, loom: Any, caplog: pytest.LogCaptureFixture, stage: str, how: str
) -> None:
    install(site, stage, how)
    async with site.host("needier", "needy", "bad", "good") as host:
        failed = {row.row: row for row in host.composition.failed}
        assert failed.keys() == {"bad", "needy", "needier"}
        bad = failed["bad"]
        assert (bad.stage, bad.plugin, bad.distribution) == (stage, "bad", "heald-bad")
        assert bad.reason == f"{'RuntimeError' if how == 'error' else 'SystemExit'}: boom"
        assert (failed["needy"].stage, failed["needy"].because_of) == ("requires", ("bad",))
        assert failed["needier"].because_of == ("needy",)
        assert [c.value.key for c in host.scope.collect(loom.threads)] == ["red"]
        assert host.scope.find(loom.shed) is None
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3, told
    assert f"host: row bad (plugin bad, distribution heald-bad) failed at {stage}" in "".join(told)


@pytest.mark.parametrize("stage", STAGES)
async def test_strict_raises_every_failed_row_and_undoes_the_rest(
    site: Site, loom: Any, stage: str
) -> None:
    install(site, stage, "exit")
    site.plugin(
        "undone",
        """
        async def start(self): self.stack.callback(trace.append, "undone")
        async def stop(self): trace.append("stopped")
        """,
    )
    with pytest.raises(RowsFailed) as caught:
        async with site.host("undone", "bad", "needy", "good", strict=True):
            raise AssertionError("composed")
    assert {row.row for row in caught.value.failed} == {"bad", "needy"}
    assert caught.value.code == "ROWS_FAILED"
    assert "row bad (plugin bad, distribution heald-bad) failed at" in str(caught.value)
    assert loom.trace == ["stopped", "undone"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_preset_with_a_failed_row_is_refused_with_all_of_them_and_the_host_goes_on(
    site: Site, loom: Any, stage: str
) -> None:
    install(site, stage, "error")
    site.plugin("worse", "async def start(self): raise LookupError('worse')")
    async with site.host("good") as host:
        with pytest.raises(RowsFailed) as caught:
            await host.mount("preset", [Row(n, n) for n in ("needy", "bad", "worse")])
        assert {row.row for row in caught.value.failed} == {"needy", "bad", "worse"}
        assert host.composition.failed == ()
        assert [c.value.key for c in host.scope.collect(loom.threads)] == ["red"]
        assert host.composition.closed is False


async def test_a_preset_row_that_needs_a_failed_row_of_the_host_says_so(site: Site) -> None:
    install(site, "start", "error")
    async with site.host("bad") as host:
        with pytest.raises(RowsFailed) as caught:
            await host.mount("preset", [Row("needy", "needy")])
    (failed,) = caught.value.failed
    assert (failed.stage, failed.because_of) == ("requires", ("bad",))


async def test_a_requirement_of_a_plugin_that_did_not_import_is_no_structural_fault(
    site: Site,
) -> None:
    site.install("heald-gone", {}, plugins={"gone": "heald_gone.plugin:GonePlugin"})
    site.plugin("needy", "requires = (shed,)")
    async with site.host("needy", "gone") as host:
        failed = {row.row: row for row in host.composition.failed}
        assert failed["gone"].reason == "ModuleNotFoundError: No module named 'heald_gone'"
        assert failed["needy"].because_of == ("gone",)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("loom:Word", "loom:Word is not a subclass of heald.Plugin"),
        ("loom:Nothing", "AttributeError: module 'loom' has no attribute 'Nothing'"),
    ],
)
async def test_an_entry_point_that_names_no_plugin_is_a_failed_row(
    site: Site, value: str, reason: str
) -> None:
    site.install("heald-odd", {}, plugins={"odd": value})
    async with site.host("odd") as host:
        (failed,) = host.composition.failed
    assert failed.stage == "import"
    assert failed.reason.startswith(reason)


async def test_a_broken_module_is_imported_once(site: Site, loom: Any) -> None:
    site.plugin("bad", before="trace.append('imported')\nraise RuntimeError('boom')")
    async with site.host("bad") as host:
        assert len(host.vocabulary(loom.patterns)) == 0
    assert loom.trace == ["imported"]


async def test_a_start_that_awaits_for_ever_is_a_failed_row(site: Site, loom: Any) -> None:
    site.plugin(
        "slow",
        """
        async def start(self):
            self.stack.callback(trace.append, "undone")
            await asyncio.Event().wait()
        """,
    )
    site.plugin("good", "@implements(shed)\ndef it(self): return 'open'")
    async with site.host("slow", "good", deadlines=LATE) as host:
        (failed,) = host.composition.failed
        assert (failed.stage, failed.reason) == ("start", "it took over 0.05 s")
        assert host.scope.require(loom.shed) == "open"
        assert loom.trace == ["undone"]


async def test_a_start_that_swallows_its_cancellation_is_left_behind_and_undone_when_it_ends(
    site: Site, loom: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site.plugin(
        "stubborn",
        """
        async def start(self):
            scopes.append(self.scope)
            self.stack.callback(done.set)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await may_end.wait()

        async def stop(self): trace.append("stopped")

        @implements(shed)
        def it(self): return "open"
        """,
        before="scopes, may_end, done = [], asyncio.Event(), asyncio.Event()",
    )
    async with site.host("stubborn", deadlines=LATE) as host:
        module = __import__("heald_stubborn")
        assert [row.stage for row in host.composition.failed] == ["start"]
        assert "row stubborn does not end when cancelled" in caplog.text
        with pytest.raises(Exception, match="row stubborn has stopped"):
            module.scopes[0].find(loom.shed)
        module.may_end.set()
        await module.done.wait()
        assert host.scope.find(loom.shed) is None
        assert loom.trace == ["stopped"]


@pytest.mark.parametrize("how", ["raise RuntimeError('boom')", "sys.exit('boom')"])
async def test_a_row_that_fails_to_stop_does_not_keep_the_others_from_stopping(
    site: Site, loom: Any, how: str
) -> None:
    site.plugin("first", "async def stop(self): trace.append('first')")
    site.plugin(
        "bad",
        f"""
        async def start(self):
            self.stack.callback(trace.append, "bad undone")
            scopes.append(self.scope)
        async def stop(self): {how}
        """,
        before="scopes = []",
    )
    site.plugin("last", "async def stop(self): trace.append('last')")
    async with site.host("first", "bad", "last") as host:
        pass
    assert loom.trace == ["last", "bad undone", "first"]
    (failed,) = host.composition.failed
    assert (failed.row, failed.stage) == ("bad", "stop")
    assert failed.reason.endswith(": boom")
    with pytest.raises(Exception, match="row bad has stopped"):
        __import__("heald_bad").scopes[0].host  # noqa: B018 - asking is the test


async def test_a_stop_that_awaits_for_ever_is_cut_short(site: Site, loom: Any) -> None:
    site.plugin("slow", "async def stop(self): await asyncio.Event().wait()")
    site.plugin("good", "async def stop(self): trace.append('good')")
    async with site.host("good", "slow", deadlines=LATE) as host:
        pass
    (failed,) = host.composition.failed
    assert (failed.stage, failed.reason) == ("stop", "it took over 0.05 s")
    assert loom.trace == ["good"]


async def test_what_undoing_raises_does_not_hide_why_the_start_failed(site: Site) -> None:
    site.plugin(
        "bad",
        """
        async def start(self):
            self.stack.callback(sys.exit, "undoing")
            raise RuntimeError("first")
        """,
    )
    async with site.host("bad") as host:
        (failed,) = host.composition.failed
    assert (failed.stage, failed.reason) == ("start", "RuntimeError: first")


async def test_an_error_that_cannot_be_shown_is_told_by_its_type(site: Site) -> None:
    site.plugin(
        "bad",
        "async def start(self): raise Odd",
        before="class Odd(Exception):\n    def __str__(self): raise RuntimeError",
    )
    async with site.host("bad") as host:
        (failed,) = host.composition.failed
    assert failed.reason == "Odd: (it cannot be shown)"


async def test_a_plugin_that_does_not_call_its_base_class_can_live_and_stop(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "bare",
        """
        def __init__(self, context): pass
        async def stop(self): trace.append("stopped")

        @implements(shed)
        def it(self): return "open"
        """,
    )
    async with site.host("bare") as host:
        assert host.scope.require(loom.shed) == "open"
    assert loom.trace == ["stopped"]
    assert host.composition.failed == ()


async def test_a_service_that_is_none_is_a_failed_row(site: Site) -> None:
    site.plugin("bad", "@implements(shed)\ndef it(self): return None")
    async with site.host("bad") as host:
        (failed,) = host.composition.failed
    assert (failed.stage, failed.reason) == ("provide", "loom.shed is provided as None")


async def test_a_row_that_ends_by_itself_is_a_failed_row_and_so_are_its_dependants(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "frail",
        """
        async def start(self):
            self.stack.callback(gone.set)
            group = await self.stack.enter_async_context(asyncio.TaskGroup())
            group.create_task(self.crash())

        async def crash(self):
            await may_crash.wait()
            raise RuntimeError("crashed")

        async def stop(self): trace.append(f"frail sees {self.scope.find(shed)}")

        @implements(shed)
        def it(self): return "open"
        """,
        before="may_crash, gone = asyncio.Event(), asyncio.Event()",
    )
    site.plugin(
        "needy",
        """
        requires = (shed,)
        async def stop(self): trace.append("needy stopped")

        @implements(notes)
        def it(self): return ["n"]
        """,
    )
    site.plugin("good", "@implements(threads)\ndef it(self): return [Word('red')]")
    async with site.host("frail", "needy", "good") as host:
        module = __import__("heald_frail")
        module.may_crash.set()
        await module.gone.wait()
        assert host.scope.find(loom.shed) is None
        assert host.scope.collect(loom.notes) == ()
        assert [c.value.key for c in host.scope.collect(loom.threads)] == ["red"]
    failed = {row.row: row for row in host.composition.failed}
    assert failed["frail"].stage == "run"
    assert "ExceptionGroup" in failed["frail"].reason
    assert failed["needy"].because_of == ("frail",)
    assert sorted(loom.trace) == ["frail sees None", "needy stopped"]


async def test_a_row_that_ends_just_after_its_start_never_shows(site: Site, loom: Any) -> None:
    site.plugin(
        "frail",
        """
        async def start(self):
            asyncio.current_task().cancel()

        @implements(shed)
        def it(self): return "open"
        """,
    )
    async with site.host("frail") as host:
        (failed,) = host.composition.failed
        assert (failed.stage, failed.reason) == ("run", "CancelledError")
        assert host.scope.find(loom.shed) is None


async def test_a_late_timer_of_a_stopped_row_fails_in_its_own_task_and_the_host_lives(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "late",
        """
        async def start(self): tasks.append(asyncio.ensure_future(self.ring()))

        async def ring(self):
            await may_ring.wait()
            self.scope.notify(woven, "silk", 1)
        """,
        before="tasks, may_ring = [], asyncio.Event()",
    )
    site.plugin("good", "@implements(woven)\ndef hear(self, cloth, length): trace.append(cloth)")
    async with site.host("good") as host:
        preset = await host.mount("preset", [Row("late", "late")])
        await preset.close()
        module = __import__("heald_late")
        module.may_ring.set()
        with pytest.raises(Exception, match="row late has stopped") as caught:
            await module.tasks[0]
        assert getattr(caught.value, "code", None) == "SCOPE_CLOSED"
        host.scope.notify(loom.woven, "wool", 1)
        assert loom.trace == ["wool"]


async def test_an_interrupt_in_a_row_reaches_the_person(site: Site) -> None:
    site.plugin("bad", "async def start(self): raise KeyboardInterrupt")

    async def main() -> None:
        async with site.host("bad"):
            raise AssertionError("composed")

    with pytest.raises(KeyboardInterrupt):
        await asyncio.to_thread(asyncio.run, main())
