"""The plugin of the file tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from heald import Plugin, did_you_mean, implements
from heald_agent import AnyTool, tools

_USUAL = ("read", "glob", "grep", "write", "edit")
_KNOWN = (*_USUAL, "editor")
"""`editor` does what several of the others do, for an agent that is to have one tool for files."""


def _known(_: object, _field: Any, names: list[str]) -> None:
    for name in names:
        if name not in _KNOWN:
            raise ValueError(f"no tool {name!r}; {did_you_mean(name, _KNOWN)}")
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
        from heald_tools_files.toolbox import MAKERS  # noqa: PLC0415 - hosts without it come here

        return [MAKERS[name](self.config) for name in self.config.tools]
