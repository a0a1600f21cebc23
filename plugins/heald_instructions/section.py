"""The prompt section that instructions are, and the log of what was read for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import attrs

from heald_agent import Agent
from heald_instructions.events import INSTRUCTIONS_READ, InstructionsRead
from heald_instructions.files import InstructionFile, read_files
from heald_instructions.places import directories
from heald_instructions.projection import INSTRUCTION_FILES, Digests
from heald_projection import ProjectionFaulted, ProjectionNotReady, projections

_INTRODUCTION = (
    "Instructions that people left in files for whoever works here. Of two that contradict each "
    "other the later one holds, being nearer to your directory; what the person tells you holds "
    "before all of them."
)


@attrs.frozen(kw_only=True)
class InstructionSection:
    """Reads the files anew for each turn, in a thread: they are few and small."""

    names: tuple[str, ...]
    most_of_one: int
    """Bytes of one file."""
    most: int
    """Bytes of all files."""

    async def render(self, agent: Agent) -> str:
        """Return the section, and log which files say something else than before."""
        if agent.session.header.cwd is None:
            return ""
        files = await asyncio.to_thread(self._read, Path(agent.session.header.cwd))
        _log(agent, files)
        parts = [f"# {file.path}\n\n{file.text}" for file in reversed(files)]
        return "\n\n".join((_INTRODUCTION, *parts)) if parts else ""

    def _read(self, cwd: Path) -> Sequence[InstructionFile]:
        places = directories(cwd, _home())
        return read_files(places, self.names, each=self.most_of_one, together=self.most)


def _log(agent: Agent, files: Sequence[InstructionFile]) -> None:
    known = _known(agent)
    read = {str(file.path): _event(file) for file in files}
    gone = (InstructionsRead(path, None) for path in known if path not in read)
    for each in (*read.values(), *gone):
        if each.path not in known or known[each.path] != each.digest:
            agent.session.append(INSTRUCTIONS_READ.name, each)


def _known(agent: Agent) -> Digests:
    """Return what the session read last; nothing if that cannot be told."""
    service = agent.session.scope.require(projections)
    try:
        digests: Digests = service.state(agent.session, INSTRUCTION_FILES.key)
    except (ProjectionFaulted, ProjectionNotReady):
        return {}
    return digests


def _event(file: InstructionFile) -> InstructionsRead:
    return InstructionsRead(
        str(file.path), file.digest, file.size, file.truncated, problem=file.problem
    )


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # nobody's
        return None
