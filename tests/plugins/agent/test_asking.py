from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from heald import Cancelled, CancelToken, CompositionError, Discovery, Host, Row
from heald.testing import HostFactory
from heald_agent import (
    Agent,
    AnswerInvalid,
    Approval,
    AskNotOpen,
    AskOpened,
    Question,
    agents,
)
from heald_agent.testing import Person
from heald_projection import projections
from heald_query import session_query
from heald_session import DataNotJson, LogOffset, Session, SessionClosed, SessionId, session_store

A = SessionId("a")
COLOUR = Question(text="Which colour?", options=("red", "blue"))
DELETE = Approval(text="Delete it?", action={"tool": "delete", "arguments": {"path": "x"}})
HostOf = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def host_of(heald_host: HostFactory) -> HostOf:
    """Return a factory of hosts on which a person is there, or nobody."""

    @asynccontextmanager
    async def factory(
        person: Person | None = None, agent: Mapping[str, object] | None = None
    ) -> AsyncIterator[Host]:
        rows = [Row(name, name) for name in ("session", "persistence", "projection", "query")]
        rows += [Row("agent", "agent", agent or {}), Row("models-scripted", "models-scripted")]
        rows += [Row("person", "person")] if person is not None else []
        discovery = Discovery(program={"person": person.plugin()} if person is not None else {})
        async with heald_host(rows=rows, discovery=discovery) as host:
            yield host

    return factory


async def new_agent(host: Host, cwd: Path) -> Agent:
    return await host.scope.require(agents).create(cwd=cwd, id=A)


def logged(session: Session) -> list[tuple[str, Any]]:
    return [(e.type, e.data) for e in session.hot() if e.type.startswith("ask/")]


def shown(session: Session) -> Any:
    return session.scope.require(projections).snapshot(session, ["asks"]).values["asks"]


async def test_a_question_is_an_event_and_its_answer_another(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = asyncio.create_task(agent.ask(COLOUR))
        opened = await person.asked()
        assert agent.session.flushed == agent.session.end  # what is shown is durable
        assert opened.deadline - host.now() > 200_000
        assert shown(agent.session)["text"] == "Which colour?"
        answered = await person.answer("answered", "blue")
        assert await asking == answered
        assert agent.session.flushed == agent.session.end
        asked, decided = logged(agent.session)
        assert asked == (
            "ask/opened",
            {
                "id": opened.id,
                "kind": "question",
                "text": "Which colour?",
                "deadline": opened.deadline,
                "options": ["red", "blue"],
            },
        )
        assert decided == (
            "ask/decided",
            {"ask": opened.id, "outcome": "answered", "by": "person", "answer": "blue"},
        )
        assert shown(agent.session) is None


@pytest.mark.parametrize("outcome", ["approved", "denied"])
async def test_an_approval_says_what_it_is_for_and_keeps_the_remark(
    host_of: HostOf, tmp_path: Path, outcome: Any
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = asyncio.create_task(agent.ask(DELETE))
        assert (await person.asked()).action == DELETE.action
        await person.answer(outcome, "mind the dog")
        decided = await asking
        assert (decided.outcome, decided.answer) == (outcome, "mind the dog")


async def test_nobody_being_there_denies_at_once_and_says_so(
    host_of: HostOf, tmp_path: Path
) -> None:
    async with host_of() as host:
        agent = await new_agent(host, tmp_path)
        decided = await agent.ask(DELETE)
        assert (decided.outcome, decided.by) == ("denied", "nobody")
        assert decided.reason == "nobody is there to answer"
        assert [kind for kind, _ in logged(agent.session)] == ["ask/opened", "ask/decided"]


class Failing(Person):
    def __getattribute__(self, name: str) -> Any:
        if name == "there":
            raise ValueError("broken")
        return super().__getattribute__(name)


@pytest.mark.parametrize("person", [Person(there=False), Failing()], ids=["away", "failing"])
async def test_an_answerer_that_is_away_or_fails_is_nobody(
    host_of: HostOf, tmp_path: Path, person: Person
) -> None:
    async with host_of(person) as host:
        decided = await (await new_agent(host, tmp_path)).ask(COLOUR)
        assert (decided.outcome, decided.by) == ("denied", "nobody")


async def test_at_the_deadline_an_ask_expires_and_a_late_answer_is_refused(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person, {"ask_deadline_s": 0.01}) as host:
        agent = await new_agent(host, tmp_path)
        decided = await agent.ask(DELETE)
        assert (decided.outcome, decided.by) == ("expired", "deadline")
        assert decided.reason == "nobody answered in 0.01 s"
        with pytest.raises(AskNotOpen):
            await person.answer("approved")
        assert len(logged(agent.session)) == 2


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
async def test_a_deadline_that_never_comes_is_no_deadline(host_of: HostOf, seconds: float) -> None:
    with pytest.raises(CompositionError, match="ask_deadline_s"):
        async with host_of(agent={"ask_deadline_s": seconds}):
            pass


async def test_one_ask_at_a_time_and_a_second_waits_its_turn(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = [asyncio.create_task(agent.ask(Question(text=f"{n}?"))) for n in range(3)]
        for n in range(3):
            assert (await person.asked()).text == f"{n}?"
            assert len(logged(agent.session)) == 2 * n + 1
            await person.answer("answered", str(n))
        assert [(await task).answer for task in asking] == ["0", "1", "2"]


async def test_two_sessions_are_asked_beside_each_other(host_of: HostOf, tmp_path: Path) -> None:
    person = Person()
    async with host_of(person) as host:
        create = host.scope.require(agents).create
        asking = [
            asyncio.create_task((await create(cwd=tmp_path)).ask(Question(text=name)))
            for name in "ab"
        ]
        first, second = await person.asked(), None
        await person.answer("answered", first.text)
        second = await person.asked()
        assert {first.text, second.text} == {"a", "b"}
        await person.answer("answered", second.text)
        assert sorted([(await task).answer or "" for task in asking]) == ["a", "b"]


async def test_of_two_answers_the_first_counts(host_of: HostOf, tmp_path: Path) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = asyncio.create_task(agent.ask(DELETE))
        opened = await person.asked()
        answer = host.scope.require(agents).answer
        done = await asyncio.gather(
            answer(A, opened.id, "denied", by="one"),
            answer(A, opened.id, "approved", by="other"),
            return_exceptions=True,
        )
        assert isinstance(done[1], AskNotOpen)
        assert (await asking).by == "one"
        assert len(logged(agent.session)) == 2


async def test_an_answer_that_does_not_fit_decides_nothing(host_of: HostOf, tmp_path: Path) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        answer = host.scope.require(agents).answer
        asking = asyncio.create_task(agent.ask(DELETE))
        opened = await person.asked()
        with pytest.raises(AnswerInvalid, match="approved or denied"):
            await answer(A, opened.id, "answered", "yes", by="person")
        with pytest.raises(AskNotOpen):
            await answer(A, "another", "approved", by="person")
        with pytest.raises(AskNotOpen):
            await answer(SessionId("nobody"), opened.id, "approved", by="person")
        await person.answer("denied")
        await asking
        asking = asyncio.create_task(agent.ask(COLOUR))
        opened = await person.asked()
        with pytest.raises(AnswerInvalid, match="answered or denied"):
            await answer(A, opened.id, "approved", by="person")
        with pytest.raises(AnswerInvalid, match="has a text"):
            await answer(A, opened.id, "answered", by="person")
        await person.answer("answered", "green")  # options are suggestions
        assert (await asking).answer == "green"


async def test_a_cancelled_ask_is_recorded_with_its_cause_and_the_next_one_is_opened(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        cancel = CancelToken()
        first = asyncio.create_task(agent.ask(COLOUR, cancel=cancel))
        await person.asked()
        waiting = asyncio.create_task(agent.ask(DELETE, cancel=cancel))
        third = asyncio.create_task(agent.ask(DELETE))
        cancel.cancel("the person left")
        for task in (first, waiting):
            with pytest.raises(Cancelled, match="the person left"):
                await task
        opened = logged(agent.session)
        assert opened[1][1]["outcome"] == "cancelled"
        assert opened[1][1]["reason"] == "the person left"
        with pytest.raises(AskNotOpen):
            await person.answer("denied")
        await person.answer("approved")
        assert (await third).outcome == "approved"
        assert len(logged(agent.session)) == 4  # the one that waited was never opened
        with pytest.raises(Cancelled):
            await agent.ask(COLOUR, cancel=cancel)


async def test_an_agent_that_is_disposed_of_leaves_no_ask_open(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = asyncio.create_task(agent.ask(COLOUR))
        waiting = asyncio.create_task(agent.ask(DELETE))
        await person.asked()
        await agent.dispose()
        assert (await asking).outcome == "cancelled"
        with pytest.raises(SessionClosed):
            await waiting
        async with host.scope.require(session_query).observe_session(A, ["asks"]) as seen:
            assert seen.projections.values["asks"] is None


async def test_an_ask_of_a_program_that_died_is_expired_by_whoever_resumes(
    host_of: HostOf, tmp_path: Path
) -> None:
    async with host_of() as host:
        session = await host.scope.require(session_store).create(cwd=str(tmp_path), id=A)
        session.append("ask/opened", AskOpened("old", "approval", "Delete it?", 1))
    async with host_of() as host:
        async with host.scope.require(session_query).observe_session(A, ["asks"]) as seen:
            assert seen.projections.values["asks"]["id"] == "old"
        agent = await host.scope.require(agents).resume(A)
        _, (type_, decided) = logged(agent.session)
        assert type_ == "ask/decided"
        assert decided == {
            "ask": "old",
            "outcome": "expired",
            "by": "restart",
            "reason": "the program that asked has ended",
        }
        assert shown(agent.session) is None
        with pytest.raises(AskNotOpen):
            await host.scope.require(agents).answer(A, "old", "approved", by="person")
    async with host_of() as host:
        agent = await host.scope.require(agents).resume(A)
        assert len(logged(agent.session)) == 2  # once is enough


async def test_a_fork_neither_shows_nor_expires_what_its_source_asks(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = asyncio.create_task(agent.ask(COLOUR))
        await person.asked()
        fork = await host.scope.require(session_store).fork(A, cut=LogOffset(1))
        assert shown(fork) is None
        assert [kind for kind, _ in logged(fork)] == ["ask/opened"]
        assert shown(agent.session) is not None
        await person.answer("answered", "red")
        await asking


async def test_what_is_asked_is_the_same_live_and_cold(host_of: HostOf, tmp_path: Path) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        asking = asyncio.create_task(agent.ask(DELETE))
        await person.asked()
        live = shown(agent.session)
        async with host.scope.require(session_query).observe_session(A, ["asks"]) as seen:
            assert seen.projections.values["asks"] == live
        await person.answer("denied")
        await asking


async def test_an_ask_that_may_not_be_logged_is_not_put_to_anyone(
    host_of: HostOf, tmp_path: Path
) -> None:
    person = Person()
    async with host_of(person) as host:
        agent = await new_agent(host, tmp_path)
        with pytest.raises(DataNotJson, match="surrogate"):
            await agent.ask(Question(text="\ud800"))
        asking = asyncio.create_task(agent.ask(COLOUR))
        assert (await person.asked()).text == "Which colour?"
        await person.answer("denied")
        assert (await asking).outcome == "denied"
