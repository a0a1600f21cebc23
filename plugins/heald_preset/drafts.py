"""The text that a preset of one's own begins with."""

from __future__ import annotations

from collections.abc import Sequence

from heald import Row

_HEAD = """\
# The preset "{id}". `heald presets show {id} --origins` prints what it comes to, and
# `heald presets check {id}` tries whether it works. An edit holds for sessions that start later.

label = "{label}"
description = ""
# order = 100
"""
_FROM_NOTHING = """
# A row is one use of a plugin; `heald plugins list` has the names. The same things cannot be
# contributed twice, and what no row contributes is not there.
#
# [[rows]]
# id = "persona"
# plugin = "persona"
# config = {{ text = "You work on the files of one directory." }}
"""
_EXTENDING = """\
extends = "{base}"

# What "{base}" has is here too, but for what is said below. It has the rows
# {rows}.
# A patch changes one of them. A row of your own has [[rows]], an id, a plugin, and maybe a config.
#
# [[patch]]
# row = "{last}"
# disabled = true
"""


def draft(preset: str) -> str:
    """Write a `preset.toml` that begins with nothing."""
    return _head(preset) + _FROM_NOTHING.format()


def draft_extending(preset: str, base: str, rows: Sequence[Row]) -> str:
    """Write a `preset.toml` that begins with the rows of another preset."""
    names = [row.id for row in rows] or ["none"]
    return _head(preset) + _EXTENDING.format(base=base, rows=", ".join(names), last=names[-1])


def _head(preset: str) -> str:
    return _HEAD.format(id=preset, label=preset.replace("-", " ").capitalize())
