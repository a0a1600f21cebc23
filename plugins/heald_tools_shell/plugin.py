"""The plugin of the shell tool."""

from __future__ import annotations

import math
import shutil
import unicodedata
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import msgspec

from heald import Plugin, RowContext, implements
from heald_agent import Agent, AnyTool, StateKey, Tool, ToolContext, ToolError, tools

if TYPE_CHECKING:
    from heald_tools_shell.agent_shell import AgentShell


def _positive(_: object, _field: Any, value: float) -> None:
    if value <= 0:
        raise ValueError("it must be more than 0")


@attrs.frozen
class ShellConfig:
    """Which shell, and how far a command goes."""

    program: str = "bash"
    """A POSIX shell by name or path; `sh` is used on a machine that does not have it."""
    timeout_s: float = attrs.field(default=120.0, validator=_positive)
    """Seconds after which a command is killed that does not say otherwise."""
    max_output: int = attrs.field(default=32_000, validator=_positive)
    """Characters of a command's output that the model reads, half from either end."""


class ShellArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `shell` is called with."""

    command: Annotated[str, msgspec.Meta(description="What to run; it may have many lines.")]
    timeout_s: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None,
        msgspec.Meta(description="Seconds after which it is killed."),
    ] = None


class ShellToolPlugin(Plugin[ShellConfig]):
    """Contributes the tool `shell`, with one shell for each agent."""

    def __init__(self, context: RowContext[ShellConfig]) -> None:
        super().__init__(context)
        self._program = shutil.which(self.config.program) or "sh"
        self._shells = StateKey("shell", self._make)

    @implements(tools)
    def shell_tool(self) -> Iterable[AnyTool]:
        """Make the tool."""
        return [
            Tool(
                name="shell",
                description=(
                    f"Run a command in a shell ({self._program}) that stays: directory, variables "
                    "and functions are there for the next call. Output and errors come together, "
                    "then the exit status. Standard input is empty. A command still running after "
                    f"{self.config.timeout_s:g} seconds, or `timeout_s`, is killed with its shell."
                ),
                arguments=ShellArguments,
                run=self._run,
                timeout=math.inf,  # it keeps its own, and says what was written until then
            )
        ]

    def _make(self, agent: Agent, stack: AsyncExitStack) -> AgentShell:
        from heald_tools_shell.agent_shell import AgentShell  # noqa: PLC0415 - not in every host

        shell = AgentShell(self._program, self.config.max_output)
        stack.push_async_callback(shell.close)
        return shell

    async def _run(self, arguments: ShellArguments, context: ToolContext) -> str:
        command = arguments.command
        if "\0" in command or any(unicodedata.category(c) == "Cs" for c in command):
            raise ToolError("a command cannot hold a zero character or half of a surrogate pair")
        shell = context.agent.state(self._shells)
        seconds = arguments.timeout_s or self.config.timeout_s
        return await shell.run(command, context.cwd, seconds, context.cancel)
