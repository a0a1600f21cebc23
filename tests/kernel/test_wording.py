"""Numbers and times as people and models read them."""

from __future__ import annotations

import time
from datetime import UTC, timedelta, timezone

import pytest

from heald import counted, shortened, told_time


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 files"), (1, "1 file"), (2, "2 files"), (12_345, "12,345 files")],
)
def test_a_number_of_things_has_their_noun_and_its_thousands_apart(number: int, told: str) -> None:
    assert counted(number, "file") == told


@pytest.mark.parametrize(
    ("length", "told"), [(6, "heald!"), (5, "heal…"), (1, "…")], ids=["fits", "cut", "nothing"]
)
def test_a_text_that_is_too_long_ends_in_a_mark_within_its_length(length: int, told: str) -> None:
    assert shortened("heald!", length) == told


def test_a_time_is_told_to_the_second_in_the_zone_that_is_named() -> None:
    assert told_time(1_767_225_599_999, UTC) == "2025-12-31T23:59:59+00:00"
    assert told_time(0, timezone(timedelta(hours=-3))) == "1969-12-31T21:00:00-03:00"


def test_a_time_is_told_in_the_local_zone_if_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv("TZ", "Etc/GMT-2")
        time.tzset()
        assert told_time(0) == "1970-01-01T02:00:00+02:00"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("moment", [10**18, -(10**18), 10**400])
@pytest.mark.parametrize("zone", [None, UTC])
def test_a_time_that_no_calendar_has_is_told_as_it_is(moment: int, zone: timezone | None) -> None:
    assert told_time(moment, zone) == f"{moment} ms"
