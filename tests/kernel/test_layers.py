"""Documents in TOML, and what a stack of them comes to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from heald import CompositionError, Fault, Layer, Row, Stack, read_layer, stack

Write = Callable[[str, str], Path]


def faults_of(call: Callable[[], object]) -> tuple[Fault, ...]:
    with pytest.raises(CompositionError) as caught:
        call()
    return caught.value.faults


def stacked(write: Write, *texts: str, env: Mapping[str, str] | None = None) -> Stack:
    """Stack documents named 0.toml, 1.toml, ..."""
    paths = [write(f"{n}.toml", text) for n, text in enumerate(texts)]
    return stack([read_layer(path, name=path.name) for path in paths], env or {})


BASE = """
    [[rows]]
    id = "a"
    plugin = "one"
    [rows.config]
    size = 1
    deep = {x = 1, y = [1, 2], z = {}}

    [[rows]]
    id = "b"
    plugin = "two"
"""


def test_rows_come_in_order_with_the_layer_that_inserted_them(write: Write) -> None:
    more = """
        [[rows]]
        id = "c"
        plugin = "one"
        disabled = true
        [[rows]]
        id = "d"
        plugin = "one"
        after = "a"
    """
    rows = stacked(write, BASE, more).rows
    assert [(row.id, row.plugin, row.disabled, row.layer) for row in rows] == [
        ("a", "one", False, "0.toml"),
        ("d", "one", False, "1.toml"),
        ("b", "two", False, "0.toml"),
        ("c", "one", True, "1.toml"),
    ]
    assert rows[0].config == {"size": 1, "deep": {"x": 1, "y": [1, 2], "z": {}}}
    assert rows[1].config == {}


def test_a_patch_replaces_a_field_and_every_field_remembers_who_wrote_it(write: Write) -> None:
    patch = """
        [[patch]]
        row = "a"
        plugin = "other"
        config = {size = 2}
        [[patch]]
        row = "b"
        disabled = true
    """
    a, b = stacked(write, BASE, patch).rows
    assert (a.plugin, a.config) == ("other", {"size": 2})
    assert b.disabled
    assert a.origins == {
        "plugin": "1.toml",
        "disabled": "0.toml",
        "config": "1.toml",
        "config.size": "1.toml",
    }
    assert (b.origin_of("disabled"), b.origin_of("plugin")) == ("1.toml", "0.toml")


def test_config_merge_changes_what_it_names_and_leaves_the_rest(write: Write) -> None:
    patch = """
        [[patch]]
        row = "a"
        [patch.config.merge]
        new = true
        deep = {x = 2, z = {w = 1}}
    """
    row = stacked(write, BASE, patch).rows[0]
    assert row.config == {"size": 1, "new": True, "deep": {"x": 2, "y": [1, 2], "z": {"w": 1}}}
    assert row.origin_of("config.size") == "0.toml"
    assert row.origin_of("config.new") == "1.toml"
    assert row.origin_of("config.deep.x") == "1.toml"
    assert row.origin_of("config.deep.y[1]") == "0.toml"
    assert row.origin_of("config.deep.z.w") == "1.toml"
    assert "config.deep.z" not in row.origins


def test_a_merged_value_takes_the_place_of_a_table_and_the_other_way(write: Write) -> None:
    patch = '[[patch]]\nrow = "a"\nconfig.merge = {deep = 1, size = {is = "a table"}}'
    row = stacked(write, BASE, patch).rows[0]
    assert row.config == {"deep": 1, "size": {"is": "a table"}}
    assert row.origins.keys() == {"plugin", "disabled", "config", "config.deep", "config.size.is"}


def test_a_setting_that_is_called_merge_can_be_written(write: Write) -> None:
    row = stacked(write, BASE, '[[patch]]\nrow = "a"\nconfig = {merge = true, size = 3}').rows[0]
    assert row.config == {"merge": True, "size": 3}


def test_a_later_layer_patches_what_an_earlier_one_patched_or_inserted(write: Write) -> None:
    one = '[[rows]]\nid = "c"\nplugin = "x"\n[[patch]]\nrow = "c"\nplugin = "y"'
    two = '[[patch]]\nrow = "c"\nplugin = "z"\n[[patch]]\nrow = "a"\ndisabled = true'
    rows = {row.id: row for row in stacked(write, BASE, one, two).rows}
    assert (rows["c"].plugin, rows["c"].origin_of("plugin"), rows["c"].layer) == (
        "z",
        "2.toml",
        "1.toml",
    )
    assert rows["a"].disabled


def test_every_patch_that_matches_nothing_and_every_taken_id_is_named(write: Write) -> None:
    text = """
        [[rows]]
        id = "a"
        plugin = "one"
        [[rows]]
        id = "c"
        plugin = "one"
        after = "bb"
        [[patch]]
        row = "aa"
        disabled = true
    """
    faults = faults_of(lambda: stacked(write, BASE, text))
    assert [(f.code, f.file, f.row, f.field) for f in faults] == [
        ("ROW_DUPLICATE", "1.toml", "a", "id"),
        ("ROW_UNKNOWN", "1.toml", "c", "after"),
        ("ROW_UNKNOWN", "1.toml", "aa", "row"),
    ]
    assert "did you mean 'b'?" in faults[1].message
    assert "did you mean 'a'?" in faults[2].message


def test_an_optional_patch_that_matches_nothing_is_a_notice(write: Write) -> None:
    text = '[[patch]]\nrow = "aa"\ndisabled = true\noptional = true'
    (notice,) = stacked(write, BASE, text).notices
    assert notice == "1.toml: no row 'aa' to patch; did you mean 'a'?"


@pytest.mark.parametrize(
    ("when", "platform", "applies"),
    [
        ('platform = "linux"', "linux", True),
        ('platform = "linux"', "darwin", False),
        ('platform = "macos"', "darwin", True),
        ('platform = "windows"', "win32", True),
        ('env = "SET"', "linux", True),
        ('env = "EMPTY"', "linux", False),
        ('env = "UNSET"', "linux", False),
        ('platform = "linux", env = "SET"', "linux", True),
        ('platform = "macos", env = "SET"', "linux", False),
    ],
)
def test_when_says_whether_a_row_or_patch_applies(
    write: Write, monkeypatch: pytest.MonkeyPatch, when: str, platform: str, *, applies: bool
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    text = f"""
        [[rows]]
        id = "c"
        plugin = "x"
        when = {{{when}}}
        [[patch]]
        row = "a"
        disabled = true
        when = {{{when}}}
    """
    rows = {row.id: row for row in stacked(write, BASE, text, env={"SET": "1", "EMPTY": ""}).rows}
    assert ("c" in rows, rows["a"].disabled) == (applies, applies)


def test_the_environment_is_filled_in_everywhere_and_what_was_written_is_kept(
    write: Write,
) -> None:
    text = """
        [[rows]]
        id = "a"
        plugin = "one"
        [rows.config]
        key = "Bearer ${env:KEY}"
        list = ["${env:KEY}", {inner = "${env:NONE:-default} $${env:KEY} ${HOME}"}]
        empty = "${env:EMPTY:-default}${env:NONE:-}"
        number = 3
    """
    (row,) = stacked(write, text, env={"KEY": "s3cret", "EMPTY": ""}).rows
    assert row.config == {
        "key": "Bearer s3cret",
        "list": ["s3cret", {"inner": "default ${env:KEY} ${HOME}"}],
        "empty": "",
        "number": 3,
    }
    assert "s3cret" not in repr(row)
    assert row.written["key"] == "Bearer ${env:KEY}"


def test_every_unset_variable_is_named_with_file_row_and_field_unless_the_row_is_disabled(
    write: Write,
) -> None:
    text = """
        [[rows]]
        id = "a"
        plugin = "one"
        config = {x = ["", "${env:ONE}"], y = {z = "${env:TWO}"}, bad = "${env:not a name}"}
        [[rows]]
        id = "off"
        plugin = "one"
        disabled = true
        config = {x = "${env:THREE}"}
    """
    faults = faults_of(lambda: stacked(write, text))
    assert [(f.code, f.file, f.row, f.field) for f in faults] == [
        ("ENV_UNSET", "0.toml", "a", "config.x[1]"),
        ("ENV_UNSET", "0.toml", "a", "config.y.z"),
        ("ENV_UNSET", "0.toml", "a", "config.bad"),
    ]
    assert "ONE is not set; set it or write ${env:ONE:-default}" in faults[0].message
    assert "got ${env:not a name}" in faults[2].message


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('[[row]]\nid = "a"', ("LAYER_KEY_UNKNOWN", None, "row"), "did you mean 'rows'?"),
        ('rows = "a"', ("LAYER_INVALID", None, "rows"), "expected tables [[rows]]"),
        ("patch = [1]", ("LAYER_INVALID", None, "patch"), "expected tables [[patch]]"),
        ('[[rows]]\nid = "a"', ("LAYER_INVALID", "a", "plugin"), "got nothing"),
        ('[[rows]]\nid = "a"\nplugin = 3', ("LAYER_INVALID", "a", "plugin"), "got int 3"),
        (
            '[[rows]]\nid = "a"\nplugin = "x"\nconfg = {}',
            ("LAYER_KEY_UNKNOWN", "a", "confg"), "did you mean 'config'?",
        ),
        ('[[rows]]\nid = "a b"\nplugin = "x"', ("ROW_ID_INVALID", "a b", "id"), "no row id"),
        ("[[rows]]\nid = 1\nplugin = 'x'", ("LAYER_INVALID", None, "id"), "expected str"),
        ('[[patch]]\nrow = "a"', ("LAYER_INVALID", "a", "row"), "changes nothing; expected"),
        ('[[patch]]\nrow = "a"\noptional = true', ("LAYER_INVALID", "a", "row"), "changes nothing"),
        ('[[patch]]\nrow = "a"\ndisabled = 1', ("LAYER_INVALID", "a", "disabled"), "expected bool"),
        (
            '[[patch]]\nrow = "a"\nafter = "b"\ndisabled = true',
            ("LAYER_KEY_UNKNOWN", "a", "after"), "",
        ),
        (
            '[[patch]]\nrow = "a"\nconfig = {merge = {x = 1}, y = 2}',
            ("LAYER_INVALID", "a", "config"), "expected `merge` alone",
        ),
        (
            '[[patch]]\nrow = "a"\ndisabled = true\nwhen = {platfrom = "linux"}',
            ("LAYER_KEY_UNKNOWN", "a", "when.platfrom"), "did you mean 'platform'?",
        ),
        (
            '[[patch]]\nrow = "a"\ndisabled = true\nwhen = {platform = "linus"}',
            ("LAYER_INVALID", "a", "when.platform"), "did you mean 'linux'?",
        ),
        (
            '[[patch]]\nrow = "a"\ndisabled = true\nwhen = {env = 3}',
            ("LAYER_INVALID", "a", "when.env"), "expected str, got int 3",
        ),
    ],
)  # fmt: skip
def test_a_document_of_the_wrong_form_is_refused_with_file_row_and_field(
    write: Write, text: str, where: tuple[str, str | None, str], message: str
) -> None:
    (fault,) = faults_of(lambda: read_layer(write("x.toml", text)))
    assert (fault.code, fault.row, fault.field) == where
    assert fault.file
    assert fault.file.endswith("x.toml")
    assert message in fault.message


def test_every_fault_of_a_document_is_reported_at_once(write: Write) -> None:
    text = 'x = 1\n[[rows]]\nid = 1\n[[patch]]\nrow = "a"\nconfig = 3'
    assert len(faults_of(lambda: read_layer(write("x.toml", text)))) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[[rows]]\nid = "a"\nplugin = \n', "line 3"),
        (b'[[rows]]\nid = "\xff"\n', "not UTF-8 (at line 2)"),
        (b"x = " + b"[" * 100_000, "nest"),
        (b".".join([b"a"] * 1000) + b" = 1\n", "nest more than 64 deep"),
    ],
)
def test_a_syntax_error_says_where(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    (fault,) = faults_of(lambda: read_layer(path, keys=("x", "a")))
    assert (fault.code, fault.file) == ("LAYER_SYNTAX", str(path))
    assert message in fault.message


def test_what_is_missing_a_directory_or_too_large_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_bytes(b"#" * 2_000_000)
    for name, message in (
        ("missing.toml", "No such file"),
        (".", "Is a directory"),
        ("large.toml", "is larger than"),
    ):
        (fault,) = faults_of(partial(read_layer, tmp_path / name))
        assert fault.code == "LAYER_UNREADABLE"
        assert message in fault.message


def test_what_cannot_be_read_is_closed_again(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_bytes(b"#" * 2_000_000)
    os.mkfifo(tmp_path / "pipe.toml")
    held = len(list(Path("/dev/fd").iterdir()))
    for name in (".", "large.toml", "pipe.toml"):
        faults_of(partial(read_layer, tmp_path / name))
    assert len(list(Path("/dev/fd").iterdir())) == held


def test_further_keys_are_those_that_the_reader_allows(write: Write) -> None:
    layer = read_layer(write("x.toml", 'label = "L"'), keys=("label", "order"), name="shown")
    assert (layer.extra, layer.name) == ({"label": "L"}, "shown")


def test_layers_can_be_made_without_a_file() -> None:
    layer = Layer("mine", [{"id": "a", "plugin": "one"}], [{"row": "a", "disabled": True}])
    (row,) = stack([layer], {}).rows
    assert row.disabled
    assert row.origin_of("disabled") == "mine"


def test_a_row_from_a_program_says_so() -> None:
    assert Row("a", "one").origin_of("config.x") == "program"
