"""What is wrong with rows before anything starts, and the order they are mounted in."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heald import CompositionError, Discovery, Fault, Row

if TYPE_CHECKING:
    from tests.kernel.conftest import Site


async def refused(site: Site, *rows: str | Row) -> tuple[Fault, ...]:
    """Return why a host refuses these rows; nothing may have been constructed."""
    with pytest.raises(CompositionError) as caught:
        async with site.host(*rows):
            raise AssertionError("composed")
    assert caught.value.code == "COMPOSITION_INVALID"
    return caught.value.faults


def provider(spec: str) -> str:
    return f"@implements({spec})\ndef it(self): return self.row"


async def test_every_fault_of_every_row_is_reported_at_once_and_nothing_starts(
    site: Site, loom: Any
) -> None:
    site.plugin("good", "async def start(self): trace.append('started')")
    site.plugin("needy", "requires = (shed,)")
    site.plugin("set", "", before="@attrs.frozen\nclass C:\n    size: int", base="Plugin[C]")
    site.plugin("bad", "@implements(cut)\ndef hear(self, cloth): ...")
    faults = await refused(
        site,
        Row("good", "good", layer="one.toml"),
        Row("needy", "needy", layer="one.toml"),
        Row("typo", "gud", layer="two.toml", origins={"plugin": "three.toml"}),
        Row("set", "set", {"size": "x"}, origins={"config.size": "four.toml"}),
        Row("bad", "bad"),
    )
    assert [(f.code, f.file, f.row, f.field) for f in faults] == [
        ("PLUGIN_UNKNOWN", "three.toml", "typo", "plugin"),
        ("CONFIG_INVALID", "four.toml", "set", "config.size"),
        ("HOOK_SIGNATURE", "program", "bad", "plugin"),
        ("REQUIREMENT_UNMET", "one.toml", "needy", "plugin"),
    ]
    assert loom.trace == []
    assert "did you mean 'good'?" in str(faults[0])
    assert str(faults[1]) == "four.toml: row set: config.size: expected int, got str 'x'"


async def test_a_row_with_a_fault_is_not_reported_again_by_the_rows_that_need_it(
    site: Site,
) -> None:
    site.plugin("bad", "requires = shed\n@implements(warp)\nasync def it(self): ...")
    site.plugin("twin", "@implements(warp)\ndef it(self): return 'held'")
    site.plugin("needy", "requires = (warp,)")
    faults = await refused(site, "bad", "needy")
    assert [(f.code, f.row) for f in faults] == [
        ("PLUGIN_INVALID", "bad"),
        ("HOOK_SIGNATURE", "bad"),
    ]
    faults = await refused(site, Row("a", "twin"), Row("a", "twin"), "needy")
    assert [(f.code, f.row) for f in faults] == [("ROW_DUPLICATE", "a")]


async def test_a_missing_requirement_names_the_row_and_what_to_add(site: Site) -> None:
    site.install("heald-loom", {}, plugins={"loom": "loom:LoomPlugin"})
    site.plugin("needy", "requires = (shed, warp)")
    faults = await refused(site, "needy")
    assert [f.code for f in faults] == ["REQUIREMENT_UNMET"] * 2
    assert faults[0].message == "requires loom.shed; add or enable a row of plugin 'loom'"


async def test_two_rows_that_provide_one_service_are_both_named(site: Site) -> None:
    site.plugin("one", provider("shed"))
    site.plugin("two", provider("shed"))
    (fault,) = await refused(site, Row("a", "one", layer="one.toml"), Row("b", "two"))
    assert (fault.code, fault.row) == ("SERVICE_CONFLICT", "b")
    assert "row a (one, one.toml)" in fault.message


async def test_a_disabled_row_is_not_planned_or_imported(site: Site) -> None:
    site.install("heald-x", {"heald_x.py": "raise SystemExit"}, plugins={"x": "heald_x:X"})
    site.plugin("idle")
    async with site.host(Row("x", "x", {"no": 1}, disabled=True), "idle", strict=True) as host:
        assert [row.id for row in host.composition.mounted] == ["idle"]


async def test_every_cycle_is_reported_with_its_rows_in_order(site: Site) -> None:
    site.plugin("a", f"requires = (warp,)\n{provider('shed')}")
    site.plugin("b", f"requires = (weft,)\n{provider('warp')}")
    site.plugin("c", f"requires = (shed,)\n{provider('weft')}")
    faults = await refused(site, "c", "b", "a")
    assert [f.code for f in faults] == ["REQUIREMENT_CYCLE"]
    assert faults[0].message == "these rows need each other: c needs a needs b needs c"
    assert faults[0].row == "c"

    site.plugin("self", f"requires = (lamp,)\n{provider('lamp')}", before=LAMP)
    faults = await refused(site, "self", "a", "b", "c")
    assert [f.message for f in faults] == [
        "these rows need each other: self needs self",
        "these rows need each other: a needs b needs c needs a",
    ]


LAMP = "@provide\ndef lamp() -> str: ..."


async def test_a_row_that_replaces_a_service_may_require_the_one_it_replaces(
    site: Site, loom: Any
) -> None:
    site.plugin("plain", provider("shed"))
    site.plugin(
        "better",
        """
        requires = (shed,)
        async def start(self): self.inner = self.scope.require(shed)

        @implements(shed)
        def it(self): return f"better {self.inner}"
        """,
    )
    async with site.host("plain") as host:
        preset = await host.mount("preset", [Row("better", "better")])
        assert preset.scope.require(loom.shed) == "better plain"


async def test_an_id_that_is_taken_or_cannot_be_one_is_refused(site: Site) -> None:
    site.plugin("idle")
    rows = [
        Row("a", "idle"),
        Row("a", "idle"),
        Row("../b", "idle"),
        Row("", "idle"),
        Row("C.1-x_", "idle"),
    ]
    faults = await refused(site, *rows)
    assert [(f.code, f.row) for f in faults] == [
        ("ROW_DUPLICATE", "a"),
        ("ROW_ID_INVALID", "../b"),
        ("ROW_ID_INVALID", ""),
    ]


async def test_a_plugin_name_that_two_distributions_bring_cannot_be_composed(site: Site) -> None:
    site.plugin("idle")
    site.install("other-idle", {}, plugins={"idle": "heald_idle:IdlePlugin"})
    site.plugin("fine")
    (fault,) = await refused(site, "idle", "fine")
    assert fault.code == "PLUGIN_CONFLICT"
    assert "heald-idle and other-idle" in fault.message


async def test_a_preset_composition_is_refused_before_anything_of_it_starts(
    site: Site, loom: Any
) -> None:
    site.plugin("good", "async def start(self): trace.append(self.row)")
    site.plugin("needy", "requires = (shed,)")
    async with site.host("good") as host:
        with pytest.raises(CompositionError):
            await host.mount("preset", [Row("again", "good"), Row("needy", "needy")])
        assert loom.trace == ["good"]
        assert [f.row for f in host.check([Row("needy", "needy")])] == ["needy"]
        assert host.check([Row("again", "good")]) == ()


HOOKS = {
    "plain for async": ("@implements(cut)\ndef f(self, cloth): ...", "is async"),
    "async for plain": ("@implements(woven)\nasync def f(self, cloth, length): ...", "is plain"),
    "async for collect": ("@implements(notes)\nasync def f(self): ...", "is plain"),
    "plain for wrap": ("@implements(dyed)\ndef f(self, request, call_next): ...", "is async"),
    "name": (
        "@implements(woven)\ndef f(self, cloth, size): ...",
        r"expected \(self, cloth, length\) for loom.woven, got \(self, cloth, size\)",
    ),
    "too few": ("@implements(woven)\ndef f(self, cloth): ...", "expected"),
    "too many": ("@implements(shed)\ndef f(self, more): ...", "expected"),
    "keyword only": ("@implements(woven)\ndef f(self, cloth, *, length): ...", "expected"),
    "no self": ("@implements(shed)\ndef f(): ...", r"got \(\)"),
    "wrap": ("@implements(dyed)\nasync def f(self, request): ...", "request, call_next"),
    "instance method declares": ("@implements(patterns)\ndef f(self): ...", "class method"),
    "class method": ("@classmethod\n@implements(shed)\ndef f(cls): ...", "plain method"),
    "static method": ("@staticmethod\n@implements(shed)\ndef f(): ...", "plain method"),
    "property": ("@property\n@implements(shed)\ndef f(self): ...", "plain method"),
    "decorators swapped": ("@implements(patterns)\n@classmethod\ndef f(cls): ...", "right above"),
    "tryfirst on top": (
        "@pluggy.HookimplMarker('heald')(tryfirst=True)\n@implements(shed)\ndef f(self): ...",
        "order comes from rows",
    ),
    "wrapper on top": (
        "@pluggy.HookimplMarker('heald')(hookwrapper=True)\n@implements(shed)\ndef f(self): yield",
        "order comes from rows",
    ),
}


@pytest.mark.parametrize("case", HOOKS)
async def test_an_implementation_that_does_not_fit_is_refused(site: Site, case: str) -> None:
    body, message = HOOKS[case]
    site.plugin("bad", body, before="import pluggy")
    (fault,) = await refused(site, "bad")
    assert (fault.code, fault.row) == ("HOOK_SIGNATURE", "bad")
    with pytest.raises(CompositionError, match=message):
        raise CompositionError((fault,))
    assert "BadPlugin.f" in fault.message


@pytest.mark.parametrize(
    "mark",
    [
        "@pluggy.HookimplMarker('heald')",
        "@pluggy.HookimplMarker('heald')(tryfirst=True)",
        "@pluggy.HookimplMarker('heald')(specname='wovn')",
        "@implements('wovn')",
        "@implements(wovn)",
        "@implements(None)",
    ],
)
async def test_a_hook_that_is_no_specification_is_refused_naming_the_nearest(
    site: Site, mark: str
) -> None:
    body = f"{mark}\ndef wovn(self, cloth, length): ..."
    site.plugin("bad", body, before="import pluggy\nfrom loom import woven\ndef wovn(): ...")
    (fault,) = await refused(site, "bad")
    assert fault.code == "HOOK_UNKNOWN"
    assert "BadPlugin.wovn implements unknown hook 'wovn'; did you mean 'woven'?" in fault.message


async def test_overriding_an_implementation_without_marking_it_is_refused(
    site: Site, loom: Any
) -> None:
    site.plugin("base", "@implements(shed)\ndef it(self): return 'base'")
    before = "from heald_base import BasePlugin"
    site.plugin("lost", "def it(self): return 'lost'", before=before, base="BasePlugin")
    (fault,) = await refused(site, "lost")
    assert fault.code == "HOOK_SIGNATURE"
    assert "LostPlugin.it hides an implementation of loom.shed" in fault.message

    site.plugin("out", "it = None", before=before, base="BasePlugin")
    site.plugin(
        "kept", "@implements(shed)\ndef it(self): return 'kept'", before=before, base="BasePlugin"
    )
    async with site.host("out", "kept") as host:
        assert host.scope.require(loom.shed) == "kept"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("requires = shed", "requires is not a tuple of provide hooks"),
        ("requires = (threads,)", "requires is not a tuple of provide hooks"),
        ("def start(self): ...", "start is not async"),
        ("async def stop(self): yield", "stop is not async"),
        ("def __eq__(self, other): return True", "rows are told apart by identity"),
    ],
)
async def test_a_class_that_cannot_be_a_plugin_is_refused(
    site: Site, body: str, message: str
) -> None:
    site.plugin("bad", body)
    (fault,) = await refused(site, "bad")
    assert fault.code == "PLUGIN_INVALID"
    assert message in fault.message


async def test_a_configuration_class_that_is_no_attrs_class_is_refused(site: Site) -> None:
    site.plugin("bad", base="Plugin[int]")
    (fault,) = await refused(site, "bad")
    assert fault.code == "PLUGIN_INVALID"
    assert "Config is not an attrs class" in fault.message


async def test_one_class_that_provides_a_service_twice_is_refused(site: Site) -> None:
    site.plugin("bad", "@implements(shed)\ndef a(self): ...\n@implements(shed)\ndef b(self): ...")
    (fault,) = await refused(site, "bad")
    assert fault.code == "SERVICE_CONFLICT"
    assert "a and b both provide loom.shed" in fault.message


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, list[int]]:
    """Draw what each plugin requires: any of the plugins with a smaller number."""
    size = draw(st.integers(1, 7))
    return {
        n: draw(st.lists(st.sampled_from(range(n)), unique=True)) if n else [] for n in range(size)
    }


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(graph=graphs(), number=st.integers(0, 9999))
async def test_order_is_a_function_of_requirements_and_rows_alone(
    site: Site, graph: dict[int, list[int]], number: int
) -> None:
    from heald.planning import plan

    name = f"pool_{next(_count)}"
    lines = ["from heald import *"]
    for n, required in graph.items():
        lines += [
            f"@provide\ndef s{n}() -> int: ...",
            f"class P{n}(Plugin[NoConfig]):",
            f"    requires = ({''.join(f's{other}, ' for other in required)})",
            f"    @implements(s{n})\n    def it(self): return {n}",
        ]
    site.install(
        name,
        {f"{name}.py": "\n".join(lines)},
        plugins={f"{name}{n}": f"{name}:P{n}" for n in graph},
    )
    seed = random.Random(number)
    order = list(graph)
    seed.shuffle(order)
    rows = [Row(f"r{n}", f"{name}{n}") for n in order]

    expected: list[int] = []
    while len(expected) < len(order):  # the first row, of those that can go, again and again
        expected.append(
            next(n for n in order if n not in expected and set(graph[n]) <= set(expected))
        )
    for _ in range(4):  # with 25 graphs, 100 orders of discovery
        planned = plan(rows, Shuffled(site.discovery, seed))
        assert [item.row.id for item in planned.rows] == [f"r{n}" for n in expected]


_count = itertools.count()


class Shuffled(Discovery):
    """A discovery that finds entry points in another order."""

    def __init__(self, real: Discovery, seed: random.Random) -> None:
        super().__init__(real.path)
        self._seed = seed

    def every(self, group: str) -> Any:
        found = list(super().every(group))
        self._seed.shuffle(found)
        return tuple(found)
