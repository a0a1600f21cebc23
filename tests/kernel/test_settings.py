"""Configuration: structured strictly, everything wrong told at once."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType

import attrs
import pytest

from heald import CompositionError, Row, read_layer, setting, stack
from heald.interpolation import FromEnvironment
from heald.settings import structure

if TYPE_CHECKING:
    from tests.kernel.conftest import Site


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


Count = NewType("Count", int)


@attrs.frozen
class Retry:
    times: int = setting(default=3, aliases=("tries",), validator=attrs.validators.ge(0))
    wait: float = 1.0


@attrs.frozen
class Everything:
    text: str = ""
    number: int = 0
    ratio: float = 0.0
    flag: bool = False
    where: Path = Path()
    day: dt.date | None = None
    color: Color = Color.RED
    level: Level = Level.LOW
    word: Literal["a", "b", 1] = "a"
    many: list[int] = attrs.field(factory=list)
    fixed: tuple[int, str] = (0, "")
    several: tuple[str, ...] = ()
    unique: frozenset[str] = frozenset()
    sequence: Sequence[int] = ()
    named: dict[str, int] = attrs.field(factory=dict)
    mapping: Mapping[str, Retry] = attrs.field(factory=dict)
    maybe: int | None = None
    either: int | str = 0
    one_or_many: str | list[str] = ""
    retry: Retry = attrs.field(factory=Retry)
    retries: list[Retry] = attrs.field(factory=list)
    maybe_retry: Retry | None = None
    anything: Any = None
    count: Count = Count(0)
    noted: Annotated[int, "note"] = 0


def one(**data: object) -> Any:
    """Structure values of which nothing is wrong, and return the single one of them."""
    done = structure(data, Everything)
    assert done.wrong == ()
    (name,) = data
    return getattr(done.config, name)


def wrong(**data: object) -> dict[str, str]:
    done = structure(data, Everything)
    assert done.config is None
    return {item.path: item.message for item in done.wrong}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("text", "x", "x"),
        ("number", 3, 3),
        ("ratio", 3, 3.0),
        ("ratio", 0.5, 0.5),
        ("flag", True, True),
        ("where", "a/b", Path("a/b")),
        ("day", dt.date(2024, 1, 2), dt.date(2024, 1, 2)),
        ("color", "blue", Color.BLUE),
        ("level", 1, Level.LOW),
        ("word", "b", "b"),
        ("word", 1, 1),
        ("many", [1, 2], [1, 2]),
        ("fixed", [1, "x"], (1, "x")),
        ("several", ["x", "y"], ("x", "y")),
        ("unique", ["x", "x"], frozenset({"x"})),
        ("sequence", [1], (1,)),
        ("named", {"a": 1}, {"a": 1}),
        ("mapping", {"a": {"times": 1}}, {"a": Retry(1)}),
        ("maybe", None, None),
        ("maybe", 4, 4),
        ("either", "x", "x"),
        ("either", 4, 4),
        ("one_or_many", "x", "x"),
        ("one_or_many", ["x"], ["x"]),
        ("retry", {"times": 5}, Retry(5)),
        ("retries", [{}, {"wait": 2}], [Retry(), Retry(wait=2.0)]),
        ("maybe_retry", {"times": 5}, Retry(5)),
        ("anything", [{"x": None}], [{"x": None}]),
        ("count", 3, 3),
        ("noted", 3, 3),
    ],
)
def test_a_value_of_the_right_kind_is_taken(name: str, given: object, expected: object) -> None:
    value = one(**{name: given})
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "path", "message"),
    [
        ("text", 3, "text", "expected str, got int 3"),
        ("number", True, "number", "expected int, got bool True"),
        ("number", "3", "number", "expected int, got str '3'"),
        ("number", 3.0, "number", "expected int, got float 3.0"),
        ("ratio", True, "ratio", "expected a number, got bool True"),
        ("flag", 1, "flag", "expected true or false, got int 1"),
        ("where", 1, "where", "expected a path, got int 1"),
        ("day", "2024-01-02", "day", "expected date, got str '2024-01-02'"),
        (
            "color", "blu", "color",
            "expected one of 'red', 'blue', got str 'blu'; did you mean 'blue'?",
        ),
        ("level", True, "level", "expected one of 1, got bool True"),
        ("word", "c", "word", "expected one of 'a', 'b', 1, got str 'c'"),
        ("word", True, "word", "expected one of 'a', 'b', 1, got bool True"),
        ("many", "12", "many", "expected an array, got str '12'"),
        ("many", [1, "x"], "many[1]", "expected int, got str 'x'"),
        ("many", {"a": 1}, "many", "expected an array, got dict {'a': 1}"),
        ("fixed", [1], "fixed", "expected an array of 2, got list [1]"),
        ("fixed", [1, 2], "fixed[1]", "expected str, got int 2"),
        ("named", [1], "named", "expected a table, got list [1]"),
        ("named", {"a": "x"}, "named.a", "expected int, got str 'x'"),
        ("mapping", {"a": {"times": "x"}}, "mapping.a.times", "expected int, got str 'x'"),
        ("maybe", "x", "maybe", "expected int, got str 'x'"),
        ("either", 1.5, "either", "expected int or str, got float 1.5"),
        ("one_or_many", ["x", 1], "one_or_many[1]", "expected str, got int 1"),
        ("retry", "x", "retry", "expected a table, got str 'x'"),
        ("retry", {"wait": "x"}, "retry.wait", "expected a number, got str 'x'"),
        ("maybe_retry", {"wait": "x"}, "maybe_retry.wait", "expected a number, got str 'x'"),
        ("retries", [{}, {"wait": []}], "retries[1].wait", "expected a number, got list []"),
        (
            "retry", {"times": -1}, "retry.times",
            "expected a value that fits, got int -1: 'times' must be >= 0: -1",
        ),
        (
            "retry", {"tims": 1}, "retry.tims",
            "expected a known key, got 'tims'; did you mean 'times'?",
        ),
        ("retry", {"q": 1}, "retry.q", "expected a known key, got 'q'; known: times, wait"),
        ("text", ["x" * 99], "text", "expected str, got list ['" + "x" * 55 + "..."),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_with_path_expectation_and_what_was_got(
    name: str, given: object, path: str, message: str
) -> None:
    assert wrong(**{name: given}) == {path: message}


def test_all_wrong_values_are_told_at_once() -> None:
    told = wrong(
        txet="x", number="x", many=["a", 1, "b"], retry={"wait": "x", "times": "y"}, flag=2
    )
    assert list(told) == [
        "number",
        "flag",
        "many[0]",
        "many[2]",
        "retry.times",
        "retry.wait",
        "txet",
    ]


def in_order(checked: Any, _: object, value: int) -> None:
    if value > 9:
        raise ValueError("high is above 9")
    if value < checked.low:
        raise ValueError("high is below low")


@attrs.frozen
class Checked:
    name: str
    low: int = setting(default=1, validator=attrs.validators.ge(0))
    high: int = setting(default=2, validator=in_order)


def test_an_array_of_no_stated_kind_takes_anything() -> None:
    bare = attrs.make_class("Bare", {"items": attrs.field(type=list)})
    assert structure({"items": ["x", 1]}, bare).config.items == ["x", 1]
    assert structure({"items": "x"}, bare).wrong[0].message == "expected an array, got str 'x'"


def test_a_missing_value_is_told_and_every_validator_that_refuses() -> None:
    done = structure({}, Checked)
    assert [(w.path, w.message) for w in done.wrong] == [("name", "expected a value, got nothing")]
    done = structure({"name": "x", "low": -1, "high": 10}, Checked)
    assert [w.path for w in done.wrong] == ["low", "high"]
    done = structure({"name": "x", "low": 5, "high": 4}, Checked)
    assert [(w.path, "high is below low" in w.message) for w in done.wrong] == [("high", True)]


@attrs.frozen
class Whole:
    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("it ends before it starts")


def test_a_class_that_refuses_as_a_whole_is_told_at_its_path() -> None:
    (item,) = structure({"start": 2, "end": 1}, Whole).wrong
    assert (item.path, item.message) == ("", "ValueError: it ends before it starts")


def test_an_earlier_name_keeps_working_with_a_notice_wherever_it_stands() -> None:
    done = structure({"retry": {"tries": 5}, "retries": [{"tries": 6}]}, Everything)
    assert done.config.retry == Retry(5)
    assert done.config.retries == [Retry(6)]
    assert done.notices == (
        "config.retry.tries is now config.retry.times; rename it",
        "config.retries[0].tries is now config.retries[0].times; rename it",
    )
    told = wrong(retry={"tries": 5, "times": 6})
    assert told == {"retry.tries": "is the earlier name of 'times', which is given too; remove it"}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("text", "5", "5"),
        ("number", "5", 5),
        ("ratio", "0.5", 0.5),
        ("flag", "true", True),
        ("flag", "false", False),
        ("where", "/x", Path("/x")),
        ("color", "red", Color.RED),
        ("word", "b", "b"),
        ("maybe", "5", 5),
        ("day", "2024-01-02", dt.date(2024, 1, 2)),
    ],
)
def test_text_from_the_environment_may_stand_for_another_kind(
    name: str, text: str, expected: object
) -> None:
    value = one(**{name: FromEnvironment(text)})
    assert value == expected
    assert type(value) is type(expected)


SECRET = FromEnvironment("s3cret")
SHORT: Any = attrs.validators.deep_iterable(attrs.validators.max_len(2))


@attrs.frozen
class Guarded:
    key: str = setting(default="", validator=attrs.validators.matches_re("sk-.*"))
    keys: list[str] = attrs.field(factory=list, validator=SHORT)

    def __attrs_post_init__(self) -> None:
        if self.key == "sk-3cret":
            raise ValueError(f"{self.key} is known")


@pytest.mark.parametrize(
    ("cls", "data"),
    [
        *((Everything, {name: SECRET}) for name in ("number", "flag", "color", "day", "many")),
        (Everything, {"number": [SECRET]}),
        (Everything, {"text": {"x": [SECRET]}}),
        (Everything, {"word": SECRET, "level": SECRET}),
        (Guarded, {"key": SECRET}),
        (Guarded, {"keys": [SECRET]}),
        (Guarded, {"key": FromEnvironment("sk-3cret")}),
    ],
)
def test_what_the_environment_held_is_not_shown(cls: type, data: dict[str, object]) -> None:
    told = structure(data, cls).wrong
    assert told
    assert "3cret" not in str(told)
    assert str(SECRET) == "s3cret"


async def test_wrong_configuration_is_told_with_the_file_that_wrote_each_field(
    site: Site, write: Callable[[str, str], Path]
) -> None:
    site.plugin(
        "set",
        before="""
            @attrs.frozen
            class Inner:
                port: int = 1
            @attrs.frozen
            class C:
                name: str
                inner: Inner = attrs.field(factory=Inner)
        """,
        base="Plugin[C]",
    )
    base = write("base.toml", '[[rows]]\nid = "s"\nplugin = "set"\nconfig = {name = 3}')
    home = write("home.toml", '[[patch]]\nrow = "s"\nconfig.merge.inner.port = "${env:PORT}"')
    rows = stack([read_layer(base), read_layer(home)], {"PORT": "s3cret"}).rows
    with pytest.raises(CompositionError) as caught:
        async with site.host(*rows):
            raise AssertionError("composed")
    name, port = caught.value.faults
    assert str(name) == f"{base}: row s: config.name: expected str, got int 3"
    assert str(port) == (
        f"{home}: row s: config.inner.port: expected int, got a value from the environment"
    )


async def test_a_renamed_setting_is_noticed_when_a_host_opens(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.plugin(
        "set",
        "async def start(self): assert self.config.size == 2",
        before="@attrs.frozen\nclass C:\n    size: int = setting(default=1, aliases=('big',))",
        base="Plugin[C]",
    )
    async with site.host(Row("s", "set", {"big": 2}, layer="x.toml"), strict=True):
        pass
    assert caplog.messages == ["x.toml: row s: config.big is now config.size; rename it"]


async def test_a_configuration_class_with_an_unknown_type_is_told(site: Site) -> None:
    site.plugin("set", before="@attrs.frozen\nclass C:\n    x: 'Nope' = 1", base="Plugin[C]")
    with pytest.raises(CompositionError, match=r"config: .*NameError.*Nope"):
        async with site.host("set"):
            raise AssertionError("composed")
