"""Where skills are looked for, and which of two with one name it is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heald import CompositionError, NoConfig, Plugin, Row, implements
from heald_skills import SkillRoot, SkillRootUnreadable, skill_roots

if TYPE_CHECKING:
    from tests.plugins.conftest import Install
    from tests.plugins.skills.conftest import Library, OpenLibrary


async def test_roots_are_the_presets_the_projects_yours_and_those_of_packages(
    open_library: OpenLibrary, install: Install, tmp_path: Path
) -> None:
    class PackagePlugin(Plugin[NoConfig]):
        @implements(skill_roots)
        def bring(self) -> Iterable[SkillRoot]:
            return (SkillRoot("acme", tmp_path / "acme"),)

    install(acme=PackagePlugin)
    async with open_library(Row("acme", "acme")) as library:
        roots = (library.preset, library.project, library.user, tmp_path / "acme")
        for number, root in enumerate(roots):
            library.write(root, "same")
            library.write(root, f"only-{number}")

        found = await library.service.catalogue(library.cwd)

    same = [(skill.root, skill.hidden) for skill in found if skill.name == "same"]
    assert same == [("preset mine", False), ("project", True), ("user", True), ("acme", True)]
    assert len([skill for skill in found if skill.offered]) == 5


async def test_a_preset_has_the_skills_of_what_it_extends_after_its_own(
    open_library: OpenLibrary, tmp_path: Path
) -> None:
    async with open_library() as library:
        chain = [tmp_path / name for name in ("nearest", "middle", "base")]
        above = await library.host.mount("preset nearest", [Row("skills", "skills")], chain)
        for place in chain:
            library.write(place / "skills", "same")
        library.write(tmp_path / "base" / "skills", "only")
        service = type(library)(
            library.host, above, library.preset, library.project, library.user, library.cwd
        ).service

        found = await service.catalogue(None)

    assert [(skill.name, skill.root, skill.hidden) for skill in found] == [
        ("same", "preset nearest", False),
        ("same", "preset middle", True),
        ("only", "preset base", False),
        ("same", "preset base", True),
    ]


async def test_one_that_is_broken_hides_the_later_one_instead_of_being_replaced_silently(
    library: Library,
) -> None:
    library.write(library.project, "fold").write_text("no front matter")
    library.write(library.user, "fold")

    first, second = await library.service.catalogue(library.cwd)

    assert (first.root, first.offered, second.hidden) == ("project", False, True)
    assert await library.service.find("fold", library.cwd) == first


async def test_a_session_without_a_directory_has_no_skills_of_a_project(library: Library) -> None:
    library.write(library.project, "fold")
    library.write(library.user, "sing")

    assert [skill.name for skill in await library.service.catalogue(None)] == ["sing"]


async def test_a_project_may_keep_its_skills_elsewhere_too(open_library: OpenLibrary) -> None:
    config = {"project": [".heald/skills", "tools/skills"]}
    async with open_library(config=config) as library:
        library.write(library.cwd / "tools" / "skills", "fold")
        library.write(library.project, "sing")

        assert set(await library.all()) == {"fold", "sing"}


@pytest.mark.parametrize("folder", ["/etc", "../skills", "a/../../b", ""])
async def test_a_projects_skills_are_inside_it(open_library: OpenLibrary, folder: str) -> None:
    with pytest.raises(CompositionError, match=r"config\.project"):
        async with open_library(config={"project": [folder]}):
            pass


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
async def test_a_root_that_cannot_be_read_is_an_error_that_names_it(library: Library) -> None:
    library.write(library.user, "fold")
    library.user.chmod(0)
    try:
        with pytest.raises(SkillRootUnreadable, match="user skills"):
            await library.service.catalogue(library.cwd)
    finally:
        library.user.chmod(0o700)


async def test_a_root_that_leads_in_a_circle_is_an_error_that_names_it(library: Library) -> None:
    library.user.symlink_to(library.user)

    with pytest.raises(SkillRootUnreadable, match="user skills"):
        await library.service.catalogue(library.cwd)
