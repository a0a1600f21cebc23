"""A setting that a verb writes into the home's file, beside what a person wrote there."""

from __future__ import annotations

import stat
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import (
    CompositionError,
    FileUnwritable,
    clear_setting,
    edit_toml,
    read_layer,
    stack,
    write_setting,
)

ADDED = '[[patch]]\nrow = "a"\noptional = true\nconfig.merge = { key = "new" }\n'


def written(home: Path, before: str) -> str:
    """Write a setting into a home's file, and return what the file is then."""
    (home / "heald.toml").write_bytes(before.encode())
    assert write_setting(home, "a", "key", "new") == home / "heald.toml"
    return (home / "heald.toml").read_bytes().decode()


def cleared(home: Path, before: str) -> str:
    """Clear a setting of a home's file, and return what the file is then."""
    (home / "heald.toml").write_bytes(before.encode())
    clear_setting(home, "a", "key", "old")
    return (home / "heald.toml").read_bytes().decode()


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"

    file = write_setting(home, "a", "key", "new")

    assert file.read_text() == ADDED
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert [path.name for path in home.iterdir()] == ["heald.toml"]


@pytest.mark.parametrize(
    "before",
    [
        '# mine\nprofile = "x"  # why\n',
        '[[rows]]\nid = "a"\nplugin = "p"\nconfig = { key = "old" }\n',
        '[[patch]]\nrow = "b"\nconfig.merge = { key = "old" }\n',
        '[[patch]]\nrow = "a"\ndisabled = false\n',
        '[[patch]]\nrow = "a"\nwhen = { env = "CI" }\nconfig.merge = { key = "old" }\n',
        '[[patch]]\nrow = "a"\ndisabled = false\n\n# q\n[[rows]]\nid = "q"\nplugin = "p"\n',
    ],
)
def test_a_patch_is_added_behind_everything_else(tmp_path: Path, before: str) -> None:
    assert written(tmp_path, before) == f"{before}\n{ADDED}"


def test_a_file_without_an_end_of_line_gets_one(tmp_path: Path) -> None:
    assert written(tmp_path, 'profile = "x"') == f'profile = "x"\n\n{ADDED}'


MERGED = """\
# before
[[patch]]  # one
row = "a"
config.merge = { other = 1, key = "old" }  # behind

# between
[[rows]]
id = "q"
plugin = "p"

# last
[[patch]]
row = "q"
disabled = true
"""


@pytest.mark.parametrize(
    "before",
    [
        MERGED,
        MERGED.replace("\n", "\r\n"),
        MERGED.replace("config.merge", "config"),
        MERGED.replace('config.merge = { other = 1, key = "old" }', 'config.merge.key = "old"'),
        '[[patch]]\nrow = "a"\n[patch.config.merge]\nkey = "old" # mine\n# end\n',
        'patch = [{ row = "a", config = { merge = { key = "old" } } }]\n',
        '[[patch]]\nrow = "a"\nconfig = { x = "o" }\n\n[[patch]]\nrow = "a"\nconfig.key = "old"\n',
    ],
)
def test_a_patch_that_is_there_is_changed_and_nothing_else(tmp_path: Path, before: str) -> None:
    assert written(tmp_path, before) == before.replace('"old"', '"new"')


def test_what_is_written_counts_even_after_a_patch_under_a_condition(tmp_path: Path) -> None:
    row = '[[rows]]\nid = "a"\nplugin = "p"\n'
    patch = '[[patch]]\nrow = "a"\nconfig = { key = "old" }\n'
    written(tmp_path, row + patch + patch.replace("config", 'when = { env = "CI" }\nconfig'))

    (only,) = stack([read_layer(tmp_path / "heald.toml")], {"CI": "1"}).rows

    assert only.config == {"key": "new"}


def test_writing_what_is_there_already_leaves_the_file_alone(tmp_path: Path) -> None:
    file = write_setting(tmp_path, "a", "key", "new")
    before = file.stat()

    write_setting(tmp_path, "a", "key", "new")

    assert file.stat().st_ino == before.st_ino
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_rights_and_links_of_the_file_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "heald.toml"
    real.parent.mkdir()
    real.write_text('profile = "x"\n')
    real.chmod(0o640)
    home = tmp_path / "home"
    home.mkdir()
    (home / "heald.toml").symlink_to(real)

    write_setting(home, "a", "key", "new")

    assert (home / "heald.toml").readlink() == real
    assert real.read_text() == f'profile = "x"\n\n{ADDED}'
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_file_that_is_no_layer_is_refused_and_stays(tmp_path: Path) -> None:
    for text in ("profile =", 'profil = "x"'):
        (tmp_path / "heald.toml").write_text(text)

        with pytest.raises(CompositionError):
            write_setting(tmp_path, "a", "key", "new")

        assert (tmp_path / "heald.toml").read_text() == text


def test_a_form_that_cannot_be_kept_is_refused_and_stays(tmp_path: Path) -> None:
    text = 'patch = [{ row = "b", disabled = true }]\n'
    (tmp_path / "heald.toml").write_text(text)

    with pytest.raises(FileUnwritable, match="edit it by hand"):
        write_setting(tmp_path, "a", "key", "new")

    assert (tmp_path / "heald.toml").read_text() == text


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    with pytest.raises((FileUnwritable, CompositionError)) as caught:
        write_setting(tmp_path / "home", "a", "key", "new")

    assert str(tmp_path / "home" / "heald.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ADDED.replace("new", "old"), ""),
        (
            MERGED,
            MERGED.replace(', key = "old"', " "),
        ),
        (
            MERGED.replace("other = 1, ", ""),
            "# before\n\n" + MERGED[MERGED.index("# between") :],
        ),
        (
            '[[patch]]\nrow = "a"\ndisabled = false\nconfig.merge = { key = "old" }\n',
            '[[patch]]\nrow = "a"\ndisabled = false\n',
        ),
        (
            '[[rows]]\nid = "a"\nplugin = "p"\nconfig = { key = "old", x = 1 }\n',
            '[[rows]]\nid = "a"\nplugin = "p"\nconfig = {  x = 1 }\n',
        ),
        (ADDED, ADDED),
        ('[[patch]]\nrow = "b"\nconfig = { key = "old" }\n', None),
    ],
)
def test_clearing_takes_the_setting_out_wherever_it_has_that_value(
    tmp_path: Path, before: str, after: str | None
) -> None:
    assert cleared(tmp_path, before) == (before if after is None else after)


def test_clearing_where_there_is_no_file_makes_none(tmp_path: Path) -> None:
    clear_setting(tmp_path, "a", "key", "old")

    assert [*tmp_path.iterdir()] == []


def test_what_looks_like_a_table_inside_a_text_is_not_touched(tmp_path: Path) -> None:
    before = dedent('''\
        [[patch]]
        row = "p"
        config.merge.text = """
        Write this:
        [[patch]]
        row = "a"
        config.merge = { key = "old" }
        """
        ''')

    assert written(tmp_path, before) == f"{before}\n{ADDED}"


@pytest.mark.parametrize("text", ["x = 1\n{}", "{}x = 1\n"])
def test_an_edit_leaves_texts_alone_that_look_like_tables(text: str) -> None:
    value = 't = """\n[[rows]]\nx = 1\n"""\n'

    assert edit_toml(text.format(value), lambda document: document.pop("x", None)) == value


def test_an_edit_that_no_piece_can_make_alone_is_refused() -> None:
    def change(document: dict[str, list[object]]) -> None:
        del document.get("patch", [])[1:]

    with pytest.raises(ValueError, match="something else"):
        edit_toml('[[patch]]\nrow = "a"\n[[patch]]\nrow = "b"\n', change)


TABLES = st.lists(
    st.sampled_from(
        [
            '[[rows]]\nid = "q"\nplugin = "p"\n',
            '[[patch]]\nrow = "a"\nconfig.merge = { key = "old", x = 1 } # x\n',
            '[[patch]]\nrow = "a"\nconfig = { key = "old" }\n',
            '[[patch]]\nrow = "a"\nwhen = { env = "CI" }\nconfig = { key = "old" }\n',
            '[[patch]]\nrow = "a"\ndisabled = true\n[patch.config.merge]\ny = [1, 2]\n',
            '[[patch]]\nrow = "b"\nconfig = { key = "old" }\n',
            "# a remark\n",
            "\n",
        ]
    ),
    max_size=6,
)


@given(head=st.sampled_from(["", 'profile = "x"\n']), tables=TABLES)
def test_whatever_the_file_says_the_setting_holds_and_every_remark_is_kept(
    tmp_path_factory: pytest.TempPathFactory, head: str, tables: list[str]
) -> None:
    home = tmp_path_factory.mktemp("home")
    row = '[[rows]]\nid = "a"\nplugin = "p"\n'
    text = head + row + "".join(tables).replace('id = "q"', "id = 'q'", 1)
    if text.count("plugin") > 2:  # an id is taken once
        return

    after = written(home, text)

    for env in ({}, {"CI": "1"}):
        layer = read_layer(home / "heald.toml", keys=("profile",))
        patches = [p for p in layer.patches if p["row"] != "b"]
        (mine,) = stack([type(layer)("x", layer.rows[:1], patches)], env).rows
        assert mine.config["key"] == "new"
    assert after.count("#") == text.count("#")
    assert after.startswith(head)
