"""Makes the tools that a row names, as its configuration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heald_agent import AnyTool
from heald_tools_files.editing import edit_tool
from heald_tools_files.editor import editor_tool
from heald_tools_files.finding import glob_tool
from heald_tools_files.reading import READ
from heald_tools_files.searching import grep_tool
from heald_tools_files.writing import write_tool

if TYPE_CHECKING:
    from heald_tools_files.plugin import FileToolsConfig

MAKERS: dict[str, Callable[[FileToolsConfig], AnyTool]] = {
    "read": lambda _: READ,
    "glob": lambda config: glob_tool(config.search_s),
    "grep": lambda config: grep_tool(config.search_s),
    "write": lambda config: write_tool(outside=config.write_outside),
    "edit": lambda config: edit_tool(outside=config.write_outside),
    "editor": lambda config: editor_tool(outside=config.write_outside),
}
