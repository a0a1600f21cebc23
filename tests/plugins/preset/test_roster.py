"""Which presets there are, where they come from, and what is wrong with those that are broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from heald import Host, Row
from heald_preset import (
    Preset,
    PresetInvalid,
    PresetNotFound,
    PresetRootUnreadable,
    Presets,
    presets,
)
from heald_preset.documents import Document, read_document

Write = Callable[..., Path]
OpenPresets = Callable[..., AbstractAsyncContextManager[Host]]


def row(word: str, *, name: str = "word", plugin: str = "word", fail: bool = False) -> str:
    """Make a preset's row that contributes a word."""
    config = f'{{ word = "{word}", fail = {str(fail).lower()} }}'
    return f'[[rows]]\nid = "{name}"\nplugin = "{plugin}"\nconfig = {config}\n'


async def named(service: Presets, name: str, cwd: Path | None = None) -> Preset:
    """Return the entry of an id that a session would get."""
    return next(p for p in await service.roster(cwd) if p.id == name and not p.shadowed)


async def test_a_preset_is_described_by_its_file(
    service: Presets, user: Path, write: Write
) -> None:
    write("mine", 'label = "Mine"\ndescription = "What I like"\norder = 3\n')
    write("plain", "")

    mine, *_, plain = await service.roster(None)

    assert mine == Preset("mine", "user", user / "mine", "Mine", "What I like", 3)
    assert (plain.id, plain.label, plain.order) == ("plain", "plain", 100)


async def test_the_roots_are_shipped_packages_project_and_user_and_the_first_wins(
    open_presets: OpenPresets, project: Path, user: Path, write: Write
) -> None:
    package, own = project / "package", project / ".heald" / "presets"
    for root in (package, own, user):
        write("standard", f'label = "{root.name}"', root)
        write("shared", "", root)
    write("ours", "", own)
    write("ours", "", user)

    async with open_presets(Row("roots", "roots", {"word": str(package)})) as host:
        roster = await host.scope.require(presets).roster(project)

    def roots_of(name: str) -> list[tuple[str, bool]]:
        return [(p.root, p.shadowed) for p in roster if p.id == name]

    assert sorted(roots_of("standard")) == [
        ("acme", True),
        ("project", True),
        ("shipped", False),
        ("user", True),
    ]
    assert roots_of("shared") == [("acme", False), ("project", True), ("user", True)]
    assert roots_of("ours") == [("project", False), ("user", True)]


async def test_a_project_preset_is_only_seen_from_its_project(
    service: Presets, project: Path, write: Write
) -> None:
    write("ours", "", project / ".heald" / "presets")

    assert (await named(service, "ours", project)).root == "project"
    assert "ours" not in {p.id for p in (await service.roster(None))}
    with pytest.raises(PresetNotFound):
        (await service.resolve("ours", project.parent))


async def test_what_is_made_edited_or_deleted_meanwhile_is_seen_by_the_next_read(
    service: Presets, write: Write
) -> None:
    assert "mine" not in {p.id for p in (await service.roster(None))}

    file = write("mine", 'label = "One"')
    assert (await named(service, "mine")).label == "One"

    write("mine", 'label = "Two"')
    assert (await named(service, "mine")).label == "Two"

    file.unlink()
    file.parent.rmdir()
    assert "mine" not in {p.id for p in (await service.roster(None))}


async def test_an_absent_root_is_empty(service: Presets, project: Path) -> None:
    assert {p.root for p in (await service.roster(project))} == {"shipped"}


@pytest.mark.parametrize("kind", ["file", "loop"])
async def test_a_root_that_cannot_be_read_is_an_error(
    service: Presets, heald_home: Path, kind: str
) -> None:
    path = heald_home / "presets"
    if kind == "file":
        path.write_text("not a directory")
    else:
        path.symlink_to(path)

    with pytest.raises(PresetRootUnreadable, match="user presets in") as caught:
        (await service.roster(None))

    assert caught.value.path == path


async def test_files_and_hidden_directories_in_a_root_are_no_presets(
    service: Presets, user: Path
) -> None:
    (user / "README.md").write_text("hello")
    (user / ".git").mkdir()

    assert {p.root for p in (await service.roster(None))} == {"shipped"}


@pytest.mark.parametrize(
    "name", ["Mine", "-mine", "my_preset", "my preset", "mine.toml", "ünïcode", "mine\n"]
)
async def test_a_directory_whose_name_is_no_id_is_listed_with_the_reason_and_refused(
    service: Presets, write: Write, name: str
) -> None:
    write(name, "")

    problem = (await named(service, name)).problem

    assert problem is not None
    assert f"{name!r} cannot be an id" in problem
    with pytest.raises(PresetInvalid) as refused:
        await service.seat(name, None)
    assert refused.value.reason == problem


BROKEN = {
    "unparsable": ("label = ", "not TOML"),
    "not-text": ("\ud800", "not UTF-8"),
    "unknown-key": ('lable = "x"', "did you mean 'label'?"),
    "wrong-type": ('order = "first"', "order: expected int, got 'first'"),
    "flag-for-order": ("order = true", "order: expected int, got True"),
    "unknown-plugin": ('[[rows]]\nid = "a"\nplugin = "wurd"', "did you mean 'word'?"),
    "bad-config": (
        '[[rows]]\nid = "a"\nplugin = "word"\nconfig = { word = "x", fial = true }',
        "did you mean 'fail'?",
    ),
    "unknown-base": ('extends = "standart"', "did you mean 'standard'?"),
    "no-plugin": ('[[rows]]\nid = "a"', "plugin: expected a value, got nothing"),
    "missing-row": (
        'extends = "minimal"\n[[patch]]\nrow = "shel"\ndisabled = true',
        "did you mean 'shell'?",
    ),
    "taken-id": (
        '[[rows]]\nid = "a"\nplugin = "word"\n[[rows]]\nid = "a"\nplugin = "word"',
        "the id is taken",
    ),
    "unset-variable": (
        '[[rows]]\nid = "a"\nplugin = "word"\nconfig = { word = "${env:WORD}" }',
        "environment variable WORD is not set",
    ),
    "extends-itself": ('extends = "extends-itself"', "extends-itself -> extends-itself"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_preset_is_listed_with_one_reason_and_refused_with_it(
    service: Presets, write: Write, name: str
) -> None:
    text, words = BROKEN[name]
    file = write(name, "")
    file.write_bytes(text.encode(errors="surrogatepass"))

    problem = (await named(service, name)).problem

    assert problem is not None
    assert words in problem
    assert str(file) in problem
    with pytest.raises(PresetInvalid) as refused:
        await service.seat(name, None)
    assert (refused.value.id, refused.value.reason) == (name, problem)
    with pytest.raises(PresetInvalid) as unresolved:
        (await service.resolve(name, None))
    assert unresolved.value.reason == problem


async def test_every_fault_of_a_preset_is_in_its_reason(service: Presets, write: Write) -> None:
    file = write("mine", row("a", plugin="wurd") + row("b", name="other", plugin="vice"))

    reason = (await named(service, "mine")).problem

    assert reason == (
        f"{file}: row word: plugin: no plugin 'wurd'; did you mean 'word'?; "
        f"{file}: row other: plugin: no plugin 'vice'; did you mean 'voice'?"
    )


async def test_a_directory_without_a_file_and_a_dangling_link_are_listed_as_broken(
    service: Presets, user: Path
) -> None:
    (user / "empty").mkdir()
    (user / "dangling").symlink_to(user / "nowhere")

    for name in ("empty", "dangling"):
        assert "preset.toml: cannot be read" in ((await named(service, name)).problem or "")


async def test_directories_that_are_links_in_a_circle_are_listed_as_broken(
    service: Presets, user: Path
) -> None:
    (user / "loop").symlink_to(user / "loop")
    (user / "to").symlink_to(user / "fro")
    (user / "fro").symlink_to(user / "to")
    (user / "inside").mkdir()
    (user / "inside" / "preset.toml").symlink_to(user / "inside" / "preset.toml")

    for name in ("loop", "to", "fro", "inside"):
        assert "Too many levels of symbolic links" in ((await named(service, name)).problem or "")
        with pytest.raises(PresetInvalid, match="Too many levels"):
            await service.seat(name, None)


async def test_a_preset_may_be_a_link_to_a_directory_elsewhere(
    service: Presets, user: Path, write: Write, tmp_path: Path
) -> None:
    write("real", row("hello"), tmp_path)
    (user / "linked").symlink_to(tmp_path / "real")

    assert (await named(service, "linked")).problem is None


@pytest.fixture
def _shut(user: Path) -> Iterator[None]:
    """Let nobody read the person's root for the length of the test."""
    user.chmod(0)
    yield
    user.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.usefixtures("_shut")
async def test_a_root_that_may_not_be_read_is_an_error(service: Presets) -> None:
    with pytest.raises(PresetRootUnreadable, match="Permission denied"):
        await service.roster(None)


async def test_a_file_is_read_once_for_one_question(
    service: Presets, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("bad", "=")
    write("base", row("a"))
    for name in ("one", "two"):
        write(name, 'extends = "base"')
        write(f"bad-{name}", 'extends = "bad"')
    read: list[str] = []

    def reading(file: str) -> Document:
        read.append(Path(file).parent.name)
        return read_document(file)

    monkeypatch.setattr("heald_preset.roster.read_document", reading)

    await service.roster(None)

    assert sorted(read) == [
        *("bad", "bad-one", "bad-two", "base", "minimal", "one", "standard", "two")
    ]


async def test_a_circle_of_presets_is_named_whole(service: Presets, write: Write) -> None:
    write("a", 'extends = "b"')
    write("b", 'extends = "c"')
    write("c", 'extends = "b"')

    assert "presets extend each other: b -> c -> b" in ((await named(service, "a")).problem or "")
    assert "presets extend each other: c -> b -> c" in ((await named(service, "c")).problem or "")


async def test_one_broken_preset_leaves_the_others_usable(service: Presets, write: Write) -> None:
    write("bad", "=")
    write("good", row("hello"))

    assert (await named(service, "good")).problem is None
    seat = await service.seat("good", None)
    await seat.release()


async def test_extending_adds_patches_through_several_levels_and_shows_origins(
    service: Presets, project: Path, write: Write
) -> None:
    base = write("base", row("one") + row("two", name="other"))
    patch = '[[patch]]\nrow = "word"\nconfig.merge = { word = "uno" }'
    middle = write("middle", f'extends = "base"\n{patch}', project / ".heald" / "presets")
    patch = '[[patch]]\nrow = "other"\ndisabled = true'
    top = write("top", f'extends = "middle"\n{row("x", name="new")}\n{patch}')

    word, other, new = (await service.resolve("top", project)).rows

    assert (word.config, other.disabled, new.layer) == (
        {"word": "uno", "fail": False},
        True,
        str(top),
    )
    assert word.origin_of("config.word") == str(middle)
    assert word.origin_of("config.fail") == str(base)
    assert other.origin_of("disabled") == str(top)


async def test_changing_the_base_changes_what_extends_it(service: Presets, write: Write) -> None:
    write("base", row("one"))
    write("top", 'extends = "base"')

    write("base", row("two"))

    assert (await service.resolve("top", None)).rows[0].config["word"] == "two"


async def test_a_hidden_preset_extends_the_one_that_hides_it(
    service: Presets, write: Write
) -> None:
    write("minimal", 'extends = "minimal"')

    (hidden,) = [p for p in (await service.roster(None)) if p.root == "user"]

    assert hidden.shadowed
    assert "extend each other" not in (hidden.problem or "")


async def test_a_preset_that_names_nothing_is_refused_with_the_ids_there_are(
    service: Presets, write: Write
) -> None:
    write("mine", "")
    write("Not An Id", "")

    with pytest.raises(PresetNotFound) as caught:
        await service.seat("mime", None)

    assert caught.value.known == ("mine", "minimal", "standard")
    assert "did you mean 'mine'?" in str(caught.value)


async def test_a_default_that_names_nothing_is_refused_when_used(open_presets: OpenPresets) -> None:
    async with open_presets(default="gone") as host:
        service = host.scope.require(presets)

        assert (await service.default()) == "gone"
        with pytest.raises(PresetNotFound, match="no preset 'gone'") as caught:
            await service.seat(None, None)

    assert caught.value.known == ("minimal", "standard")


async def test_a_pipe_in_the_place_of_a_preset_is_listed_as_broken_and_holds_nobody(
    service: Presets, user: Path
) -> None:
    (user / "piped").mkdir()
    os.mkfifo(user / "piped" / "preset.toml")

    assert "is not an ordinary file" in ((await named(service, "piped")).problem or "")
    with pytest.raises(PresetInvalid, match="ordinary file"):
        await service.seat("piped", None)
