"""Files are looked into again only after something changed, or while that cannot be known."""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import watchfiles

from heald_skills import watching

if TYPE_CHECKING:
    from tests.plugins.skills.conftest import Library, OpenLibrary, Until


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what was looked at as watched after a moment."""
    monkeypatch.setattr(watching, "_SETTLED_MS", 20)


def watch_of(library: Library) -> watching.Watch:
    (row,) = library.above.mounted
    watch: watching.Watch = row.plugin._watch  # type: ignore[attr-defined]
    return watch


async def settle(library: Library, agent: Any, until: Until) -> None:
    """Have turns until nothing is read for one any more."""
    await library.prompt(agent)
    await until(lambda: watch_of(library).mark)
    await library.prompt(agent)


async def test_while_nothing_changes_nothing_is_read(
    library: Library, until: Until, looked: list[str]
) -> None:
    library.write(library.project, "fold")
    agent = await library.agent()
    await settle(library, agent, until)
    before = len(looked)

    first, second = await library.prompt(agent), await library.prompt(agent)

    assert "- fold:" in first == second
    assert len(looked) == before


Change = Callable[["Library"], object]


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        (lambda here: here.write(here.project, "fold", "Otherwise."), ["fold: Otherwise."]),
        (lambda here: here.write(here.project, "sing"), ["fold: To fold.", "sing: To sing."]),
        (lambda here: here.write(here.user, "sing"), ["fold: To fold.", "sing: To sing."]),
        (lambda here: here.write(here.preset, "fold", "Nearer."), ["fold: Nearer."]),
        (lambda here: shutil.rmtree(here.project / "fold"), []),
        (lambda here: shutil.rmtree(here.project.parent), []),
        (lambda here: here.project.rename(here.project.parent / "away"), []),
        (lambda here: here.project.parent.rename(here.cwd / "away"), []),
    ],
    ids=["edited", "added", "new root", "hidden", "removed", "root", "moved", "parent moved"],
)
async def test_what_changes_is_noticed_wherever_it_is(
    library: Library, until: Until, change: Change, listed: list[str]
) -> None:
    library.write(library.project, "fold")
    agent = await library.agent()
    await settle(library, agent, until)
    mark = watch_of(library).mark

    change(library)
    await until(lambda: watch_of(library).mark is not mark)

    prompt = await library.prompt(agent)
    assert [line[2:] for line in prompt.splitlines() if line.startswith("- ")] == listed


async def test_a_skill_that_is_made_anew_is_watched_again(library: Library, until: Until) -> None:
    file = library.write(library.project, "fold")
    agent = await library.agent()
    await settle(library, agent, until)
    shutil.rmtree(file.parent)
    library.write(library.project, "fold", "Anew.")
    await until(lambda: watch_of(library).mark is None)
    await settle(library, agent, until)
    mark = watch_of(library).mark

    library.write(library.project, "fold", "And again.")
    await until(lambda: watch_of(library).mark is not mark)

    assert "- fold: And again." in await library.prompt(agent)


@pytest.mark.parametrize("linked", ["directory", "file"])
async def test_an_edit_of_a_skill_elsewhere_that_a_link_leads_to_is_noticed(
    library: Library, until: Until, tmp_path: Path, linked: str
) -> None:
    elsewhere = library.write(tmp_path / "elsewhere", "fold")
    library.project.mkdir(parents=True)
    if linked == "directory":
        (library.project / "fold").symlink_to(elsewhere.parent)
    else:
        elsewhere = elsewhere.rename(elsewhere.with_name("shared.md"))
        (library.project / "fold").mkdir()
        (library.project / "fold" / "SKILL.md").symlink_to(elsewhere)
    agent = await library.agent()
    await settle(library, agent, until)
    mark = watch_of(library).mark

    elsewhere.write_text("---\ndescription: Otherwise.\n---\n")
    await until(lambda: watch_of(library).mark is not mark)

    assert "- fold: Otherwise." in await library.prompt(agent)


async def test_what_changes_while_it_is_looked_at_is_noticed(
    library: Library, until: Until
) -> None:
    file = library.write(library.project, "fold")
    watch = watch_of(library)
    roots, files = [library.project], [file]
    watch.want(library.cwd, watching.Wanted.of(roots, files))
    await until(lambda: watch.mark)
    watch.forget(library.cwd)  # what is watched stays watched, and nothing says what for

    with watch.looking() as mark:
        library.write(library.project, "fold", "Otherwise.")
        await until(lambda: watch.mark is not mark)


async def test_the_agents_of_a_row_share_one_watch_which_is_begun_by_the_first_turn(
    library: Library, until: Until, tmp_path: Path
) -> None:
    library.write(library.project, "fold")
    one, other = await library.agent(), await library.agent(tmp_path)
    assert not watch_of(library)._wanted

    await library.prompt(one)
    await settle(library, other, until)

    assert set(watch_of(library)._wanted) == {library.cwd, tmp_path}
    assert "- fold:" in await library.prompt(one)


async def test_where_watching_is_impossible_files_are_looked_at_each_turn_and_it_is_said_once(
    open_library: OpenLibrary,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "awatch", exhausted)
    with caplog.at_level(logging.WARNING, logger="heald_skills"):
        async with open_library() as library:
            library.write(library.project, "fold")
            agent = await library.agent()
            await library.prompt(agent)
            await until(lambda: caplog.records)
            library.write(library.project, "sing")

            assert "- sing:" in await library.prompt(agent)
            assert watch_of(library).mark is None

    (record,) = caplog.records
    assert "looked at each turn: [Errno 28] OS file watch limit reached" in record.getMessage()


async def test_a_row_that_stops_takes_its_watch_along(library: Library, until: Until) -> None:
    library.write(library.project, "fold")
    agent = await library.agent()
    await settle(library, agent, until)
    watch = watch_of(library)
    await agent.dispose()

    await library.above.close()

    assert watch.mark is None
    assert library.above.failed == ()
