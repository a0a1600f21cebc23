"""What must be true of comparing what is stored with what is remembered of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from heald import Cancelled, CancelToken
from heald_persistence.contracts import SessionPersistence, StoredSession, Survey
from heald_persistence.testing.logs import (
    ODD_IDS,
    make_events,
    make_header,
    make_large,
    store,
    store_open,
)
from heald_session import LogOffset, SessionId

ONE = SessionId("one")


class SurveyContract:
    """What has not changed is not told again, and what has changed always is."""

    async def test_a_survey_of_nothing_known_is_the_list(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(2), cwd="/a")
        await store(backend, make_events(1), "two", is_seeded=True)
        for logs in (False, True):
            survey = await backend.survey({}, logs=logs)
            assert (_by_name(survey), survey.gone) == (
                {item.name: item for item in await backend.list()},
                frozenset(),
            )
        assert _by_name(survey)["one"].header == make_header(cwd="/a")

    @pytest.mark.parametrize("logs", [False, True])
    async def test_what_is_remembered_is_not_told_again(
        self,
        backend: SessionPersistence,
        logs: bool,  # noqa: FBT001
    ) -> None:
        for id_ in (*ODD_IDS, "plain"):
            await store(backend, make_events(1), id_)
        known = await remembered(backend, logs=logs)
        assert set(known) == {*ODD_IDS, "plain"}
        assert await backend.survey(known, logs=logs) == Survey((), frozenset())

    @pytest.mark.parametrize("logs", [False, True])
    async def test_what_is_new_and_what_is_gone_are_told(
        self,
        backend: SessionPersistence,
        logs: bool,  # noqa: FBT001
    ) -> None:
        for id_ in ("one", "two", "a/b"):
            await store(backend, make_events(1), id_)
        known = await remembered(backend, logs=logs)
        await backend.delete(ONE)
        await backend.delete(SessionId("a/b"))
        await store(backend, make_events(1), "three")
        survey = await backend.survey({**known, "never": ""}, logs=logs)
        assert set(_by_name(survey)) == {"three"}
        assert survey.gone == {"one", "a/b", "never"}

    @pytest.mark.parametrize("logs", [False, True])
    async def test_another_session_in_the_place_is_told(
        self,
        backend: SessionPersistence,
        logs: bool,  # noqa: FBT001
    ) -> None:
        await store(backend, make_events(1))
        known = await remembered(backend, logs=logs)
        await backend.delete(ONE)
        await store(backend, make_events(1), log_id="new")
        survey = await backend.survey(known, logs=logs)
        assert _by_name(survey)["one"].header == make_header(log_id="new")
        assert survey.gone == frozenset()

    async def test_a_log_that_has_grown_is_told_if_logs_are_surveyed(
        self, backend: SessionPersistence
    ) -> None:
        writer = await store_open(backend, make_events(1))
        headers, logs = await remembered(backend), await remembered(backend, logs=True)
        for event in (make_events(1, start=1)[0], make_large(300_000, 2), make_large(300_000, 3)):
            writer.append([event])
            await writer.flush()
            assert set(_by_name(await backend.survey(logs, logs=True))) == {"one"}
            assert await backend.survey(headers) == Survey((), frozenset())
            logs = await remembered(backend, logs=True)
        await writer.close()

    async def test_what_is_remembered_without_a_stamp_is_told_again(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(1))
        survey = await backend.survey({"one": ""})
        assert (set(_by_name(survey)), survey.gone) == ({"one"}, frozenset())

    async def test_a_cancelled_survey_ends(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(1))
        cancel = CancelToken()
        cancel.cancel("enough")
        with pytest.raises(Cancelled):
            await backend.survey({}, cancel=cancel)

    async def test_what_was_read_can_be_settled_also_when_its_session_was_deleted(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append([make_large(400_000), *make_events(1, start=1)])
        await writer.flush()
        async with await backend.read(ONE) as log:
            await log.settle()
            await writer.close()
            await backend.delete(ONE)
            await log.settle()
            assert [event.seq async for batch in log.batches() for event in batch] == [0, 1]


async def remembered(backend: SessionPersistence, *, logs: bool = False) -> Mapping[str, str]:
    """Return stamps of everything that is stored, once what is new can be told from newer."""
    known: dict[str, str] = {}
    while True:
        survey = await backend.survey(known, logs=logs)
        known |= {item.name: item.stamp or "" for item in survey.changed}
        if all(known.values()):
            return known
        await asyncio.sleep(0.01)


def _by_name(survey: Survey) -> dict[str, StoredSession]:
    return {item.name: item for item in survey.changed}
