"""Instructions that people leave for agents in AGENTS.md and CLAUDE.md."""

from heald_instructions.events import InstructionsRead

__all__ = ["InstructionsRead"]
