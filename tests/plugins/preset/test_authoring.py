"""A person's own presets: made, copied, removed."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from heald import FileUnwritable, Host
from heald.testing import HostFactory
from heald_preset import (
    PresetAuthoring,
    PresetExists,
    PresetInvalid,
    PresetNotFound,
    PresetReadOnly,
    Presets,
    preset_authoring,
    presets,
)

Write = Callable[..., Path]


@pytest.fixture
async def host(heald_host: HostFactory) -> AsyncIterator[Host]:
    """Return a host of the default profile."""
    async with heald_host() as host:
        yield host


@pytest.fixture
def author(host: Host) -> PresetAuthoring:
    """Return what makes presets."""
    return host.scope.require(preset_authoring)


@pytest.fixture
def service(host: Host) -> Presets:
    """Return what reads presets."""
    return host.scope.require(presets)


async def problem_of(service: Presets, preset: str, cwd: Path | None = None) -> str | None:
    """Return what the roster says is wrong with a preset."""
    (found,) = [p for p in await service.roster(cwd) if p.id == preset and not p.shadowed]
    return found.problem


def tree(directory: Path) -> dict[str, tuple[str, int]]:
    """Return what is in a directory: what each file says, and every mode."""
    return {
        str(path.relative_to(directory)): (
            path.read_text() if path.is_file() else "",
            stat.S_IMODE(path.lstat().st_mode),
        )
        for path in directory.rglob("*")
    }


def names(directory: Path) -> list[str]:
    """Return what is in a directory, hidden things too."""
    return sorted(path.name for path in directory.iterdir())


async def test_a_copy_has_the_whole_directory_for_its_owner_alone(
    author: PresetAuthoring, service: Presets, write: Write, project: Path
) -> None:
    root = project / ".heald" / "presets"
    text = '# why\nlabel = "Ours"\norder = 3\ndescription = "d"  # kept\nextends = "minimal"\n'
    file = write("ours", text, root)
    (file.parent / "skills" / "review").mkdir(parents=True)
    (file.parent / "skills" / "review" / "SKILL.md").write_text("look")
    run = file.parent / "skills" / "review" / "run.sh"
    run.write_text("#!/bin/sh")
    run.chmod(0o755)

    made = await author.copy("ours", "mine", project)

    assert tree(made) == {
        "preset.toml": ('# why\ndescription = "d"  # kept\nextends = "minimal"\n', 0o600),
        "skills": ("", 0o700),
        "skills/review": ("", 0o700),
        "skills/review/SKILL.md": ("look", 0o600),
        "skills/review/run.sh": ("#!/bin/sh", 0o700),
    }
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert file.read_text() == text
    assert await problem_of(service, "mine") is None
    assert names(made.parent) == ["mine"]


async def test_the_root_is_made_for_its_owner_alone(
    author: PresetAuthoring, heald_home: Path
) -> None:
    made = await author.copy("minimal", "mine", None)

    assert made == heald_home / "presets" / "mine"
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700


async def test_every_shipped_preset_can_be_copied_and_then_comes_to_the_same(
    author: PresetAuthoring, service: Presets
) -> None:
    for preset in ("standard", "minimal"):
        await author.copy(preset, f"my-{preset}", None)

        mine, theirs = [
            [(row.id, row.plugin, row.config) for row in (await service.resolve(p, None)).rows]
            for p in (f"my-{preset}", preset)
        ]
        assert mine == theirs


async def test_what_links_lead_to_is_copied_in_their_place(
    author: PresetAuthoring, write: Write, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "file").write_text("there")
    file = write("linked", "")
    (file.parent / "skills").symlink_to(elsewhere)
    (file.parent / "again").symlink_to(elsewhere / "deep" / "file")

    made = await author.copy("linked", "mine", None)

    assert not (made / "skills").is_symlink()
    assert (made / "skills" / "deep" / "file").read_text() == "there"
    assert (made / "again").read_text() == "there"
    assert not (made / "again").is_symlink()


@pytest.mark.parametrize(
    "kind", ["itself", "above", "there-and-back", "the-root", "dangling", "pipe"]
)
async def test_what_cannot_be_copied_is_named_and_nothing_is_left_of_the_copy(
    author: PresetAuthoring, write: Write, user: Path, tmp_path: Path, kind: str
) -> None:
    directory = write("odd", "").parent
    (directory / "a").mkdir()
    odd = directory / "a" / "odd"
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "there-and-back":
        (tmp_path / "other").mkdir()
        odd.symlink_to(tmp_path / "other")
        (tmp_path / "other" / "back").symlink_to(directory / "a")
    else:
        targets = {"itself": odd, "above": directory, "the-root": user, "dangling": tmp_path / "no"}
        odd.symlink_to(targets[kind])

    with pytest.raises(PresetInvalid) as caught:
        await author.copy("odd", "mine", None)

    assert str(odd) in caught.value.reason
    assert names(user) == ["odd"]


async def test_links_that_multiply_files_end_somewhere(
    author: PresetAuthoring, write: Write, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heald_preset.copying.MAX_ENTRIES", 200)
    directory = write("many", "").parent
    depth = 20  # each level twice what is below it: a million files
    for level in range(depth):
        (directory / f"{level}").mkdir()
        for name in ("x", "y"):
            (directory / f"{level}" / name).symlink_to(directory / f"{level + 1}")
    (directory / f"{depth}").mkdir()

    with pytest.raises(PresetInvalid, match="more than 200 files"):
        await author.copy("many", "mine", None)

    assert names(user) == ["many"]


async def test_a_copy_never_takes_the_place_of_anything(
    author: PresetAuthoring, write: Write, user: Path, project: Path
) -> None:
    write("mine", "# mine")
    write("ours", "", project / ".heald" / "presets")
    (user / "file").write_text("a file")
    (user / "dangling").symlink_to(user / "nowhere")

    for taken in ("mine", "minimal", "ours", "file", "dangling"):
        with pytest.raises(PresetExists) as caught:
            await author.copy("standard", taken, project)
        assert caught.value.id == taken

    assert (user / "mine" / "preset.toml").read_text() == "# mine"
    assert (user / "file").read_text() == "a file"
    assert names(user) == ["dangling", "file", "mine"]


async def test_an_id_that_is_none_and_a_source_that_is_not_there_are_refused(
    author: PresetAuthoring, heald_home: Path
) -> None:
    with pytest.raises(PresetInvalid, match="cannot be an id"):
        await author.copy("minimal", "../mine", None)
    with pytest.raises(PresetNotFound):
        await author.copy("minimul", "mine", None)

    assert not (heald_home / "presets").exists()


async def test_a_preset_whose_file_cannot_be_read_cannot_be_copied(
    author: PresetAuthoring, write: Write, user: Path
) -> None:
    write("bad", "label =")

    with pytest.raises(PresetInvalid, match="not TOML"):
        await author.copy("bad", "mine", None)

    assert not (user / "mine").exists()


async def test_a_disk_that_takes_no_more_leaves_nothing_of_a_copy(
    author: PresetAuthoring, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)

    with pytest.raises(FileUnwritable, match="No space left on device"):
        await author.copy("minimal", "mine", None)

    assert names(user) == []


async def test_a_new_preset_has_a_file_to_start_from_and_works(
    author: PresetAuthoring, service: Presets
) -> None:
    empty = await author.create("from-nothing", None, None)
    more = await author.create("mine", "standard", None)

    assert tree(empty).keys() == {"preset.toml"}
    assert tree(more)["preset.toml"][1] == 0o600
    mine = [p for p in await service.roster(None) if p.root == "user"]
    assert [(p.id, p.label, p.extends, p.problem) for p in mine] == [
        ("from-nothing", "From nothing", None, None),
        ("mine", "Mine", "standard", None),
    ]
    assert (await service.resolve("from-nothing", None)).rows == ()
    standard = (await service.resolve("standard", None)).rows
    assert (await service.resolve("mine", None)).rows == standard
    assert f"# {', '.join(row.id for row in standard)}." in (more / "preset.toml").read_text()


async def test_what_a_new_file_shows_as_an_example_works_once_it_is_uncommented(
    author: PresetAuthoring, service: Presets
) -> None:
    for base in (None, "standard", "minimal"):
        name = f"mine-{base}".lower()
        made = await author.create(name, base, None)
        file = made / "preset.toml"
        head, tables, example = file.read_text().partition("# [[")
        file.write_text(head + (tables + example).replace("# ", ""))

        await service.check(name, None)

        rows = (await service.resolve(name, None)).rows
        assert rows[-1].disabled if base else [row.id for row in rows] == ["persona"]


async def test_a_new_preset_extends_only_what_is_there(
    author: PresetAuthoring, heald_home: Path
) -> None:
    with pytest.raises(PresetNotFound, match="minimul"):
        await author.create("mine", "minimul", None)

    assert not (heald_home / "presets").exists()


async def test_removing_puts_a_preset_away_where_it_can_be_had_back_from(
    author: PresetAuthoring, service: Presets, write: Write, user: Path
) -> None:
    file = write("mine", 'label = "Mine"')
    (file.parent / "asset").write_text("kept")

    removed = await author.remove("mine", None)

    assert "mine" not in {p.id for p in await service.roster(None)}
    assert (removed.id, removed.default) == ("mine", None)
    assert (removed.kept / "asset").read_text() == "kept"
    removed.kept.rename(user / "mine")
    assert await problem_of(service, "mine") is None


async def test_the_same_id_can_be_made_and_removed_again_and_again(
    author: PresetAuthoring, user: Path
) -> None:
    kept = set()
    for _ in range(3):
        await author.create("mine", None, None)
        kept.add((await author.remove("mine", None)).kept)

    assert len(kept) == 3
    assert all((path / "preset.toml").exists() for path in kept)
    assert names(user) == [".trash"]


async def test_only_the_persons_own_presets_can_be_removed(
    author: PresetAuthoring, write: Write, project: Path
) -> None:
    file = write("ours", "", project / ".heald" / "presets")

    for preset, root in (("minimal", "shipped"), ("ours", "project")):
        with pytest.raises(PresetReadOnly) as caught:
            await author.remove(preset, project)
        assert (caught.value.id, caught.value.root) == (preset, root)
    with pytest.raises(PresetNotFound):
        await author.remove("mine", None)
    assert file.exists()


async def test_a_hidden_preset_of_ones_own_can_be_removed_and_the_other_stays_the_default(
    author: PresetAuthoring, service: Presets, write: Write
) -> None:
    write("standard", "")

    removed = await author.remove("standard", None)

    assert removed.default is None
    assert [(p.id, p.root) for p in await service.roster(None)] == [
        ("standard", "shipped"),
        ("minimal", "shipped"),
    ]


async def test_removing_the_default_clears_it(
    author: PresetAuthoring, service: Presets, write: Write, heald_home: Path
) -> None:
    write("mine", "")
    (heald_home / "heald.toml").write_text("# a remark\n")
    await author.set_default("mine", None)

    removed = await author.remove("mine", None)

    assert removed.default == "standard"
    assert await service.default() == "standard"
    assert (heald_home / "heald.toml").read_text() == "# a remark\n\n"


async def test_a_default_that_another_layer_sets_is_left_and_told(
    heald_host: HostFactory, write: Write, tmp_path: Path
) -> None:
    write("mine", "")
    patch = tmp_path / "patch.toml"
    patch.write_text('[[patch]]\nrow = "preset"\nconfig.merge = { default = "mine" }\n')
    async with heald_host(patches=[patch]) as host:
        removed = await host.scope.require(preset_authoring).remove("mine", None)

    assert removed.default == "mine"


async def test_a_link_to_a_preset_is_put_away_and_what_it_leads_to_stays(
    author: PresetAuthoring, user: Path, tmp_path: Path
) -> None:
    real = tmp_path / "dotfiles" / "mine"
    real.mkdir(parents=True)
    (real / "preset.toml").write_text("")
    (user / "mine").symlink_to(real)

    removed = await author.remove("mine", None)

    assert removed.kept.is_symlink()
    assert (real / "preset.toml").exists()
