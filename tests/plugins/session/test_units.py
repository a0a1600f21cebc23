"""The projections that every list of sessions shows."""

from __future__ import annotations

from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_projection import projections
from heald_session import APPEND, Event, Session, SessionId, Surface, before, session_store
from heald_session.testing import append_unchecked

ROWS = [Row(id=name, plugin=name) for name in ("session", "projection")]


async def opened(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None)


def view(session: Session, key: str) -> Any:
    return session.scope.require(projections).snapshot(session, [key]).values[key]


def prompt(session: Session, text: str, **sender: str) -> None:
    data = {"id": str(session.end), "text": text, **sender}
    session.append("user/message", data, surface=APPEND)


def ask(session: Session, step: int, model: str) -> None:
    session.append("step/start", {"turn": 1, "step": step, "model": model})


def answer(session: Session, data: dict[str, Any]) -> Event:
    return session.append("assistant/message", data, surface=APPEND)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Count the files", "Count the files"),
        ("\n  Count \nthe files", "Count"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
    ],
)
async def test_a_title_is_the_first_line_of_the_first_prompt(
    heald_host: HostFactory, text: str, title: str
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        assert view(session, "title") is None
        prompt(session, " \n ")
        assert view(session, "title") is None
        prompt(session, text)
        prompt(session, "Something else")
        assert view(session, "title") == {"text": title}


async def test_the_title_that_a_person_gave_wins_over_every_prompt(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        session.append("session/renamed", {"title": "  Mending\nthe loom"})
        assert view(session, "title") == {"text": "Mending"}
        prompt(session, "Count the files")
        assert view(session, "title") == {"text": "Mending"}
        session.append("session/renamed", {"title": "x" * 81})
        assert view(session, "title") == {"text": "x" * 79 + "…"}
        session.append("session/renamed", {"title": " \n "})
        append_unchecked(session, "session/renamed", {"title": 7})
        assert view(session, "title") == {"text": "x" * 79 + "…"}
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        prompt(session, "Count the files")
        session.append("session/renamed", {"title": "Mending"})
        assert view(session, "title") == {"text": "Mending"}


async def test_stats_count_turns_steps_and_tools_that_ran(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        assert view(session, "sessionStats") == {"turns": 0, "steps": 0, "tools": {}}
        session.append("turn/start", {"turn": 1})
        for step, tools in enumerate((["read", "read", "shell"], ["read"]), start=1):
            ask(session, step, "scripted:demo")
            calls = [{"id": f"c{n}", "name": name, "arguments": {}} for n, name in enumerate(tools)]
            refused = {"id": "refused", "name": "shell", "arguments": {}}
            answer(session, {"text": "", "tool_calls": [*calls, refused]})
            for n, name in enumerate(tools):
                session.append("tool/start", {"call_id": f"c{n}", "name": name})
                result = {"call_id": f"c{n}", "name": name, "text": "done"}
                session.append("tool/result", result, surface=APPEND)
            session.append("step/end", {"turn": 1, "step": step})
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        assert view(session, "sessionStats") == {
            "turns": 1,
            "steps": 2,
            "tools": {"read": 3, "shell": 1},
        }


async def test_a_session_is_blank_until_a_turn_is_opened(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        assert view(session, "sessionListMetadata") == {
            "blank": True,
            "last_activity": None,
            "last_prompt": None,
        }
        session.append("inbox/message", {"id": "m1", "text": "Count the files"})
        session.append("session/renamed", {"title": "Counting"})
        assert view(session, "sessionListMetadata")["blank"]
        opening = session.append("turn/start", {"turn": 1})
        assert view(session, "sessionListMetadata") == {
            "blank": False,
            "last_activity": opening.time,
            "last_prompt": None,
        }
        fork = await host.scope.require(session_store).fork(session.id, cut=before(opening.seq))
        assert view(fork, "sessionListMetadata")["blank"]


async def test_a_name_and_a_choice_of_preset_are_no_activity(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        host.now = iter(range(1_000, 2_000)).__next__
        session = await opened(host)
        assert view(session, "sessionListMetadata")["last_activity"] is None
        session.append("agent-preset/selected", {"preset": "minimal"})
        session.append("session/renamed", {"title": "Mending"})
        assert view(session, "sessionListMetadata")["last_activity"] is None
        prompt(session, "Count the files")
        said = session.hot()[-1].time
        session.append("agent-preset/selected", {"preset": "standard"})
        session.append("session/renamed", {"title": "Counting"})
        assert session.hot()[-1].time > said
        assert view(session, "sessionListMetadata")["last_activity"] == said


async def test_what_is_said_and_where_turns_and_steps_begin_and_end_is_activity(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        host.now = iter(range(1_000, 2_000)).__next__
        session = await opened(host)
        moves: list[tuple[str, dict[str, Any]]] = [
            ("turn/start", {"turn": 1}),
            ("user/message", {"id": "m1", "text": "Count"}),
            ("step/start", {"turn": 1, "step": 1, "model": "scripted:demo"}),
            ("assistant/message", {"text": "3"}),
            ("step/end", {"turn": 1, "step": 1}),
            ("turn/end", {"turn": 1, "outcome": "completed"}),
        ]
        for type_name, data in moves:
            moved = session.append(type_name, data)
            assert view(session, "sessionListMetadata")["last_activity"] == moved.time


async def test_the_last_prompt_is_the_first_line_of_what_was_last_asked(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        for text, shown in [
            ("Count the files\nand the folders", "Count the files"),
            (" \n ", "Count the files"),
            ("\n" + "x" * 81, "x" * 79 + "…"),
            ("Stop", "Stop"),
        ]:
            prompt(session, text)
            assert view(session, "sessionListMetadata")["last_prompt"] == shown


async def test_what_a_parent_sends_is_a_prompt_and_what_a_child_sends_is_none(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await host.scope.require(session_store).create(
            cwd=None, parent_session=SessionId("parent"), origin="subagent"
        )
        prompt(session, "Count the files", sender="parent")
        prompt(session, "I am done", sender="child")
        assert view(session, "sessionListMetadata")["last_prompt"] == "Count the files"
        prompt(session, "A person looks in")
        assert view(session, "sessionListMetadata")["last_prompt"] == "A person looks in"


async def test_tokens_are_summed_in_total_and_for_each_model(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        none = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}
        assert view(session, "tokenUsage") == {**none, "inherited": none, "models": {}}
        for step, model, told in [
            (1, "scripted:demo", {"input_tokens": 10, "output_tokens": 1}),
            (2, "openai:big", {"input_tokens": 20, "output_tokens": 2, "cached_tokens": 5}),
            (3, "openai:big", None),
            (4, "scripted:demo", {"input_tokens": 30, "output_tokens": 3, "cached_tokens": 7}),
        ]:
            ask(session, step, model)
            answer(session, {"text": "", "usage": told} if told else {"text": ""})
        assert view(session, "tokenUsage") == {
            "input_tokens": 60,
            "output_tokens": 6,
            "cached_tokens": 12,
            "inherited": none,
            "models": {
                "scripted:demo": {"input_tokens": 40, "output_tokens": 4, "cached_tokens": 7},
                "openai:big": {"input_tokens": 20, "output_tokens": 2, "cached_tokens": 5},
            },
        }


async def test_the_tokens_of_inherited_events_are_told_beside_the_total(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        source = await opened(host)
        answer(source, {"text": "", "usage": {"input_tokens": 10, "output_tokens": 1}})
        fork = await host.scope.require(session_store).fork(source.id)
        answer(fork, {"text": "", "usage": {"input_tokens": 20, "output_tokens": 2}})
        told = view(fork, "tokenUsage")
        assert (told["input_tokens"], told["output_tokens"]) == (30, 3)
        assert told["inherited"] == {"input_tokens": 10, "output_tokens": 1, "cached_tokens": 0}


async def test_a_request_is_counted_once_though_its_answer_is_told_again(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        ask(session, 1, "scripted:demo")
        told = {"text": "a long answer", "usage": {"input_tokens": 10, "output_tokens": 5}}
        first = answer(session, told)
        shorter = Surface("replace", first.seq, first.seq)
        session.append("assistant/message", told, surface=shorter, sources=(first.seq,))
        assert view(session, "tokenUsage")["input_tokens"] == 10


async def test_the_request_for_a_summary_is_counted_like_any_other(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        prompt(session, "weave")
        ask(session, 1, "acme:loom")
        told = {"text": "wove", "usage": {"input_tokens": 10, "output_tokens": 1}}
        said = answer(session, told)
        summary = {"id": "s", "text": "wove", "usage": {"input_tokens": 7, "output_tokens": 2}}
        replaced = Surface("replace", said.seq, said.seq)
        session.append("history/summary", summary, surface=replaced, sources=(said.seq,))
        assert view(session, "tokenUsage")["models"]["acme:loom"]["input_tokens"] == 17


async def test_an_answer_to_no_known_model_counts_in_the_totals_only(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        usage = {"text": "", "usage": {"input_tokens": 10}}
        answer(session, usage)
        ask(session, 1, "scripted:demo")
        append_unchecked(session, "step/start", {"model": 3})
        answer(session, usage)
        usage_told = view(session, "tokenUsage")
        assert (usage_told["input_tokens"], usage_told["models"]) == (20, {})


async def test_data_that_does_not_fit_its_type_counts_for_nothing(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        unfit: list[Any] = [None, [], {"text": 5}, {"text": "x", "usage": 3}, {"name": []}]
        for data in unfit:
            for type_name in ("user/message", "assistant/message", "tool/start", "step/start"):
                append_unchecked(session, type_name, data)
        assert view(session, "sessionStats")["tools"] == {}
        assert view(session, "tokenUsage")["input_tokens"] == 0
        assert view(session, "sessionListMetadata")["last_prompt"] is None
        assert view(session, "title") is None


async def test_each_fact_is_told_by_one_projection(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        keys = ("sessionListMetadata", "sessionStats", "tokenUsage")
        told = [name for key in keys for name in view(session, key)]
        assert len(told) == len(set(told))
