"""Where sessions are, and what a list makes of whatever else is there."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

from pathlib import Path

import pytest

from heald_persistence import SessionDamaged, StorageUnavailable
from heald_persistence.layout import name_of
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import ODD_IDS, make_events, make_header, read_all, store
from heald_session import LogOffset, SessionId, SessionIdTaken


@pytest.mark.parametrize("odd", ODD_IDS, ids=ascii)
def test_the_name_of_a_directory_is_one_plain_path_segment(odd: str) -> None:
    name = name_of(SessionId(odd))
    assert name.isascii()
    assert name.isprintable()
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name) <= 100


def test_a_plain_id_is_its_own_name_and_no_other_id_has_it() -> None:
    assert name_of(SessionId("a-B_9")) == "a-B_9"
    assert name_of(SessionId("x" * 100)) == "x" * 100
    names = [name_of(SessionId(odd)) for odd in ("x" * 101, "a b", "a\n", "~", *ODD_IDS)]
    assert all(name.startswith("~") for name in names)


async def test_garbage_under_the_root_is_listed_with_its_reason_and_hides_nothing(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1), "good")
    await store(backend, make_events(1), "wrong-id")
    (root / "wrong-id").rename(root / "moved")
    (root / "empty").mkdir()
    (root / "file").write_text("hello")
    (root / "link").symlink_to(root / "good")
    for name, text in (
        ("not-json", "{"),
        ("not-a-header", '{"header": {}}'),
        ("no-cut", '{"header": {"version": 1, "id": "no-cut", "log_id": "", "created_at": 1}}'),
        ("binary", "\x00\x01"),
    ):
        (root / name).mkdir()
        (root / name / "session.json").write_text(text)
    listed = {stored.name: stored for stored in await backend.list()}
    assert listed["good"].problem is None
    assert listed["good"].header is not None
    problems = {name: stored.problem or "" for name, stored in listed.items() if name != "good"}
    assert problems.keys() == {
        "binary",
        "empty",
        "file",
        "link",
        "moved",
        "no-cut",
        "not-a-header",
        "not-json",
    }
    assert all(problems.values())
    assert "session 'wrong-id'" in problems["moved"]
    assert "missing" in problems["empty"]
    assert "not a session" in problems["file"]
    assert len(await read_all(backend, "good")) == 1
    for name in problems.keys() - {"link"}:
        with pytest.raises(SessionDamaged):
            await backend.read(SessionId(name))


async def test_a_cut_without_a_seed_is_a_problem(backend: LocalPersistence, root: Path) -> None:
    await store(backend, make_events(1))
    facts = root / "one" / "session.json"
    facts.write_bytes(facts.read_bytes().replace(b'count":0', b'count":1'))
    (stored,) = await backend.list()
    assert "inherited" in (stored.problem or "")


async def test_sessions_in_the_making_are_not_listed(backend: LocalPersistence, root: Path) -> None:
    (root / ".one.12345678").mkdir(parents=True)
    assert list(await backend.list()) == []


async def test_no_root_is_an_empty_list(backend: LocalPersistence, root: Path) -> None:
    assert list(await backend.list()) == []
    assert not root.exists()


async def test_a_root_that_is_a_file_is_said_to_be_unusable(
    backend: LocalPersistence, root: Path
) -> None:
    root.write_text("")
    with pytest.raises(StorageUnavailable, match="HEALD_HOME"):
        await backend.list()


@pytest.mark.parametrize("occupant", ["directory", "file", "dangling link"])
async def test_whatever_has_a_sessions_name_is_left_in_peace(
    backend: LocalPersistence, root: Path, occupant: str
) -> None:
    root.mkdir()
    writer = await backend.create(make_header(), LogOffset(0))
    writer.append(make_events(1))
    place = root / "one"
    if occupant == "directory":
        place.mkdir()
    elif occupant == "file":
        place.write_text("mine")
    else:
        place.symlink_to(root / "nowhere")
    with pytest.raises(SessionIdTaken):
        await writer.flush()
    assert writer.flushed == 0
    await writer.close()
    assert list(root.iterdir()) == [place]
    assert not place.is_file() or place.read_text() == "mine"
