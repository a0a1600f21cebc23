"""The plugin of the file tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from heald import Plugin, did_you_mean, implements
from heald_agent import AnyTool, tools
from heald_tools_files.editing import edit_tool
from heald_tools_files.editor import editor_tool
from heald_tools_files.finding import glob_tool
from heald_tools_files.reading import READ
from heald_tools_files.searching import grep_tool
from heald_tools_files.writing import write_tool

_MAKERS: dict[str, Callable[[FileToolsConfig], AnyTool]] = {
    "read": lambda _: READ,
    "glob": lambda config: glob_tool(config.search_s),
    "grep": lambda config: grep_tool(config.search_s),
    "write": lambda config: write_tool(outside=config.write_outside),
    "edit": lambda config: edit_tool(outside=config.write_outside),
    "editor": lambda config: editor_tool(outside=config.write_outside),
}
_USUAL = ("read", "glob", "grep", "write", "edit")
"""`editor` does what several of these do, for an agent that is to have one tool for files."""


def _known(_: object, _field: Any, names: list[str]) -> None:
    for name in names:
        if name not in _MAKERS:
            raise ValueError(f"no tool {name!r}; {did_you_mean(name, _MAKERS)}")
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is named more than once")


def _positive(_: object, _field: Any, value: float) -> None:
    if value <= 0:
        raise ValueError("it must be more than 0")


@attrs.frozen
class FileToolsConfig:
    """Which tools there are, and how far they go."""

    tools: list[str] = attrs.field(factory=lambda: list(_USUAL), validator=_known)
    """Names among read, glob, grep, write, edit, editor; all but the last unless said otherwise."""
    write_outside: bool = False
    """Whether what changes files may go outside the session's directory; reading always may."""
    search_s: float = attrs.field(default=20.0, validator=_positive)
    """Seconds after which `glob` and `grep` stop with what they have."""


class FileToolsPlugin(Plugin[FileToolsConfig]):
    """Contributes tools that read, find, search, write and edit files."""

    @implements(tools)
    def file_tools(self) -> Iterable[AnyTool]:
        """Make the tools that the row names, in its order."""
        return [_MAKERS[name](self.config) for name in self.config.tools]
