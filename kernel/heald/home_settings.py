"""Settings that a verb writes into the home's `heald.toml`, whose comments and order survive."""

from __future__ import annotations

import os
import secrets
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from heald.documents import parse_layer, read_layer
from heald.editing import edit_toml
from heald.errors import CompositionError, FileUnwritable
from heald.profiles import FILE, HOME_KEYS

_CHANGES = ("plugin", "config", "disabled")


def write_setting(home: Path, row: str, key: str, value: str) -> Path:
    """Set one key of a host row's configuration by a patch in the home's file, and return the file.

    All else stays as it is written. The file is replaced in one step, or made for its owner alone.
    It blocks. Raises `CompositionError` if the file is no layer, and `FileUnwritable`.
    """

    def change(document: Any) -> None:
        if (config := _patched_last(document, row)) is not None:
            config[key] = value

    def edited(text: str) -> str:
        if _patched_last(tomllib.loads(text), row) is not None:
            return edit_toml(text, change, last=True)
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{_patch(row, key, value)}"

    return _rewrite(home / FILE, edited)


def clear_setting(home: Path, row: str, key: str, value: str) -> Path:
    """Take a key of a host row's configuration out of the home's file wherever it is `value`.

    A patch that then changes nothing goes too. Otherwise as `write_setting`.
    """

    def change(document: Any) -> None:
        _clear(document, row, key, value)

    return _rewrite(home / FILE, lambda text: edit_toml(text, change))


def _patch(row: str, key: str, value: str) -> str:
    """Write a patch to stand behind all others, since the last one counts."""
    import tomlkit  # noqa: PLC0415 - only who writes needs it

    name, setting = (tomlkit.item(text).as_string() for text in (row, value))
    # Optional, since another profile may be without the row.
    head = f"[[patch]]\nrow = {name}\noptional = true\n"
    return f"{head}config.merge = {{ {key} = {setting} }}\n"


def _patched_last(document: Any, row: str) -> Any:
    """Return the configuration that the last patch of a row's configuration always makes."""
    patches = [p for p in _tables(document, "patch") if p.get("row") == row and "config" in p]
    if not patches or "when" in patches[-1]:
        return None
    config = patches[-1]["config"]
    return config["merge"] if isinstance(config.get("merge"), dict) else config


def _clear(document: Any, row: str, key: str, value: str) -> None:
    rows = [table for table in _tables(document, "rows") if table.get("id") == row]
    patches = [table for table in _tables(document, "patch") if table.get("row") == row]
    for table in [*rows, *patches]:
        config = table.get("config", {})
        merge = config.get("merge")
        inner = merge if isinstance(merge, dict) else config
        if inner.get(key) == value:
            del inner[key]
            if inner is merge and not merge:
                del table["config"]
            if "row" in table and not any(change in table for change in _CHANGES):
                document["patch"].remove(table)
    if document.get("patch") == []:
        del document["patch"]


def _tables(document: Any, kind: str) -> list[Any]:
    """Return the tables of a document, or of a piece of one, that are whole in it."""
    tables = document.get(kind)
    return [*tables] if isinstance(tables, list) else []


def _rewrite(path: Path, edit: Callable[[str], str]) -> Path:
    text = _content(path)
    try:
        edited = edit(text)
        tomllib.loads(edited)
    except ValueError as error:
        reason = f"its form is unusual, so edit it by hand ({error})"
        raise FileUnwritable(str(path), reason) from error
    if edited != text:
        parse_layer(edited.encode(), str(path), keys=HOME_KEYS)
        _replace(path, edited.encode())
    return path


def _content(path: Path) -> str:
    try:
        return read_layer(path, keys=HOME_KEYS).content.decode()
    except CompositionError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ""
        raise


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside, and let it take the place; a link stays, and leads to the new one."""
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _write(beside, content, like=target)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise FileUnwritable(str(path), error.strerror or str(error)) from error


def _write(path: Path, content: bytes, *, like: Path) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
        file.flush()
        with suppress(FileNotFoundError):
            os.fchmod(file.fileno(), like.stat().st_mode & 0o7777)
        os.fsync(file.fileno())
