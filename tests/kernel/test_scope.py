"""Looking up, collecting, telling and wrapping, from the scope of a composition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from heald import FailedRow, Row, ScopeClosed, ServiceAbsent

if TYPE_CHECKING:
    from tests.kernel.conftest import Site


async def test_a_service_is_asked_for_once_after_start(site: Site, loom: Any) -> None:
    site.plugin(
        "frame",
        """
        async def start(self): trace.append("start")

        @implements(shed)
        def it(self):
            trace.append("provide")
            return "open"
        """,
    )
    async with site.host("frame") as host:
        assert host.scope.require(loom.shed) == "open"
        assert host.scope.find(loom.shed) == "open"
        assert loom.trace == ["start", "provide"]


async def test_the_nearest_service_wins_and_the_hosts_shows_through(site: Site, loom: Any) -> None:
    site.plugin(
        "far",
        """
        @implements(shed)
        def one(self): return "host's"

        @implements(warp)
        def two(self): return "host's"
        """,
    )
    site.plugin("near", "@implements(shed)\ndef it(self): return 'preset'")
    async with site.host("far") as host:
        composition = await host.mount("preset", [Row("near", "near")])
        assert composition.scope.require(loom.shed) == "preset"
        assert composition.scope.require(loom.warp) == "host's"
        assert host.scope.require(loom.shed) == "host's"
        await composition.close()
        assert host.scope.require(loom.shed) == "host's"


async def test_an_absent_service_names_the_plugin_that_owns_it(site: Site, loom: Any) -> None:
    site.install("heald-loom", {}, plugins={"loom": "loom:LoomPlugin"})
    site.plugin("idle")
    async with site.host("idle") as host:
        assert host.scope.find(loom.shed) is None
        with pytest.raises(ServiceAbsent) as caught:
            host.scope.require(loom.shed)
    assert caught.value.code == "SERVICE_ABSENT"
    assert str(caught.value) == "no loom.shed: add or enable a row of plugin 'loom' (loom)"
    assert caught.value.fields()["service"] == "loom.shed"


async def test_an_absent_service_of_a_failed_row_says_why_it_failed(site: Site, loom: Any) -> None:
    site.install("heald-loom", {}, plugins={"loom": "loom:LoomPlugin"})
    async with site.host("loom") as host:
        with pytest.raises(ServiceAbsent, match=r"row loom .* failed at import") as caught:
            host.scope.require(loom.shed)
    assert isinstance(caught.value.failed, FailedRow)


async def test_an_absent_service_of_nothing_installed_names_the_package(
    site: Site, loom: Any
) -> None:
    site.plugin("idle")
    async with site.host("idle") as host:
        with pytest.raises(ServiceAbsent, match="install a distribution that has loom"):
            host.scope.require(loom.shed)


async def test_contributions_come_in_row_order_with_their_origin(site: Site, loom: Any) -> None:
    site.plugin("late", "@implements(notes)\ndef it(self): yield 'b'")
    site.plugin(
        "early",
        """
        requires = (shed,)

        @implements(notes)
        def it(self): return ["a", "a"]
        """,
    )
    site.plugin("frame", "@implements(shed)\ndef it(self): return 'open'")
    rows = [Row("one", "early", layer="f.toml"), Row("two", "late"), Row("three", "frame")]
    async with site.host(*rows) as host:
        found = host.scope.collect(loom.notes)
    assert [c.value for c in found] == ["a", "a", "b"]
    assert [c.origin.row for c in found] == ["one", "one", "two"]
    origin = found[0].origin
    assert (origin.plugin, origin.distribution, origin.file) == ("early", "heald-early", "f.toml")
    assert str(origin) == "row one (early, f.toml)"


async def test_a_nearer_contribution_shadows_one_of_its_key(site: Site, loom: Any) -> None:
    site.plugin("far", "@implements(threads)\ndef it(self): return [Word('red'), Word('blue')]")
    site.plugin(
        "near",
        """
        @implements(threads)
        def it(self): return [Word("red", 2), Word("green")]

        @implements(notes)
        def more(self): return ["n"]
        """,
    )
    site.plugin("also", "@implements(notes)\ndef it(self): return ['n']")
    async with site.host("far", "also") as host:
        near = await host.mount("preset", [Row("near", "near")])
        words = [c.value for c in near.scope.collect(loom.threads)]
        assert [(w.key, w.version) for w in words] == [("red", 2), ("green", 1), ("blue", 1)]
        assert [c.origin.row for c in near.scope.collect(loom.notes)] == ["near", "also"]
        assert [c.value.key for c in host.scope.collect(loom.threads)] == ["red", "blue"]


async def test_the_same_contribution_twice_from_one_row_is_one(site: Site, loom: Any) -> None:
    site.plugin(
        "dye",
        """
        @implements(threads)
        def one(self): return [Word("red"), Word("red")]

        @implements(threads)
        def two(self): return [Word("red"), Word("blue")]
        """,
    )
    async with site.host("dye", strict=True) as host:
        assert [c.value.key for c in host.scope.collect(loom.threads)] == ["red", "blue"]


async def test_what_nobody_implements_is_empty_and_silent(site: Site, loom: Any) -> None:
    site.plugin("idle")

    async def answer(request: str) -> str:
        return request * 2

    async with site.host("idle") as host:
        assert host.scope.collect(loom.threads) == ()
        host.scope.notify(loom.woven, "silk", 3)
        await host.scope.notify(loom.cut, "silk")
        assert await host.scope.around(loom.dyed, answer, "x") == "xx"


LISTENER = """
    @implements(woven)
    def hear(self, cloth, length):
        trace.append(f"{self.row} {cloth} {length}")
        WHAT

    @implements(cut)
    async def hear_cut(self, cloth):
        trace.append(f"{self.row} {cloth}")
        await asyncio.sleep(0)
        WHAT
"""


@pytest.mark.parametrize(
    "what",
    [
        "raise RuntimeError('bad ear')",
        "sys.exit(3)",
        "raise asyncio.CancelledError",
        "raise BaseException('rude')",
    ],
)
async def test_a_listener_that_raises_is_logged_and_counted_and_the_others_are_told(
    site: Site, loom: Any, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    site.plugin("bad", LISTENER.replace("WHAT", what))
    site.plugin("good", LISTENER.replace("WHAT", "pass"))
    async with site.host("bad", "good") as host:
        host.scope.notify(loom.woven, "silk", length=3)
        await host.scope.notify(loom.cut, cloth="silk")
        assert loom.trace == ["bad silk 3", "good silk 3", "bad silk", "good silk"]
        assert host.composition.listener_failures() == {"bad": 2}
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "loom.woven in row bad (plugin bad) failed" in messages[0]
    assert caplog.records[1].exc_info


async def test_an_interrupt_passes_through_a_listener(site: Site, loom: Any) -> None:
    site.plugin("bad", LISTENER.replace("WHAT", "raise KeyboardInterrupt"))
    async with site.host("bad") as host:
        with pytest.raises(KeyboardInterrupt):
            host.scope.notify(loom.woven, "silk", 1)
        with pytest.raises(KeyboardInterrupt):
            await host.scope.notify(loom.cut, "silk")
        assert host.composition.listener_failures() == {}


async def test_the_callers_cancellation_is_not_contained(site: Site, loom: Any) -> None:
    site.plugin(
        "slow",
        """
        @implements(cut)
        async def hear(self, cloth):
            heard.set()
            await asyncio.Event().wait()
        """,
        before="heard = asyncio.Event()",
    )
    site.plugin("good", LISTENER.replace("WHAT", "pass"))
    async with site.host("slow", "good") as host:
        telling = asyncio.ensure_future(host.scope.notify(loom.cut, "silk"))
        await __import__("heald_slow").heard.wait()
        telling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await telling
        assert loom.trace == []


async def test_a_listener_cannot_swallow_the_callers_cancellation(site: Site, loom: Any) -> None:
    site.plugin(
        "greedy",
        """
        @implements(cut)
        async def hear(self, cloth):
            heard.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        """,
        before="heard = asyncio.Event()",
    )
    async with site.host("greedy") as host:
        telling = asyncio.ensure_future(host.scope.notify(loom.cut, "silk"))
        await __import__("heald_greedy").heard.wait()
        telling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await telling


async def test_a_cancellation_that_is_under_way_is_not_taken_for_the_listeners_own(
    site: Site, loom: Any
) -> None:
    site.plugin("good", LISTENER.replace("WHAT", "pass"))

    async def cancelled_before() -> None:
        task = asyncio.current_task()
        assert task
        task.cancel()
        await host.scope.notify(loom.cut, "silk")

    async with site.host("good") as host:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(cancelled_before())
        assert loom.trace == []
        assert host.composition.listener_failures() == {}


async def test_listeners_are_told_while_the_caller_is_being_cancelled(
    site: Site, loom: Any
) -> None:
    site.plugin("good", LISTENER.replace("WHAT", "pass"))

    async def tells_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await host.scope.notify(loom.cut, "silk")

    async with site.host("good") as host:
        task = asyncio.ensure_future(tells_at_the_end())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert loom.trace == ["good silk"]


async def test_a_presets_listeners_hear_their_own_sessions_and_no_others(
    site: Site, loom: Any
) -> None:
    site.plugin("ear", LISTENER.replace("WHAT", "pass"))
    async with site.host(Row("host", "ear")) as host:
        one = await host.mount("one", [Row("one", "ear")])
        await host.mount("two", [Row("two", "ear")])
        one.scope.notify(loom.woven, "silk", 1)
        host.scope.notify(loom.woven, "wool", 2)
    assert loom.trace == ["one silk 1", "host silk 1", "host wool 2"]


async def test_the_nearest_middleware_is_outermost_and_the_hosts_innermost(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "coat",
        """
        @implements(dyed)
        async def paint(self, request, call_next):
            return f"{self.row}({await call_next(request + self.row[0])})"
        """,
    )

    async def dye(request: str) -> str:
        return request

    async with site.host(Row("x", "coat"), Row("y", "coat")) as host:
        preset = await host.mount("preset", [Row("a", "coat"), Row("b", "coat")])
        assert await preset.scope.around(loom.dyed, dye, "-") == "a(b(x(y(-abxy))))"
        assert await host.scope.around(loom.dyed, dye, "-") == "x(y(-xy))"


async def test_middleware_can_answer_by_itself_and_its_errors_are_the_callers(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "guard",
        """
        @implements(dyed)
        async def paint(self, request, call_next):
            if request == "no":
                raise PermissionError(request)
            return "kept"
        """,
    )

    async def never(_: str) -> str:
        raise AssertionError

    async with site.host("guard") as host:
        assert await host.scope.around(loom.dyed, never, "yes") == "kept"
        with pytest.raises(PermissionError):
            await host.scope.around(loom.dyed, never, "no")


async def test_a_scope_can_be_moved_to_another_composition(site: Site, loom: Any) -> None:
    site.plugin("near", "@implements(shed)\ndef it(self): return self.row")
    site.plugin("idle")
    async with site.host("idle") as host:
        one = await host.mount("one", [Row("one", "near")])
        two = await host.mount("two", [Row("two", "near")])
        scope = type(host.scope)(one)
        scope.move_to(two)
        assert scope.require(loom.shed) == "two"
        assert scope.composition is two
        await one.close()
        with pytest.raises(ScopeClosed, match="composition one has stopped"):
            scope.move_to(one)
        assert scope.require(loom.shed) == "two"


async def test_every_use_of_a_closed_scope_is_refused(site: Site, loom: Any) -> None:
    site.plugin("idle", "async def start(self): kept.append(self.scope)", before="kept = []")

    async def call(request: str) -> str:
        return request

    async with site.host("idle") as host:
        scope = __import__("heald_idle").kept[0]
        assert scope.find(loom.shed) is None
    uses: list[Callable[[], Any]] = [
        lambda: scope.find(loom.shed),
        lambda: scope.require(loom.shed),
        lambda: scope.collect(loom.notes),
        lambda: scope.notify(loom.woven, "silk", 1),
        lambda: scope.notify(loom.cut, "silk"),
        lambda: scope.host,
        lambda: scope.move_to(host.composition),
    ]
    for use in uses:
        with pytest.raises(ScopeClosed) as caught:
            use()
        assert caught.value.code == "SCOPE_CLOSED"
        assert "row idle has stopped" in str(caught.value)
    with pytest.raises(ScopeClosed):
        await scope.around(loom.dyed, call, "x")
    with pytest.raises(ScopeClosed, match="composition host"):
        host.scope.find(loom.shed)
