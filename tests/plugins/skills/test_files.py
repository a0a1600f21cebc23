"""What a SKILL.md may be, and what is said of one that cannot be used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald_skills import SkillRoot, SkillUnusable
from heald_skills.skill_file import read_skill

if TYPE_CHECKING:
    from tests.plugins.skills.conftest import Library


def write(root: Path, name: str, text: str | bytes) -> Path:
    file = root / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


async def test_a_skill_is_a_directory_whose_file_says_what_it_is_for(library: Library) -> None:
    text = "---\nname: fold\ndescription: >\n  Fold\n  a letter.\nlicense: MIT\n---\n\nTwice.\n"
    write(library.user, "fold", text)

    (skill,) = await library.service.catalogue(library.cwd)

    assert (skill.name, skill.root, skill.directory) == ("fold", "user", library.user / "fold")
    assert skill.description == "Fold a letter."
    assert skill.extra == {"license": "MIT"}
    assert skill.offered
    assert await library.service.body(skill) == "Twice."


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("\ufeff---\ndescription: x\n---\nb", "b"),
        ("---\r\ndescription: x\r\n---\r\nb\r\n", "b"),
        ("---  \ndescription: x\n---\t\nb", "b"),
        ("---\ndescription: x\n---", ""),
        ("---\ndescription: x\n---\na\n---\nb", "a\n---\nb"),
        (b"---\ndescription: x\n---\n\xff", "\N{REPLACEMENT CHARACTER}"),
    ],
)
async def test_the_body_is_what_follows_the_front_matter(
    library: Library, text: str | bytes, body: str
) -> None:
    write(library.user, "fold", text)

    skill = await library.service.find("fold", library.cwd)

    assert skill is not None
    assert skill.problem is None
    assert await library.service.body(skill) == body


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not begin with front matter"),
        ("# Fold\n", "does not begin with front matter"),
        ("----\ndescription: x\n---\n", "does not begin with front matter"),
        ("---\ndescription: x\n", "does not end within 16,384 bytes"),
        (f"---\ndescription: {'x' * 20_000}\n---\n", "does not end within 16,384 bytes"),
        ("---\n---\n", "is empty"),
        ("---\n- a\n- b\n---\n", "is a list"),
        ("---\njust words\n---\n", "is a str"),
        ("---\nname: fold\n---\n", "no `description`"),
        ("---\ndescription: '  '\n---\n", "no `description`"),
        ("---\ndescription: [a]\n---\n", "no `description`"),
        ("---\ndescription: 7\n---\n", "no `description`"),
        ("---\ndescription: a: b\n---\n", "line 2: mapping values are not allowed"),
        ("---\ndescription: x\nwhat: !!python/name:os.system\n---\n", "no YAML"),
        ("---\ndescription: x\nwhat: *what\n---\n", "aliases"),
        (f"---\ndescription: x\nwhat: {'[' * 8_000}\n---\n", "front matter"),
        ("---\ndescription: x\nwhat: .nan\n---\n", "cannot be read"),
        ('---\ndescription: "\\ud800"\n---\n', "front matter"),
        (f"---\ndescription: x\nwhat: {'9' * 5_000}\n---\n", "cannot be read"),
        ("---\ndescription: x\nwhat: 2024-13-45\n---\n", "cannot be read"),
        (b"---\ndescription: \xff\n---\n", "not UTF-8"),
        ("---\nname: unfold\ndescription: x\n---\n", "make them the same"),
        ("---\nname: 7\ndescription: x\n---\n", "`name` is 7, not text"),
    ],
)
async def test_a_file_that_is_no_skill_is_listed_with_the_reason_and_not_offered(
    library: Library, text: str | bytes, problem: str
) -> None:
    write(library.user, "fold", text)

    (skill,) = await library.service.catalogue(library.cwd)

    assert skill.problem is not None
    assert problem in skill.problem
    assert not skill.offered
    with pytest.raises(SkillUnusable, match="fold"):
        await library.service.body(skill)


async def test_aliases_that_would_grow_without_end_are_refused_at_once(library: Library) -> None:
    bomb = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
    write(library.user, "bomb", f"---\ndescription: x\na0: &a0 [x]\n{bomb}---\n")

    (skill,) = await library.service.catalogue(library.cwd)

    assert "aliases" in (skill.problem or "")


async def test_a_description_is_one_line_and_a_long_one_is_cut(library: Library) -> None:
    write(library.user, "fold", f"---\ndescription: |\n  a\n\n  {'b' * 5_000}\n---\n")

    (skill,) = await library.service.catalogue(library.cwd)

    assert skill.description.startswith("a bbb")
    assert skill.description.endswith("b...")
    assert len(skill.description) == 1_024


async def test_a_file_of_50_megabytes_is_refused_without_being_read(library: Library) -> None:
    file = write(library.user, "fold", "---\ndescription: x\n---\n")
    os.truncate(file, 50 * 1024 * 1024)

    (skill,) = await library.service.catalogue(library.cwd)

    assert "52,428,800 bytes, at most 262,144 are read" in (skill.problem or "")


async def test_a_file_that_grew_too_large_since_it_was_listed_is_refused(library: Library) -> None:
    file = write(library.user, "fold", "---\ndescription: x\n---\n")
    (skill,) = await library.service.catalogue(library.cwd)
    os.truncate(file, 50 * 1024 * 1024)

    with pytest.raises(SkillUnusable, match="52,428,800 bytes"):
        await library.service.body(skill)


async def test_a_pipe_in_place_of_the_file_keeps_nobody_waiting(library: Library) -> None:
    (library.user / "fold").mkdir(parents=True)
    os.mkfifo(library.user / "fold" / "SKILL.md")

    (skill,) = await library.service.catalogue(library.cwd)

    assert skill.problem == "its SKILL.md is no regular file"


async def test_links_that_lead_in_a_circle_are_told_and_the_others_are_there(
    library: Library, tmp_path: Path
) -> None:
    write(library.user, "fold", "---\ndescription: x\n---\n")
    (library.user / "circle").symlink_to(library.user / "circle")
    (library.user / "inner").mkdir()
    (library.user / "inner" / "SKILL.md").symlink_to("SKILL.md")
    (library.user / "up").symlink_to(library.user)
    (library.user / "nowhere").symlink_to(tmp_path / "nowhere")

    found = await library.all()

    assert set(found) == {"circle", "fold", "inner"}
    assert found["fold"].offered
    for name in ("circle", "inner"):
        assert "cannot be read" in (found[name].problem or "")


async def test_a_link_to_a_skill_elsewhere_is_a_skill(library: Library, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "fold", "---\ndescription: x\n---\nTwice.\n")
    library.user.mkdir()
    (library.user / "fold").symlink_to(tmp_path / "elsewhere" / "fold")

    (skill,) = await library.service.catalogue(library.cwd)

    assert skill.offered


@pytest.mark.parametrize("name", ["Fold", "fold_it", "fold it", "-fold", "f" * 65, "förm"])
async def test_a_directory_whose_name_cannot_be_typed_is_told_what_to_be_called(
    library: Library, name: str
) -> None:
    write(library.user, name, "---\ndescription: x\n---\n")

    (skill,) = await library.service.catalogue(library.cwd)

    assert "small letters, digits and `-`" in (skill.problem or "")
    assert await library.service.find(name, library.cwd) is None


async def test_names_that_differ_in_case_only_are_the_small_one_and_a_broken_one(
    library: Library,
) -> None:
    for name in ("fold", "Fold"):
        write(library.user, name, "---\ndescription: x\n---\n")
    if len(list(library.user.iterdir())) == 1:
        pytest.skip("the file system takes both for one")

    found = await library.all()

    assert found["fold"].offered
    assert found["Fold"].problem is not None


async def test_of_two_that_say_the_same_name_the_one_whose_directory_is_called_so_is_it(
    library: Library,
) -> None:
    for name in ("alpha", "fold"):
        write(library.user, name, "---\nname: fold\ndescription: x\n---\n")

    found = await library.all()

    assert found["fold"].offered
    assert (
        found["alpha"].problem == "`name` is 'fold' and its directory 'alpha'; make them the same"
    )


async def test_files_hidden_directories_and_those_without_the_file_are_passed_over(
    library: Library,
) -> None:
    write(library.user, ".hidden", "---\ndescription: x\n---\n")
    (library.user / "assets").mkdir()
    (library.user / "README.md").write_text("about")

    assert await library.service.catalogue(library.cwd) == []


@pytest.mark.parametrize("name", ["..", "../fold", "/etc", "", ".", "a/b", "a\0b"])
async def test_no_name_leads_out_of_the_roots(library: Library, name: str) -> None:
    write(library.user.parent, "fold", "---\ndescription: x\n---\n")

    assert await library.service.find(name, library.cwd) is None


@given(
    front=st.one_of(
        st.binary(max_size=200),
        st.text(st.characters(codec="utf-8"), max_size=200).map(str.encode),
        st.text("-:[]{}&*!|>'\"%@`#?, \n\tab01.~", max_size=120).map(str.encode),
    )
)
def test_whatever_a_file_holds_it_is_a_skill_or_has_a_reason(
    tmp_path_factory: pytest.TempPathFactory, front: bytes
) -> None:
    root = tmp_path_factory.mktemp("skills")
    write(root, "fold", b"---\n" + front + b"\n---\nbody")

    skill = read_skill(SkillRoot("user", root), "fold")

    assert skill is not None
    assert (skill.problem is None) == bool(skill.description)
    skill.description.encode()
